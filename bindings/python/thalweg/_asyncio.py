# _asyncio.py: `await tensor`.
from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Generator

from thalweg._typing import Any, Tensor


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    # The loop may have been closed meanwhile, then nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, future)


def await_tensor(self: Tensor) -> Generator[Any, None, Tensor]:
    """Lets the event loop go on until the value is there; gives the tensor, or raises its failure.

    The callback lane wakes the loop; nothing polls.
    """
    while not self.is_ready():  # again where an in-place form rebinds the tensor meanwhile
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        self.on_ready(functools.partial(_wake, loop, future))
        yield from future
    return self.wait()

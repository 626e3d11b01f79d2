# _asyncio.py: `await tensor`.
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator

from thalweg._typing import Any, Tensor


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def await_tensor(self: Tensor) -> Generator[Any, None, Tensor]:
    """Lets the event loop go on until the value is there; gives the tensor, or raises its failure.

    The callback lane wakes the loop; nothing polls.
    """
    if not self.is_ready():
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            # The loop may have been closed meanwhile, then nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future)

        self.on_ready(wake)
        yield from future
    return self.wait()

# _callbacks.py: what is to run at the end of a backward.
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from thalweg import _C
from thalweg._typing import Any

Result = TypeVar("Result")


class _Queues(threading.local):
    """Of each backward that runs on this thread, the innermost last."""

    def __init__(self) -> None:
        self.open: list[list[Callable[[], object]]] = []


_queues = _Queues()


def queue_callback(callback: Callable[[], object]) -> None:
    """Has `callback()` run at the end of the backward that runs on this thread: once, on this thread, after
    all hooks and nodes. A nested backward runs its own. Gradients are there as tensors then, perhaps still
    on their way. A callback may queue others. A backward that raises drops its callbacks.

    Raises EngineError outside of a backward: call it from a hook or a custom Function. The queue_callback of
    PyTorch's engine.

    >>> x = tw.asarray(3.0).requires_grad_()
    >>> hook = x.register_hook(lambda grad: tw.autograd.queue_callback(lambda: print(x.grad)))
    >>> (x * 2).backward()
    tensor(2.)
    """
    if not callable(callback):
        raise _C.DTypeError(f"queue_callback: expected a function, got {type(callback).__name__}")
    if not _queues.open:
        raise _C.EngineError("queue_callback: no backward runs on this thread; call it from a hook")
    _queues.open[-1].append(callback)


def running_callbacks(backward: Callable[..., Result]) -> Callable[..., Result]:
    """`backward`, with what is queued meanwhile after it."""

    def run(*arguments: Any) -> Result:
        queue: list[Callable[[], object]] = []
        _queues.open.append(queue)
        try:
            result = backward(*arguments)
            for callback in queue:  # it may grow
                callback()
            return result
        finally:
            _queues.open.pop()

    return run

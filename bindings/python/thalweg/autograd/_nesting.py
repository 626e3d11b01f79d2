# _nesting.py: backward within backward, to any depth.
from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

from thalweg import _C
from thalweg._typing import Any

Function = TypeVar("Function", bound=Callable[..., Any])

# As many calls within one another as PyTorch's engine lets one stack have.
_LEVELS = 60


class _Depth(threading.local):
    level = 0


_depth = _Depth()


def nesting(function: Function) -> Function:
    """`function`, which may be called from within itself: past 60 levels a fresh thread goes on, whose stack,
    Python's limit of recursion included, begins anew. The caller waits for it."""

    @functools.wraps(function)
    def nested(*args: Any, **options: Any) -> Any:
        level = _depth.level
        if level >= _LEVELS:
            return _on_a_fresh_thread(nested, args, options)
        _depth.level = level + 1
        try:
            return function(*args, **options)
        finally:
            _depth.level = level

    return nested  # type: ignore[return-value]


def _on_a_fresh_thread(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    context = contextvars.copy_context()
    grad_mode = _C.set_grad_mode(True)
    _C.set_grad_mode(grad_mode)
    inference = _C.is_inference_mode()
    anomaly = _C.anomaly_mode()
    hooks = _C.saved_tensors_hooks()
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        _C.set_grad_mode(grad_mode)
        _C.set_inference_mode(inference)
        _C.set_anomaly_mode(*anomaly)
        if hooks is not None:
            _C.push_saved_tensors_hooks(*hooks)
        try:
            results.append(context.run(function, *args, **options))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="thalweg nested backward")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

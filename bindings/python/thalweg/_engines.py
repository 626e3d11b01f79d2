# _engines.py: the engine of a tensor, for functions that make tensors beside their operands.
"""Operators run in the engine of their operands, and what has no operands is made in the current engine. A
function that makes such tensors for those it is given moves to their engine first:

    if entered and (there := elsewhere(x)):
        return there(function, x, ...)

A program without a `with engine:` has one engine, and pays for the look at a list only."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterator

from thalweg import _C
from thalweg._typing import Any

_matmul = _C.op("matmul")
_enter = _C.Engine.__enter__

#: Engines whose `with` blocks were entered. Tensors are made in these and in the default engine only.
entered: list[_C.Engine] = []


def _enter_and_remember(self: _C.Engine) -> _C.Engine:
    if self not in entered:
        entered[:] = [*(each for each in entered if not each.closed), self]
    return _enter(self)


def watch() -> None:
    """Has `with engine:` tell this module; called once, when the package is imported."""
    _enter_and_remember.__name__ = "__enter__"
    _enter_and_remember.__qualname__ = "Engine.__enter__"
    _C.Engine.__enter__ = _enter_and_remember  # type: ignore[method-assign]


def elsewhere(x: Any) -> Callable[..., Any] | None:
    """None for a tensor of the current engine and for what is no tensor, else a function that calls another
    one with that tensor's engine as the current one.

    None also for a tensor of a closed engine, which no operator takes any more.
    """
    if not isinstance(x, _C.Tensor):
        return None
    current = _C.current_engine()
    if _owns(current, x):
        return None
    for engine in _others(current):
        if _owns(engine, x):
            return functools.partial(_call_in, engine)
    return None


def _others(current: _C.Engine) -> Iterator[_C.Engine]:
    yield from (each for each in reversed(entered) if each is not current and not each.closed)
    default = contextvars.Context().run(_C.current_engine)
    if default is not current:
        yield default


def _owns(engine: _C.Engine, x: _C.Tensor) -> bool:
    _enter(engine)
    try:
        number = _C.from_nested(False)
    finally:
        engine.__exit__(None, None, None)
    # matmul takes no 0-d tensors, so that nothing is issued; whose engine they are of is asked first.
    try:
        _matmul(x, number)
    except _C.EngineError:
        return False
    except _C.Error:
        pass
    return True


def _call_in(engine: _C.Engine, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with engine:
        return function(*args, **kwargs)

# _engines.py: the engine of a tensor, for functions that make tensors beside their operands.
"""Operators run in the engine of their operands, and what has no operands is made in the current engine. A
function that makes such tensors for those it is given moves to their engine first:

    if entered and (there := elsewhere(x)):
        return there(function, x, ...)

A program without a `with engine:` has one engine, and pays for the look at a list only."""

from __future__ import annotations

import functools
from collections.abc import Callable

from thalweg import _C
from thalweg._typing import Any

#: Empty until the first `with engine:` of the process.
entered = _C._entered_engines


def elsewhere(x: Any) -> Callable[..., Any] | None:
    """None for a tensor of the current engine and for what is no tensor, else a function that calls another
    one with that tensor's engine as the current one.

    None also for a tensor of a closed engine, which no operator takes any more.
    """
    engine = _C._engine_elsewhere(x)
    return None if engine is None else functools.partial(_call_in, engine)


def _call_in(engine: _C.Engine, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with engine:
        return function(*args, **kwargs)

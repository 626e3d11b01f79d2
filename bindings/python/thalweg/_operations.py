# _operations.py: how functions of the package find their operation and its documentation.
from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from thalweg import _C

Function = TypeVar("Function", bound=Callable[..., object])


def documented(operation: _C.Operation, note: str = "") -> Callable[[Function], Function]:
    """Gives a function the documentation of the operation it issues; a new operation is documented in its
    Op only."""

    def set_doc(function: Function) -> Function:
        function.__doc__ = (operation.__doc__ or "") + (f"\n\n{note}" if note else "")
        return function

    return set_doc


def require_tensor(name: str, x: Any) -> _C.Tensor:
    """x, if it is a tensor; for functions that look at its shape before they issue anything."""
    if isinstance(x, _C.Tensor):
        return x
    raise _C.DTypeError(
        f"{name}: expected a Tensor, not {type(x).__name__}; make a tensor of it with thalweg.asarray"
    )


def axis_of(name: str, axis: Any, rank: int) -> int:
    """An axis counted from the front; raises IndexError for one out of range."""
    try:
        position = operator.index(axis)
    except TypeError:
        raise _C.DTypeError(f"{name}: axis must be an int, not {type(axis).__name__}") from None
    position += rank if position < 0 else 0
    if not 0 <= position < rank:
        raise _C.IndexError(f"{name}: axis {axis} is out of bounds for {rank} dimensions")
    return position


def is_index(x: Any) -> bool:
    """True for an int and what works as one. Arrays have __index__ whatever their size."""
    return hasattr(x, "__index__") and getattr(x, "ndim", 0) == 0


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints."""
    try:
        sizes = (operator.index(shape),) if is_index(shape) else tuple(operator.index(size) for size in shape)
    except TypeError:
        raise _C.DTypeError(f"{name}: shape must be an int or a tuple of ints, not {shape!r}") from None
    if builtins.any(size >= 2**63 for size in sizes):
        raise _C.ShapeError(f"{name}: shape {sizes} is too large")
    return sizes

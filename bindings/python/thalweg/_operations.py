# _operations.py: how functions of the package find their operation and its documentation.
from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from thalweg import _C

Function = TypeVar("Function", bound=Callable[..., object])


def documented(operation: _C.Operation) -> Callable[[Function], Function]:
    """Puts the documentation of the operation that a function issues in front of the function's own: the Op
    says what is computed, the function what Python adds and how it is called."""

    def set_doc(function: Function) -> Function:
        own = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = "\n\n".join(text for text in (operation.__doc__, own) if text)
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


def require_real(name: str, x: Any) -> _C.Tensor:
    """x, if it is a tensor of a dtype that has an order; bool and integers as well as floating ones."""
    x = require_tensor(name, x)
    if x.dtype.kind == "complex floating":
        raise _C.DTypeError(f"{name}: {x.dtype} has no order; use a real dtype, as of x.real")
    return x


def as_floating(name: str, x: Any) -> _C.Tensor:
    """x, if its dtype is floating; bool and integers as float64, as for other functions of them."""
    x = require_real(name, x)
    return x if x.dtype.kind == "real floating" else _C.op("astype")(x, dtype="float64")


def _is_half(x: Any) -> bool:
    return isinstance(x, _C.Tensor) and (x.dtype is _C.float16 or x.dtype is _C.bfloat16)


def _cast_halves(x: Any) -> Any:
    return _C.op("astype")(x, dtype="float32") if _is_half(x) else x


def _round_to(result: Any, dtype: _C.DType) -> Any:
    if isinstance(result, tuple):
        return type(result)(*(_round_to(each, dtype) for each in result))
    return _C.op("astype")(result, dtype=dtype) if isinstance(result, _C.Tensor) else result


def halves_in_float32(function: Function) -> Function:
    """A function that is composed of several operations, for tensors of float16 and bfloat16 too: they are
    cast to float32 before and the results rounded once after, to the promoted dtype."""

    @functools.wraps(function)
    def in_float32(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if not builtins.any(map(_is_half, given)):
            return function(*args, **kwargs)
        result = function(*map(_cast_halves, args), **{key: _cast_halves(x) for key, x in kwargs.items()})
        dtypes = [x.dtype for x in given if isinstance(x, _C.Tensor) and "floating" in x.dtype.kind]
        dtype = functools.reduce(_C.promote, dtypes)
        return _round_to(result, dtype) if dtype is _C.float16 or dtype is _C.bfloat16 else result

    return in_float32  # type: ignore[return-value]


def axes_of(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """None (all axes), an int or a sequence of them, counted from the front and each one once."""
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if is_index(axis) or isinstance(axis, str) or not hasattr(axis, "__iter__") else axis
    axes = tuple(axis_of(name, each, rank) for each in given)
    if len(set(axes)) != len(axes):
        raise _C.ShapeError(f"{name}: axes {axis} name an axis twice")
    return axes


def number_of(name: str, what: str, number: Any, least: float | None = None) -> float:
    """A finite number given as an argument, as a float; `least` is the smallest one allowed."""
    if isinstance(number, (str, _C.Tensor)) or not hasattr(type(number), "__float__"):
        raise _C.DTypeError(f"{name}: {what} must be a number, not {type(number).__name__}")
    value = float(number)
    if not math.isfinite(value) or (least is not None and value < least):
        bound = "" if least is None else f" and at least {least:g}"
        raise _C.ValueError(f"{name}: {what} is {number}; it must be finite{bound}")
    return value


def value_of(name: str, what: str, number: Any) -> Any:
    """A number given as an argument; of a 0-d tensor its value, for which the call waits."""
    if not isinstance(number, _C.Tensor):
        return number
    if number.ndim != 0:
        raise _C.ShapeError(f"{name}: {what} must be a number or a 0-d tensor, not of shape {number.shape}")
    return number.item()


def require_broadcast(name: str, what: str, x: _C.Tensor, shape: tuple[int, ...]) -> None:
    """Raises ShapeError unless x broadcasts to the shape."""
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    if x.ndim > len(shape) or builtins.any(size not in (1, other) for size, other in pairs):
        raise _C.ShapeError(f"{name}: {what} of shape {x.shape} does not broadcast to shape {shape}")

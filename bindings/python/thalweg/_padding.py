# _padding.py: elements put around a tensor.
"""NumPy's pad."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._operations import is_index, require_tensor, value_of
from thalweg._typing import Any, Scalar, Tensor

_arange = op("arange")
_clip = op("clip")
_full = op("full")
_minimum = op("minimum")
_remainder = op("remainder")
_take = op("take")

PadWidth = int | Sequence[int] | Sequence[Sequence[int]]


def pad(
    x: Tensor,
    pad_width: PadWidth,
    /,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    *,
    constant_values: Scalar | Tensor = 0,
) -> Tensor:
    """x with elements before and behind it along each axis. The result has the dtype of x.

    pad_width: a number for both ends of all axes, a pair (before, behind) for all axes, or such a pair for
    each axis. mode "constant" puts constant_values there, a number or a 0-d tensor (for which the call
    waits), cast to the dtype of x; "edge" the outermost element; "reflect" the elements next to it in
    reverse, "symmetric" those from the outermost one on in reverse, "wrap" those from the other end. What is
    wider than x is reflected or wrapped again.

    Raises ValueError for a negative width, another mode, an axis of no element to repeat, widths that do not
    fit the axes and a constant that the dtype cannot hold; DTypeError for widths that are no ints. NumPy's
    pad.

    >>> tw.pad(tw.asarray([1, 2, 3]), (2, 1)), tw.pad(tw.asarray([1, 2, 3]), 2, "reflect")
    (tensor([0, 0, 1, 2, 3, 0]), tensor([3, 2, 1, 2, 3, 2, 1]))
    """
    x = require_tensor("pad", x)
    if mode != "constant" and mode not in _PLACES:
        modes = ", ".join(map(repr, ("constant", *_PLACES)))
        raise _C.ValueError(f"pad: mode must be one of {modes}, not {mode!r}")
    widths = _widths(pad_width, x.ndim)
    if mode == "constant":
        return pad_constant(x, widths, value_of("pad", "constant_values", constant_values))
    for axis, (before, behind) in enumerate(widths):
        if before + behind > 0:
            x = _repeated(x, axis, before, behind, mode)
        # An operator that does nothing still gives a handle of its own.
    return x[...]


def pad_constant(x: Tensor, widths: Sequence[tuple[int, int]], value: Scalar) -> Tensor:
    """x within elements of one value; a pair (before, behind) for each axis."""
    if entered and (there := elsewhere(x)):
        return there(pad_constant, x, widths, value)
    shape = [size + sum(ends) for size, ends in zip(x.shape, widths, strict=True)]
    result = _full(shape=shape, value=value, dtype=x.dtype, device=x.device)
    inside = tuple(slice(before, before + size) for (before, _), size in zip(widths, x.shape, strict=True))
    result[inside] = x
    return result


def _repeated(x: Tensor, axis: int, before: int, behind: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if size == 0:
        raise _C.ValueError(f"pad: axis {axis} of shape {x.shape} has no element for mode {mode!r} to repeat")
    if entered and (there := elsewhere(x)):
        return there(_repeated, x, axis, before, behind, mode)
    places = _arange(start=-before, stop=size + behind, step=1, device=x.device)
    return _take(x, _PLACES[mode](places, size), axis=axis)


def _reflected(places: Tensor, size: int) -> Tensor:
    period = 2 * size - 2
    if period == 0:
        return _clip(places, 0, 0)
    within = _remainder(places, period)
    return _minimum(within, period - within)


def _mirrored(places: Tensor, size: int) -> Tensor:
    within = _remainder(places, 2 * size)
    return _minimum(within, 2 * size - 1 - within)


# For places along an axis, from below 0 to beyond its size, those whose elements stand there.
_PLACES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "edge": lambda places, size: _clip(places, 0, size - 1),
    "reflect": _reflected,
    "symmetric": _mirrored,
    "wrap": _remainder,
}


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """A pair for each axis."""
    try:
        if is_index(pad_width):
            widths = [(operator.index(pad_width),) * 2] * rank
        else:
            given = list(pad_width)
            if given and all(is_index(each) for each in given):
                given = [given] * (rank if len(given) == 2 else 1)
            widths = [tuple(operator.index(width) for width in each) for each in given]
            if len(widths) == 1:
                widths *= rank
    except TypeError:
        raise _C.DTypeError(f"pad: pad_width must hold ints, not {pad_width!r}") from None
    if len(widths) != rank or any(len(each) != 2 for each in widths):
        raise _C.ValueError(
            f"pad: pad_width {pad_width} does not fit {rank} dimensions; give an int, a pair, or a pair for "
            "each axis"
        )
    if any(width < 0 for each in widths for width in each):
        raise _C.ValueError(f"pad: pad_width {pad_width} must not be negative")
    return widths


__all__ = ["pad"]

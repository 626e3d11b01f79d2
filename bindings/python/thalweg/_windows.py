# _windows.py: the windows that convolutions and pooling look through.
from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from thalweg import _C
from thalweg._C import op
from thalweg._operations import is_index
from thalweg._padding import pad_constant
from thalweg._typing import Any, Scalar, Tensor

_concat = op("concat")
_expand_dims = op("expand_dims")


class Windows(NamedTuple):
    """How windows lie over the spatial axes, which are the last ones; a number or a pair for each axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    count: tuple[int, ...]


def per_axis(name: str, what: str, given: Any, rank: int, least: int) -> tuple[int, ...]:
    """A number for all axes or one for each, as a tuple."""
    try:
        numbers = (operator.index(given),) * rank if is_index(given) else tuple(map(operator.index, given))
    except TypeError:
        raise _C.DTypeError(f"{name}: {what} must be an int or a tuple of ints, not {given!r}") from None
    if len(numbers) != rank:
        raise _C.ValueError(f"{name}: {what} {given} must be an int or {rank} of them")
    if min(numbers) < least:
        raise _C.ValueError(f"{name}: {what} is {given}; it must be at least {least}")
    return numbers


def windows_over(
    name: str,
    sizes: Sequence[int],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: Sequence[tuple[int, int]],
    dilation: tuple[int, ...],
    ceil_mode: bool = False,
) -> Windows:
    """The windows that fit into axes of the sizes. ceil_mode: also those that reach beyond the end but begin
    before it, with more padding there."""
    counts, ends = [], []
    for size, k, s, (before, behind), d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        room = size + before + behind - reach
        if room < 0:
            raise _C.ShapeError(
                f"{name}: a window of {reach} does not fit into an axis of size {size} with padding "
                f"{before} and {behind}"
            )
        count = room // s + 1
        if ceil_mode and room % s and count * s < size + before:
            count += 1
        counts.append(count)
        ends.append((before, max(behind, (count - 1) * s + reach - size - before)))
    return Windows(kernel, stride, dilation, tuple(ends), tuple(counts))


def gather_windows(x: Tensor, windows: Windows, fill: Scalar) -> Tensor:
    """x of shape (N, C, ...) as (N, C, elements of a window, ...count), padded with a value: a slice of the
    whole for each element of a window, so that all copies are of rows and not of single elements."""
    if any(before or behind for before, behind in windows.padding):
        x = pad_constant(x, [(0, 0), (0, 0), *windows.padding], fill)
    parts = [_expand_dims(x[(..., *each)], axis=2) for each in product(*_slices(windows))]
    return parts[0] if len(parts) == 1 else _concat(*parts, axis=2)


def _slices(windows: Windows) -> list[list[slice]]:
    """For each axis and each place in a window what lies there, over all windows."""
    axes = zip(windows.kernel, windows.stride, windows.dilation, windows.count, strict=True)
    return [[slice(i * d, i * d + (n - 1) * s + 1, s) for i in range(k)] for k, s, d, n in axes]

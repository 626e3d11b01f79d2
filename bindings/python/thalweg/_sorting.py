# _sorting.py: functions that order elements or find them.
"""Sorting, searching and indexing functions of the array API standard. A sort is always stable."""

from __future__ import annotations

from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._operations import documented, require_tensor
from thalweg._typing import Operand, Tensor

_sort = op("sort")
_argsort = op("argsort")
_searchsorted = op("searchsorted")
_take = op("take")
_take_along_axis = op("take_along_axis")
_count_nonzero = op("count_nonzero")
_nonzero = op("nonzero")


@documented(_sort, "stable: a sort that need not be stable is a stable one too.")
def sort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    return _sort(x, axis=axis, descending=descending)


@documented(_argsort, "stable: a sort that need not be stable is a stable one too.")
def argsort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    return _argsort(x, axis=axis, descending=descending)


@documented(_searchsorted, "sorter: positions that put x1 in order, as argsort gives them.")
def searchsorted(
    x1: Tensor,
    x2: Operand,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        if require_tensor("searchsorted", x1).ndim != 1:
            raise _C.ShapeError(f"searchsorted: x1 must have 1 dimension, not shape {x1.shape}")
        x1 = _take(x1, sorter, axis=0)
    return _searchsorted(x1, x2, side=side)


@documented(_take_along_axis)
def take_along_axis(x: Tensor, indices: Tensor, /, axis: int = -1) -> Tensor:
    return _take_along_axis(x, indices, axis=axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements of x that are not zero, in C order: a tensor of int64 for each axis.

    Waits for the number of them, on which the shape depends. nan is not zero. Raises ShapeError for a 0-d x.

    Array API standard, searching functions.
    """
    if require_tensor("nonzero", x).ndim == 0:
        raise _C.ShapeError("nonzero: a 0-d tensor has no axis to name")
    rows = _nonzero(x, count=_count_nonzero(x).item())
    return tuple(rows[axis] for axis in range(x.ndim))


__all__ = ["argsort", "nonzero", "searchsorted", "sort", "take_along_axis"]

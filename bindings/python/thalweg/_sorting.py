# _sorting.py: functions that order elements or find them.
"""Sorting, searching and indexing functions of the array API standard, and put_along_axis and topk. A sort is
always stable."""

from __future__ import annotations

import operator
from typing import Literal, NamedTuple

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._operations import axis_of, documented, is_index, require_broadcast, require_tensor
from thalweg._typing import Operand, Tensor

_arange = op("arange")
_reshape = op("reshape")
_sort = op("sort")
_argsort = op("argsort")
_topk = op("topk")
_searchsorted = op("searchsorted")
_take = op("take")
_take_along_axis = op("take_along_axis")
_count_nonzero = op("count_nonzero")
_nonzero = op("nonzero")


@documented(_sort)
def sort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """stable: a sort that need not be stable is a stable one too.

    >>> tw.sort(tw.asarray([[3, 1, 2], [9, 8, 7]]), descending=True)
    tensor([[3, 2, 1],
            [9, 8, 7]])
    """
    return _sort(x, axis=axis, descending=descending)


@documented(_argsort)
def argsort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """stable: a sort that need not be stable is a stable one too.

    >>> x = tw.asarray([3, 1, 2])
    >>> order = tw.argsort(x)
    >>> order, x[order]
    (tensor([1, 2, 0]), tensor([1, 2, 3]))
    """
    return _argsort(x, axis=axis, descending=descending)


@documented(_searchsorted)
def searchsorted(
    x1: Tensor,
    x2: Operand,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """sorter: positions that put x1 in order, as argsort gives them.

    >>> edges = tw.asarray([0, 10, 20])
    >>> tw.searchsorted(edges, tw.asarray([-5, 10, 15]))
    tensor([0, 1, 2])
    >>> tw.searchsorted(edges, tw.asarray([-5, 10, 15]), side="right")
    tensor([0, 2, 2])
    """
    if sorter is not None:
        if require_tensor("searchsorted", x1).ndim != 1:
            raise _C.ShapeError(f"searchsorted: x1 must have 1 dimension, not shape {x1.shape}")
        x1 = _take(x1, sorter, axis=0)
    return _searchsorted(x1, x2, side=side)


@documented(_take_along_axis)
def take_along_axis(x: Tensor, indices: Tensor, /, axis: int = -1) -> Tensor:
    """>>> x = tw.asarray([[3, 9, 4], [8, 1, 2]])
    >>> tw.take_along_axis(x, tw.argsort(x, axis=1), axis=1)  # sorted
    tensor([[3, 4, 9],
            [1, 2, 8]])
    """
    return _take_along_axis(x, indices, axis=axis)


def put_along_axis(x: Tensor, indices: Tensor, values: Operand, /, axis: int = -1) -> Tensor:
    """x with values at the positions that indices names along an axis, each for its own place on the other
    axes. A new tensor: x stays as it is.

    indices: integers, negative ones counted from the end, with as many dimensions as x and along the other
    axes its sizes or 1. values: a number or a tensor that broadcasts to the shape that gives; it is cast to
    the dtype of x. Of a position named twice the last value stays. Raises DTypeError for indices that are no
    integers, ShapeError for shapes that do not fit and IndexError for an axis out of range; an index out of
    range fails the result with IndexError. NumPy's put_along_axis, as a function of values.

    >>> x = tw.asarray([[3, 9, 4], [8, 1, 2]])
    >>> largest = tw.argmax(x, axis=1, keepdims=True)
    >>> tw.put_along_axis(x, largest, 0, axis=1)
    tensor([[3, 0, 4],
            [0, 1, 2]])
    """
    name = "put_along_axis"
    x, indices = require_tensor(name, x), require_tensor(name, indices)
    if entered and (there := elsewhere(x)):
        return there(put_along_axis, x, indices, values, axis=axis)
    axis = axis_of(name, axis, x.ndim)
    if "integer" not in indices.dtype.kind:
        raise _C.DTypeError(f"{name}: indices must have an integer dtype, not {indices.dtype}")
    if indices.ndim != x.ndim:
        raise _C.ShapeError(
            f"{name}: indices of shape {indices.shape} must have {x.ndim} dimensions as x has"
        )
    selection = tuple(indices.shape[i] if i == axis else size for i, size in enumerate(x.shape))
    require_broadcast(name, "indices", indices, selection)
    if isinstance(values, Tensor):
        require_broadcast(name, "values", values, selection)
    places: list[Tensor] = []
    for i, size in enumerate(x.shape):
        line = _arange(start=0, stop=size, step=1, device=x.device)
        places.append(indices if i == axis else _reshape(line, shape=(-1,) + (1,) * (x.ndim - 1 - i)))
    result = x[...]  # a handle of its own, which the assignment rebinds
    result[tuple(places)] = values
    return result


class TopK(NamedTuple):
    """What topk returns."""

    values: Tensor
    indices: Tensor


@documented(_topk)
def topk(x: Tensor, k: int, /, axis: int = -1, *, largest: bool = True, sorted: bool = True) -> TopK:
    """sorted: results that need not be in order are in order too.

    >>> values, indices = tw.topk(tw.asarray([3.0, 9.0, 4.0, 8.0]), 2)
    >>> values, indices
    (tensor([9., 8.]), tensor([1, 3]))
    """
    axis = axis_of("topk", axis, require_tensor("topk", x).ndim)
    if not is_index(k):
        raise _C.DTypeError(f"topk: k must be an int, not {type(k).__name__}")
    count, size = operator.index(k), x.shape[axis]
    if not 0 <= count <= size:
        raise _C.ValueError(f"topk: k is {count}; it must be from 0 to {size}, the size of axis {axis}")
    return TopK(*_topk(x, k=count, axis=axis, largest=bool(largest)))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements of x that are not zero, in C order: a tensor of int64 for each axis.

    Waits for the number of them, on which the shape depends. nan is not zero. Raises ShapeError for a 0-d x.

    Array API standard, searching functions.

    >>> tw.nonzero(tw.asarray([[0, 7], [8, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    if require_tensor("nonzero", x).ndim == 0:
        raise _C.ShapeError("nonzero: a 0-d tensor has no axis to name")
    rows = _nonzero(x, count=_count_nonzero(x).item())
    return tuple(rows[axis] for axis in range(x.ndim))


__all__ = ["argsort", "nonzero", "put_along_axis", "searchsorted", "sort", "take_along_axis", "topk"]

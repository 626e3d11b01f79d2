# _linear_algebra.py: products of matrices.
"""Linear algebra functions of the array API standard."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from thalweg import _C
from thalweg._C import op
from thalweg._operations import axis_of, documented, halves_in_float32, require_tensor
from thalweg._typing import Any, Tensor

_matmul = op("matmul")
_conj = op("conj")
_multiply = op("multiply")
_permute_dims = op("permute_dims")
_reshape = op("reshape")
_sum = op("sum")


@documented(_matmul)
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """>>> a = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> tw.matmul(a, tw.asarray([1.0, -1.0]))
    tensor([-1., -1.])
    >>> a @ a
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    return _matmul(x1, x2)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The matrices in the last two axes of x, transposed. Shares x's bytes. Raises ShapeError below 2
    dimensions.

    Array API standard, linear algebra functions.

    >>> tw.matrix_transpose(tw.asarray([[1, 2, 3], [4, 5, 6]]))
    tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    rank = require_tensor("matrix_transpose", x).ndim
    if rank < 2:
        raise _C.ShapeError(f"matrix_transpose: needs at least 2 dimensions, shape {x.shape} has {rank}")
    return _permute_dims(x, axes=(*range(rank - 2), rank - 1, rank - 2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sums of products of x1 and x2 over pairs of axes; the others follow one another, those of x1 first.

    axes: a number n for the last n axes of x1 with the first n of x2, or the axes of x1 and those of x2.
    Raises ShapeError where the sizes of a pair differ, IndexError for an axis out of range and ValueError
    for axes that do not pair.

    Array API standard, linear algebra functions.

    >>> a, b = tw.ones((2, 3, 4)), tw.ones((4, 3, 5))
    >>> tw.tensordot(a, b, axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    require_tensor("tensordot", x1)
    require_tensor("tensordot", x2)
    first, second = _paired_axes(x1, x2, axes)
    free1 = [axis for axis in range(x1.ndim) if axis not in first]
    free2 = [axis for axis in range(x2.ndim) if axis not in second]
    length = math.prod(x1.shape[axis] for axis in first)
    rows = [x1.shape[axis] for axis in free1]
    columns = [x2.shape[axis] for axis in free2]
    left = _reshape(_permute_dims(x1, axes=[*free1, *first]), shape=(math.prod(rows), length))
    right = _reshape(_permute_dims(x2, axes=[*second, *free2]), shape=(length, math.prod(columns)))
    return _reshape(_matmul(left, right), shape=[*rows, *columns])


def _paired_axes(x1: Tensor, x2: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if hasattr(axes, "__index__"):
        count, most = operator.index(axes), min(x1.ndim, x2.ndim)
        if not 0 <= count <= most:
            raise _C.ValueError(f"tensordot: axes is {count}; it must be from 0 to {most}")
        axes = range(x1.ndim - count, x1.ndim), range(count)
    given1, given2 = axes
    first = [axis_of("tensordot", axis, x1.ndim) for axis in given1]
    second = [axis_of("tensordot", axis, x2.ndim) for axis in given2]
    if len(first) != len(second) or len({*first}) != len(first) or len({*second}) != len(second):
        raise _C.ValueError(f"tensordot: axes {first} and {second} do not pair axes of x1 with axes of x2")
    for a, b in zip(first, second, strict=True):
        if x1.shape[a] != x2.shape[b]:
            raise _C.ShapeError(
                f"tensordot: axis {a} of shape {x1.shape} and axis {b} of shape {x2.shape} differ in size"
            )
    return first, second


@halves_in_float32
def vecdot(x1: Tensor, x2: Tensor, /, axis: int = -1) -> Tensor:
    """The sums of products of conj(x1) and x2 along an axis of one size; the other axes broadcast.

    The result has the promoted dtype. Raises ShapeError where the sizes differ and IndexError for an axis
    out of range. Array API standard, linear algebra functions.

    >>> tw.vecdot(tw.asarray([[1, 2], [3, 4]]), tw.asarray([10, 1]))
    tensor([12, 34])
    """
    first = axis_of("vecdot", axis, require_tensor("vecdot", x1).ndim)
    second = axis_of("vecdot", axis, require_tensor("vecdot", x2).ndim)
    if axis >= 0 and x1.ndim != x2.ndim:
        raise _C.ValueError(f"vecdot: axis {axis} must be negative where x1 and x2 differ in dimensions")
    if x1.shape[first] != x2.shape[second]:
        raise _C.ShapeError(f"vecdot: shapes {x1.shape} and {x2.shape} differ in size along axis {axis}")
    left = _axis_last(x1, first)
    if left.dtype.kind == "complex floating":
        left = _conj(left)
    product = _multiply(left, _axis_last(x2, second))
    return _sum(product, axis=-1, dtype=product.dtype)


def _axis_last(x: Tensor, axis: int) -> Tensor:
    return _permute_dims(x, axes=[*(i for i in range(x.ndim) if i != axis), axis])


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

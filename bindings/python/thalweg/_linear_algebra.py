# _linear_algebra.py: products of matrices.
"""Linear algebra functions of the array API standard."""

from __future__ import annotations

from thalweg import _C
from thalweg._C import op
from thalweg._operations import documented
from thalweg._typing import Tensor

_matmul = op("matmul")
_permute_dims = op("permute_dims")


@documented(_matmul)
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    return _matmul(x1, x2)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The matrices in the last two axes of x, transposed. Shares x's bytes. Raises ShapeError below 2
    dimensions."""
    rank = x.ndim
    if rank < 2:
        raise _C.ShapeError(f"matrix_transpose: needs at least 2 dimensions, shape {x.shape} has {rank}")
    return _permute_dims(x, axes=(*range(rank - 2), rank - 1, rank - 2))


__all__ = ["matmul", "matrix_transpose"]

# _reductions.py: functions that combine elements along axes.
"""Statistical, searching and utility functions of the array API standard."""

from __future__ import annotations

import builtins

from thalweg import _C
from thalweg._C import op
from thalweg._operations import axis_of, documented, require_tensor
from thalweg._typing import Axis, DTypeLike, Tensor

_sum = op("sum")
_prod = op("prod")
_mean = op("mean")
_var = op("var")
_std = op("std")
_max = op("max")
_min = op("min")
_any = op("any")
_all = op("all")
_argmax = op("argmax")
_argmin = op("argmin")
_count_nonzero = op("count_nonzero")
_cumulative_sum = op("cumulative_sum")
_cumulative_prod = op("cumulative_prod")
_concat = op("concat")
_subtract = op("subtract")
_not_equal = op("not_equal")


@documented(_sum)
def sum(x: Tensor, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """>>> tw.sum(tw.asarray([[1, 2], [3, 4]]), axis=0)
    tensor([4, 6])
    >>> tw.sum(tw.full(10, 100, dtype="int8"))  # int64 does not overflow
    tensor(1000)
    """
    return _sum(x, axis=axis, keepdims=keepdims, dtype=dtype)


@documented(_prod)
def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """>>> tw.prod(tw.asarray([1, 2, 3, 4]))
    tensor(24)
    """
    return _prod(x, axis=axis, keepdims=keepdims, dtype=dtype)


@documented(_mean)
def mean(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.mean(tw.asarray([[1, 2], [3, 6]]), axis=1)
    tensor([1.5000, 4.5000], dtype=float64)
    """
    return _mean(x, axis=axis, keepdims=keepdims)


@documented(_var)
def var(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """>>> x = tw.asarray([1.0, 2.0, 3.0, 4.0])
    >>> tw.var(x), tw.var(x, correction=1)
    (tensor(1.2500), tensor(1.6667))
    """
    return _var(x, axis=axis, keepdims=keepdims, correction=correction)


@documented(_std)
def std(x: Tensor, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """>>> tw.std(tw.asarray([1.0, 2.0, 3.0, 4.0]), correction=1)
    tensor(1.2910)
    """
    return _std(x, axis=axis, keepdims=keepdims, correction=correction)


@documented(_max)
def max(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.max(tw.asarray([[1, 5], [7, 2]]), axis=0)
    tensor([7, 5])
    """
    return _max(x, axis=axis, keepdims=keepdims)


@documented(_min)
def min(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.min(tw.asarray([[1, 5], [7, 2]]), axis=1, keepdims=True)
    tensor([[1],
            [2]])
    """
    return _min(x, axis=axis, keepdims=keepdims)


@documented(_any)
def any(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.any(tw.asarray([[0, 0], [0, 3]]), axis=1)
    tensor([False,  True])
    """
    return _any(x, axis=axis, keepdims=keepdims)


@documented(_all)
def all(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.all(tw.asarray([[True, False], [True, True]]), axis=1)
    tensor([False,  True])
    """
    return _all(x, axis=axis, keepdims=keepdims)


@documented(_argmax)
def argmax(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.argmax(tw.asarray([[1, 9, 2], [7, 3, 7]]), axis=1)
    tensor([1, 0])
    """
    return _argmax(x, axis=axis, keepdims=keepdims)


@documented(_argmin)
def argmin(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.argmin(tw.asarray([3.0, 1.0, 2.0]))
    tensor(1)
    """
    return _argmin(x, axis=axis, keepdims=keepdims)


@documented(_count_nonzero)
def count_nonzero(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """>>> tw.count_nonzero(tw.asarray([[1, 0], [2, 3]]), axis=0)
    tensor([2, 1])
    """
    return _count_nonzero(x, axis=axis, keepdims=keepdims)


@documented(_cumulative_sum)
def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """axis may be None for a 1-d x only.

    >>> tw.cumulative_sum(tw.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    axis = _scanned_axis("cumulative_sum", x, axis)
    return _cumulative_sum(x, axis=axis, dtype=dtype, include_initial=include_initial)


@documented(_cumulative_prod)
def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """axis may be None for a 1-d x only.

    >>> tw.cumulative_prod(tw.asarray([2.0, 0.5, 4.0]))
    tensor([2., 1., 4.])
    """
    axis = _scanned_axis("cumulative_prod", x, axis)
    return _cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumsum(x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """NumPy's cumsum: cumulative_sum with axis by position. Raises as it does.

    >>> tw.cumsum(tw.asarray([[1, 2], [3, 4]]), 0)
    tensor([[1, 2],
            [4, 6]])
    """
    return _cumulative_sum(x, axis=_scanned_axis("cumsum", x, axis), dtype=dtype)


def cumprod(x: Tensor, /, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """NumPy's cumprod: cumulative_prod with axis by position. Raises as it does.

    >>> tw.cumprod(tw.asarray([1, 2, 3, 4]))
    tensor([ 1,  2,  6, 24])
    """
    return _cumulative_prod(x, axis=_scanned_axis("cumprod", x, axis), dtype=dtype)


def _scanned_axis(name: str, x: Tensor, axis: int | None) -> int:
    rank = require_tensor(name, x).ndim
    if axis is None and rank != 1:
        raise _C.ValueError(f"{name}: axis must be given for {rank} dimensions")
    return axis_of(name, 0 if axis is None else axis, rank)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, taken n times; of bool whether neighbours differ.

    prepend, append: joined to x along the axis before. Raises IndexError for an axis out of range and
    ValueError for a negative n. Array API standard, utility functions.

    >>> tw.diff(tw.asarray([1, 4, 9, 16])), tw.diff(tw.asarray([1, 4, 9, 16]), n=2)
    (tensor([3, 5, 7]), tensor([2, 2]))
    """
    position = axis_of("diff", axis, require_tensor("diff", x).ndim)
    if n < 0:
        raise _C.ValueError(f"diff: n is {n}; it must not be negative")
    if prepend is not None or append is not None:
        parts = [require_tensor("diff", part) for part in (prepend, x, append) if part is not None]
        x = _concat(*parts, axis=position)
    before = (slice(None),) * position
    for _ in range(builtins.min(n, x.shape[position])):  # then nothing is left
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = (_not_equal if x.dtype == "bool" else _subtract)(later, earlier)
    return x


__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

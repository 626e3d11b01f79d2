# _reductions.py: functions that combine elements along axes.
"""Statistical, searching and utility functions of the array API standard."""

from __future__ import annotations

from thalweg._C import op
from thalweg._operations import documented
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


@documented(_sum)
def sum(x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    return _sum(x, axis=axis, keepdims=keepdims, dtype=dtype)


@documented(_prod)
def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    return _prod(x, axis=axis, keepdims=keepdims, dtype=dtype)


@documented(_mean)
def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _mean(x, axis=axis, keepdims=keepdims)


@documented(_var)
def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    return _var(x, axis=axis, keepdims=keepdims, correction=correction)


@documented(_std)
def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    return _std(x, axis=axis, keepdims=keepdims, correction=correction)


@documented(_max)
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _max(x, axis=axis, keepdims=keepdims)


@documented(_min)
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _min(x, axis=axis, keepdims=keepdims)


@documented(_any)
def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _any(x, axis=axis, keepdims=keepdims)


@documented(_all)
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _all(x, axis=axis, keepdims=keepdims)


@documented(_argmax)
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return _argmax(x, axis=axis, keepdims=keepdims)


@documented(_argmin)
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return _argmin(x, axis=axis, keepdims=keepdims)


__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"]

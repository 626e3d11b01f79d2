# _elementwise.py: functions that compute each element from the elements at its place.
"""Elementwise functions of the array API standard. Numbers take part next to tensors as in NumPy 2."""

from __future__ import annotations

from thalweg._C import op
from thalweg._operations import documented, require_tensor
from thalweg._typing import Operand, Tensor

_negative = op("negative")
_positive = op("positive")
_abs = op("abs")
_sign = op("sign")
_square = op("square")
_reciprocal = op("reciprocal")
_floor = op("floor")
_ceil = op("ceil")
_trunc = op("trunc")
_round = op("round")
_sqrt = op("sqrt")
_exp = op("exp")
_expm1 = op("expm1")
_erf = op("erf")
_erfc = op("erfc")
_log = op("log")
_log1p = op("log1p")
_log2 = op("log2")
_log10 = op("log10")
_sin = op("sin")
_cos = op("cos")
_tan = op("tan")
_asin = op("asin")
_acos = op("acos")
_atan = op("atan")
_sinh = op("sinh")
_cosh = op("cosh")
_tanh = op("tanh")
_asinh = op("asinh")
_acosh = op("acosh")
_atanh = op("atanh")
_real = op("real")
_imag = op("imag")
_conj = op("conj")
_add = op("add")
_subtract = op("subtract")
_multiply = op("multiply")
_divide = op("divide")
_floor_divide = op("floor_divide")
_remainder = op("remainder")
_pow = op("pow")
_minimum = op("minimum")
_maximum = op("maximum")
_copysign = op("copysign")
_nextafter = op("nextafter")
_atan2 = op("atan2")
_hypot = op("hypot")
_logaddexp = op("logaddexp")
_clip = op("clip")
_full = op("full")


@documented(_negative)
def negative(x: Operand, /) -> Tensor:
    return _negative(x)


@documented(_positive)
def positive(x: Operand, /) -> Tensor:
    return _positive(x)


@documented(_abs)
def abs(x: Operand, /) -> Tensor:
    return _abs(x)


@documented(_sign)
def sign(x: Operand, /) -> Tensor:
    return _sign(x)


@documented(_square)
def square(x: Operand, /) -> Tensor:
    return _square(x)


@documented(_reciprocal)
def reciprocal(x: Operand, /) -> Tensor:
    return _reciprocal(x)


@documented(_floor)
def floor(x: Operand, /) -> Tensor:
    return _floor(x)


@documented(_ceil)
def ceil(x: Operand, /) -> Tensor:
    return _ceil(x)


@documented(_trunc)
def trunc(x: Operand, /) -> Tensor:
    return _trunc(x)


@documented(_round)
def round(x: Operand, /) -> Tensor:
    return _round(x)


@documented(_sqrt)
def sqrt(x: Operand, /) -> Tensor:
    return _sqrt(x)


@documented(_exp)
def exp(x: Operand, /) -> Tensor:
    return _exp(x)


@documented(_erf)
def erf(x: Operand, /) -> Tensor:
    return _erf(x)


@documented(_erfc)
def erfc(x: Operand, /) -> Tensor:
    return _erfc(x)


@documented(_expm1)
def expm1(x: Operand, /) -> Tensor:
    return _expm1(x)


@documented(_log)
def log(x: Operand, /) -> Tensor:
    return _log(x)


@documented(_log1p)
def log1p(x: Operand, /) -> Tensor:
    return _log1p(x)


@documented(_log2)
def log2(x: Operand, /) -> Tensor:
    return _log2(x)


@documented(_log10)
def log10(x: Operand, /) -> Tensor:
    return _log10(x)


@documented(_sin)
def sin(x: Operand, /) -> Tensor:
    return _sin(x)


@documented(_cos)
def cos(x: Operand, /) -> Tensor:
    return _cos(x)


@documented(_tan)
def tan(x: Operand, /) -> Tensor:
    return _tan(x)


@documented(_asin)
def asin(x: Operand, /) -> Tensor:
    return _asin(x)


@documented(_acos)
def acos(x: Operand, /) -> Tensor:
    return _acos(x)


@documented(_atan)
def atan(x: Operand, /) -> Tensor:
    return _atan(x)


@documented(_sinh)
def sinh(x: Operand, /) -> Tensor:
    return _sinh(x)


@documented(_cosh)
def cosh(x: Operand, /) -> Tensor:
    return _cosh(x)


@documented(_tanh)
def tanh(x: Operand, /) -> Tensor:
    return _tanh(x)


@documented(_asinh)
def asinh(x: Operand, /) -> Tensor:
    return _asinh(x)


@documented(_acosh)
def acosh(x: Operand, /) -> Tensor:
    return _acosh(x)


@documented(_atanh)
def atanh(x: Operand, /) -> Tensor:
    return _atanh(x)


@documented(_real)
def real(x: Tensor, /) -> Tensor:
    return _real(x)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of x, which shares x's bytes; of a real x zeros of its dtype."""
    if require_tensor("imag", x).dtype.kind == "complex floating":
        return _imag(x)
    return _full(shape=x.shape, value=0, dtype=x.dtype, device=x.device)


@documented(_conj)
def conj(x: Operand, /) -> Tensor:
    return _conj(x)


def angle(x: Tensor, /) -> Tensor:
    """The angle of each number from the positive real axis, in [-pi, pi]; of negative real numbers pi."""
    return _atan2(imag(x), real(x))


@documented(_add)
def add(x1: Operand, x2: Operand, /) -> Tensor:
    return _add(x1, x2)


@documented(_subtract)
def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    return _subtract(x1, x2)


@documented(_multiply)
def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    return _multiply(x1, x2)


@documented(_divide)
def divide(x1: Operand, x2: Operand, /) -> Tensor:
    return _divide(x1, x2)


@documented(_floor_divide)
def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    return _floor_divide(x1, x2)


@documented(_remainder)
def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    return _remainder(x1, x2)


@documented(_pow)
def pow(x1: Operand, x2: Operand, /) -> Tensor:
    return _pow(x1, x2)


@documented(_minimum)
def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    return _minimum(x1, x2)


@documented(_maximum)
def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    return _maximum(x1, x2)


@documented(_copysign)
def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    return _copysign(x1, x2)


@documented(_nextafter)
def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    return _nextafter(x1, x2)


@documented(_atan2)
def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    return _atan2(x1, x2)


@documented(_hypot)
def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    return _hypot(x1, x2)


@documented(_logaddexp)
def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    return _logaddexp(x1, x2)


@documented(_clip, "Without a bound on one side, that side stays as it is.")
def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    if min is None:
        return x if max is None else _minimum(x, max)
    return _maximum(x, min) if max is None else _clip(x, min, max)


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "exp",
    "erf",
    "erfc",
    "expm1",
    "floor",
    "floor_divide",
    "hypot",
    "imag",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

# _elementwise.py: functions that compute each element from the elements at its place.
"""Elementwise functions of the array API standard. Numbers take part next to tensors as in NumPy 2."""

from __future__ import annotations

import math

from thalweg._C import op
from thalweg._engines import elsewhere, entered
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
    """>>> tw.negative(tw.asarray([1, -2])), -tw.asarray(0.5)
    (tensor([-1,  2]), tensor(-0.5000))
    """
    return _negative(x)


@documented(_positive)
def positive(x: Operand, /) -> Tensor:
    """>>> +tw.asarray([-1, 2])
    tensor([-1,  2])
    """
    return _positive(x)


@documented(_abs)
def abs(x: Operand, /) -> Tensor:
    """>>> tw.abs(tw.asarray([-2, 3])), tw.abs(tw.asarray(3 + 4j))
    (tensor([2, 3]), tensor(5.))
    """
    return _abs(x)


@documented(_sign)
def sign(x: Operand, /) -> Tensor:
    """>>> tw.sign(tw.asarray([-2.5, 0.0, 7.0]))
    tensor([-1.,  0.,  1.])
    """
    return _sign(x)


@documented(_square)
def square(x: Operand, /) -> Tensor:
    """>>> tw.square(tw.asarray([-3, 4]))
    tensor([ 9, 16])
    """
    return _square(x)


@documented(_reciprocal)
def reciprocal(x: Operand, /) -> Tensor:
    """>>> tw.reciprocal(tw.asarray([2.0, 4.0, 0.0]))
    tensor([0.5000, 0.2500,    inf])
    """
    return _reciprocal(x)


@documented(_floor)
def floor(x: Operand, /) -> Tensor:
    """>>> tw.floor(tw.asarray([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return _floor(x)


@documented(_ceil)
def ceil(x: Operand, /) -> Tensor:
    """>>> tw.ceil(tw.asarray([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return _ceil(x)


@documented(_trunc)
def trunc(x: Operand, /) -> Tensor:
    """>>> tw.trunc(tw.asarray([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return _trunc(x)


@documented(_round)
def round(x: Operand, /) -> Tensor:
    """>>> tw.round(tw.asarray([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    return _round(x)


@documented(_sqrt)
def sqrt(x: Operand, /) -> Tensor:
    """>>> tw.sqrt(tw.asarray([4.0, 2.0, -1.0]))
    tensor([2.0000, 1.4142,    nan])
    >>> tw.sqrt(tw.asarray(-1 + 0j))
    tensor(0.+1.j)
    """
    return _sqrt(x)


@documented(_exp)
def exp(x: Operand, /) -> Tensor:
    """>>> tw.exp(tw.asarray([0, 1]))
    tensor([1.0000, 2.7183], dtype=float64)
    """
    return _exp(x)


@documented(_erf)
def erf(x: Operand, /) -> Tensor:
    """>>> tw.erf(tw.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.8427,  0.0000,  0.8427])
    """
    return _erf(x)


@documented(_erfc)
def erfc(x: Operand, /) -> Tensor:
    """>>> x = tw.asarray(6.0)
    >>> tw.erfc(x), 1 - tw.erf(x)
    (tensor(2.1520e-17), tensor(0.))
    """
    return _erfc(x)


@documented(_expm1)
def expm1(x: Operand, /) -> Tensor:
    """>>> x = tw.asarray(1e-8)
    >>> tw.expm1(x), tw.exp(x) - 1
    (tensor(1.0000e-08), tensor(0.))
    """
    return _expm1(x)


@documented(_log)
def log(x: Operand, /) -> Tensor:
    """>>> tw.log(tw.asarray([1.0, 10.0, 0.0]))
    tensor([0.0000, 2.3026,   -inf])
    """
    return _log(x)


@documented(_log1p)
def log1p(x: Operand, /) -> Tensor:
    """>>> x = tw.asarray(1e-8)
    >>> tw.log1p(x), tw.log(1 + x)
    (tensor(1.0000e-08), tensor(0.))
    """
    return _log1p(x)


@documented(_log2)
def log2(x: Operand, /) -> Tensor:
    """>>> tw.log2(tw.asarray([1, 8, 1024]))
    tensor([ 0.,  3., 10.], dtype=float64)
    """
    return _log2(x)


@documented(_log10)
def log10(x: Operand, /) -> Tensor:
    """>>> tw.log10(tw.asarray([0.5, 1.0, 2.0]))
    tensor([-0.3010,  0.0000,  0.3010])
    """
    return _log10(x)


@documented(_sin)
def sin(x: Operand, /) -> Tensor:
    """>>> tw.sin(tw.asarray([0.0, tw.pi / 6, tw.pi / 2]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _sin(x)


@documented(_cos)
def cos(x: Operand, /) -> Tensor:
    """>>> tw.cos(tw.asarray([0.0, tw.pi / 3, tw.pi]))
    tensor([ 1.0000,  0.5000, -1.0000])
    """
    return _cos(x)


@documented(_tan)
def tan(x: Operand, /) -> Tensor:
    """>>> tw.tan(tw.asarray([0.0, tw.pi / 4]))
    tensor([0.0000, 1.0000])
    """
    return _tan(x)


@documented(_asin)
def asin(x: Operand, /) -> Tensor:
    """>>> tw.asin(tw.asarray([0.5, 1.0, 2.0]))
    tensor([0.5236, 1.5708,    nan])
    """
    return _asin(x)


@documented(_acos)
def acos(x: Operand, /) -> Tensor:
    """>>> tw.acos(tw.asarray([1.0, 0.0, -1.0]))
    tensor([0.0000, 1.5708, 3.1416])
    """
    return _acos(x)


@documented(_atan)
def atan(x: Operand, /) -> Tensor:
    """>>> tw.atan(tw.asarray([-tw.inf, 0.0, 1.0]))
    tensor([-1.5708,  0.0000,  0.7854])
    """
    return _atan(x)


@documented(_sinh)
def sinh(x: Operand, /) -> Tensor:
    """>>> tw.sinh(tw.asarray([-1.0, 0.0, 1.0]))
    tensor([-1.1752,  0.0000,  1.1752])
    """
    return _sinh(x)


@documented(_cosh)
def cosh(x: Operand, /) -> Tensor:
    """>>> tw.cosh(tw.asarray([-1.0, 0.0, 1.0]))
    tensor([1.5431, 1.0000, 1.5431])
    """
    return _cosh(x)


@documented(_tanh)
def tanh(x: Operand, /) -> Tensor:
    """>>> tw.tanh(tw.asarray([-0.5, 0.0, 20.0]))
    tensor([-0.4621,  0.0000,  1.0000])
    """
    return _tanh(x)


@documented(_asinh)
def asinh(x: Operand, /) -> Tensor:
    """>>> tw.asinh(tw.asarray([-1.0, 0.0, 1000.0]))
    tensor([-0.8814,  0.0000,  7.6009])
    """
    return _asinh(x)


@documented(_acosh)
def acosh(x: Operand, /) -> Tensor:
    """>>> tw.acosh(tw.asarray([1.0, 2.0, 0.5]))
    tensor([0.0000, 1.3170,    nan])
    """
    return _acosh(x)


@documented(_atanh)
def atanh(x: Operand, /) -> Tensor:
    """>>> tw.atanh(tw.asarray([0.5, 1.0, 2.0]))
    tensor([0.5493,    inf,    nan])
    """
    return _atanh(x)


@documented(_real)
def real(x: Tensor, /) -> Tensor:
    """>>> tw.real(tw.asarray([1 + 2j, 3 - 4j]))
    tensor([1., 3.])
    """
    return _real(x)


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of x, which shares x's bytes; of a real x zeros of its dtype.

    The result has the shape of x. Array API standard, elementwise functions.

    >>> tw.imag(tw.asarray([1 + 2j, 3 - 4j]))
    tensor([ 2., -4.])
    """
    if require_tensor("imag", x).dtype.kind == "complex floating":
        return _imag(x)
    if entered and (there := elsewhere(x)):
        return there(imag, x)
    return _full(shape=x.shape, value=0, dtype=x.dtype, device=x.device)


@documented(_conj)
def conj(x: Operand, /) -> Tensor:
    """>>> tw.conj(tw.asarray([1 + 2j, 3 - 4j]))
    tensor([1.-2.j, 3.+4.j])
    """
    return _conj(x)


def angle(x: Tensor, /) -> Tensor:
    """The angle of each number from the positive real axis, in [-pi, pi]; of negative real numbers pi.

    The result has the shape of x and the real dtype of its precision; integers and bool are computed as
    float64. NumPy's angle.

    >>> tw.angle(tw.asarray([1 + 0j, 1j, -1 + 0j]))
    tensor([0.0000, 1.5708, 3.1416])
    """
    return _atan2(imag(x), real(x))


@documented(_add)
def add(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.add(tw.asarray([[1], [2]]), tw.asarray([10, 20]))
    tensor([[11, 21],
            [12, 22]])
    """
    return _add(x1, x2)


@documented(_subtract)
def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.subtract(tw.asarray([5, 7]), 2)
    tensor([3, 5])
    """
    return _subtract(x1, x2)


@documented(_multiply)
def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.multiply(tw.asarray([1, 2]), 0.5)
    tensor([0.5000, 1.0000], dtype=float64)
    """
    return _multiply(x1, x2)


@documented(_divide)
def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.divide(tw.asarray([1, 0, -1]), 0)
    tensor([ inf,  nan, -inf], dtype=float64)
    """
    return _divide(x1, x2)


@documented(_floor_divide)
def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.floor_divide(tw.asarray([7, -7]), 2)
    tensor([ 3, -4])
    """
    return _floor_divide(x1, x2)


@documented(_remainder)
def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.remainder(tw.asarray([7, -7]), 3)
    tensor([1, 2])
    """
    return _remainder(x1, x2)


@documented(_pow)
def pow(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.pow(2, tw.arange(5)), tw.asarray(2.0) ** -1
    (tensor([ 1,  2,  4,  8, 16]), tensor(0.5000))
    """
    return _pow(x1, x2)


@documented(_minimum)
def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.minimum(tw.asarray([1.0, 5.0, tw.nan]), 3)
    tensor([ 1.,  3., nan])
    """
    return _minimum(x1, x2)


@documented(_maximum)
def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.maximum(tw.asarray([1.0, 5.0, tw.nan]), 3)
    tensor([ 3.,  5., nan])
    """
    return _maximum(x1, x2)


@documented(_copysign)
def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.copysign(tw.asarray([1.0, -2.0]), -0.0)
    tensor([-1., -2.])
    """
    return _copysign(x1, x2)


@documented(_nextafter)
def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.nextafter(tw.asarray(1.0), 2.0).item() - 1  # the eps of float32
    1.1920928955078125e-07
    """
    return _nextafter(x1, x2)


@documented(_atan2)
def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.atan2(tw.asarray([1.0, -1.0]), -1.0)  # in the second and the third quadrant
    tensor([ 2.3562, -2.3562])
    """
    return _atan2(x1, x2)


@documented(_hypot)
def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.hypot(tw.asarray([3.0, 3e30]), tw.asarray([4.0, 4e30]))
    tensor([5.0000e+00, 5.0000e+30])
    """
    return _hypot(x1, x2)


@documented(_logaddexp)
def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.logaddexp(tw.asarray(-1000.0), -1000.0)
    tensor(-999.3068)
    """
    return _logaddexp(x1, x2)


@documented(_clip)
def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Without a bound on one side, that side stays as it is.

    >>> tw.clip(tw.asarray([-2.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    >>> tw.clip(tw.asarray([-2, 3]), max=0)
    tensor([-2,  0])
    """
    if getattr(x, "requires_grad", False) and (min is None) != (max is None):
        # At the bound the gradient is x's, as with two of them; of maximum it would be half of it.
        return _clip(x, -math.inf if min is None else min, math.inf if max is None else max)
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

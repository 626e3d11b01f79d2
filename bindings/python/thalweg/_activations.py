# _activations.py: functions between the layers of a neural network, composed of other operators.
"""Activation functions. float32 and float64 keep their dtype, bool and integers are computed as float64,
complex dtypes raise DTypeError. Nothing waits."""

from __future__ import annotations

import math
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._inspection import finfo
from thalweg._operations import as_floating, axes_of, number_of, require_real
from thalweg._typing import Axis, Tensor

_abs = op("abs")
_astype = op("astype")
_exp = op("exp")
_full = op("full")
_isfinite = op("isfinite")
_log = op("log")
_logaddexp = op("logaddexp")
_max = op("max")
_maximum = op("maximum")
_minimum = op("minimum")
_reshape = op("reshape")
_sum = op("sum")
_where = op("where")


def relu(x: Tensor, /) -> Tensor:
    """x where it is above 0, else 0; nan stays. The result has the shape and dtype of x.

    Raises DTypeError for bool and complex dtypes. Nair and Hinton, Rectified linear units improve restricted
    Boltzmann machines (ICML 2010).
    """
    if require_real("relu", x).dtype == "bool":
        raise _C.DTypeError("relu: bool has no negative values; use an integer or floating dtype")
    return _maximum(x, 0)


def leaky_relu(x: Tensor, /, negative_slope: float = 0.01) -> Tensor:
    """x where it is at least 0, else negative_slope * x. The result has the shape of x.

    Raises DTypeError for complex dtypes and ValueError for a slope that is not finite. Maas, Hannun and Ng,
    Rectifier nonlinearities improve neural network acoustic models (ICML 2013).
    """
    x = as_floating("leaky_relu", x)
    slope = number_of("leaky_relu", "negative_slope", negative_slope)
    return _where(x >= 0, x, x * slope)


def sigmoid(x: Tensor, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow and with all its digits for both signs. The result has the shape
    of x.

    Raises DTypeError for complex dtypes.
    """
    return _sigmoid(as_floating("sigmoid", x))


def _sigmoid(x: Tensor) -> Tensor:
    small = _exp(-_abs(x))
    return _where(x >= 0, 1, small) / (small + 1)


def silu(x: Tensor, /) -> Tensor:
    """x * sigmoid(x), also called swish; its limit, -0.0, at minus infinity. The result has the shape of x.

    Raises DTypeError for complex dtypes. Hendrycks and Gimpel, Gaussian error linear units (2016).
    """
    x = _above_lowest(as_floating("silu", x))
    return x * _sigmoid(x)


def _above_lowest(x: Tensor) -> Tensor:
    """x with the most negative number for -inf: times 0 it is 0, where -inf would give nan."""
    return _maximum(x, finfo(x.dtype).min)


def softplus(x: Tensor, /, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta without overflow. The result has the shape of x.

    Raises DTypeError for complex dtypes and ValueError for a beta that is not above 0.
    """
    x = as_floating("softplus", x)
    beta = number_of("softplus", "beta", beta)
    if beta <= 0:
        raise _C.ValueError(f"softplus: beta is {beta:g}; it must be above 0")
    return _logaddexp(x, 0) if beta == 1 else _logaddexp(x * beta, 0) / beta


def gelu(x: Tensor, /, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """x times the probability that a standard normal variable is below x. The result has the shape of x.

    approximate: "none" is right to the rounding of float32, and in float64 to 5 * max(1, x**2) roundings, at
    the cost of some 60 operators; "tanh" is the paper's x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 *
    x**3))) / 2, from some 15. At minus infinity both give their limit, -0.0.

    Raises DTypeError for complex dtypes and ValueError for another approximation. Hendrycks and Gimpel,
    Gaussian error linear units (2016).
    """
    if approximate not in ("none", "tanh"):
        raise _C.ValueError(f"gelu: approximate must be 'none' or 'tanh', not {approximate!r}")
    x = as_floating("gelu", x)
    if approximate == "tanh":
        x = _above_lowest(x)
        # (1 + tanh(u)) / 2 is sigmoid(2 * u), which keeps its digits where tanh is near -1.
        return x * _sigmoid(x * (1 + 0.044715 * (x * x)) * (2 * math.sqrt(2 / math.pi)))
    # From -60 on the probability is 0 in float64.
    wide = _maximum(_astype(x, dtype="float64"), -60)
    tail = _normal_tail(wide, _TAIL_FLOAT32 if x.dtype == "float32" else _TAIL_FLOAT64)
    result = wide * _where(wide < 0, tail, 1 - tail)
    return result if x.dtype == "float64" else _astype(result, dtype="float32")


# (1 + 2 * z) * exp(z**2) * erfc(z) / 2 for z >= 0 as polynomials of t = (z - 3.75) / (z + 3.75), the lowest
# power first: Chebyshev interpolation in 64 points at 40 digits, cut where the relative error is 5e-9 and
# 4e-16. The form is that of Shepherd and Laframboise, Chebyshev approximation of (1 + 2x)exp(x**2)erfc(x)
# in 0 <= x < infinity (Mathematics of Computation 36, 1981).
_TAIL_FLOAT32 = (
    0.6187563150163496, -0.0701203291606932, 0.001792747657031545, 0.04113920999173523,
    -0.05440261377474977, 0.04614538479565189, -0.029342720246815553, 0.01420462618206363,
    -0.004885043591684117, 0.0008379561089905655, 0.00016508372813614034, -0.00011205837337208011,
    1.1023359452847014e-05,
)  # fmt: skip
_TAIL_FLOAT64 = (
    0.6187563154189137, -0.07012029929277262, 0.0017927077427395128, 0.04113836924499753,
    -0.05440196507122231, 0.046152160582140625, -0.02934669928832467, 0.01418113868605557,
    -0.004873289841632632, 0.0008778130825985326, 0.000146857189022481, -0.0001450776762303884,
    2.5823264870881423e-05, 1.1193782857455774e-05, -5.719024016663278e-06, -4.896312853644401e-07,
    8.70991079299654e-07, -2.54223268944991e-08, -1.2428563123200073e-07, 9.395411612545802e-09,
    1.5989633355196317e-08, -9.77567943625746e-10, -1.3115536730497784e-09,
)  # fmt: skip


def _normal_tail(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """The probability that a standard normal variable is above abs(x)."""
    # From 40 on erfc is 0, and infinity would give t = nan.
    z = _minimum(_abs(x) * math.sqrt(0.5), 40)
    t = (z - 3.75) / (z + 3.75)
    value = t * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * t + coefficient
    return _exp(x * x * -0.5) * value / (z * 2 + 1)


def softmax(x: Tensor, /, axis: Axis = -1) -> Tensor:
    """exp(x) over its sum along an axis (or axes, None for all), without overflow. The result has the shape
    of x.

    Where all elements along the axis are -inf, or one is inf or nan, the results there are nan. Raises
    IndexError for an axis out of range and DTypeError for complex dtypes.
    """
    x = as_floating("softmax", x)
    axes = axes_of("softmax", axis, x.ndim)
    if x.size == 0:
        return x[...]
    powers = _exp(x - _max(x, axis=axes, keepdims=True))
    return powers / _sum(powers, axis=axes, keepdims=True)


def log_softmax(x: Tensor, /, axis: Axis = -1) -> Tensor:
    """The logarithm of softmax, with all its digits where that is near 0. The result has the shape of x.

    Where all elements along the axis are -inf, or one is inf or nan, the results there are nan. Raises
    IndexError for an axis out of range and DTypeError for complex dtypes.
    """
    x = as_floating("log_softmax", x)
    axes = axes_of("log_softmax", axis, x.ndim)
    if x.size == 0:
        return x[...]
    shifted = x - _max(x, axis=axes, keepdims=True)
    return shifted - _log(_sum(_exp(shifted), axis=axes, keepdims=True))


def logsumexp(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along the axes (None: all), without overflow; -inf for no element.

    An inf along the axis gives inf, -inf everywhere -inf, a nan nan. keepdims leaves reduced axes in place
    with size 1. Raises IndexError for an axis out of range, ShapeError for one named twice and DTypeError for
    complex dtypes.
    """
    x = as_floating("logsumexp", x)
    axes = axes_of("logsumexp", axis, x.ndim)
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)]
    shape = kept if keepdims else [size for i, size in enumerate(x.shape) if i not in axes]
    if 0 in [x.shape[i] for i in axes]:
        return _full(shape=shape, value=-math.inf, dtype=x.dtype, device=x.device)
    if x.size == 0:
        return _full(shape=shape, value=0, dtype=x.dtype, device=x.device)
    largest = _max(x, axis=axes, keepdims=True)
    # inf - inf would be nan: infinities take part as they are.
    shift = _where(_isfinite(largest), largest, 0)
    return _reshape(_log(_sum(_exp(x - shift), axis=axes, keepdims=True)) + shift, shape=shape)


__all__ = [
    "gelu",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
]

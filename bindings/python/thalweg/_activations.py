# _activations.py: functions between the layers of a neural network.
"""Activation functions. Floating dtypes keep their dtype (float16 and bfloat16 are computed in float32 and
rounded once), bool and integers are computed as float64, complex dtypes raise DTypeError. Nothing waits."""

from __future__ import annotations

import math
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import finfo
from thalweg._operations import as_floating, axes_of, halves_in_float32, number_of, require_real
from thalweg._typing import Axis, Tensor

_astype = op("astype")
_exp = op("exp")
_full = op("full")
_gelu = op("gelu")
_isfinite = op("isfinite")
_log = op("log")
_log_softmax = op("log_softmax")
_logaddexp = op("logaddexp")
_max = op("max")
_maximum = op("maximum")
_minimum = op("minimum")
_permute_dims = op("permute_dims")
_relu = op("relu")
_reshape = op("reshape")
_sigmoid = op("sigmoid")
_silu = op("silu")
_softmax = op("softmax")
_sum = op("sum")
_where = op("where")


def relu(x: Tensor, /) -> Tensor:
    """x where it is above 0, else 0; nan stays. The result has the shape and dtype of x.

    Raises DTypeError for bool and complex dtypes. Nair and Hinton, Rectified linear units improve restricted
    Boltzmann machines (ICML 2010).

    >>> tw.relu(tw.asarray([-2.5, 0.0, 3.0]))
    tensor([0., 0., 3.])
    """
    if require_real("relu", x).dtype == "bool":
        raise _C.DTypeError("relu: bool has no negative values; use an integer or floating dtype")
    return _relu(x)


def leaky_relu(x: Tensor, /, negative_slope: float = 0.01) -> Tensor:
    """x where it is at least 0, else negative_slope * x. The result has the shape of x.

    Raises DTypeError for complex dtypes and ValueError for a slope that is not finite. Maas, Hannun and Ng,
    Rectifier nonlinearities improve neural network acoustic models (ICML 2013).

    >>> tw.leaky_relu(tw.asarray([-2.0, 3.0]), negative_slope=0.1)
    tensor([-0.2000,  3.0000])
    """
    x = as_floating("leaky_relu", x)
    slope = number_of("leaky_relu", "negative_slope", negative_slope)
    return _where(x > 0, x, x * slope)


def sigmoid(x: Tensor, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow and with all its digits for both signs. The result has the shape
    of x.

    Raises DTypeError for complex dtypes. Rumelhart, Hinton and Williams, Learning representations by
    back-propagating errors (Nature 323, 1986).

    >>> tw.sigmoid(tw.asarray([-2.0, 0.0, 1000.0]))
    tensor([0.1192, 0.5000, 1.0000])
    """
    return _sigmoid(as_floating("sigmoid", x))


def silu(x: Tensor, /) -> Tensor:
    """x * sigmoid(x), also called swish; its limit, -0.0, at minus infinity. The result has the shape of x.

    Raises DTypeError for complex dtypes. Hendrycks and Gimpel, Gaussian error linear units (2016).

    >>> tw.silu(tw.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return _silu(as_floating("silu", x))


@halves_in_float32
def softplus(x: Tensor, /, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta without overflow. The result has the shape of x.

    Raises DTypeError for complex dtypes and ValueError for a beta that is not above 0. Dugas et al.,
    Incorporating second-order functional knowledge for better option pricing (NIPS 2000).

    >>> tw.softplus(tw.asarray([-1.0, 0.0, 100.0]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    x = as_floating("softplus", x)
    beta = number_of("softplus", "beta", beta)
    if beta <= 0:
        raise _C.ValueError(f"softplus: beta is {beta:g}; it must be above 0")
    return _logaddexp(x, 0) if beta == 1 else _logaddexp(x * beta, 0) / beta


def gelu(x: Tensor, /, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """x times the probability that a standard normal variable is below x. The result has the shape of x.

    approximate: "none" is right to 5 * max(1, x**2) roundings; "tanh" is the paper's
    x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2. At minus infinity both give their limit, -0.0.

    Raises DTypeError for complex dtypes and ValueError for another approximation. Hendrycks and Gimpel,
    Gaussian error linear units (2016).

    >>> tw.gelu(tw.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise _C.ValueError(f"gelu: approximate must be 'none' or 'tanh', not {approximate!r}")
    x = as_floating("gelu", x)
    return _gelu(x) if approximate == "none" else _gelu_tanh(x)


@halves_in_float32
def _gelu_tanh(x: Tensor) -> Tensor:
    x = _maximum(x, finfo(x.dtype).min)  # -inf times 0 would be nan
    # (1 + tanh(u)) / 2 is sigmoid(2 * u), which keeps its digits where tanh is near -1.
    return x * _sigmoid(x * (1 + 0.044715 * (x * x)) * (2 * math.sqrt(2 / math.pi)))


def softmax(x: Tensor, /, axis: Axis = -1) -> Tensor:
    """exp(x) over its sum along an axis (or axes, None for all), without overflow. The result has the shape
    of x.

    Where all elements along the axis are -inf, or one is inf or nan, the results there are nan. Raises
    IndexError for an axis out of range and DTypeError for complex dtypes. Bridle, Probabilistic
    interpretation of feedforward classification network outputs (Neurocomputing, 1990).

    >>> tw.softmax(tw.asarray([[0.0, 0.0], [1.0, 1000.0]]))
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    x = as_floating("softmax", x)
    if type(axis) is int:
        return _softmax(x, axis=axis)
    return _along(_softmax, x, axes_of("softmax", axis, x.ndim))


def log_softmax(x: Tensor, /, axis: Axis = -1) -> Tensor:
    """The logarithm of softmax, with all its digits where that is near 0. The result has the shape of x.

    Where all elements along the axis are -inf, or one is inf or nan, the results there are nan. Raises
    IndexError for an axis out of range and DTypeError for complex dtypes. Blanchard, Higham and Higham,
    Accurately computing the log-sum-exp and softmax functions (IMA Journal of Numerical Analysis 41, 2021).

    >>> x = tw.asarray([0.0, 200.0])
    >>> tw.log_softmax(x), tw.log(tw.softmax(x))
    (tensor([-200.,    0.]), tensor([-inf,   0.]))
    """
    x = as_floating("log_softmax", x)
    if type(axis) is int:
        return _log_softmax(x, axis=axis)
    return _along(_log_softmax, x, axes_of("log_softmax", axis, x.ndim))


def _along(operation: _C.Operation, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """An operation along one axis, along several: they become the last one."""
    if len(axes) == 1:
        return operation(x, axis=axes[0])
    order = [*(i for i in range(x.ndim) if i not in axes), *axes]
    moved = _permute_dims(x, axes=order)
    count = math.prod(x.shape[i] for i in axes)
    row = _reshape(moved, shape=(*moved.shape[: x.ndim - len(axes)], count))
    result = _reshape(operation(row, axis=-1), shape=moved.shape)
    return _permute_dims(result, axes=[order.index(i) for i in range(x.ndim)])


@halves_in_float32
def logsumexp(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along the axes (None: all), without overflow; -inf for no element.

    An inf along the axis gives inf, -inf everywhere -inf, a nan nan. keepdims leaves reduced axes in place
    with size 1. Raises IndexError for an axis out of range, ShapeError for one named twice and DTypeError for
    complex dtypes. Blanchard, Higham and Higham, Accurately computing the log-sum-exp and softmax functions
    (IMA Journal of Numerical Analysis 41, 2021).

    >>> tw.logsumexp(tw.asarray([1000.0, 1000.0]))  # 1000 + log(2)
    tensor(1000.6932)
    """
    x = as_floating("logsumexp", x)
    if entered and (there := elsewhere(x)):
        return there(logsumexp, x, axis, keepdims=keepdims)
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

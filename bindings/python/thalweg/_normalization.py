# _normalization.py: activations brought to a common mean and size.
"""Normalisation layers as functions. Floating dtypes keep their dtype (float16 and bfloat16 are computed in
float32 and rounded once), bool and integer inputs are computed as float64, complex dtypes raise DTypeError.
Nothing waits."""

from __future__ import annotations

import math
from typing import NamedTuple

from thalweg import _C
from thalweg._C import op
from thalweg._inspection import finfo
from thalweg._operations import as_floating, halves_in_float32, number_of, require_real, shape_of
from thalweg._typing import Shape, Tensor

_layer_norm = op("layer_norm")
_mean = op("mean")
_reshape = op("reshape")
_rms_norm = op("rms_norm")
_sqrt = op("sqrt")
_var = op("var")


def layer_norm(
    x: Tensor,
    /,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, with the mean and the (population) variance over the last
    axes.

    normalized_shape: the sizes of those axes, at least one; weight and bias have that shape. The result has
    the shape of x. Raises ShapeError for shapes that do not fit and ValueError for a negative eps. Ba, Kiros
    and Hinton, Layer normalization (2016).

    >>> tw.layer_norm(tw.asarray([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), 3)
    tensor([[-1.2247,  0.0000,  1.2247],
            [-1.2247,  0.0000,  1.2247]])
    """
    x, sizes = _normalized(x, "layer_norm", normalized_shape)
    eps = number_of("layer_norm", "eps", eps, least=0)
    weight = _parameter("layer_norm", "weight", weight, sizes)
    bias = _parameter("layer_norm", "bias", bias, sizes)
    if weight is None:
        return _affine(_layer_norm(x, axes=len(sizes), eps=eps), None, bias)
    return _layer_norm(*(x, weight) if bias is None else (x, weight, bias), axes=len(sizes), eps=eps)


def rms_norm(
    x: Tensor, /, normalized_shape: Shape, weight: Tensor | None = None, *, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x**2) + eps) * weight, with the mean over the last axes.

    normalized_shape: the sizes of those axes, at least one; weight has that shape. eps: None for the eps of
    the dtype. The result has the shape of x. Raises ShapeError for shapes that do not fit and ValueError for
    a negative eps. Zhang and Sennrich, Root mean square layer normalization (NeurIPS 2019).

    >>> tw.rms_norm(tw.asarray([3.0, 4.0]), 2)
    tensor([0.8485, 1.1314])
    """
    x, sizes = _normalized(x, "rms_norm", normalized_shape)
    computed_in = "float32" if x.dtype.itemsize == 2 else x.dtype
    eps = finfo(computed_in).eps if eps is None else number_of("rms_norm", "eps", eps, least=0)
    weight = _parameter("rms_norm", "weight", weight, sizes)
    return _rms_norm(*(x,) if weight is None else (x, weight), axes=len(sizes), eps=eps)


class BatchNorm(NamedTuple):
    """What batch_norm returns."""

    output: Tensor
    running_mean: Tensor | None
    running_var: Tensor | None


@halves_in_float32
def batch_norm(
    x: Tensor,
    /,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> BatchNorm:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, and the running statistics after it.

    x: (N, C) or (N, C, d1, ...), with the channels along axis 1; the others have shape (C,). In training the
    mean and the population variance are those of x, and new running statistics are (1 - momentum) * old +
    momentum * that of x, with the unbiased variance; values never change, so they are returned. Otherwise
    the running statistics are used, must be given and are returned as they are. The output has the shape of
    x.

    Raises ShapeError for shapes that do not fit and, in training, for fewer than 2 values in a channel;
    ValueError for missing statistics, a negative eps and a momentum that is not from 0 to 1. Ioffe and
    Szegedy, Batch normalization (ICML 2015).

    >>> x = tw.asarray([[1.0, 10.0], [3.0, 30.0]])
    >>> tw.batch_norm(x, training=True).output
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    name = "batch_norm"
    x = as_floating(name, x)
    if x.ndim < 2:
        raise _C.ShapeError(f"{name}: needs shape (N, C) or (N, C, ...), x has shape {x.shape}")
    eps = number_of(name, "eps", eps, least=0)
    momentum = number_of(name, "momentum", momentum, least=0)
    if momentum > 1:
        raise _C.ValueError(f"{name}: momentum is {momentum:g}; it must be from 0 to 1")
    channels = (x.shape[1],)
    running_mean = _parameter(name, "running_mean", running_mean, channels)
    running_var = _parameter(name, "running_var", running_var, channels)
    weight = _parameter(name, "weight", weight, channels)
    bias = _parameter(name, "bias", bias, channels)
    if (running_mean is None) != (running_var is None):
        raise _C.ValueError(f"{name}: running_mean and running_var must be given both or not at all")
    if training:
        mean, var, running_mean, running_var = _batch_statistics(x, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise _C.ValueError(f"{name}: running_mean and running_var must be given when training is False")
    else:
        mean, var = running_mean, running_var
    shape = (-1,) + (1,) * (x.ndim - 2)
    across = [None if each is None else _reshape(each, shape=shape) for each in (weight, bias)]
    output = (x - _reshape(mean, shape=shape)) / _sqrt(_reshape(var, shape=shape) + eps)
    return BatchNorm(_affine(output, *across), running_mean, running_var)


def _batch_statistics(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The mean and variance of each channel, and the running ones with them taken in."""
    axes = (0, *range(2, x.ndim))
    count = math.prod(x.shape[axis] for axis in axes)
    if count < 2:
        raise _C.ShapeError(
            f"batch_norm: training needs 2 values in a channel, x of shape {x.shape} has {count}"
        )
    mean, var = _mean(x, axis=axes), _var(x, axis=axes)
    if running_mean is not None and running_var is not None:
        running_mean = running_mean * (1 - momentum) + mean * momentum
        running_var = running_var * (1 - momentum) + var * (momentum * count / (count - 1))
    return mean, var, running_mean, running_var


def _normalized(x: Tensor, name: str, normalized_shape: Shape) -> tuple[Tensor, tuple[int, ...]]:
    """x as a floating tensor, and a normalized_shape as a tuple."""
    x = as_floating(name, x)
    sizes = shape_of(name, normalized_shape)
    if not sizes or x.shape[-len(sizes) :] != sizes:
        raise _C.ShapeError(f"{name}: normalized_shape {sizes} must be the last sizes of x's shape {x.shape}")
    return x, sizes


def _parameter(name: str, what: str, x: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    if x is not None and require_real(name, x).shape != shape:
        raise _C.ShapeError(f"{name}: {what} has shape {x.shape}; it must be {shape}")
    return x


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


__all__ = ["batch_norm", "layer_norm", "rms_norm"]

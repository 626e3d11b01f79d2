# _layers.py: the layers that most networks are made of.
"""Each layer is the function of its name with parameters. Fresh weights are drawn from the default generator
(thalweg.manual_seed), uniform within 1 / sqrt(inputs) as PyTorch's layers are."""

from __future__ import annotations

import math
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import DTypeLike, Shape, Tensor
from thalweg.nn._module import Module, Parameter


def _uniform(shape: Shape, bound: float, dtype: DTypeLike) -> Tensor:
    return Parameter(tw.uniform(shape, -bound, bound, dtype=dtype))


def _size(layer: str, name: str, value: int) -> int:
    if not isinstance(value, int) or value < 1:
        raise _C.ValueError(f"{layer}: {name} is {value!r}; it must be an int above 0")
    return value


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


class Linear(Module):
    """x @ weight.T + bias over the last axis: (..., in_features) to (..., out_features).

    weight: (out_features, in_features); bias: (out_features,). Raises ValueError for sizes below
    1, and ShapeError for an input of another last axis. PyTorch's nn.Linear.

    >>> tw.nn.Linear(3, 2)(tw.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool = True, dtype: DTypeLike = "float32"
    ) -> None:
        self.in_features = _size("Linear", "in_features", in_features)
        self.out_features = _size("Linear", "out_features", out_features)
        bound = 1 / math.sqrt(in_features)
        self.weight = _uniform((out_features, in_features), bound, dtype)
        self.bias = _uniform(out_features, bound, dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        result = x @ self.weight.T
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Conv2d(Module):
    """conv2d with a weight and a bias: (N, in_channels, H, W) to (N, out_channels, MH, MW).

    weight: (out_channels, in_channels / groups, KH, KW). stride, padding and dilation as in thalweg.conv2d.
    Raises ValueError for sizes below 1 and for channels that the groups do not divide. PyTorch's nn.Conv2d.

    >>> tw.nn.Conv2d(1, 4, 3, padding=1)(tw.ones((2, 1, 8, 8))).shape
    (2, 4, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        *,
        stride: Shape = 1,
        padding: Any = 0,
        dilation: Shape = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        self.in_channels = _size("Conv2d", "in_channels", in_channels)
        self.out_channels = _size("Conv2d", "out_channels", out_channels)
        self.groups = _size("Conv2d", "groups", groups)
        if in_channels % groups or out_channels % groups:
            raise _C.ValueError(
                f"Conv2d: {in_channels} and {out_channels} channels do not divide into {groups} groups"
            )
        self.kernel_size = _pair(kernel_size)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight = _uniform(shape, bound, dtype)
        self.bias = _uniform(out_channels, bound, dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return tw.conv2d(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"


class LayerNorm(Module):
    """layer_norm over the last axes, with a weight that begins as ones and a bias that begins as zeros.
    Raises ShapeError for an input with other last axes. PyTorch's nn.LayerNorm.

    >>> tw.nn.LayerNorm(4)(tw.ones((2, 4))).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        normalized_shape: Shape,
        *,
        eps: float = 1e-5,
        bias: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = sizes, eps
        self.weight = Parameter(tw.ones(sizes, dtype=dtype))
        self.bias = Parameter(tw.zeros(sizes, dtype=dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return tw.layer_norm(x, self.normalized_shape, self.weight, self.bias, eps=self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps:g}"


class BatchNorm2d(Module):
    """batch_norm over the channels of (N, C, H, W). In training the batch's statistics are used, and they
    move the running ones by momentum; in evaluation the running ones are used. The buffers are running_mean,
    running_var and num_batches_tracked, the number of batches seen. Raises ShapeError for an input of another
    shape. PyTorch's nn.BatchNorm2d, whose state_dict it takes.

    >>> tw.nn.BatchNorm2d(3)(tw.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    def __init__(
        self, num_features: int, *, eps: float = 1e-5, momentum: float = 0.1, dtype: DTypeLike = "float32"
    ) -> None:
        self.num_features = _size("BatchNorm2d", "num_features", num_features)
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(tw.ones(num_features, dtype=dtype))
        self.bias = Parameter(tw.zeros(num_features, dtype=dtype))
        self.register_buffer("running_mean", tw.zeros(num_features, dtype=dtype))
        self.register_buffer("running_var", tw.ones(num_features, dtype=dtype))
        self.register_buffer("num_batches_tracked", tw.asarray(0, dtype="int64"))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise _C.ShapeError(f"BatchNorm2d: takes (N, C, H, W), not the shape {x.shape}")
        result = tw.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.training,
            momentum=self.momentum,
            eps=self.eps,
        )
        if self.training:
            self.running_mean = result.running_mean.detach()
            self.running_var = result.running_var.detach()
            self.num_batches_tracked = self.num_batches_tracked + 1
        return result.output

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps:g}, momentum={self.momentum:g}"


class Embedding(Module):
    """A table of num_embeddings rows of embedding_dim numbers, drawn from the normal distribution; indices of
    any shape give the rows that they name. Raises ValueError for sizes below 1; an index out of range fails
    the result with IndexError. PyTorch's nn.Embedding.

    >>> tw.nn.Embedding(10, 3)(tw.asarray([[1, 2], [3, 4]])).shape
    (2, 2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, dtype: DTypeLike = "float32") -> None:
        self.num_embeddings = _size("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = _size("Embedding", "embedding_dim", embedding_dim)
        self.weight = Parameter(tw.normal((num_embeddings, embedding_dim), dtype=dtype))

    def forward(self, indices: Tensor) -> Tensor:
        return tw.embedding(indices, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class Dropout(Module):
    """dropout with probability p in training; nothing in evaluation. Raises ValueError for a p that is not
    from 0 to 1. PyTorch's nn.Dropout.

    >>> tw.nn.Dropout(0.5).eval()(tw.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise _C.ValueError(f"Dropout: p is {p:g}; it must be from 0 to 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return tw.dropout(x, self.p, training=self.training)

    def extra_repr(self) -> str:
        return f"p={self.p:g}"


class _Function(Module):
    """A function of one tensor as a module; `_name` is what thalweg calls it."""

    _name: str

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = getattr(tw, self._name)(x)
        return result


class ReLU(_Function):
    """max(x, 0). Raises as thalweg.relu does. PyTorch's nn.ReLU.

    >>> tw.nn.ReLU()(tw.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    _name = "relu"


class GELU(_Function):
    """x * (1 + erf(x / sqrt(2))) / 2. Raises as thalweg.gelu does. PyTorch's nn.GELU.

    >>> tw.nn.GELU()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    _name = "gelu"


class SiLU(_Function):
    """x * sigmoid(x). Raises as thalweg.silu does. PyTorch's nn.SiLU.

    >>> tw.nn.SiLU()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    _name = "silu"


class Tanh(_Function):
    """tanh(x). Raises as thalweg.tanh does. PyTorch's nn.Tanh.

    >>> tw.nn.Tanh()(tw.asarray([0.0])).tolist()
    [0.0]
    """

    _name = "tanh"


class Sigmoid(_Function):
    """1 / (1 + exp(-x)). Raises as thalweg.sigmoid does. PyTorch's nn.Sigmoid.

    >>> tw.nn.Sigmoid()(tw.asarray([0.0])).tolist()
    [0.5]
    """

    _name = "sigmoid"


class Flatten(Module):
    """(N, d1, d2, ...) to (N, d1 * d2 * ...). Raises IndexError for a 0-d input. PyTorch's nn.Flatten.

    >>> tw.nn.Flatten()(tw.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: Tensor) -> Tensor:
        return tw.reshape(x, (x.shape[0], math.prod(x.shape[1:])))

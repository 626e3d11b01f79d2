# _convolution.py: convolutions of neural networks.
"""Convolutions of neural networks. They are correlations: kernels are not flipped. Nothing waits."""

from __future__ import annotations

import operator
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._operations import is_index, require_tensor
from thalweg._typing import Any, Shape, Tensor
from thalweg._windows import per_axis

_OPERATIONS = {1: op("conv1d"), 2: op("conv2d")}

Padding = Shape | Literal["valid", "same"]


def conv1d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Shape = 1,
    padding: Padding = 0,
    dilation: Shape = 1,
    groups: int = 1,
) -> Tensor:
    """The sums of products of kernels and the windows of x along its last axis.

    x: (N, C, L) or (C, L); weight: (O, C / groups, K); bias: (O,). The result is (N, O, M) or (O, M) with
    M = (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1. padding: zeros at both ends; "valid" for
    none and "same" for as many as make M = L, the odd one behind (stride 1 only). With groups, output
    channels see the input channels of their own group only.

    Dtypes are promoted and computed as in matmul. Raises ShapeError for shapes that do not fit and
    ValueError for other arguments out of range. PyTorch's conv1d.

    >>> x = tw.asarray([[1.0, 2.0, 4.0, 8.0]])  # one channel
    >>> tw.conv1d(x, tw.asarray([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """
    return _convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Shape = 1,
    padding: Padding = 0,
    dilation: Shape = 1,
    groups: int = 1,
) -> Tensor:
    """The sums of products of kernels and the windows of x over its last two axes.

    x: (N, C, H, W) or (C, H, W); weight: (O, C / groups, KH, KW); bias: (O,). The result is (N, O, MH, MW)
    or (O, MH, MW), along each axis with M = (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1.
    stride, padding and dilation: a number for both axes or one for each; as in conv1d otherwise.

    Dtypes are promoted and computed as in matmul. Raises ShapeError for shapes that do not fit and
    ValueError for other arguments out of range. PyTorch's conv2d.

    >>> x = tw.reshape(tw.arange(9.0), (1, 1, 3, 3))
    >>> tw.conv2d(x, tw.ones((1, 1, 2, 2)))
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    return _convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def _convolve(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor:
    x, weight = require_tensor(name, x), require_tensor(name, weight)
    if not is_index(groups):
        raise _C.DTypeError(f"{name}: groups must be an int, not {type(groups).__name__}")
    stride = per_axis(name, "stride", stride, rank, 1)
    dilation = per_axis(name, "dilation", dilation, rank, 1)
    ends = _ends(name, rank, weight.shape[2:], stride, padding, dilation)
    return _OPERATIONS[rank](
        *(x, weight, *(() if bias is None else (require_tensor(name, bias),))),
        stride=stride,
        padding=[width for pair in ends for width in pair],
        dilation=dilation,
        groups=operator.index(groups),
    )


def _ends(
    name: str,
    rank: int,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: Any,
    dilation: tuple[int, ...],
) -> list[tuple[int, int]]:
    """How many zeros go before and behind each axis."""
    if padding == "valid":
        return [(0, 0)] * rank
    if padding == "same":
        if max(stride) > 1:
            raise _C.ValueError(f"{name}: padding 'same' needs stride 1, not {stride}")
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=False)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, str):
        raise _C.ValueError(f"{name}: padding must be numbers, 'valid' or 'same', not {padding!r}")
    return [(width, width) for width in per_axis(name, "padding", padding, rank, 0)]


__all__ = ["conv1d", "conv2d"]

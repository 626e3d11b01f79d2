# _convolution.py: convolutions, as products of matrices with the windows of the input.
"""Convolutions of neural networks. They are correlations: kernels are not flipped. The windows are copied
side by side, which takes the memory of x once for each element of a kernel. Nothing waits."""

from __future__ import annotations

import math
import operator
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._operations import halves_in_float32, is_index, require_tensor
from thalweg._typing import Any, Shape, Tensor
from thalweg._windows import gather_windows, per_axis, windows_over

_expand_dims = op("expand_dims")
_matmul = op("matmul")
_reshape = op("reshape")
_squeeze = op("squeeze")

Padding = Shape | Literal["valid", "same"]


@halves_in_float32
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
    ValueError for other arguments out of range. Chellapilla, Puri and Simard, High performance convolutional
    neural networks for document processing (2006) for the product of matrices.

    >>> x = tw.asarray([[1.0, 2.0, 4.0, 8.0]])  # one channel
    >>> tw.conv1d(x, tw.asarray([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """
    return _convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@halves_in_float32
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
    ValueError for other arguments out of range. Chellapilla, Puri and Simard, High performance convolutional
    neural networks for document processing (2006) for the product of matrices.

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
    groups = _groups_of(name, rank, x, weight, groups)
    stride = per_axis(name, "stride", stride, rank, 1)
    dilation = per_axis(name, "dilation", dilation, rank, 1)
    kernel, sizes = weight.shape[2:], x.shape[x.ndim - rank :]
    ends = _ends(name, kernel, stride, padding, dilation)
    windows = windows_over(name, sizes, kernel, stride, ends, dilation)
    batched = x if x.ndim == rank + 2 else _expand_dims(x, axis=0)
    batch, outputs = batched.shape[0], weight.shape[0]
    places, terms = math.prod(windows.count), math.prod(weight.shape[1:])
    columns = _reshape(gather_windows(batched, windows, 0), shape=(batch, groups, terms, places))
    rows = _reshape(weight, shape=(groups, outputs // groups, terms))
    result = _reshape(_matmul(rows, columns), shape=(batch, outputs, *windows.count))
    if bias is not None:
        if require_tensor(name, bias).shape != (outputs,):
            raise _C.ShapeError(f"{name}: bias has shape {bias.shape}; it must be {(outputs,)}")
        result = result + _reshape(bias, shape=(outputs,) + (1,) * rank)
    return result if batched is x else _squeeze(result, axis=0)


def _groups_of(name: str, rank: int, x: Tensor, weight: Tensor, groups: Any) -> int:
    """The number of groups, when the shapes fit it."""
    axes = "L" if rank == 1 else "H, W"
    if x.ndim not in (rank + 1, rank + 2):
        raise _C.ShapeError(f"{name}: x must be (N, C, {axes}) or (C, {axes}), its shape is {x.shape}")
    if weight.ndim != rank + 2 or 0 in weight.shape[2:]:
        raise _C.ShapeError(
            f"{name}: weight must be (outputs, inputs / groups, kernel of {rank} axes), its shape is "
            f"{weight.shape}"
        )
    if not is_index(groups):
        raise _C.DTypeError(f"{name}: groups must be an int, not {type(groups).__name__}")
    groups = operator.index(groups)
    channels = x.shape[x.ndim - rank - 1]
    if groups < 1 or channels % groups or weight.shape[0] % groups:
        raise _C.ValueError(
            f"{name}: groups is {groups}; it must divide the {channels} input and {weight.shape[0]} output "
            "channels"
        )
    if weight.shape[1] * groups != channels:
        raise _C.ShapeError(
            f"{name}: weight of shape {weight.shape} with {groups} groups needs {weight.shape[1] * groups} "
            f"channels, x of shape {x.shape} has {channels}"
        )
    return groups


def _ends(
    name: str, kernel: tuple[int, ...], stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...]
) -> list[tuple[int, int]]:
    """How many zeros go before and behind each axis."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        if max(stride) > 1:
            raise _C.ValueError(f"{name}: padding 'same' needs stride 1, not {stride}")
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    if isinstance(padding, str):
        raise _C.ValueError(f"{name}: padding must be numbers, 'valid' or 'same', not {padding!r}")
    return [(width, width) for width in per_axis(name, "padding", padding, len(kernel), 0)]


__all__ = ["conv1d", "conv2d"]

# _pooling.py: the largest element and the mean of windows.
"""Pooling layers as functions. Nothing waits."""

from __future__ import annotations

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import iinfo
from thalweg._operations import as_floating, halves_in_float32, require_real
from thalweg._typing import Any, Shape, Tensor
from thalweg._windows import Windows, gather_windows, per_axis, windows_over

_expand_dims = op("expand_dims")
_argmax = op("argmax")
_max = op("max")
_reshape = op("reshape")
_squeeze = op("squeeze")
_sum = op("sum")
_take_along_axis = op("take_along_axis")


def max_pool1d(
    x: Tensor,
    /,
    kernel_size: Shape,
    *,
    stride: Shape | None = None,
    padding: Shape = 0,
    dilation: Shape = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window along the last axis; nan if one is nan.

    x: (N, C, L) or (C, L), of a real dtype, which is that of the result. stride: kernel_size by default.
    padding: at most half of kernel_size at both ends, and never the largest. The result has
    (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 elements along the axis; ceil_mode
    rounds up instead, as long as a window begins before the padding at the end.

    Raises ShapeError for a shape that does not fit, ValueError for other arguments out of range and
    DTypeError for complex dtypes. Yamaguchi et al., A neural network for speaker-independent isolated word
    recognition (ICSLP 1990).

    >>> tw.max_pool1d(tw.asarray([[1.0, 3.0, 2.0, 0.0]]), 2, stride=1)
    tensor([[3., 3., 2.]])
    """
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: Tensor,
    /,
    kernel_size: Shape,
    *,
    stride: Shape | None = None,
    padding: Shape = 0,
    dilation: Shape = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window over the last two axes; nan if one is nan.

    x: (N, C, H, W) or (C, H, W). kernel_size, stride, padding and dilation: a number for both axes or one for
    each. What it raises and the rest: as for max_pool1d. Scherer, Müller and Behnke, Evaluation of pooling
    operations in convolutional architectures for object recognition (ICANN 2010).

    >>> x = tw.reshape(tw.arange(16.0), (1, 4, 4))
    >>> tw.max_pool2d(x, 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


@halves_in_float32
def avg_pool1d(
    x: Tensor,
    /,
    kernel_size: Shape,
    *,
    stride: Shape | None = None,
    padding: Shape = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis.

    x: (N, C, L) or (C, L); floating dtypes keep their dtype, bool and integers are computed as float64.
    stride, padding and ceil_mode: as in max_pool1d. Padding counts as zeros, and not at all where
    count_include_pad is False; what ceil_mode adds never counts.

    Raises ShapeError for a shape that does not fit, ValueError for other arguments out of range and
    DTypeError for complex dtypes. LeCun et al., Gradient-based learning applied to document recognition
    (Proceedings of the IEEE 86, 1998).

    >>> tw.avg_pool1d(tw.asarray([[1.0, 3.0, 5.0, 9.0]]), 2)
    tensor([[2., 7.]])
    """
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


@halves_in_float32
def avg_pool2d(
    x: Tensor,
    /,
    kernel_size: Shape,
    *,
    stride: Shape | None = None,
    padding: Shape = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window over the last two axes.

    x: (N, C, H, W) or (C, H, W). kernel_size, stride and padding: a number for both axes or one for each.
    What it raises and the rest: as for avg_pool1d. LeCun et al., Gradient-based learning applied to document
    recognition (Proceedings of the IEEE 86, 1998).

    >>> x = tw.reshape(tw.arange(16.0), (1, 4, 4))
    >>> tw.avg_pool2d(x, 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return _avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _max_pool(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Tensor:
    x = require_real(name, x)
    padding, windows = _pool_windows(name, rank, x, kernel_size, stride, padding, dilation, ceil_mode)
    return _reduced(x, rank, windows, _lowest(x), _max)


def _avg_pool(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    x = as_floating(name, x)
    if entered and (there := elsewhere(x)):
        return there(_avg_pool, name, rank, x, kernel_size, stride, padding, ceil_mode, count_include_pad)
    padding, windows = _pool_windows(name, rank, x, kernel_size, stride, padding, 1, ceil_mode)
    sums = _reduced(x, rank, windows, 0, _sum)
    for axis in range(rank):
        size, width = x.shape[axis - rank], padding[axis]
        counted = (-width, size + width) if count_include_pad else (0, size)
        counts = _counts(windows, axis, counted)
        if len(set(counts)) <= 1:
            sums = sums / (counts[0] if counts else 1)
        else:
            divisors = _C.from_nested(counts, dtype=x.dtype, device=x.device)
            sums = sums / _reshape(divisors, shape=(-1,) + (1,) * (rank - 1 - axis))
    return sums


def _lowest(x: Tensor) -> Any:
    """A number that is the largest of no window with another one."""
    if x.dtype == "bool":
        return False
    return -float("inf") if x.dtype.kind == "real floating" else iinfo(x.dtype).min


def _counts(windows: Windows, axis: int, counted: tuple[int, int]) -> list[int]:
    """For each window along an axis how many of its places lie in a range."""
    first, kernel = -windows.padding[axis][0], windows.kernel[axis]
    starts = [first + i * windows.stride[axis] for i in range(windows.count[axis])]
    return [min(start + kernel, counted[1]) - max(start, counted[0]) for start in starts]


def _reduced(x: Tensor, rank: int, windows: Windows, fill: Any, reduction: _C.Operation) -> Tensor:
    batched = x if x.ndim == rank + 2 else _expand_dims(x, axis=0)
    gathered = gather_windows(batched, windows, fill)
    if reduction is _max and x.requires_grad:
        # Of equal elements the first is the largest: the gradient is that one's.
        places = _argmax(gathered.detach(), axis=2, keepdims=True)
        result = _squeeze(_take_along_axis(gathered, places, axis=2), axis=2)
    else:
        result = reduction(gathered, axis=2)
    return result if batched is x else _squeeze(result, axis=0)


def _pool_windows(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], Windows]:
    """The padding along each axis that was asked for, and the windows."""
    axes = "L" if rank == 1 else "H, W"
    if x.ndim not in (rank + 1, rank + 2):
        raise _C.ShapeError(f"{name}: x must be (N, C, {axes}) or (C, {axes}), its shape is {x.shape}")
    kernel = per_axis(name, "kernel_size", kernel_size, rank, 1)
    stride = kernel if stride is None else per_axis(name, "stride", stride, rank, 1)
    padding = per_axis(name, "padding", padding, rank, 0)
    dilation = per_axis(name, "dilation", dilation, rank, 1)
    for width, size in zip(padding, kernel, strict=True):
        if 2 * width > size:
            raise _C.ValueError(f"{name}: padding {width} is more than half of kernel_size {size}")
    ends = [(width, width) for width in padding]
    return padding, windows_over(name, x.shape[x.ndim - rank :], kernel, stride, ends, dilation, ceil_mode)


__all__ = ["avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"]

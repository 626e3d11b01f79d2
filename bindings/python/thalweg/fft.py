# fft.py: discrete Fourier transforms.
"""The FFT extension of the array API standard."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal

from thalweg import _C
from thalweg._C import op
from thalweg._operations import axis_of, documented, is_index, require_tensor
from thalweg._typing import Any, Axis, DeviceLike, DTypeLike, Tensor

_fft = op("fft")
_ifft = op("ifft")
_fftn = op("fftn")
_ifftn = op("ifftn")
_rfft = op("rfft")
_irfft = op("irfft")
_rfftn = op("rfftn")
_irfftn = op("irfftn")
_hfft = op("hfft")
_ihfft = op("ihfft")
_arange = op("arange")
_astype = op("astype")
_divide = op("divide")
_roll = op("roll")

Norm = Literal["backward", "ortho", "forward"]


@documented(_fft)
def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> x = tw.cos(2 * tw.pi * tw.arange(4) / 4)  # one period
    >>> tw.round(tw.abs(tw.fft.fft(x)))
    tensor([0., 2., 0., 2.], dtype=float64)
    """
    return _fft(x, n=n, axis=axis, norm=norm)


@documented(_ifft)
def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> tw.fft.ifft(tw.asarray([4 + 0j, 0, 0, 0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _ifft(x, n=n, axis=axis, norm=norm)


@documented(_fftn)
def fftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """>>> tw.fft.fftn(tw.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return _fftn(x, s=s, axes=axes, norm=norm)


@documented(_ifftn)
def ifftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """>>> tw.fft.ifftn(tw.asarray([[10 + 0j, -2], [-4, 0]]))
    tensor([[1.+0.j, 2.+0.j],
            [3.+0.j, 4.+0.j]])
    """
    return _ifftn(x, s=s, axes=axes, norm=norm)


@documented(_rfft)
def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> tw.fft.rfft(tw.asarray([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _rfft(x, n=n, axis=axis, norm=norm)


@documented(_irfft)
def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> tw.fft.irfft(tw.asarray([10 + 0j, -2 + 2j, -2]))
    tensor([1., 2., 3., 4.])
    """
    return _irfft(x, n=n, axis=axis, norm=norm)


@documented(_rfftn)
def rfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """>>> tw.fft.rfftn(tw.ones((4, 6))).shape
    (4, 4)
    """
    return _rfftn(x, s=s, axes=axes, norm=norm)


@documented(_irfftn)
def irfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """>>> x = tw.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> tw.round(tw.fft.irfftn(tw.fft.rfftn(x), s=(2, 3), axes=(0, 1)))
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """
    return _irfftn(x, s=s, axes=axes, norm=norm)


@documented(_hfft)
def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> tw.fft.hfft(tw.asarray([1 + 0j, 2, 3]))
    tensor([ 8., -2.,  0., -2.])
    """
    return _hfft(x, n=n, axis=axis, norm=norm)


@documented(_ihfft)
def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """>>> tw.fft.ihfft(tw.asarray([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.])
    """
    return _ihfft(x, n=n, axis=axis, norm=norm)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of the elements of a transform: 0, 1, ... and then the negative ones, over d * n.

    n: the transform's length; the result has shape (n,). d: the distance of two samples. dtype: a real
    floating one, float32 by default. Raises ValueError for n below 1 and d of 0.

    Array API standard, FFT extension.

    >>> tw.fft.fftfreq(4, d=0.5)
    tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    n = _length_of("fftfreq", n)
    # The negative ones first, moved to the end.
    numbers = _arange(start=-(n // 2), stop=(n + 1) // 2, step=1, device=device)
    return _frequencies("fftfreq", _roll(numbers, shift=-(n // 2)), n, d, dtype)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of the elements of rfft's result: 0, 1, ..., n // 2, over d * n.

    n: the transform's length; the result has shape (n // 2 + 1,). d: the distance of two samples. dtype: a
    real floating one, float32 by default. Raises ValueError for n below 1 and d of 0.

    Array API standard, FFT extension.

    >>> tw.fft.rfftfreq(4, d=0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    n = _length_of("rfftfreq", n)
    numbers = _arange(start=0, stop=n // 2 + 1, step=1, device=device)
    return _frequencies("rfftfreq", numbers, n, d, dtype)


def _length_of(name: str, n: Any) -> int:
    if not is_index(n):
        raise _C.DTypeError(f"{name}: n must be an int, not {type(n).__name__}")
    if (length := operator.index(n)) >= 1:
        return length
    raise _C.ValueError(f"{name}: n is {length}; it must be at least 1")


def _frequencies(name: str, numbers: Tensor, n: int, d: Any, dtype: DTypeLike | None) -> Tensor:
    """Computed in float64, then rounded to the dtype."""
    dtype = _C.dtype("float32" if dtype is None else dtype)
    if dtype.kind != "real floating":
        raise _C.DTypeError(f"{name}: dtype must be float32 or float64, not {dtype}")
    if (period := float(d) * n) == 0:
        raise _C.ValueError(f"{name}: d is {d}; the distance of two samples must not be 0")
    return _astype(_divide(_astype(numbers, dtype="float64"), period), dtype=dtype)


def fftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """x with the frequency 0 in the middle of each axis.

    axes: an int or several, None for all. Any dtype. Raises IndexError for an axis out of range.

    Array API standard, FFT extension.

    >>> tw.fft.fftshift(tw.fft.fftfreq(5, d=0.2))
    tensor([-2., -1.,  0.,  1.,  2.])
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """The inverse of fftshift: x with the element in the middle of each axis in front.

    axes: an int or several, None for all. Any dtype. Raises IndexError for an axis out of range.

    Array API standard, FFT extension.

    >>> tw.fft.ifftshift(tw.fft.fftshift(tw.arange(5)))
    tensor([0, 1, 2, 3, 4])
    """
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(name: str, x: Tensor, axes: Axis, shift_of: Any) -> Tensor:
    x = require_tensor(name, x)
    if axes is None:
        axes = range(x.ndim)
    positions = [axis_of(name, axis, x.ndim) for axis in ([axes] if is_index(axes) else axes)]
    return _roll(x, shift=[shift_of(x.shape[axis]) for axis in positions], axis=positions)


__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__"]

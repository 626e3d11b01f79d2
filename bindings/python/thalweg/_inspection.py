# _inspection.py: what dtypes can do, and what the namespace offers.
"""Data type and inspection functions of the array API standard."""

from __future__ import annotations

import builtins
from dataclasses import dataclass

from thalweg import _C
from thalweg._typing import Any, Device, DeviceLike, DType, DTypeLike, Tensor

__array_api_version__ = "2025.12"

#: Revisions of the standard that `Tensor.__array_namespace__` can be asked for: newer ones only add to them.
SUPPORTED_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)

# Kinds as the standard calls them, and the DType.kind they stand for.
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


# Bits of the fraction and the largest exponent of each floating format, and the format of complex parts.
_FORMATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}
_PARTS = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True)
class FInfo:
    """The limits of a floating dtype; of a complex one those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(name: str, of: Any) -> DType:
    if isinstance(of, Tensor):
        return of.dtype
    try:
        return _C.dtype(of)
    except _C.DTypeError as error:
        raise _C.DTypeError(f"{name}: {error}") from None


def finfo(type: DTypeLike | Tensor, /) -> FInfo:
    """The limits of a floating dtype, or of that of a tensor: bits, eps, max, min, smallest_normal, dtype.

    Raises DTypeError for other dtypes. Array API standard, data type functions.

    >>> tw.finfo("float32").eps, tw.finfo(tw.ones(2)).max
    (1.1920928955078125e-07, 3.4028234663852886e+38)
    """
    dtype = _dtype_of("finfo", type)
    if "floating" not in dtype.kind:
        raise _C.DTypeError(f"finfo: {dtype} is not a floating dtype; use iinfo for integers")
    part = _PARTS.get(dtype.name, dtype.name)
    digits, exponent = _FORMATS[part]
    eps = 2.0**-digits
    largest = (2.0 - eps) * 2.0**exponent
    limits = _C.dtype(part)
    return FInfo(8 * limits.itemsize, eps, largest, -largest, 2.0 ** (1 - exponent), limits)


def iinfo(type: DTypeLike | Tensor, /) -> IInfo:
    """The limits of an integer dtype, or of that of a tensor: bits, max, min, dtype.

    Raises DTypeError for other dtypes. Array API standard, data type functions.

    >>> tw.iinfo("int8")
    IInfo(bits=8, max=127, min=-128, dtype=thalweg.int8)
    """
    dtype = _dtype_of("iinfo", type)
    bits = 8 * dtype.itemsize
    if dtype.kind == "unsigned integer":
        return IInfo(bits, 2**bits - 1, 0, dtype)
    if dtype.kind != "signed integer":
        raise _C.DTypeError(f"iinfo: {dtype} is not an integer dtype; use finfo for floating ones")
    return IInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """True if the dtype is of the kind, or of one of a tuple of kinds.

    A kind is a dtype or "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
    floating" or "numeric"; others raise ValueError. Array API standard, data type functions.

    >>> tw.isdtype("int8", "integral"), tw.isdtype(tw.float32, ("bool", "complex floating"))
    (True, False)
    """
    dtype = _dtype_of("isdtype", dtype)
    if isinstance(kind, tuple):
        return builtins.any([isdtype(dtype, each) for each in kind])
    if not isinstance(kind, str):
        return dtype == _dtype_of("isdtype", kind)
    if kind not in _KINDS:
        raise _C.ValueError(f"isdtype: there is no kind {kind!r}; kinds are {', '.join(map(repr, _KINDS))}")
    return dtype.kind in _KINDS[kind]


def can_cast(from_: DTypeLike | Tensor, to: DTypeLike, /) -> bool:
    """True if promotion casts a dtype, or that of a tensor, to another one.

    Raises DTypeError for an unknown dtype. Array API standard, data type functions and type promotion rules;
    kinds mix as in NumPy.

    >>> tw.can_cast("int32", "float64"), tw.can_cast("float64", "float32")
    (True, False)
    """
    target = _dtype_of("can_cast", to)
    return _C.promote(_dtype_of("can_cast", from_), target) == target


_NUMBER_KINDS = (bool, int, float, complex)


def _number_kind(object: Any) -> type | None:
    return next((kind for kind in _NUMBER_KINDS if isinstance(object, kind)), None)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operations on these tensors, dtypes and numbers give.

    Numbers count by their kind only. Raises ValueError without any tensor or dtype. Array API standard,
    data type functions and type promotion rules; kinds mix as in NumPy.

    >>> tw.result_type("int32", "float32"), tw.result_type(tw.ones(2), 1j)
    (thalweg.float64, thalweg.complex64)
    """
    kinds = [_number_kind(each) for each in arrays_and_dtypes]
    dtypes = [_dtype_of("result_type", each) for each in arrays_and_dtypes if _number_kind(each) is None]
    if not dtypes:
        raise _C.ValueError("result_type: needs at least one tensor or dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = _C.promote(result, dtype)
    for kind in _NUMBER_KINDS:
        result = _C.promote_number(result, kind(0)) if kind in kinds else result
    return result


def _existing(names: tuple[str, ...]) -> dict[str, DType]:
    return {name: getattr(_C, name) for name in names if hasattr(_C, name)}


class __array_namespace_info__:  # noqa: N801 - the standard's name
    """What the namespace offers. Array API standard, inspection.

    >>> info = tw.__array_namespace_info__()
    >>> info.default_dtypes()["integral"], info.default_device()
    (thalweg.int64, Device('cpu:0'))
    """

    def capabilities(self) -> dict[str, bool | int]:
        """Boolean indexing and shapes that depend on values are there; they wait. Array API standard,
        inspection.

        >>> tw.__array_namespace_info__().capabilities()
        {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 64}
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of tensors for which none is given. Array API standard, inspection.

        >>> tw.__array_namespace_info__().default_device()
        Device('cpu:0')
        """
        return _C.Device("cpu:0")

    def devices(self) -> tuple[Device, ...]:
        """The devices of the current engine. Array API standard, inspection.

        >>> tw.Device("cpu:0") in tw.__array_namespace_info__().devices()
        True
        """
        return _C.current_engine().devices()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes of results for which none is given, the same on all devices.

        Raises DeviceError for a device that is not there. Array API standard, inspection.

        >>> tw.__array_namespace_info__().default_dtypes()["real floating"]
        thalweg.float32
        """
        _check_device("default_dtypes", device)
        names = {
            "real floating": "float32",
            "complex floating": "complex64",
            "integral": "int64",
            "indexing": "int64",
        }
        return {kind: getattr(_C, name) for kind, name in names.items() if hasattr(_C, name)}

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes of a kind (see isdtype), or all, by name: the same on all devices.

        float16 and bfloat16 are not among them, as the standard has neither. Raises DeviceError for a device
        that is not there and ValueError for an unknown kind. Array API standard, inspection.

        >>> tw.__array_namespace_info__().dtypes(kind="real floating")
        {'float32': thalweg.float32, 'float64': thalweg.float64}
        """
        _check_device("dtypes", device)
        found = _existing(_NAMES)
        return {name: dtype for name, dtype in found.items() if kind is None or isdtype(dtype, kind)}


def _check_device(name: str, device: DeviceLike | None) -> None:
    if device is not None and _C.Device(device) not in _C.current_engine().devices():
        raise _C.DeviceError(f"{name}: there is no device {device}")


__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

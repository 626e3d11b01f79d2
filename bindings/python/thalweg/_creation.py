# _creation.py: functions that make tensors.
"""Creation functions of the array API standard. Default dtypes: float32, complex64, int64 and
bool."""

from __future__ import annotations

import builtins
import operator
import sys
from typing import Literal, cast

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import result_type
from thalweg._interchange import from_dlpack
from thalweg._operations import documented, require_tensor, value_of
from thalweg._typing import Any, DeviceLike, DTypeLike, Scalar, Shape, Tensor

_empty = op("empty")
_full = op("full")
_arange = op("arange")
_linspace = op("linspace")
_eye = op("eye")
_astype = op("astype")
_broadcast_to = op("broadcast_to")
_concat = op("concat")
_expand_dims = op("expand_dims")
_contiguous = op("contiguous")
_to_device = op("to_device")
_reshape = op("reshape")
_greater_equal = op("greater_equal")
_less_equal = op("less_equal")
_where = op("where")

_PYTHON_DATA = (bool, int, float, complex, list, tuple)


def astype(x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None) -> Tensor:
    """The values of x as another dtype, with NumPy's casts. copy=False gives x itself where nothing changes.

    Raises DTypeError for a complex x and a real dtype, and DeviceError for a device that is not there. Array
    API standard, data type functions.

    >>> tw.astype(tw.asarray([1.9, -1.9]), "int32")
    tensor([ 1, -1], dtype=int32)
    """
    x = require_tensor("astype", x)
    dtype = _C.dtype(dtype)
    if dtype != x.dtype or (copy and device is None):
        x = _astype(x, dtype=dtype)
    if device is not None and x.device != device:
        return _to_device(x, device=device)
    return x


def asarray(
    obj: Any, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor of a number, nested lists, an array, a buffer or an object with __dlpack__.

    Without dtype Python's bool, int, float and complex give bool, int64 (uint64 above 2**63 - 1), float32
    and complex64; arrays and NumPy's scalars keep their dtype. device is that of the result, cpu:0 by
    default. Raises ShapeError for rows of different lengths, OverflowError for an int out of range,
    DTypeError for what holds no numbers.

    Data is copied in, so that changing the source later changes no tensor. copy=False of a tensor is that
    tensor; of an array it aliases the bytes as from_dlpack does, or raises ValueError where it cannot.

    Tensors in lists are stacked, without waiting for them; numbers beside them go to the device and the
    engine of the first one.

    Array API standard, creation functions.

    >>> tw.asarray([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> tw.asarray([0.5, 1]).dtype, tw.asarray(np.asarray([0.5, 1])).dtype
    (thalweg.float32, thalweg.float64)
    """
    if isinstance(obj, Tensor):
        return _asarray_of_tensor(obj, dtype, device, copy)
    if copy is False:
        return _alias(obj, dtype, device)
    if isinstance(obj, range):
        obj = list(obj)
    if type(obj) in _PYTHON_DATA or isinstance(obj, (list, tuple)):
        result = _C.from_nested(obj, dtype=dtype, device=device)
        if result is not None:
            return result
        if (tensor := _tensor_in(obj)) is not None:
            if entered and (there := elsewhere(tensor)):
                return there(asarray, obj, dtype=dtype, device=device, copy=copy)
            stacked = _stack(obj, device, tensor.device)
            return stacked if dtype is None else astype(stacked, dtype, copy=False)
        obj = _C.array_of_mixed("asarray", obj)
    result = _copy_of_array(obj, device)
    return result if dtype is None or result.dtype == dtype else _astype(result, dtype=dtype)


def _tensor_in(obj: Any) -> Tensor | None:
    """The first tensor in nested lists."""
    if isinstance(obj, (list, tuple)):
        return next((found for each in obj if (found := _tensor_in(each)) is not None), None)
    return obj if isinstance(obj, Tensor) else None


def _stack(lists: Any, device: Any, beside: Any) -> Tensor:
    """Nested lists with tensors among them, joined without waiting for one; without a device, numbers go to
    the device beside."""
    stay = [device is not None or _tensor_in(each) is not None for each in lists]
    parts = [
        asarray(each, device=device if stays else beside) for each, stays in zip(lists, stay, strict=True)
    ]
    for each in parts:
        if each.shape != parts[0].shape:
            raise _C.ShapeError(f"asarray: shapes {parts[0].shape} and {each.shape} in one list differ")
    return _concat(*(_expand_dims(each, axis=0) for each in parts), axis=0)


def tensor(data: Any, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """As asarray, always a copy, and with the same errors as it raises. PyTorch's tensor.

    >>> x = np.zeros(2)
    >>> t = tw.tensor(x)
    >>> x[0] = 1  # t has bytes of its own
    >>> t
    tensor([0., 0.], dtype=float64)
    """
    return asarray(data, dtype=dtype, device=device, copy=True)


def from_numpy(array: Any, /, *, device: DeviceLike | None = None) -> Tensor:
    """A tensor with a copy of a NumPy array, of its shape and dtype.

    Raises DTypeError for a dtype that has no counterpart. PyTorch's from_numpy, but for the copy.

    >>> tw.from_numpy(np.arange(4).reshape(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return asarray(array, device=device)


def _asarray_of_tensor(x: Tensor, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    changes = (dtype is not None and x.dtype != _C.dtype(dtype)) or (
        device is not None and x.device != device
    )
    if not changes:
        return _contiguous(x) if copy else x
    if copy is False:
        raise _C.ValueError("asarray: another dtype or device needs a copy and copy is False")
    return astype(x, x.dtype if dtype is None else dtype, copy=False, device=device)


def _alias(obj: Any, dtype: Any, device: Any) -> Tensor:
    if not hasattr(obj, "__dlpack__"):
        raise _C.ValueError(f"asarray: {type(obj).__name__} needs a copy and copy is False")
    try:
        aliased = from_dlpack(obj)
    except (BufferError, _C.DTypeError) as error:  # such bytes cannot be shared
        raise _C.ValueError(f"asarray: a copy is needed and copy is False: {error}") from error
    return _asarray_of_tensor(aliased, dtype, device, False)


def _copy_of_array(obj: Any, device: Any) -> Tensor:
    if isinstance(obj, (bool, int, float, complex)) and not hasattr(
        obj, "__array__"
    ):  # a subclass, as of an enum
        return cast(Tensor, _C.from_nested(obj, device=device))
    if hasattr(obj, "__array__") and "numpy" in sys.modules:
        import numpy

        obj = numpy.asarray(obj)
    if hasattr(obj, "__array__") or isinstance(obj, (bytes, bytearray, memoryview)) or _has_buffer(obj):
        try:
            return _C.from_buffer(obj, device=device)
        except (_builtin_value_error, BufferError) as error:
            if isinstance(error, _C.Error):  # of the engine, as of a device that is not there
                raise
            raise _C.DTypeError(f"asarray: {type(obj).__name__} cannot be read: {error}") from error
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj, device=device, copy=True)
    raise _C.DTypeError(f"asarray: cannot make a tensor of {type(obj).__name__}")


_builtin_value_error = ValueError


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    return True


def empty(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """A tensor of the shape whose values are whatever its memory held (float32 by default).

    Raises ShapeError for a negative size and DTypeError for an unknown dtype. Array API standard, creation
    functions.

    >>> x = tw.empty((2, 3))
    >>> x.shape, x.dtype
    ((2, 3), thalweg.float32)
    """
    return _empty(shape=shape, dtype="float32" if dtype is None else dtype, device=device)


def zeros(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """A tensor of zeros (float32 by default).

    Raises ShapeError for a negative size and DTypeError for an unknown dtype. Array API standard, creation
    functions.

    >>> tw.zeros((2, 3), dtype="int8")
    tensor([[0, 0, 0],
            [0, 0, 0]], dtype=int8)
    """
    return _full(shape=shape, value=0, dtype="float32" if dtype is None else dtype, device=device)


def ones(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """A tensor of ones (float32 by default).

    Raises ShapeError for a negative size and DTypeError for an unknown dtype. Array API standard, creation
    functions.

    >>> tw.ones(3)
    tensor([1., 1., 1.])
    """
    return _full(shape=shape, value=1, dtype="float32" if dtype is None else dtype, device=device)


@documented(_full)
def full(
    shape: Shape, fill_value: Scalar, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """A complex number without dtype gives complex64; NumPy's scalars keep their dtype. fill_value may also
    be a 0-d tensor.

    >>> tw.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if isinstance(fill_value, Tensor):
        return _full_of_tensor("full", shape, fill_value, dtype, device)
    if dtype is None:
        dtype = _dtype_of_numbers(fill_value)
    return _full(shape=shape, value=fill_value, dtype=dtype, device=device)


def _full_of_tensor(name: str, shape: Any, value: Tensor, dtype: Any, device: Any) -> Tensor:
    if value.ndim != 0:
        raise _C.ShapeError(
            f"{name}: fill_value must be a number or a 0-d tensor, not of shape {value.shape}"
        )
    value = astype(value, value.dtype if dtype is None else dtype, copy=False, device=device)
    return _contiguous(_broadcast_to(value, shape=shape))


def _dtype_of_numbers(*numbers: Any) -> Any:
    """The dtype of results made of numbers: NumPy's scalars and tensors bring their own, other floats are
    float32 and complex numbers complex64."""
    if builtins.any(isinstance(number, Tensor) for number in numbers):
        return result_type(*(_C.dtype(x.dtype) if hasattr(x, "dtype") else x for x in numbers))
    if builtins.any(hasattr(number, "dtype") for number in numbers):
        return str(sys.modules["numpy"].result_type(*numbers))
    if builtins.any(isinstance(number, complex) for number in numbers):
        return "complex64"
    return "float32" if builtins.any(isinstance(number, float) for number in numbers) else None


def _is_complex(number: Any) -> bool:
    kind = getattr(getattr(number, "dtype", None), "kind", "")
    return isinstance(number, complex) or kind in ("c", "complex floating")


def _is_integer(number: Any) -> bool:
    if isinstance(number, Tensor):  # the type has __index__ for its tensors of integers
        return "floating" not in number.dtype.kind
    return hasattr(number, "__index__")


def empty_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """As empty, with the shape, dtype, device and engine of x. Raises DTypeError for an x that is no tensor.

    Array API standard, creation functions.

    >>> tw.empty_like(tw.zeros((2, 3), dtype="int16")).dtype
    thalweg.int16
    """
    x = require_tensor("empty_like", x)
    if entered and (there := elsewhere(x)):
        return there(empty_like, x, dtype=dtype, device=device)
    return _empty(
        shape=x.shape,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def zeros_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """As zeros, with the shape, dtype, device and engine of x. Raises DTypeError for an x that is no tensor.

    Array API standard, creation functions.

    >>> tw.zeros_like(tw.asarray([1.5, 2.5]))
    tensor([0., 0.])
    """
    x = require_tensor("zeros_like", x)
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """As ones, with the shape, dtype, device and engine of x. Raises DTypeError for an x that is no tensor.

    Array API standard, creation functions.

    >>> tw.ones_like(tw.asarray([1, 2]), dtype="float64")
    tensor([1., 1.], dtype=float64)
    """
    x = require_tensor("ones_like", x)
    return full_like(x, 1, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Scalar, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """As full, with the shape, dtype, device and engine of x and with the same errors as it raises.

    Array API standard, creation functions.

    >>> tw.full_like(tw.asarray([1.5, 2.5]), 7)
    tensor([7., 7.])
    """
    x = require_tensor("full_like", x)
    if entered and (there := elsewhere(x)):
        return there(full_like, x, fill_value, dtype=dtype, device=device)
    if isinstance(fill_value, Tensor):
        if entered and elsewhere(fill_value):
            raise _C.EngineError(
                "full_like: fill_value belongs to another engine than x; pass its value, fill_value.item()"
            )
        dtype = x.dtype if dtype is None else dtype
        device = x.device if device is None else device
        return _full_of_tensor("full_like", x.shape, fill_value, dtype, device)
    return _full(
        shape=x.shape,
        value=fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


@documented(_arange)
def arange(
    start: Scalar | Tensor,
    /,
    stop: Scalar | Tensor | None = None,
    step: Scalar | Tensor = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """With one number it is stop, and start is 0. NumPy's floating scalars keep their dtype, and so do 0-d
    tensors, for whose values the call waits.

    >>> tw.arange(3), tw.arange(1, 2, 0.25)
    (tensor([0, 1, 2]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None and builtins.any(not _is_integer(number) for number in (start, stop, step)):
        dtype = _dtype_of_numbers(start, stop, step)
    start, stop, step = (
        value_of("arange", what, number)
        for what, number in (("start", start), ("stop", stop), ("step", step))
    )
    return _arange(start=start, stop=stop, step=step, dtype=dtype, device=device)


@documented(_linspace)
def linspace(
    start: Scalar | Tensor,
    stop: Scalar | Tensor,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """float32 by default, complex64 between complex numbers. The bounds may also be 0-d tensors, for whose
    values the call waits.

    >>> tw.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    >>> tw.linspace(0, 1, 5, endpoint=False)
    tensor([0.0000, 0.2000, 0.4000, 0.6000, 0.8000])
    """
    if dtype is None:
        dtype = "complex64" if builtins.any(_is_complex(bound) for bound in (start, stop)) else "float32"
    start, stop = value_of("linspace", "start", start), value_of("linspace", "stop", stop)
    return _linspace(start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype, device=device)


@documented(_eye)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """float32 by default.

    >>> tw.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    dtype = "float32" if dtype is None else dtype
    if hasattr(k, "__index__"):
        # Farther than any matrix is wide, and what an int64 holds.
        k = max(-(2**62), min(operator.index(k), 2**62))
    return _eye(n_rows=n_rows, n_cols=n_cols, k=k, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid from those of its axes: tensor i of the result changes along axis i only.

    arrays: 1-d. indexing: "ij" gives shape (n0, n1, n2, ...), "xy" (n1, n0, n2, ...). The results share the
    bytes of the arrays. Raises ShapeError for other ranks and ValueError for another indexing.

    Array API standard, creation functions.

    >>> rows, columns = tw.meshgrid(tw.arange(2), tw.arange(3), indexing="ij")
    >>> 10 * rows + columns
    tensor([[ 0,  1,  2],
            [10, 11, 12]])
    """
    if indexing not in ("xy", "ij"):
        raise _C.ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    for array in arrays:
        if require_tensor("meshgrid", array).ndim > 1:
            raise _C.ShapeError(f"meshgrid: arrays must have 1 dimension, not shape {array.shape}")
    order = list(range(len(arrays)))
    if indexing == "xy":
        order[:2] = reversed(order[:2])
    shape = [arrays[i].size for i in order]
    lines = [[array.size if i == axis else 1 for i in order] for axis, array in enumerate(arrays)]
    return tuple(
        _broadcast_to(_reshape(array, shape=line), shape=shape)
        for array, line in zip(arrays, lines, strict=True)
    )


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices in the last two axes of x with zeros above diagonal k (above 0: over the main one).

    Raises ShapeError below 2 dimensions. Array API standard, creation functions.

    >>> tw.tril(tw.ones((3, 3), dtype="int64"), k=-1)
    tensor([[0, 0, 0],
            [1, 0, 0],
            [1, 1, 0]])
    """
    return _triangle("tril", _greater_equal, x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices in the last two axes of x with zeros below diagonal k (above 0: over the main one).

    Raises ShapeError below 2 dimensions. Array API standard, creation functions.

    >>> tw.triu(tw.reshape(tw.arange(9), (3, 3)))
    tensor([[0, 1, 2],
            [0, 4, 5],
            [0, 0, 8]])
    """
    return _triangle("triu", _less_equal, x, k)


def _triangle(name: str, keeps: _C.Operation, x: Tensor, k: int) -> Tensor:
    if require_tensor(name, x).ndim < 2:
        raise _C.ShapeError(f"{name}: needs at least 2 dimensions, shape {x.shape} has {x.ndim}")
    if entered and (there := elsewhere(x)):
        return there(_triangle, name, keeps, x, k)
    height, width = x.shape[-2:]
    k = max(-height, min(operator.index(k), width))
    diagonal = arange(k, height + k, device=x.device)
    kept = keeps(_reshape(diagonal, shape=(height, 1)), arange(width, device=x.device))
    return _where(kept, x, _full(shape=(), value=0, dtype=x.dtype, device=x.device))


__all__ = [
    "arange",
    "asarray",
    "astype",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tensor",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

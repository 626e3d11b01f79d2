# _interchange.py: tensors and other libraries: NumPy, DLPack, pickle, copy.
"""Bytes go out without a copy and read-only; they come in by copy, but for from_dlpack, which aliases."""

from __future__ import annotations

import copy
import pickle

from thalweg import _C
from thalweg._C import op
from thalweg._typing import Any, DeviceLike, Tensor

_to_device = op("to_device")
_contiguous = op("contiguous")


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the bytes of an object with __dlpack__, without a copy unless copy is True. It belongs to
    the current engine, also where the object is a tensor of another one.

    The source must not be changed while the tensor is in use: operations that have not run yet would see the
    change. Raises DTypeError for elements that have no dtype here, DeviceError for a device that is not
    there and ValueError where another device needs a copy and copy is False. Array API standard, creation
    functions.

    >>> tw.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if not hasattr(x, "__dlpack__"):
        raise _C.DTypeError(
            f"from_dlpack: {type(x).__name__} has no __dlpack__; use asarray for numbers, lists and buffers"
        )
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer of DLPack 0.x
        capsule = x.__dlpack__()
    result = _C.from_dlpack(capsule, copy=copy is True)
    if device is None or result.device == device:
        return result
    if copy is False:
        raise _C.ValueError(f"from_dlpack: {device} needs a copy and copy is False")
    return _to_device(result, device=device)


def to_numpy(self: Tensor) -> Any:
    """Waits, then a read-only NumPy array over the tensor's bytes (cpu devices: no copy).

    Raises the failure of the tensor, and EngineError if it requires a gradient. bfloat16 gives
    ml_dtypes.bfloat16; without the package ml_dtypes it raises DTypeError. PyTorch's Tensor.numpy, but
    read-only.

    >>> tw.asarray([1, 2]).numpy() * 10
    array([10, 20])
    """
    import numpy

    if self.requires_grad:
        raise _C.EngineError(
            "numpy: the tensor requires a gradient, which NumPy would lose; use x.detach().numpy()"
        )
    if self.size == 0:
        self.wait()  # it may have failed
        return _read_only(numpy.empty(self.shape, dtype=self.dtype.__numpy_dtype__))
    if self.dtype == "bfloat16":  # a dtype of ml_dtypes, which has no buffer format
        dtype = self.dtype.__numpy_dtype__
        return numpy.asarray(_bytes_of(self)).view(dtype)
    return numpy.asarray(memoryview(self))


def _bytes_of(x: Tensor) -> memoryview:
    """The value in a buffer: bfloat16 as 16-bit integers."""
    return memoryview(_C.reinterpret(x, "uint16") if x.dtype == "bfloat16" else x)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's conversion protocol: read-only without a copy; copy=True gives an array of its own."""
    result = to_numpy(self)
    if dtype is not None and result.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: {self.dtype} to {dtype} needs a copy and copy is False")
        return result.astype(dtype)
    return result.copy() if copy else result


def rebuild(
    data: Any, dtype: str, shape: tuple[int, ...], device: str, requires_grad: bool = False
) -> Tensor:
    """The tensor of a pickle. On a machine without that device it goes to the default one."""
    engine = _C.current_engine()
    where = device if any(str(each) == device for each in engine.devices()) else None
    result = _C.from_bytes(data, dtype, shape, where)
    return result.requires_grad_() if requires_grad else result


def reduce_ex(self: Tensor, protocol: int) -> tuple[Any, ...]:
    """Waits, then what pickle needs; from protocol 5 on the bytes may travel out of band."""
    _require_leaf("pickle", self)
    self.wait()
    buffer = _bytes_of(self.detach()) if self.size else memoryview(b"")
    if protocol < 5:
        data: Any = buffer.tobytes()
    else:
        data = pickle.PickleBuffer(buffer if buffer.c_contiguous else buffer.tobytes())
    arguments = (data, str(self.dtype), self.shape, str(self.device))
    return rebuild, (*arguments, True) if self.requires_grad else arguments


def _require_leaf(name: str, x: Tensor) -> None:
    if x.requires_grad and not x.is_leaf:
        raise _C.EngineError(f"{name}: the graph behind a tensor is not copied; use x.detach()")


def deepcopy_tensor(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Another tensor with bytes of its own; of a leaf another leaf with a copy of its gradient. It is of the
    current engine where that of the tensor is closed."""
    _require_leaf("deepcopy", self)
    value = self.detach()
    try:
        result = _contiguous(value)
    except _C.EngineError:
        value.wait()
        data = _bytes_of(value).tobytes() if value.size else b""
        result = rebuild(data, str(self.dtype), self.shape, str(self.device))
    memo[id(self)] = result
    if self.requires_grad:
        result.requires_grad_()
    if self.is_leaf and self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    return result


__all__ = ["from_dlpack"]

# _methods.py: the methods of Tensor that are functions of the package.
"""Adds methods to Tensor. The extension holds those that touch the handle itself; `_C.pyi` lists both."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from thalweg import (
    _C,
    _asyncio,
    _creation,
    _elementwise,
    _inspection,
    _interchange,
    _linear_algebra,
    _logic,
    _manipulation,
    _reductions,
    _repr,
)
from thalweg._typing import Any, Axis, DeviceLike, DTypeLike, Operand, Shape, Tensor
from thalweg.autograd import _backward as _autograd_backward


def _shape_arguments(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def _refuse_out(name: str, out: Any) -> None:
    """NumPy's functions call methods of other arrays with their own arguments, out=None among them."""
    if out is not None:
        raise _C.DTypeError(f"{name}: values are immutable, so that out must be None; use the result")


def _as(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    return x if dtype is None else _creation.astype(x, dtype, copy=False)


def _sum(
    self: Tensor,
    axis: Axis = None,
    *,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
) -> Tensor:
    _refuse_out("sum", out)
    return _reductions._sum(self, axis=axis, dtype=dtype, keepdims=keepdims)


def _prod(
    self: Tensor,
    axis: Axis = None,
    *,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
) -> Tensor:
    _refuse_out("prod", out)
    return _reductions._prod(self, axis=axis, dtype=dtype, keepdims=keepdims)


def _mean(
    self: Tensor,
    axis: Axis = None,
    *,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
) -> Tensor:
    _refuse_out("mean", out)
    return _reductions._mean(_as(self, dtype), axis=axis, keepdims=keepdims)


def _max(self: Tensor, axis: Axis = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("max", out)
    return _reductions._max(self, axis=axis, keepdims=keepdims)


def _min(self: Tensor, axis: Axis = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("min", out)
    return _reductions._min(self, axis=axis, keepdims=keepdims)


def _any(self: Tensor, axis: Axis = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("any", out)
    return _reductions._any(self, axis=axis, keepdims=keepdims)


def _all(self: Tensor, axis: Axis = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("all", out)
    return _reductions._all(self, axis=axis, keepdims=keepdims)


def _var(
    self: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
) -> Tensor:
    _refuse_out("var", out)
    correction = correction if ddof is None else ddof
    return _reductions._var(_as(self, dtype), axis=axis, correction=correction, keepdims=keepdims)


def _std(
    self: Tensor,
    axis: Axis = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
) -> Tensor:
    _refuse_out("std", out)
    correction = correction if ddof is None else ddof
    return _reductions._std(_as(self, dtype), axis=axis, correction=correction, keepdims=keepdims)


def _argmax(self: Tensor, axis: int | None = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("argmax", out)
    return _reductions._argmax(self, axis=axis, keepdims=keepdims)


def _argmin(self: Tensor, axis: int | None = None, *, out: None = None, keepdims: bool = False) -> Tensor:
    _refuse_out("argmin", out)
    return _reductions._argmin(self, axis=axis, keepdims=keepdims)


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    return _manipulation.reshape(self, _shape_arguments(shape))


def _flatten(self: Tensor) -> Tensor:
    """The elements in C order, along one axis. Shares the tensor's bytes where its strides allow, else
    copies. NumPy's ndarray.flatten.

    >>> tw.asarray([[1, 2], [3, 4]]).flatten()
    tensor([1, 2, 3, 4])
    """
    return _manipulation.reshape(self, -1)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    if not axes or axes == (None,):
        return _manipulation.transpose(self)
    return _manipulation.transpose(self, _shape_arguments(axes))


def _permute(self: Tensor, *axes: Any) -> Tensor:
    """The tensor with its axes in the given order. Shares its bytes.

    Raises IndexError or ShapeError for axes that are no permutation. PyTorch's Tensor.permute.

    >>> tw.zeros((2, 3, 4)).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return _manipulation.permute_dims(self, _shape_arguments(axes))


def _squeeze(self: Tensor, axis: Axis = None) -> Tensor:
    return _manipulation.squeeze(self, axis)


def _expand_dims(self: Tensor, axis: Any = 0) -> Tensor:
    return _manipulation.expand_dims(self, axis=axis)


def _broadcast_to(self: Tensor, shape: Shape) -> Tensor:
    return _manipulation.broadcast_to(self, shape)


def _take(self: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    return _manipulation.take(self, indices, axis=axis)


def _astype(self: Tensor, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
    """The values as another dtype, with NumPy's casts. copy=False gives the tensor itself where nothing
    changes.

    Raises DTypeError for complex values and a real dtype. NumPy's ndarray.astype.

    >>> tw.asarray([0.5, -1.5]).astype("int8")
    tensor([ 0, -1], dtype=int8)
    """
    return _creation.astype(self, dtype, copy=copy)


def _clip(self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """The values kept between two bounds. Raises as clip does. NumPy's ndarray.clip.

    >>> tw.asarray([-2.0, 0.5, 3.0]).clip(0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _elementwise.clip(self, min, max)


def _round(self: Tensor, ndigits: int | None = None) -> Tensor:
    """round(): the nearest integers, the even one of two equally near."""
    if ndigits is not None:
        raise _C.ValueError("round: digits are not supported; scale, round and scale back")
    return _elementwise.round(self)


def _to_device(self: Tensor, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device; itself if it is there.

    Raises DeviceError for a device that is not there and ValueError for a stream. Array API standard, array
    object.

    >>> x = tw.ones(2)
    >>> x.to_device(x.device) is x
    True
    """
    if stream is not None:
        raise _C.ValueError("to_device: streams are the engine's; stream must be None")
    return self if self.device == device else _creation._to_device(self, device=device)


def _to(self: Tensor, device: DeviceLike, /) -> Tensor:
    """The tensor on another device; itself if it is there, or if device is None.

    Raises DeviceError for a device that is not there. PyTorch's Tensor.to, of devices only.

    >>> tw.ones(2).to("cpu:0").device
    Device('cpu:0')
    """
    return self if device is None or self.device == device else _creation._to_device(self, device=device)


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module with the functions for tensors (array API standard). Raises ValueError for a revision of the
    standard that it does not know."""
    if api_version is not None and api_version not in _inspection.SUPPORTED_VERSIONS:
        known = ", ".join(_inspection.SUPPORTED_VERSIONS)
        raise _C.ValueError(f"__array_namespace__: version {api_version!r} is none of {known}")
    return sys.modules["thalweg"]


def _get_transpose(self: Tensor) -> Tensor:
    """The tensor with its axes reversed, of any number; a view. NumPy's ndarray.T.

    >>> tw.asarray([[1, 2, 3], [4, 5, 6]]).T.shape
    (3, 2)
    """
    return _manipulation.transpose(self)


def _get_matrix_transpose(self: Tensor) -> Tensor:
    """The matrices in the last two axes, transposed; a view. Raises ShapeError below 2 dimensions.

    Array API standard, array object.

    >>> tw.zeros((5, 2, 3)).mT.shape
    (5, 3, 2)
    """
    return _linear_algebra.matrix_transpose(self)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise _C.DTypeError("iter: a 0-d tensor has no axis to go along")
    return (self[i] for i in range(self.shape[0]))


def _contains(self: Tensor, value: Any) -> bool:
    found = self == value
    return isinstance(found, Tensor) and bool(_reductions.any(found))


def _complex(self: Tensor) -> complex:
    return complex(self.item() if self.dtype.kind == "complex floating" else float(self))


def _divmod(self: Tensor, other: Operand) -> tuple[Tensor, Tensor]:
    return self // other, self % other


def _rdivmod(self: Tensor, other: Operand) -> tuple[Tensor, Tensor]:
    return other // self, other % self


_IN_PLACE_DOC = """Rebinds the tensor to the result of {operation} with `other`, and returns it.

Raises as {operation} does, and ShapeError or DTypeError where the shape or the dtype would change. PyTorch's
{name}.

>>> x = tw.asarray([2.0, 4.0])
>>> expected = tw.{operation}(x, 4)
>>> x.{name}(4) is x, x.tolist() == expected.tolist()
(True, True)
"""


def _in_place(name: str, operation: str) -> Any:
    issue = _C.op(operation).in_place

    def method(self: Tensor, other: Operand, /) -> Tensor:
        return issue(self, other)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = _IN_PLACE_DOC.format(name=name, operation=operation)
    return method


_BY_NAME = {
    "__array__": _interchange.array,
    "__array_namespace__": _array_namespace,
    "__await__": _asyncio.await_tensor,
    "__complex__": _complex,
    "__contains__": _contains,
    "__deepcopy__": _interchange.deepcopy_tensor,
    "__divmod__": _divmod,
    "__format__": _repr.tensor_format,
    "__iter__": _iterate,
    "__rdivmod__": _rdivmod,
    "__reduce_ex__": _interchange.reduce_ex,
    "__repr__": _repr.tensor_repr,
    "__round__": _round,
    "all": _all,
    "any": _any,
    "argmax": _argmax,
    "argmin": _argmin,
    "astype": _astype,
    "backward": _autograd_backward.tensor_backward,
    "broadcast_to": _broadcast_to,
    "clip": _clip,
    "expand_dims": _expand_dims,
    "flatten": _flatten,
    "max": _max,
    "mean": _mean,
    "min": _min,
    "numpy": _interchange.to_numpy,
    "permute": _permute,
    "prod": _prod,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "std": _std,
    "sum": _sum,
    "take": _take,
    "to": _to,
    "to_device": _to_device,
    "transpose": _transpose,
    "var": _var,
}

# Functions of one tensor that are methods as they are.
_UNARY = [
    "abs",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "reciprocal",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]

_PROPERTIES = {
    "T": _get_transpose,
    "imag": _elementwise.imag,
    "mT": _get_matrix_transpose,
    "real": _elementwise.real,
}

_IN_PLACE = {"add_": "add", "sub_": "subtract", "mul_": "multiply", "div_": "divide"}


def add_methods() -> None:
    """Sets the methods on Tensor; called once, when the package is imported."""
    for name in _UNARY:
        setattr(Tensor, name, getattr(_elementwise, name, None) or getattr(_logic, name))
    for name, method in _BY_NAME.items():
        same = getattr(
            getattr(_reductions, name, None) or getattr(_manipulation, name, None), "__doc__", None
        )
        if method.__doc__ is None and same:
            method.__doc__ = same
        method.__name__ = name
        method.__qualname__ = f"Tensor.{name}"
        setattr(Tensor, name, method)
    for name, operation in _IN_PLACE.items():
        setattr(Tensor, name, _in_place(name, operation))
    for name, getter in _PROPERTIES.items():
        setattr(Tensor, name, property(getter))

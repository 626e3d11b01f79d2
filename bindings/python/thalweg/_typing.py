# _typing.py: what arguments of the package's functions may be.
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TextIO, Union

from thalweg._C import Device, DType, Tensor

Scalar = Union[bool, int, float]
Operand = Union[Tensor, Scalar]
DTypeLike = Union[DType, str, type, Any]
DeviceLike = Union[Device, str]
Shape = Union[int, Sequence[int]]
Axis = Union[int, Sequence[int], None]
PathOrFile = Union[str, "os.PathLike[str]", TextIO]

__all__ = ["Any", "Axis", "DType", "DTypeLike", "Device", "DeviceLike", "Operand", "PathOrFile", "Scalar", "Shape", "Tensor"]

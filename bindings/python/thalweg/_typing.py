# _typing.py: what arguments of the package's functions may be.
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TextIO

from thalweg._C import Device, DType, Tensor

Scalar = bool | int | float | complex
Operand = Tensor | Scalar
DTypeLike = DType | str | type | Any
DeviceLike = Device | str
Shape = int | Sequence[int]
Axis = int | Sequence[int] | None
PathOrFile = str | os.PathLike[str] | TextIO

__all__ = [
    "Any",
    "Axis",
    "DType",
    "DTypeLike",
    "Device",
    "DeviceLike",
    "Operand",
    "PathOrFile",
    "Scalar",
    "Shape",
    "Tensor",
]

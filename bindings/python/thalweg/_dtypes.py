# _dtypes.py: dtype objects, constants and what promotion gives.
from __future__ import annotations

import math

from thalweg._C import (
    Device,
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from thalweg._C import bool as bool_

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

__all__ = [
    "DType",
    "Device",
    "bfloat16",
    "bool_",
    "complex128",
    "complex64",
    "e",
    "float16",
    "float32",
    "float64",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "nan",
    "newaxis",
    "pi",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

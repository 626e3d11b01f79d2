# _logic.py: elementwise functions about truth, order and bits.
"""Comparisons, logic, bit operations, tests of floating values and selection (array API standard)."""

from __future__ import annotations

from thalweg._C import op
from thalweg._operations import documented
from thalweg._typing import Operand, Tensor

_logical_not = op("logical_not")
_logical_and = op("logical_and")
_logical_or = op("logical_or")
_logical_xor = op("logical_xor")
_bitwise_invert = op("bitwise_invert")
_bitwise_and = op("bitwise_and")
_bitwise_or = op("bitwise_or")
_bitwise_xor = op("bitwise_xor")
_bitwise_left_shift = op("bitwise_left_shift")
_bitwise_right_shift = op("bitwise_right_shift")
_equal = op("equal")
_not_equal = op("not_equal")
_less = op("less")
_less_equal = op("less_equal")
_greater = op("greater")
_greater_equal = op("greater_equal")
_isnan = op("isnan")
_isinf = op("isinf")
_isfinite = op("isfinite")
_signbit = op("signbit")
_where = op("where")


@documented(_logical_not)
def logical_not(x: Operand, /) -> Tensor:
    return _logical_not(x)


@documented(_logical_and)
def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    return _logical_and(x1, x2)


@documented(_logical_or)
def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    return _logical_or(x1, x2)


@documented(_logical_xor)
def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    return _logical_xor(x1, x2)


@documented(_bitwise_invert)
def bitwise_invert(x: Operand, /) -> Tensor:
    return _bitwise_invert(x)


@documented(_bitwise_and)
def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    return _bitwise_and(x1, x2)


@documented(_bitwise_or)
def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    return _bitwise_or(x1, x2)


@documented(_bitwise_xor)
def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    return _bitwise_xor(x1, x2)


@documented(_bitwise_left_shift)
def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    return _bitwise_left_shift(x1, x2)


@documented(_bitwise_right_shift)
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    return _bitwise_right_shift(x1, x2)


@documented(_equal)
def equal(x1: Operand, x2: Operand, /) -> Tensor:
    return _equal(x1, x2)


@documented(_not_equal)
def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    return _not_equal(x1, x2)


@documented(_less)
def less(x1: Operand, x2: Operand, /) -> Tensor:
    return _less(x1, x2)


@documented(_less_equal)
def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    return _less_equal(x1, x2)


@documented(_greater)
def greater(x1: Operand, x2: Operand, /) -> Tensor:
    return _greater(x1, x2)


@documented(_greater_equal)
def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    return _greater_equal(x1, x2)


@documented(_isnan)
def isnan(x: Operand, /) -> Tensor:
    return _isnan(x)


@documented(_isinf)
def isinf(x: Operand, /) -> Tensor:
    return _isinf(x)


@documented(_isfinite)
def isfinite(x: Operand, /) -> Tensor:
    return _isfinite(x)


@documented(_signbit)
def signbit(x: Operand, /) -> Tensor:
    return _signbit(x)


@documented(_where)
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Tensor:
    return _where(condition, x1, x2)


__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
    "where",
]

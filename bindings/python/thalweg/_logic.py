# _logic.py: elementwise functions about truth, order and bits.
"""Comparisons, logic, bit operations, tests of floating values and selection (array API standard)."""

from __future__ import annotations

from thalweg._C import op
from thalweg._operations import documented, number_of
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
_all = op("all")
_astype = op("astype")


@documented(_logical_not)
def logical_not(x: Operand, /) -> Tensor:
    """>>> tw.logical_not(tw.asarray([0, 1, 5]))
    tensor([ True, False, False])
    """
    return _logical_not(x)


@documented(_logical_and)
def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.logical_and(tw.asarray([True, True, False]), tw.asarray([1, 0, 1]))
    tensor([ True, False, False])
    """
    return _logical_and(x1, x2)


@documented(_logical_or)
def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.logical_or(tw.asarray([0, 0, 2]), tw.asarray([0, 3, 0]))
    tensor([False,  True,  True])
    """
    return _logical_or(x1, x2)


@documented(_logical_xor)
def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.logical_xor(tw.asarray([0, 1, 2]), True)
    tensor([ True, False, False])
    """
    return _logical_xor(x1, x2)


@documented(_bitwise_invert)
def bitwise_invert(x: Operand, /) -> Tensor:
    """>>> ~tw.asarray([0, 5]), ~tw.asarray([True, False])
    (tensor([-1, -6]), tensor([False,  True]))
    """
    return _bitwise_invert(x)


@documented(_bitwise_and)
def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.bitwise_and(tw.asarray([0b1100, 0b1010]), 0b0110)
    tensor([4, 2])
    """
    return _bitwise_and(x1, x2)


@documented(_bitwise_or)
def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.asarray([0b1100, 0b1010]) | 0b0001
    tensor([13, 11])
    """
    return _bitwise_or(x1, x2)


@documented(_bitwise_xor)
def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.bitwise_xor(tw.asarray([0b1100, 0b1010]), 0b1111)
    tensor([3, 5])
    """
    return _bitwise_xor(x1, x2)


@documented(_bitwise_left_shift)
def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.bitwise_left_shift(1, tw.arange(5))
    tensor([ 1,  2,  4,  8, 16])
    """
    return _bitwise_left_shift(x1, x2)


@documented(_bitwise_right_shift)
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.asarray([40, -40]) >> 3
    tensor([ 5, -5])
    """
    return _bitwise_right_shift(x1, x2)


@documented(_equal)
def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.equal(tw.asarray([1.0, 2.0, tw.nan]), tw.asarray([1.0, 3.0, tw.nan]))
    tensor([ True, False, False])
    """
    return _equal(x1, x2)


@documented(_not_equal)
def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.asarray([1, 2, 3]) != 2
    tensor([ True, False,  True])
    """
    return _not_equal(x1, x2)


@documented(_less)
def less(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.less(tw.asarray([1.0, 2.0, tw.nan]), 2)
    tensor([ True, False, False])
    """
    return _less(x1, x2)


@documented(_less_equal)
def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.asarray([[1], [2]]) <= tw.asarray([1, 2, 3])
    tensor([[ True,  True,  True],
            [False,  True,  True]])
    """
    return _less_equal(x1, x2)


@documented(_greater)
def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> x = tw.asarray([3, -1, 2])
    >>> x[tw.greater(x, 0)]
    tensor([3, 2])
    """
    return _greater(x1, x2)


@documented(_greater_equal)
def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """>>> tw.greater_equal(tw.asarray([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return _greater_equal(x1, x2)


@documented(_isnan)
def isnan(x: Operand, /) -> Tensor:
    """>>> tw.isnan(tw.asarray([1.0, tw.nan, tw.inf]))
    tensor([False,  True, False])
    """
    return _isnan(x)


@documented(_isinf)
def isinf(x: Operand, /) -> Tensor:
    """>>> tw.isinf(tw.asarray([1.0, tw.nan, -tw.inf]))
    tensor([False, False,  True])
    """
    return _isinf(x)


@documented(_isfinite)
def isfinite(x: Operand, /) -> Tensor:
    """>>> tw.isfinite(tw.asarray([1.0, tw.nan, tw.inf]))
    tensor([ True, False, False])
    """
    return _isfinite(x)


@documented(_signbit)
def signbit(x: Operand, /) -> Tensor:
    """>>> tw.signbit(tw.asarray([1.0, -0.0, -2.0]))
    tensor([False,  True,  True])
    """
    return _signbit(x)


@documented(_where)
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Tensor:
    """>>> x = tw.asarray([-1.0, 4.0])
    >>> tw.where(x > 0, x, 0)
    tensor([0., 4.])
    """
    return _where(condition, x1, x2)


def isclose(
    x1: Operand, x2: Operand, /, rtol: float = 1e-05, atol: float = 1e-08, *, equal_nan: bool = False
) -> Tensor:
    """True where abs(x1 - x2) <= atol + rtol * abs(x2), or both are the same infinity. nan is close to
    nothing, or to nan with equal_nan. Operands broadcast.

    Raises ValueError for a tolerance that is negative or not finite and ShapeError for shapes that do not
    broadcast. NumPy's isclose.

    >>> tw.isclose(tw.asarray([1.0, 2.0]), tw.asarray([1.000001, 2.1]))
    tensor([ True, False])
    """
    rtol = number_of("isclose", "rtol", rtol, 0)
    atol = number_of("isclose", "atol", atol, 0)
    equal = _equal(x1, x2)
    x1, x2 = _with_differences(x1), _with_differences(x2)
    distance = abs(x1 - x2)
    # An infinity is as far from all other numbers as the tolerance is wide.
    close = equal | ((distance <= abs(x2) * rtol + atol) & _isfinite(distance))
    return close | ((x1 != x1) & (x2 != x2)) if equal_nan else close


def _with_differences(x: Operand) -> Operand:
    """Integers as float64: the difference of unsigned ones may wrap."""
    return _astype(x, dtype="float64") if isinstance(x, Tensor) and "floating" not in x.dtype.kind else x


def allclose(
    x1: Operand, x2: Operand, /, rtol: float = 1e-05, atol: float = 1e-08, *, equal_nan: bool = False
) -> Tensor:
    """A 0-d tensor: True if isclose is everywhere, with the same errors as it raises. NumPy's allclose, but
    that it does not wait.

    >>> bool(tw.allclose(tw.asarray([1.0, 2.0]), tw.asarray([1.000001, 2.000001])))
    True
    """
    return _all(isclose(x1, x2, rtol, atol, equal_nan=equal_nan))


__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
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

# _sets.py: functions that take tensors for sets of values.
"""Set functions of the array API standard, on top of sort. -0.0 equals 0.0, and no nan equals another."""

from __future__ import annotations

import functools
from typing import NamedTuple

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import result_type
from thalweg._operations import require_tensor
from thalweg._typing import Operand, Tensor

_add = op("add")
_argsort = op("argsort")
_astype = op("astype")
_concat = op("concat")
_count_nonzero = op("count_nonzero")
_cumulative_sum = op("cumulative_sum")
_empty = op("empty")
_equal = op("equal")
_full = op("full")
_index_assign = op("index_assign")
_isnan = op("isnan")
_less = op("less")
_logical_and = op("logical_and")
_logical_not = op("logical_not")
_logical_or = op("logical_or")
_minimum = op("minimum")
_multiply = op("multiply")
_nonzero = op("nonzero")
_not_equal = op("not_equal")
_imag = op("imag")
_real = op("real")
_reshape = op("reshape")
_searchsorted = op("searchsorted")
_sort = op("sort")
_subtract = op("subtract")
_take = op("take")

# Of so few values each is compared: sorting and searching cost more.
_FEW = 8


class UniqueAll(NamedTuple):
    """What unique_all returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What unique_counts returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What unique_inverse returns."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x: Tensor, /) -> Tensor:
    """The different values of x, in ascending order, 1-d and of its dtype. Waits for their number.

    Array API standard, set functions.

    >>> tw.unique_values(tw.asarray([[3, 1], [3, 2]]))
    tensor([1, 2, 3])
    """
    if entered and (there := elsewhere(x)):
        return there(unique_values, x)
    ordered = _sorted(_flat("unique_values", x))
    return ordered[_run_starts(ordered)]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different values of x, in ascending order, and how often each occurs. Waits for their number.

    Array API standard, set functions.

    >>> values, counts = tw.unique_counts(tw.asarray([3, 1, 3]))
    >>> values, counts
    (tensor([1, 3]), tensor([1, 2]))
    """
    if entered and (there := elsewhere(x)):
        return there(unique_counts, x)
    ordered = _sorted(_flat("unique_counts", x))
    places = _places(_run_starts(ordered))
    return UniqueCounts(_take(ordered, places, axis=0), _run_lengths(places, x.size))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different values of x, in ascending order, and for each element of x which of them it is.

    Waits for their number. Array API standard, set functions.

    >>> values, inverse = tw.unique_inverse(tw.asarray([3, 1, 3]))
    >>> values, inverse, values[inverse]
    (tensor([1, 3]), tensor([1, 0, 1]), tensor([3, 1, 3]))
    """
    values, _, inverse, _ = _unique("unique_inverse", x)
    return UniqueInverse(values, inverse)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different values of x, in ascending order; where each occurs first (in C order); for each element
    of x which of them it is; and how often each occurs. Waits for their number.

    Array API standard, set functions.

    >>> tw.unique_all(tw.asarray([3, 1, 3])).indices
    tensor([1, 0])
    """
    return _unique("unique_all", x)


def _flat(name: str, x: Tensor) -> Tensor:
    return _reshape(require_tensor(name, x), shape=-1)


def _order(flat: Tensor) -> Tensor:
    """Positions in ascending order; of complex values by the real and then the imaginary part, those with a
    nan in one of them last, as in NumPy."""
    if flat.dtype.kind != "complex floating":
        return _argsort(flat)
    real, imag = _real(flat), _imag(flat)
    nans = _add(_multiply(_astype(_isnan(real), dtype="int8"), 2), _isnan(imag))
    order = _argsort(imag)
    for key in (real, nans):
        order = _take(order, _argsort(_take(key, order, axis=0)), axis=0)
    return order


def _sorted(flat: Tensor) -> Tensor:
    if flat.dtype.kind != "complex floating":
        return _sort(flat)
    return _take(flat, _order(flat), axis=0)


def _ranks(flat: Tensor) -> Tensor:
    """For each element how many different values are smaller. Does not wait."""
    order = _order(flat)
    return _inverse(order, _run_starts(_take(flat, order, axis=0)))


def _inverse(order: Tensor, starts: Tensor) -> Tensor:
    """For each element the number of the run that it is in."""
    which = _subtract(_cumulative_sum(starts), 1)
    empty = _empty(shape=order.shape, dtype="int64", device=order.device)
    return _index_assign(empty, which, order, axes=0)


def _run_starts(ordered: Tensor) -> Tensor:
    """True where a sorted tensor has another value than in front."""
    first = _full(shape=min(ordered.size, 1), value=True, device=ordered.device)
    return _concat(first, _not_equal(ordered[1:], ordered[:-1]), axis=0)


def _places(mask: Tensor) -> Tensor:
    return _nonzero(mask, count=_count_nonzero(mask).item())[0]


def _run_lengths(places: Tensor, size: int) -> Tensor:
    end = _full(shape=min(places.size, 1), value=size, device=places.device)
    return _subtract(_concat(places[1:], end, axis=0), places)


def _unique(name: str, x: Tensor) -> UniqueAll:
    if entered and (there := elsewhere(x)):
        return there(_unique, name, x)
    flat = _flat(name, x)
    order = _order(flat)
    ordered = _take(flat, order, axis=0)
    starts = _run_starts(ordered)
    places = _places(starts)
    return UniqueAll(
        _take(ordered, places, axis=0),
        _take(order, places, axis=0),
        _reshape(_inverse(order, starts), shape=x.shape),
        _run_lengths(places, x.size),
    )


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """True where an element of x1 is in x2 (invert: where it is not). The result has the shape of x1.

    One of the two may be a number. Never waits. Raises DTypeError where neither is a tensor. Array API
    standard, set functions.

    >>> tw.isin(tw.asarray([1, 2, 3, 4]), tw.asarray([4, 2]))
    tensor([False,  True, False,  True])
    """
    if entered and (there := elsewhere(x1 if isinstance(x1, Tensor) else x2)):
        return there(isin, x1, x2, invert=invert)
    found = _isin(*_as_tensors("isin", x1, x2))
    return _logical_not(found) if invert else found


def _as_tensors(name: str, x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    for number, other in ((x1, x2), (x2, x1)):
        if not isinstance(number, Tensor) and not isinstance(number, (bool, int, float, complex)):
            require_tensor(name, number if isinstance(other, Tensor) else other)
    if not isinstance(x1, Tensor):
        require_tensor(name, x2)
        return _C.from_nested(x1, dtype=result_type(x2, x1), device=x2.device), x2
    if not isinstance(x2, Tensor):
        return x1, _C.from_nested(x2, dtype=result_type(x1, x2), device=x1.device)
    return x1, x2


def _isin(x1: Tensor, x2: Tensor) -> Tensor:
    if x2.size == 0:
        return _full(shape=x1.shape, value=False, device=x1.device)
    if x2.size <= _FEW:
        values = _reshape(x2, shape=-1)
        return functools.reduce(_logical_or, (_equal(x1, values[i]) for i in range(x2.size)))
    # No dtype holds all of uint64 and int64: compared as uint64 without the negative ones, or the reverse.
    if x2.dtype == "uint64" and x1.dtype.kind == "signed integer":
        return _logical_and(_isin(_astype(x1, dtype="uint64"), x2), _logical_not(_less(x1, 0)))
    if x1.dtype == "uint64" and x2.dtype.kind == "signed integer":
        return _logical_and(_isin(_astype(x1, dtype="int64"), x2), _less(x1, 2**63))
    dtype = result_type(x1, x2)
    if dtype.kind == "complex floating":
        # Compared by ranks among both: complex values have no order to search in.
        both = [_reshape(_astype(each, dtype=dtype), shape=-1) for each in (x1, x2)]
        ranks = _ranks(_concat(*both, axis=0))
        found = _isin(ranks[: x1.size], ranks[x1.size :])
        return _reshape(found, shape=x1.shape)
    values = _sort(_reshape(_astype(x2, dtype=dtype), shape=-1))
    place = _minimum(_searchsorted(values, x1), values.size - 1)
    return _equal(_take(values, place, axis=0), x1)


__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

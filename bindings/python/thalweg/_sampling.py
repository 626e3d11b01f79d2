# _sampling.py: random tensors made of those in _random.py.
"""Random choices and further distributions. As in _random.py, what an operation draws is settled when it is
issued; `generator` is the default one unless given."""

from __future__ import annotations

import math
import operator

from thalweg import _C
from thalweg._C import Generator, op
from thalweg._engines import elsewhere, entered
from thalweg._operations import (
    as_floating,
    axis_of,
    is_index,
    number_of,
    require_broadcast,
    shape_of,
)
from thalweg._random import _draw, randint, uniform
from thalweg._typing import DeviceLike, DTypeLike, Shape, Tensor

_argsort = op("argsort")
_astype = op("astype")
_cumulative_sum = op("cumulative_sum")
_broadcast_to = op("broadcast_to")
_empty = op("empty")
_full = op("full")
_gamma = op("gamma")
_less = op("less")
_log1p = op("log1p")
_reshape = op("reshape")
_searchsorted = op("searchsorted")
_take = op("take")


def bernoulli(
    p: float | Tensor = 0.5,
    /,
    shape: Shape | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """True with probability p, else False; 1 and 0 for another dtype than bool.

    p: a number from 0 to 1, or a real tensor that broadcasts to the shape, which is that of p by default. A
    tensor may hold other numbers: below 0 they count as 0, above 1 as 1, and nan as 0. Raises ValueError for
    a number out of range, ShapeError for a p that does not broadcast, DTypeError for a complex one and
    DeviceError for one on another device. PyTorch's bernoulli.

    >>> tw.bernoulli(tw.asarray([0.0, 0.5, 1.0]), (2, 3), generator=tw.Generator(7))
    tensor([[False,  True,  True],
            [False,  True,  True]])
    """
    if entered and (there := elsewhere(p)):
        return there(bernoulli, p, shape, dtype=dtype, device=device, generator=generator)
    if isinstance(p, Tensor):
        p = as_floating("bernoulli", p)
        device = _device_beside("bernoulli", p, device)
        sizes = p.shape if shape is None else shape_of("bernoulli", shape)
        require_broadcast("bernoulli", "p", p, sizes)
    else:
        p = number_of("bernoulli", "p", p)
        if not 0 <= p <= 1:
            raise _C.ValueError(f"bernoulli: p is {p:g}; it must be from 0 to 1")
        sizes = () if shape is None else shape_of("bernoulli", shape)
    dtype = None if dtype is None else _C.dtype(dtype)  # raises before anything is drawn
    hits = _less(uniform(sizes, dtype="float64", device=device, generator=generator), p)
    return hits if dtype is None else _astype(hits, dtype=dtype)


def _device_beside(name: str, p: Tensor, device: DeviceLike | None) -> DeviceLike:
    """The device of p, when it is the one that was asked for; raises before anything is drawn."""
    if device is not None and p.device != device:
        raise _C.DeviceError(f"{name}: p is on {p.device} and the result on {device}; move p with p.to")
    return p.device


def exponential(
    shape: Shape,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers of the exponential distribution with mean scale: -scale * log1p(-u) for u evenly spread
    over [0, 1), in float64.

    float32 by default. Raises ValueError for a negative scale and DTypeError for a dtype that is not
    floating. Inversion: Devroye, Non-uniform random variate generation (1986), section II.2.

    >>> tw.exponential(3, scale=2.0, generator=tw.Generator(7))
    tensor([2.7738, 0.1791, 3.1723])
    """
    scale = number_of("exponential", "scale", scale, least=0)
    dtype = _C.dtype("float32" if dtype is None else dtype)
    if dtype.kind != "real floating":
        raise _C.DTypeError(
            f"exponential: dtype {dtype} is not floating; use float32 or another floating dtype"
        )
    values = _log1p(-uniform(shape, dtype="float64", device=device, generator=generator)) * -scale
    return values if dtype == "float64" else _astype(values, dtype=dtype)


def gamma(
    concentration: float | Tensor,
    /,
    shape: Shape | None = None,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers of the gamma distribution with mean concentration * scale.

    concentration: a number or a real tensor that broadcasts to the shape, which is its own by default. A
    tensor may hold other numbers than positive ones: 0 gives 0, negative ones and nan give nan. float32 by
    default, computed in float64 by the method of Marsaglia and Tsang (A simple method for generating gamma
    variables, ACM TOMS 26, 2000). A stream gives each element numbers of its own.

    Raises ValueError for a negative concentration or scale that is a number, ShapeError for a tensor that
    does not broadcast, DTypeError for a complex one or a dtype that is not floating, and DeviceError for one
    on another device.

    >>> tw.gamma(tw.asarray([0.5, 5.0, 50.0]), generator=tw.Generator(7))
    tensor([ 0.8492,  6.2249, 63.4239])
    """
    scale = number_of("gamma", "scale", scale, least=0)
    dtype = _C.dtype("float32" if dtype is None else dtype)
    if isinstance(concentration, Tensor):
        concentration = as_floating("gamma", concentration)
        _device_beside("gamma", concentration, device)
        sizes = concentration.shape if shape is None else shape_of("gamma", shape)
        require_broadcast("gamma", "concentration", concentration, sizes)
    else:
        number = number_of("gamma", "concentration", concentration, least=0)
        sizes = () if shape is None else shape_of("gamma", shape)
        concentration = _full(shape=(), value=number, dtype="float64", device=device)
    inputs = _broadcast_to(concentration, shape=sizes)
    return _draw(_gamma, generator, sizes, inputs, per_counter=1, scale=scale, dtype=dtype)


def integers(
    low: int,
    high: int | None = None,
    shape: Shape = (),
    *,
    endpoint: bool = False,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """As randint, with NumPy's name: random integers from low up to but without high (endpoint: with it).

    With one bound it is high, and low is 0. int64 by default. Raises ValueError for bounds without an integer
    in between or that the dtype cannot hold. NumPy's Generator.integers.

    >>> tw.integers(1, 6, 8, endpoint=True, generator=tw.Generator(7))  # dice
    tensor([5, 1, 5, 6, 1, 6, 2, 1])
    """
    if high is None:
        low, high = 0, low
    if endpoint:
        high = operator.index(high) + 1
    return randint(low, high, shape, dtype=dtype, device=device, generator=generator)


def permutation(
    x: int | Tensor,
    /,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """The parts of x along an axis in random order, each order equally likely; of an int n the numbers from
    0 to n - 1.

    Takes a number of 64 bits for each part and sorts them. device: only for an int. Raises ShapeError for a
    0-d x, IndexError for an axis out of range and ValueError for a negative n. NumPy's permutation.

    >>> tw.permutation(5, generator=tw.Generator(7))
    tensor([4, 1, 0, 2, 3])
    """
    if entered and (there := elsewhere(x)):
        return there(permutation, x, axis, generator=generator)
    if isinstance(x, Tensor):
        if x.ndim == 0:
            raise _C.ShapeError("permutation: a 0-d tensor has no axis to permute")
        axis = axis_of("permutation", axis, x.ndim)
        return _take(x, _order(x.shape[axis], x.device, generator), axis=axis)
    axis_of("permutation", axis, 1)
    return _order(_count_of("permutation", x), device, generator)


def _count_of(name: str, x: object) -> int:
    if not is_index(x):
        raise _C.DTypeError(f"{name}: expected an int or a Tensor, not {type(x).__name__}")
    count = operator.index(x)  # type: ignore[arg-type]
    if count < 0:
        raise _C.ValueError(f"{name}: {count} must not be negative")
    return count


def _order(count: int, device: DeviceLike | None, generator: Generator | None) -> Tensor:
    keys = randint(-(2**63), 2**63, (count,), dtype="int64", device=device, generator=generator)
    return _argsort(keys)


def choice(
    a: int | Tensor,
    /,
    shape: Shape = (),
    *,
    replace: bool = True,
    p: Tensor | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random parts of a along an axis, or random numbers below an int a. The shape takes the place of the
    axis.

    replace: whether a part may be chosen again. p: how likely each part is, a 1-d real tensor that need not
    sum to 1; equally likely without it. With replacement it is searched for in the running sums of p, without
    by the exponential times of Efraimidis and Spirakis (Weighted random sampling with a reservoir, 2006),
    where parts of probability 0 come last. device: only for an int a.

    Raises ValueError where more parts are to be chosen than there are, ShapeError for a 0-d a and a p that
    does not fit, IndexError for an axis out of range and DeviceError for a p on another device. Values of p
    are not looked at, as that would wait: negative or nan ones choose parts at will or fail the result with
    IndexError.

    >>> tw.choice(10, 4, replace=False, generator=tw.Generator(7))
    tensor([4, 1, 7, 6])
    >>> tw.choice(tw.asarray([0.5, 1.5]), 6, p=tw.asarray([0.2, 0.8]), generator=tw.Generator(7))
    tensor([1.5000, 0.5000, 1.5000, 1.5000, 0.5000, 1.5000])
    """
    name = "choice"
    if entered and (there := elsewhere(a if isinstance(a, Tensor) else p)):
        return there(choice, a, shape, replace=replace, p=p, axis=axis, device=device, generator=generator)
    if isinstance(a, Tensor):
        if a.ndim == 0:
            raise _C.ShapeError(f"{name}: a 0-d tensor has no axis to choose from")
        axis = axis_of(name, axis, a.ndim)
        parts, device = a.shape[axis], a.device
    else:
        axis_of(name, axis, 1)
        parts = _count_of(name, a)
    sizes = shape_of(name, shape)
    count = math.prod(sizes)
    if count > parts and (parts == 0 or not replace):
        raise _C.ValueError(
            f"{name}: cannot choose {count} of {parts}{'' if replace else ' without replacement'}"
        )
    if p is not None:
        p = as_floating(name, p)
        if p.shape != (parts,):
            raise _C.ShapeError(f"{name}: p has shape {p.shape}; it must be {(parts,)}")
        p, device = _astype(p, dtype="float64"), _device_beside(name, p, device)
    places = _places(parts, sizes, count, replace, p, device, generator)
    return _take(a, places, axis=axis) if isinstance(a, Tensor) else places


def _places(
    parts: int,
    sizes: tuple[int, ...],
    count: int,
    replace: bool,
    p: Tensor | None,
    device: DeviceLike | None,
    generator: Generator | None,
) -> Tensor:
    if count == 0:
        return _empty(shape=sizes, dtype="int64", device=device)
    if replace and p is None:
        return randint(0, parts, sizes, device=device, generator=generator)
    if replace:
        sums = _cumulative_sum(p, axis=0)
        return _searchsorted(
            sums / sums[-1], uniform(sizes, dtype="float64", device=device, generator=generator), side="right"
        )
    if p is None:
        order = _order(parts, device, generator)
    else:
        order = _argsort(exponential((parts,), dtype="float64", device=device, generator=generator) / p)
    return _reshape(order[:count], shape=sizes)


__all__ = ["bernoulli", "choice", "exponential", "gamma", "integers", "permutation"]

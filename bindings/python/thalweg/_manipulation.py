# _manipulation.py: functions that rearrange elements; most results are views that share bytes.
"""Manipulation functions of the array API standard, and NumPy's split."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._operations import axis_of, documented, is_index, require_tensor, shape_of
from thalweg._typing import Any, Axis, Operand, Shape, Tensor

_reshape = op("reshape")
_permute_dims = op("permute_dims")
_broadcast_to = op("broadcast_to")
_expand_dims = op("expand_dims")
_squeeze = op("squeeze")
_flip = op("flip")
_concat = op("concat")
_roll = op("roll")
_take = op("take")
_diagonal = op("diagonal")
_contiguous = op("contiguous")
_astype = op("astype")
_arange = op("arange")
_cumulative_sum = op("cumulative_sum")
_searchsorted = op("searchsorted")
_sum = op("sum")
_min = op("min")


def _tensors(name: str, arrays: Sequence[Operand], axis: object) -> list[Tensor]:
    if isinstance(axis, Tensor):
        raise _C.DTypeError(f"{name}: axis is a tensor; the tensors to join go in one list: {name}([a, b])")
    if isinstance(arrays, Tensor):
        arrays = builtins.list(arrays)
    if not isinstance(arrays, (list, tuple)):
        raise _C.DTypeError(f"{name}: expected a list or tuple of tensors, not {type(arrays).__name__}")
    first = next((each for each in arrays if isinstance(each, Tensor)), None)
    if entered and (there := elsewhere(first)):
        return there(_tensors, name, arrays, axis)
    device = None if first is None else first.device
    return [
        _C.from_buffer(each, device=device) if _is_array(each) else require_tensor(name, each)
        for each in arrays
    ]


def _is_array(x: object) -> bool:
    return not isinstance(x, Tensor) and hasattr(x, "__array__") and hasattr(x, "ndim")


def _positions(name: str, axes: Shape, rank: int) -> list[int]:
    given = [axes] if is_index(axes) else builtins.list(axes)
    positions = [axis_of(name, axis, rank) for axis in given]
    if len(set(positions)) != len(positions):
        raise _C.ValueError(f"{name}: axes {axes} name an axis twice")
    return positions


@documented(_reshape)
def reshape(x: Tensor, /, shape: Shape, *, copy: bool | None = None) -> Tensor:
    """copy: None copies where strides do not allow a view; True always; False never (ValueError).

    >>> tw.reshape(tw.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if copy is True:
        return _reshape(_contiguous(x), shape=shape)
    if copy is False and not _is_contiguous(x):
        raise _C.ValueError(
            f"reshape: shape {x.shape} with strides {x.strides} needs a copy and copy is False"
        )
    return _reshape(x, shape=shape)


def _is_contiguous(x: Tensor) -> bool:
    expected = x.itemsize
    for size, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


@documented(_permute_dims)
def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """>>> tw.permute_dims(tw.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permute_dims(x, axes=axes)


@documented(_permute_dims)
def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    """>>> tw.transpose(tw.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    return _permute_dims(x, axes=axes)


def moveaxis(x: Tensor, source: Shape, destination: Shape, /) -> Tensor:
    """x with some axes moved to other positions; the others keep their order. Shares x's bytes.

    Raises IndexError for an axis out of range and ValueError for axes that do not pair or repeat. Array API
    standard, manipulation functions.

    >>> tw.moveaxis(tw.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = require_tensor("moveaxis", x)
    sources = _positions("moveaxis", source, x.ndim)
    targets = _positions("moveaxis", destination, x.ndim)
    if len(sources) != len(targets):
        raise _C.ValueError(f"moveaxis: {len(sources)} source axes for {len(targets)} destinations")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return _permute_dims(x, axes=order)


@documented(_broadcast_to)
def broadcast_to(x: Tensor, /, shape: Shape) -> Tensor:
    """>>> tw.broadcast_to(tw.asarray([[1], [2]]), (2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return _broadcast_to(x, shape=shape)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to; raises ShapeError if they do not.

    Array API standard, manipulation functions.

    >>> tw.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    result: list[int] = []
    for shape in shapes:
        shape = builtins.list(shape)
        result = [1] * (len(shape) - len(result)) + result
        offset = len(result) - len(shape)
        for axis, size in enumerate(shape, offset):
            if result[axis] == 1:
                result[axis] = size
            elif size not in (1, result[axis]):
                text = " and ".join(str(tuple(each)) for each in shapes)
                raise _C.ShapeError(
                    f"broadcast_shapes: shapes {text} do not broadcast at axis {axis - len(result)}"
                )
    return tuple(result)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The tensors broadcast to their common shape. The results share their bytes.

    Raises ShapeError if there is none. Array API standard, manipulation functions.

    >>> rows, columns = tw.broadcast_arrays(tw.asarray([[1], [2]]), tw.asarray([10, 20]))
    >>> columns
    tensor([[10, 20],
            [10, 20]])
    """
    shape = broadcast_shapes(*(require_tensor("broadcast_arrays", array).shape for array in arrays))
    return tuple(_broadcast_to(array, shape=shape) for array in arrays)


@documented(_expand_dims)
def expand_dims(x: Tensor, /, axis: int | Sequence[int] = 0) -> Tensor:
    """>>> tw.expand_dims(tw.asarray([1, 2]), 1)
    tensor([[1],
            [2]])
    """
    return _expand_dims(x, axis=axis)


@documented(_squeeze)
def squeeze(x: Tensor, /, axis: Axis = None) -> Tensor:
    """>>> tw.squeeze(tw.zeros((1, 3, 1))).shape, tw.squeeze(tw.zeros((1, 3, 1)), 0).shape
    ((3,), (3, 1))
    """
    return _squeeze(x, axis=axis)


@documented(_flip)
def flip(x: Tensor, /, axis: Axis = None) -> Tensor:
    """>>> tw.flip(tw.asarray([[1, 2], [3, 4]]), 0)
    tensor([[3, 4],
            [1, 2]])
    """
    return _flip(x, axis=axis)


@documented(_roll)
def roll(x: Tensor, /, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """>>> tw.roll(tw.arange(5), 2)
    tensor([3, 4, 0, 1, 2])
    """
    return _roll(x, shift=shift, axis=axis)


@documented(_concat)
def concat(arrays: Sequence[Tensor], /, axis: int | None = 0) -> Tensor:
    """>>> tw.concat([tw.asarray([[1, 2]]), tw.asarray([[3, 4]])])
    tensor([[1, 2],
            [3, 4]])
    """
    tensors = _tensors("concat", arrays, axis)
    if axis is None:
        return _concat(*(_reshape(each, shape=-1) for each in tensors), axis=0)
    return _concat(*tensors, axis=axis)


def stack(arrays: Sequence[Tensor], /, axis: int = 0) -> Tensor:
    """The tensors, all of one shape, joined along a new axis. Dtypes are promoted.

    Raises ShapeError where shapes differ and for no tensor, and IndexError for an axis out of range. Array
    API standard, manipulation functions.

    >>> tw.stack([tw.asarray([1, 2]), tw.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    tensors = _tensors("stack", arrays, axis)
    if not tensors:
        raise _C.ShapeError("stack: needs at least one tensor")
    axis = axis_of("stack", axis, tensors[0].ndim + 1)
    for each in tensors:
        if each.shape != tensors[0].shape:
            raise _C.ShapeError(f"stack: shapes {tensors[0].shape} and {each.shape} differ")
    return _concat(*(_expand_dims(each, axis=axis) for each in tensors), axis=axis)


def unstack(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along an axis, without that axis. They share x's bytes.

    Raises IndexError for an axis out of range. Array API standard, manipulation functions.

    >>> tw.unstack(tw.asarray([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    position = axis_of("unstack", axis, require_tensor("unstack", x).ndim)
    before = (slice(None),) * position
    return tuple(x[(*before, i)] for i in range(x.shape[position]))


def split(x: Tensor, indices_or_sections: int | Sequence[int], /, axis: int = 0) -> list[Tensor]:
    """x cut along an axis: into a number of equal parts, or before each of the given positions (NumPy's
    split).

    The parts share x's bytes. Raises ShapeError if the parts would not be equal.

    >>> tw.split(tw.arange(6), 3)
    [tensor([0, 1]), tensor([2, 3]), tensor([4, 5])]
    >>> tw.split(tw.arange(6), [1, 4])
    [tensor([0]), tensor([1, 2, 3]), tensor([4, 5])]
    """
    position = axis_of("split", axis, require_tensor("split", x).ndim)
    size = x.shape[position]
    if is_index(indices_or_sections):
        parts = operator.index(indices_or_sections)
        if parts < 1 or size % parts != 0:
            raise _C.ShapeError(f"split: axis {axis} of size {size} does not divide into {parts} equal parts")
        cuts = [size // parts * i for i in range(1, parts)]
    else:
        cuts = [operator.index(cut) for cut in indices_or_sections]
    before = (slice(None),) * position
    bounds = [None, *cuts, None]
    return [x[(*before, slice(start, stop))] for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]


def repeat(x: Tensor, repeats: int | Tensor, /, axis: int | None = None) -> Tensor:
    """x with each element along an axis repeated; None repeats the elements of x in C order.

    repeats: an int, or a 1-d tensor of integers with a number for each element (or one for all). Waits for
    the values of such a tensor, because the shape depends on them. Raises DTypeError for repeats that are
    no integers, ShapeError for a number of them that does not fit and ValueError for negative ones.

    Array API standard, manipulation functions.

    >>> tw.repeat(tw.asarray([1, 2]), 2), tw.repeat(tw.asarray([1, 2]), tw.asarray([3, 1]))
    (tensor([1, 1, 2, 2]), tensor([1, 1, 1, 2]))
    """
    x = require_tensor("repeat", x)
    if entered and (there := elsewhere(x)):
        return there(repeat, x, repeats, axis=axis)
    if axis is None:
        x, axis = _reshape(x, shape=-1), 0
    axis = axis_of("repeat", axis, x.ndim)
    if not isinstance(repeats, Tensor) and hasattr(repeats, "__index__"):
        return _repeat_evenly(x, operator.index(repeats), axis)
    return _repeat_each(x, _counts_of(repeats, x, axis), axis)


def _repeat_evenly(x: Tensor, repeats: int, axis: int) -> Tensor:
    if repeats < 0:
        raise _C.ValueError(f"repeat: repeats is {repeats}; it must not be negative")
    before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    wide = _broadcast_to(_expand_dims(x, axis=axis + 1), shape=(*before, size, repeats, *behind))
    return _contiguous(_reshape(wide, shape=(*before, size * repeats, *behind)))


def _counts_of(repeats: Any, x: Tensor, axis: int) -> Tensor:
    """A number for each element of x along the axis, as int64."""
    if isinstance(repeats, (list, tuple)):
        repeats = _C.from_nested(repeats, dtype=None if repeats else "int64", device=x.device)
    require_tensor("repeat", repeats)
    if "integer" not in repeats.dtype.kind:
        raise _C.DTypeError(f"repeat: repeats must have an integer dtype, not {repeats.dtype}")
    if repeats.ndim > 1 or repeats.size not in (1, x.shape[axis]):
        raise _C.ShapeError(
            f"repeat: repeats of shape {repeats.shape} must be 1-d with 1 or {x.shape[axis]} elements"
        )
    return _broadcast_to(_reshape(_astype(repeats, dtype="int64"), shape=-1), shape=x.shape[axis])


def _repeat_each(x: Tensor, counts: Tensor, axis: int) -> Tensor:
    if x.shape[axis] == 0:
        return x
    ends = _cumulative_sum(counts)
    least, total = stack([_min(counts), ends[-1]]).tolist()
    if least < 0:
        raise _C.ValueError(f"repeat: repeats must not be negative, got {least}")
    # Place j of the result belongs to the first element that ends behind it.
    places = _arange(start=0, stop=total, step=1, device=x.device)
    return _take(x, _searchsorted(ends, places, side="right"), axis=axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """x laid side by side, repetitions[i] times along axis i.

    Fewer repetitions than axes count for the last axes; more of them add axes in front. Raises ValueError for
    negative ones.

    Array API standard, manipulation functions.

    >>> tw.tile(tw.asarray([[1, 2]]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = require_tensor("tile", x)
    counts = shape_of("tile", repetitions)
    if builtins.min(counts, default=0) < 0:
        raise _C.ValueError(f"tile: repetitions {counts} must not be negative")
    rank = builtins.max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    pairs = builtins.list(zip(counts, sizes, strict=True))
    # An axis to repeat along stands in front of each one that is repeated.
    apart = [size for count, size in pairs for size in ((size,) if count == 1 else (1, size))]
    wide = [size for count, size in pairs for size in ((size,) if count == 1 else (count, size))]
    result = _broadcast_to(_reshape(x, shape=apart), shape=wide)
    return _contiguous(_reshape(result, shape=[count * size for count, size in pairs]))


@documented(_take)
def take(x: Tensor, indices: Tensor | Sequence[int], /, axis: int | None = None) -> Tensor:
    """>>> tw.take(tw.asarray([[1, 2, 3], [4, 5, 6]]), tw.asarray([2, -3]), axis=1)
    tensor([[3, 1],
            [6, 4]])
    """
    if entered and not isinstance(indices, Tensor) and (there := elsewhere(x)):
        return there(take, x, indices, axis=axis)
    if isinstance(indices, (list, tuple)):
        device = require_tensor("take", x).device
        nested = _C.from_nested(indices, dtype=None if indices else "int64", device=device)
        if nested is None:
            nested = _C.from_buffer(_C.array_of_mixed("take", indices), device=device)
        indices = nested
    elif not isinstance(indices, Tensor) and is_index(indices):
        device = require_tensor("take", x).device
        indices = _C.from_nested(operator.index(indices), dtype="int64", device=device)
    return _take(x, indices, axis=axis)


@documented(_diagonal)
def diagonal(x: Tensor, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """>>> tw.diagonal(tw.reshape(tw.arange(9), (3, 3)), offset=1)
    tensor([1, 5])
    """
    return _diagonal(x, offset=offset, axis1=axis1, axis2=axis2)


__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "diagonal",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "take",
    "tile",
    "transpose",
    "unstack",
]

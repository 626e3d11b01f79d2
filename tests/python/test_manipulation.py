# test_manipulation.py: reshaping, joining and splitting against NumPy.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, layouts, samples


def each_layout(shape, dtype="int32"):
    for _, tensor, array in layouts(samples(dtype, shape)):
        if array.shape == shape:
            yield tensor, array


@pytest.mark.parametrize("target", [(12,), (4, 3), (2, 6), (2, 1, -1), (-1,), (3, 4), (1, 12, 1)], ids=str)
def test_reshape(target):
    for tensor, array in each_layout((3, 4)):
        check(tw.reshape(tensor, target), array.reshape(target))
        check(tensor.reshape(*target), array.reshape(target))
        check(tw.reshape(tensor, target, copy=True), array.reshape(target))


def test_reshape_of_small_ones():
    check(tw.asarray(5).reshape(1, 1), np.asarray([[5]]))
    check(tw.asarray([[5]]).reshape(()), np.asarray(5))
    check(tw.ones((0, 3)).reshape(3, 0), np.ones((3, 0), "float32"))
    check(tw.ones((2, 3)).flatten(), np.ones(6, "float32"))


def test_reshape_without_a_copy():
    tensor = tw.ones((3, 4))
    assert tw.reshape(tensor, (12,), copy=False).shape == (12,)
    with pytest.raises(ValueError):
        tw.reshape(tensor.T, (12,), copy=False)


@pytest.mark.parametrize("target", [(5,), (5, -1), (-1, -1), (-2,), (2**40, 2**40), (3, 5)], ids=str)
def test_bad_reshape(target):
    with pytest.raises(ValueError, match="reshape"):
        tw.ones((3, 4)).reshape(target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_permute_and_transpose(dtype):
    for tensor, array in each_layout((2, 3, 4), dtype):
        check(tw.permute_dims(tensor, (2, 0, 1)), array.transpose(2, 0, 1))
        check(tensor.permute(2, 0, 1), array.transpose(2, 0, 1))
        check(tensor.transpose(0, -1, 1), array.transpose(0, -1, 1))
        check(tensor.transpose(), array.T)
        check(tensor.T, array.T)
        check(tensor.mT, np.swapaxes(array, -1, -2))
        check(tw.moveaxis(tensor, 0, -1), np.moveaxis(array, 0, -1))
        check(tw.moveaxis(tensor, (0, 1), (-1, 0)), np.moveaxis(array, (0, 1), (-1, 0)))


def test_bad_permutations():
    tensor = tw.ones((2, 3))
    for axes in ((0,), (0, 0), (0, 2), (0, 1, 2)):
        with pytest.raises((ValueError, IndexError), match="permute_dims"):
            tw.permute_dims(tensor, axes)
    with pytest.raises(ValueError):
        tw.ones(3).mT  # noqa: B018


def test_broadcast():
    for tensor, array in each_layout((3, 1)):
        check(tw.broadcast_to(tensor, (2, 3, 4)), np.broadcast_to(array, (2, 3, 4)))
        check(tensor.broadcast_to((3, 4)), np.broadcast_to(array, (3, 4)))
    a, b = tw.broadcast_arrays(tw.ones((3, 1)), tw.zeros(4))
    assert a.shape == b.shape == (3, 4)
    assert tw.broadcast_shapes((3, 1), (1, 4), ()) == (3, 4)
    assert tw.broadcast_shapes((0,), (1,)) == (0,)
    with pytest.raises(ValueError):
        tw.broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError, match="broadcast_to"):
        tw.broadcast_to(tw.ones(3), (2,))


def test_expand_and_squeeze():
    for tensor, array in each_layout((3, 4)):
        for axis in (0, 1, 2, -1, (0, -1)):
            check(tw.expand_dims(tensor, axis=axis), np.expand_dims(array, axis))
    tensor = tw.ones((1, 3, 1))
    assert tw.squeeze(tensor, 0).shape == (3, 1)
    assert tensor.squeeze().shape == (3,)
    assert tensor.squeeze((0, 2)).shape == (3,)
    assert tensor.squeeze(-1).expand_dims(0).shape == (1, 1, 3)
    with pytest.raises(ValueError, match="squeeze"):
        tensor.squeeze(1)
    with pytest.raises(IndexError):
        tw.expand_dims(tensor, axis=5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_concat_and_stack(dtype):
    for tensor, array in each_layout((3, 4), dtype):
        other = samples(dtype, (3, 4), seed=1)
        for axis in (0, 1, -1, None):
            check(
                tw.concat([tensor, tw.asarray(other), tensor], axis=axis),
                np.concatenate([array, other, array], axis=axis),
            )
        for axis in (0, 1, 2, -1):
            check(tw.stack((tensor, tw.asarray(other)), axis=axis), np.stack((array, other), axis=axis))


def test_concat_of_many_and_mixed():
    parts = [np.full(i, i) for i in range(40)]
    check(tw.concat([tw.asarray(part) for part in parts]), np.concatenate(parts))
    check(tw.concat([tw.asarray([1], dtype="int8"), tw.asarray([2.5])]), np.asarray([1, 2.5], "float32"))


def test_bad_concat_and_stack():
    with pytest.raises(ValueError, match="concat"):
        tw.concat([tw.ones((2, 3)), tw.ones((2, 4))])
    with pytest.raises(IndexError):
        tw.concat([tw.ones(2)], axis=1)
    with pytest.raises(ValueError):
        tw.concat([])
    with pytest.raises(ValueError):
        tw.concat([tw.asarray(1)])
    with pytest.raises(ValueError, match="stack"):
        tw.stack([tw.ones(2), tw.ones(3)])
    with pytest.raises(TypeError):
        tw.concat(5)


def test_split_and_unstack():
    for tensor, array in each_layout((4, 6)):
        for argument, axis in ((2, 0), (3, 1), ([1, 3], 0), ([2, 2, 9], 1), ([], 0)):
            for part, expected in zip(
                tw.split(tensor, argument, axis), np.split(array, argument, axis), strict=True
            ):
                check(part, expected)
        for axis in (0, 1, -1):
            for part, expected in zip(
                tw.unstack(tensor, axis=axis), np.moveaxis(array, axis, 0), strict=True
            ):
                check(part, expected)
    with pytest.raises(ValueError, match="split"):
        tw.split(tw.ones(5), 2)
    with pytest.raises(IndexError):
        tw.split(tw.ones(5), 5, axis=1)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
def test_flip(axis):
    for tensor, array in each_layout((2, 3, 4)):
        check(tw.flip(tensor, axis=axis), np.flip(array, axis))


@pytest.mark.parametrize(
    ("shift", "axis"),
    [(1, None), (-7, None), (1, 0), (-2, 1), (100, 2), ((1, 2), (0, 2)), ((1, 2), (1, 1)), (2, (0, 1))],
    ids=str,
)
def test_roll(shift, axis):
    for tensor, array in each_layout((2, 3, 4)):
        check(tw.roll(tensor, shift, axis=axis), np.roll(array, shift, axis))


def test_diagonal():
    for tensor, array in each_layout((3, 4)):
        for offset in (0, 1, -2):
            check(tw.diagonal(tensor, offset=offset), np.diagonal(array, offset))


def test_views_share_bytes_and_never_change_their_base():
    base = tw.arange(12).reshape(3, 4)
    before = tw.memory_stats()["live_bytes"]
    view = base.T[1:, ::-1].reshape(3, 3, 1).squeeze(-1)
    assert tw.memory_stats()["live_bytes"] - before < 300
    view += 100
    check(base, np.arange(12).reshape(3, 4))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tw.stack([1, 2]), TypeError, "stack: expected a Tensor, not int"),
        (lambda x: tw.stack([]), ValueError, "stack: needs at least one"),
        (lambda x: tw.stack([x, x], axis=5), IndexError, "stack: axis 5"),
        (lambda x: tw.split([1, 2], 2), TypeError, "split: expected a Tensor"),
        (lambda x: tw.unstack(3), TypeError, "unstack: expected a Tensor"),
        (lambda x: tw.moveaxis([1], 0, 0), TypeError, "moveaxis: expected a Tensor"),
        (lambda x: tw.moveaxis(x, (0, 1), (0, 0)), ValueError, "moveaxis: .*twice"),
        (lambda x: tw.moveaxis(x, (0, 1), (0,)), ValueError, "moveaxis: 2 source axes"),
        (lambda x: tw.broadcast_arrays(x, 1), TypeError, "broadcast_arrays: expected a Tensor"),
        (lambda x: tw.zeros_like(5), TypeError, "zeros_like: expected a Tensor"),
        (lambda x: tw.full_like([1], 2), TypeError, "full_like: expected a Tensor"),
        (lambda x: tw.empty_like(5), TypeError, "empty_like: expected a Tensor"),
        (lambda x: tw.astype([1], "int8"), TypeError, "astype: expected a Tensor"),
        (lambda x: tw.rand("a"), TypeError, "uniform: shape must be"),
        (lambda x: tw.rand(2.5), TypeError, "uniform: shape must be"),
        (lambda x: tw.randint(3, shape=(2, None)), TypeError, "randint: shape must be"),
        (lambda x: tw.rand(2, generator=5), TypeError, "generator must be a Generator, not int"),
        (lambda x: tw.ones((2, "a")), TypeError, "'shape' must be an int or a tuple of ints, not str"),
        (lambda x: tw.roll(x, "a"), TypeError, "roll: 'shift' must be"),
    ],
)
def test_bad_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call(tw.zeros((2, 3)))


def test_numpy_integers_are_integers():
    x, array = tw.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)
    assert [part.tolist() for part in tw.split(x, np.int64(2))] == [array[:1].tolist(), array[1:].tolist()]
    check(tw.moveaxis(x, np.int64(0), np.int64(1)), np.moveaxis(array, 0, 1))
    assert tw.rand(np.int64(2), np.int64(3)).shape == (2, 3)
    assert tw.uniform(np.int64(2)).shape == (2,)


def test_arrays_beside_tensors_and_positional_axes():
    x, array = tw.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)
    check(tw.concat([x, array], 1), np.concatenate([array, array], 1))
    check(tw.stack([array, x], 1), np.stack([array, array], 1))
    check(tw.take(x, np.asarray([0, 1]), 0), array)
    check(x.take(np.asarray([[1], [0]]), 1), np.take(array, [[1], [0]], 1))
    check(tw.sum(x, 0), array.sum(0))
    check(tw.flip(x, 0), np.flip(array, 0))
    check(tw.roll(x, 1, 1), np.roll(array, 1, 1))
    check(tw.zeros((2,), tw.int32), np.zeros(2, "int32"))
    assert tw.zeros(np.asarray([2, 3])).shape == (2, 3)
    assert tw.rand(np.asarray([2, 3])).shape == (2, 3)

# test_sets.py: set functions, nonzero and repeat by a tensor against NumPy, and what of them waits.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, FLOATS, check, layouts, samples

SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (33, 65)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            values, indices, inverse, counts = np.unique(
                array.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
            )
            found = tw.unique_all(tensor)
            check(found.values, values)
            check(found.indices, indices)
            check(found.inverse_indices, inverse.reshape(array.shape))
            check(found.counts, counts)
            check(tw.unique_values(tensor), values)
            check(tw.unique_counts(tensor).values, values)
            check(tw.unique_counts(tensor).counts, counts)
            check(tw.unique_inverse(tensor).values, values)
            check(tw.unique_inverse(tensor).inverse_indices, inverse.reshape(array.shape))


def test_unique_tells_no_zeros_apart_and_every_nan():
    x = tw.asarray([0.0, np.nan, -0.0, np.nan])
    values, indices, inverse, counts = tw.unique_all(x)
    assert values.tolist()[0] == 0 and np.isnan(values.tolist()[1:]).all()
    assert indices.tolist() == [0, 1, 3]
    assert inverse.tolist() == [0, 1, 0, 2]
    assert counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("second", DTYPES)
@pytest.mark.parametrize("first", DTYPES)
def test_isin(first, second, invert):
    for shape in [(), (0,), (33, 65)]:
        for length in (0, 1, 20):
            wanted = samples(second, (length,), seed=7)
            for _, tensor, array in layouts(samples(first, shape)):
                # float64 does not hold all integers: compared one by one where both are integers.
                if array.dtype.kind in "iu" and wanted.dtype.kind in "iu":
                    known = set(wanted.tolist())
                    flat = [number in known for number in array.reshape(-1).tolist()]
                    expected = np.asarray(flat, bool).reshape(array.shape) ^ invert
                else:
                    common = np.result_type(array, wanted)
                    expected = np.isin(array.astype(common), wanted.astype(common), invert=invert)
                check(tw.isin(tensor, tw.asarray(wanted), invert=invert), expected)


def test_isin_with_numbers():
    x = tw.asarray([[1, 2], [3, 4]])
    check(tw.isin(x, 3), np.asarray([[False, False], [True, False]]))
    check(tw.isin(3, x), np.asarray(True))
    check(tw.isin(x, 2.5), np.zeros((2, 2), bool))
    with pytest.raises(TypeError, match="^isin: expected a Tensor"):
        tw.isin(1, 2)
    with pytest.raises(TypeError):
        tw.isin(x, [1, 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype):
    for shape in SHAPES[1:]:
        for _, tensor, array in layouts(samples(dtype, shape) * samples("bool", shape, seed=4)):
            for found, expected in zip(tw.nonzero(tensor), np.nonzero(array), strict=True):
                check(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_count_nonzero(dtype):
    for shape in [*SHAPES, (200_000,)]:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in (None, *range(array.ndim), *([(0, 1)] if array.ndim > 1 else [])):
                expected = np.asarray(np.count_nonzero(array, axis=axis, keepdims=True), "int64")
                check(tw.count_nonzero(tensor, axis=axis, keepdims=True), expected)


def test_nonzero_errors():
    with pytest.raises(ValueError, match="^nonzero: a 0-d tensor"):
        tw.nonzero(tw.asarray(1))
    with pytest.raises(TypeError, match="^nonzero: expected a Tensor"):
        tw.nonzero([1])
    with pytest.raises(IndexError, match="^count_nonzero: axis 1"):
        tw.count_nonzero(tw.ones(3), axis=1)


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", "float32"])
def test_repeat(dtype):
    rng = np.random.default_rng(6)
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in (None, *range(-array.ndim, array.ndim)):
                size = array.size if axis is None else array.shape[axis]
                for repeats in (0, 1, 3):
                    check(tw.repeat(tensor, repeats, axis=axis), np.repeat(array, repeats, axis=axis))
                each = rng.integers(0, 4, size)
                check(tw.repeat(tensor, tw.asarray(each), axis=axis), np.repeat(array, each, axis=axis))
                one = tw.asarray([2], dtype="uint8")
                check(tw.repeat(tensor, one, axis=axis), np.repeat(array, 2, axis=axis))


def test_repeat_errors():
    x = tw.ones((2, 3))
    with pytest.raises(ValueError, match="^repeat: repeats is -1"):
        tw.repeat(x, -1)
    with pytest.raises(ValueError, match="^repeat: repeats must not be negative, got -2"):
        tw.repeat(x, tw.asarray([1, -2, 1]), axis=1)
    with pytest.raises(ValueError, match="^repeat: repeats of shape"):
        tw.repeat(x, tw.asarray([1, 2]), axis=1)
    with pytest.raises(TypeError, match="^repeat: repeats must have an integer dtype"):
        tw.repeat(x, tw.asarray([1.0]), axis=1)
    with pytest.raises(IndexError, match="^repeat: axis 2"):
        tw.repeat(x, 2, axis=2)


@pytest.mark.parametrize("shape", SHAPES)
def test_tile(shape):
    for _, tensor, array in layouts(samples("int32", shape)):
        for repetitions in [(), (2,), (1, 3), (2, 1, 2), (0, 1), (2, 1, 1, 3)]:
            check(tw.tile(tensor, repetitions), np.tile(array, repetitions))
    with pytest.raises(ValueError, match="^tile: repetitions"):
        tw.tile(tw.ones(3), (-1,))


def held(gate_engine):
    """A tensor that is not there before its gate opens, and the gate."""
    gate = tw._C.testing.new_gate()
    return tw._C.op("test_gate")(tw.asarray([3, 0, 1, 1]), gate=gate), gate


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tw.nonzero(x),
        lambda x: tw.unique_all(x),
        lambda x: tw.unique_counts(x),
        lambda x: tw.unique_inverse(x),
        lambda x: tw.unique_values(x),
        lambda x: tw.repeat(x, x),
        lambda x: x[x > 1],
        lambda x: x[None, x > 1],
    ],
)
def test_shapes_that_depend_on_values_wait(test_engine, call):
    x, gate = held(test_engine)
    with tw.on_sync("error"), pytest.raises(tw.SyncError):
        call(x)
    tw._C.testing.open_gate(gate)
    call(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tw.isin(x, x),
        lambda x: tw.count_nonzero(x),
        lambda x: tw.searchsorted(x, x),
        lambda x: tw.sort(x),
        lambda x: tw.argsort(x),
        lambda x: tw.repeat(x, 2),
        lambda x: tw.tile(x, (2, 2)),
        lambda x: tw.cumulative_sum(x),
        lambda x: tw.diff(x),
        lambda x: tw.tril(x[None, :]),
        lambda x: tw.meshgrid(x, x),
        lambda x: tw.take_along_axis(x, x % 4),
        lambda x: tw.tensordot(x, x, axes=1),
        lambda x: tw.vecdot(x, x),
        lambda x: x.__setitem__(x > 1, 7),
        lambda x: x.__setitem__(x > 1, tw.asarray([1, 2])),
    ],
)
def test_shapes_that_are_known_do_not_wait(test_engine, call):
    x, gate = held(test_engine)
    before = tw.sync_count()
    with tw.on_sync("error"):
        call(x)
    assert tw.sync_count() == before
    tw._C.testing.open_gate(gate)


def test_a_failure_is_raised_by_what_waits_for_it():
    failed = tw.take(tw.arange(3), tw.asarray([0, 7, 1]))
    for call in (tw.nonzero, tw.unique_all, lambda x: x[x > 0]):
        with pytest.raises(IndexError, match="index 7"):
            call(failed)


@pytest.mark.parametrize("dtype", ["int64", *FLOATS])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    array = samples(dtype, (200_000,))
    results = []
    for threads in (1, 2, 8):
        with tw.Engine(num_threads=threads) as engine:
            x = tw.asarray(array)
            values = [*tw.unique_all(x), *tw.nonzero(x), x[x > 0], tw.isin(x, x[:100]), tw.cumulative_sum(x)]
            results.append([value.numpy().tobytes() for value in values])
            engine.synchronize()
    assert results[0] == results[1] == results[2]

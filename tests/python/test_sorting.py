# test_sorting.py: sort, argsort, searchsorted and take_along_axis against NumPy.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, FLOATS, INTEGERS, REAL, check, layouts, samples

SHAPES = [(0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (33, 65), (300,), (3, 700)]


def expected_order(array: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The stable order with NaNs last, slowly."""
    sign = -1 if descending else 1

    def key(number):
        return (number != number, 0 if number != number else sign * number)

    moved = np.moveaxis(array, axis, -1)
    result = np.empty(moved.shape, "int64")
    for place in np.ndindex(moved.shape[:-1]):
        row = moved[place].tolist()
        result[place] = sorted(range(len(row)), key=lambda i, row=row: key(row[i]))
    return np.moveaxis(result, -1, axis)


def bits(array: np.ndarray) -> np.ndarray:
    """-0.0 and 0.0 apart; any nan as one."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array).view(f"u{array.itemsize}")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_sort_and_argsort(dtype, descending):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in {-1, 0, array.ndim // 2}:
                order = expected_order(array, axis, descending)
                check(tw.argsort(tensor, axis=axis, descending=descending), order)
                result = tw.sort(tensor, axis=axis, descending=descending, stable=False)
                expected = np.take_along_axis(array, order, axis=axis)
                check(result, expected)
                np.testing.assert_array_equal(bits(result.numpy()), bits(expected))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", *FLOATS])
def test_long_rows(dtype):
    rng = np.random.default_rng(1)
    array = (rng.standard_normal(400_001) * 1000).astype(dtype)
    if dtype in FLOATS:
        array[::1000] = np.nan
        array[1::1000] = -0.0
        array[2::1000] = 0.0
    tensor = tw.asarray(array)
    order = np.argsort(array, kind="stable")
    check(tw.argsort(tensor), order)
    result = tw.sort(tensor).numpy()
    np.testing.assert_array_equal(bits(result), bits(array[order]))
    two = tw.asarray(np.stack([array, array[::-1]]).T)
    check(tw.sort(two, axis=0), np.sort(two.numpy(), axis=0))


def test_equal_elements_keep_their_order():
    array = np.asarray([2, 1, 2, 1, 2] * 100)
    check(tw.argsort(tw.asarray(array)), np.argsort(array, kind="stable"))
    check(tw.argsort(tw.asarray(array), descending=True), np.argsort(-array, kind="stable"))
    zeros = tw.asarray([0.0, -0.0, -1.0, -0.0, 0.0])
    assert tw.argsort(zeros).tolist() == [2, 0, 1, 3, 4]
    assert tw.signbit(tw.sort(zeros)).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("function", [tw.sort, tw.argsort])
def test_sort_errors(function):
    with pytest.raises(IndexError, match=f"^{function.__name__}: axis 2"):
        function(tw.ones((2, 3)), axis=2)
    with pytest.raises(IndexError):
        function(tw.asarray(1))
    with pytest.raises(TypeError):
        function([1, 2])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
def test_searchsorted(dtype, side):
    for shape in [(), (0,), (5,), (33, 65)]:
        for length in (0, 1, 2, 50):
            sorted_values = np.sort(samples(dtype, (length,)))
            for _, tensor, array in layouts(samples(dtype, shape, seed=3)):
                expected = np.searchsorted(sorted_values, array, side=side)
                check(tw.searchsorted(tw.asarray(sorted_values), tensor, side=side), expected)
    backwards = tw.asarray(np.ascontiguousarray(np.sort(samples(dtype, (20,)))[::-1]))[::-1]
    check(
        tw.searchsorted(backwards, tw.asarray(samples(dtype, (9,)))),
        np.searchsorted(backwards.numpy(), samples(dtype, (9,))),
    )


def test_searchsorted_mixes_dtypes_and_takes_numbers_and_sorters():
    x = tw.asarray([1, 3, 5])
    check(tw.searchsorted(x, tw.asarray([0.5, 3.5], dtype="float32")), np.asarray([0, 2]))
    assert tw.searchsorted(x, 3).item() == 1
    assert tw.searchsorted(x, 3, side="right").item() == 2
    assert tw.searchsorted(x, 3.5).item() == 2
    mixed = tw.asarray([5, 1, 3])
    assert tw.searchsorted(mixed, 4, sorter=tw.argsort(mixed)).item() == 2


def test_searchsorted_errors():
    x = tw.asarray([1, 3, 5])
    with pytest.raises(ValueError, match="^searchsorted: x1 must have 1 dimension"):
        tw.searchsorted(tw.ones((2, 2)), x)
    with pytest.raises(ValueError, match="^searchsorted: x1 must have 1 dimension"):
        tw.searchsorted(tw.ones((2, 2)), x, sorter=x)
    with pytest.raises(ValueError, match="side must be"):
        tw.searchsorted(x, x, side="middle")
    with pytest.raises(ValueError, match="x1 must have 1 dimension"):
        tw.searchsorted(tw.asarray(1), x)


@pytest.mark.parametrize("index_dtype", INTEGERS)
@pytest.mark.parametrize("dtype", REAL)
def test_take_along_axis(dtype, index_dtype):
    rng = np.random.default_rng(2)
    low = 0 if "u" in index_dtype else -1
    for shape in [(5,), (3, 4), (2, 3, 4), (33, 65)]:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in range(-array.ndim, array.ndim):
                wanted = list(array.shape)
                wanted[axis] = 6
                indices = rng.integers(low, array.shape[axis], wanted).astype(index_dtype)
                expected = np.take_along_axis(array, indices.astype("int64"), axis=axis)
                check(tw.take_along_axis(tensor, tw.asarray(indices), axis=axis), expected)


def test_take_along_axis_broadcasts():
    array = np.arange(12).reshape(3, 4)
    one_row = np.asarray([[3, 0, -1]])
    check(tw.take_along_axis(tw.asarray(array), tw.asarray(one_row)), array[:, [3, 0, -1]])
    check(
        tw.take_along_axis(tw.asarray(array[:1]), tw.asarray(np.repeat(one_row, 5, 0))),
        np.repeat(array[:1, [3, 0, -1]], 5, 0),
    )
    check(tw.take_along_axis(tw.ones((2, 0)), tw.zeros((2, 0), dtype="int64")), np.ones((2, 0), "float32"))


def test_take_along_axis_errors():
    x = tw.ones((3, 4))
    for indices in (tw.zeros((3, 4)), tw.zeros((3, 4), dtype="bool")):
        with pytest.raises(TypeError, match="^take_along_axis: indices must have an integer dtype"):
            tw.take_along_axis(x, indices)
    with pytest.raises(ValueError, match="as many dimensions"):
        tw.take_along_axis(x, tw.asarray([0]))
    with pytest.raises(ValueError, match="broadcast"):
        tw.take_along_axis(x, tw.zeros((2, 4), dtype="int64"))
    with pytest.raises(IndexError, match="axis 2"):
        tw.take_along_axis(x, tw.zeros((3, 4), dtype="int64"), axis=2)
    with pytest.raises(IndexError, match="no element"):
        tw.take_along_axis(tw.ones((3, 0)), tw.zeros((3, 1), dtype="int64"))
    late = tw.take_along_axis(x, tw.asarray([[0], [7], [1]]))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 with size 4"):
        late.tolist()


def test_ordering_never_waits(test_engine):
    before = tw.sync_count()
    with tw.on_sync("error"):
        x = tw.rand(1000, dtype="float64")  # no two alike
        order = tw.argsort(x)
        found = tw.searchsorted(tw.sort(x), tw.take_along_axis(x, order))
    assert tw.sync_count() == before
    assert found.tolist() == list(range(1000))


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(5)
    long = rng.integers(0, 1000, 300_000).astype("float32")
    many = rng.standard_normal((500, 300))
    results = []
    for threads in (1, 2, 8):
        with tw.Engine(num_threads=threads) as engine:
            values = [
                tw.sort(tw.asarray(long)),
                tw.argsort(tw.asarray(long), descending=True),
                tw.sort(tw.asarray(many), axis=0),
                tw.argsort(tw.asarray(many)),
                tw.searchsorted(tw.sort(tw.asarray(long)), tw.asarray(many.reshape(-1))),
                tw.take_along_axis(tw.asarray(many), tw.argsort(tw.asarray(many))),
            ]
            results.append([value.numpy().tobytes() for value in values])
            engine.synchronize()
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_values_have_no_order(dtype):
    x = tw.zeros(3, dtype=dtype)
    for call in (
        tw.sort,
        tw.argsort,
        lambda x: tw.searchsorted(x, x),
        lambda x: tw.searchsorted(tw.ones(2), x),
    ):
        with pytest.raises(TypeError, match="order"):
            call(x)

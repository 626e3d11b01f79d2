# test_selection.py: topk and put_along_axis against NumPy.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, INTEGERS, REAL, check, layouts, samples

SHAPES = [(0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (33, 65)]


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_topk(dtype, largest):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in range(-array.ndim, array.ndim):
                order = tw.argsort(tensor, axis=axis, descending=largest).numpy()
                for k in {0, min(1, array.shape[axis]), array.shape[axis]}:
                    expected = order.take(range(k), axis=axis)
                    values, indices = tw.topk(tensor, k, axis, largest=largest)
                    check(indices, expected)
                    check(values, np.take_along_axis(array, expected, axis=axis))


def rows_of(size: int, dtype: str) -> dict[str, np.ndarray]:
    """Rows that a scan for the best meets in different ways."""
    rng = np.random.default_rng(size)
    line = np.arange(size).astype(dtype)
    rows = {
        "ascending": line,
        "descending": line[::-1].copy(),
        "equal": np.zeros(size, dtype),
        "few values": rng.integers(0, 5, size).astype(dtype),
        "random": rng.permutation(size).astype(dtype),
    }
    if dtype.startswith("float"):
        nans = np.full(size, np.nan, dtype)
        nans[:: size // 7] = 3
        zeros = np.zeros(size, dtype)
        zeros[::3] = -0.0
        rows |= {"nans": nans, "zeros": zeros, "infinities": np.where(rows["few values"] > 2, np.inf, nans)}
        rows = {key: row.astype(dtype) for key, row in rows.items()}
    return rows


def check_topk(tensor: tw.Tensor, array: np.ndarray, k: int, axis: int, largest: bool) -> None:
    expected = tw.argsort(tensor, axis=axis, descending=largest).numpy().take(range(k), axis=axis)
    values, indices = tw.topk(tensor, k, axis, largest=largest)
    check(indices, expected)
    expected_values = np.take_along_axis(array, expected, axis=axis)
    check(values, expected_values)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(expected_values))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_topk_of_rows_that_are_scanned(dtype, largest):
    for name, row in rows_of(5000, dtype).items():
        stacked = np.stack([row, np.roll(row, 7), row])
        for k in (1, 10, 200, 625, 626):
            check_topk(tw.asarray(row), row, k, 0, largest)
            if name in ("random", "few values"):
                check_topk(tw.asarray(stacked), stacked, k, 1, largest)
                check_topk(tw.asarray(stacked.T), stacked.T, k, 0, largest)
                check_topk(tw.asarray(np.repeat(row, 2))[::-2], np.repeat(row, 2)[::-2], k, 0, largest)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_topk_of_rows_that_threads_share(dtype, largest):
    # In pieces; all sorted.
    for size, counts in ((300_000, (3, 3000)), (140_000, (70_000,))):
        rows = rows_of(size, dtype)
        for name in ("ascending", "random", "nans") if "nans" in rows else ("ascending", "few values"):
            for k in counts:
                check_topk(tw.asarray(rows[name]), rows[name], k, 0, largest)
    row = rows_of(300_000, dtype)["random"]
    stacked = np.stack([row, row[::-1]])
    check_topk(tw.asarray(stacked), stacked, 100, 1, largest)


def test_topk_of_nans_and_equals():
    x = tw.asarray([math.nan, 1.0, math.inf, 1.0, -math.inf])
    assert tw.topk(x, 3).indices.tolist() == [2, 1, 3]
    assert tw.topk(x, 3, largest=False).indices.tolist() == [4, 1, 3]
    assert math.isnan(tw.topk(x, 5).values.tolist()[-1])
    assert tw.topk(x, 2, sorted=False).values.tolist() == [math.inf, 1]


def test_topk_keeps_no_more_than_it_gives():
    with tw.Engine() as engine:
        indices = tw.topk(tw.rand(100_000), 3).indices.wait()
        engine.synchronize()
        assert tw.memory_stats()["live_bytes"] < 10_000
        assert indices.shape == (3,)


def test_topk_against_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed: NumPy's order remains")
    array = np.random.default_rng(0).permutation(60).reshape(3, 20).astype("float32")
    for largest in (False, True):
        expected = torch.topk(torch.tensor(array), 4, largest=largest)
        values, indices = tw.topk(tw.asarray(array), 4, largest=largest)
        check(values, expected.values.numpy())
        check(indices, expected.indices.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_put_along_axis(dtype):
    for shape in [(1,), (7,), (3, 4), (2, 3, 4)]:
        array = samples(dtype, shape)
        for axis in range(-len(shape), len(shape)):
            size = shape[axis]
            rng = np.random.default_rng(1)
            indices = np.argsort(rng.random(shape), axis=axis).take(range(max(1, size // 2)), axis=axis)
            indices[rng.random(indices.shape) < 0.3] -= size
            values = samples(dtype, indices.shape, seed=3)
            for _, tensor, source in layouts(array):
                if source.shape != shape:
                    continue
                expected = source.copy()
                np.put_along_axis(expected, indices, values, axis)
                check(tw.put_along_axis(tensor, tw.asarray(indices), tw.asarray(values), axis), expected)
                check(tensor, source)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_put_along_axis_of_other_dtypes_and_shapes(dtype):
    x = tw.zeros((2, 3))
    indices = tw.asarray(np.array([[1], [2]], dtype))
    check(tw.put_along_axis(x, indices, 5), np.array([[0, 5, 0], [0, 0, 5]], "float32"))
    check(tw.put_along_axis(x, indices[:1], 5, axis=1), np.array([[0, 5, 0], [0, 5, 0]], "float32"))
    column = tw.put_along_axis(x, indices[:1], tw.asarray([[6], [7]]))
    check(column, np.array([[0, 6, 0], [0, 7, 0]], "float32"))
    check(x, np.zeros((2, 3), "float32"))


def test_put_along_axis_at_its_edges():
    x = tw.zeros(3)
    check(tw.put_along_axis(x, tw.asarray([1, 1]), tw.asarray([1.0, 2.0])), np.array([0, 2, 0], "float32"))
    check(tw.put_along_axis(x, tw.zeros(0, dtype="int64"), 1), np.zeros(3, "float32"))
    check(
        tw.put_along_axis(tw.zeros((0, 2)), tw.zeros((0, 1), dtype="int64"), 1), np.zeros((0, 2), "float32")
    )
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"index {wrong}"):
            tw.put_along_axis(x, tw.asarray([wrong]), 1).tolist()


X = tw.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.topk(X, 4), tw.ValueError, "^topk: k is 4; it must be from 0 to 3, the size of axis 1"),
        (lambda: tw.topk(X, -1), tw.ValueError, "k is -1"),
        (lambda: tw.topk(X, 2**70), tw.ValueError, "^topk: k is 1180591620717411303424; it must"),
        (lambda: tw.topk(X, 1.0), tw.DTypeError, "k must be an int, not float"),
        (lambda: tw.topk(X, 1, 2), tw.IndexError, "axis 2 is out of bounds"),
        (lambda: tw.topk(tw.asarray(1.0), 1), tw.IndexError, "0 dimensions"),
        (lambda: tw.topk([1, 2], 1), tw.DTypeError, "^topk: expected a Tensor, not list"),
        (
            lambda: tw.put_along_axis(X, X, 1),
            tw.DTypeError,
            "indices must have an integer dtype, not float32",
        ),
        (lambda: tw.put_along_axis(X, tw.asarray([1]), 1), tw.ShapeError, "must have 2 dimensions"),
        (lambda: tw.put_along_axis(X, tw.asarray([[1]] * 3), 1), tw.ShapeError, r"indices of shape \(3, 1\)"),
        (lambda: tw.put_along_axis(X, tw.asarray([[1]]), X), tw.ShapeError, r"values of shape \(2, 3\)"),
        (lambda: tw.put_along_axis(X, tw.asarray([[1]]), 1, axis=2), tw.IndexError, "axis 2"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_values_have_no_order(dtype):
    with pytest.raises(tw.DTypeError, match="order"):
        tw.topk(tw.ones(3, dtype=dtype), 1)


def program() -> list[bytes]:
    x = tw.randn(300, 401, generator=tw.Generator(3))
    values, indices = tw.topk(x, 7, 0)
    long = tw.topk(tw.randn(700_000, generator=tw.Generator(4)), 2000)
    return [
        each.numpy().tobytes() for each in (values, indices, *long, tw.put_along_axis(x, indices, -values, 0))
    ]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

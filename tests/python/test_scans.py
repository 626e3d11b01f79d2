# test_scans.py: cumulative_sum, cumulative_prod and diff against NumPy over dtypes, shapes, axes and layouts.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, INTEGERS, NUMERIC, check, layouts, samples

SHAPES = [(0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (33, 65), (3, 2000)]


def natural(dtype: str) -> str:
    if dtype in FLOATS + COMPLEX:
        return dtype
    return "uint64" if dtype.startswith("u") else "int64"


def scanned(name: str, array: np.ndarray, axis: int, dtype: str, initial: bool) -> np.ndarray:
    function = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}[name]
    result = function(array.astype(dtype), axis=axis, dtype=dtype)
    if not initial:
        return result
    shape = list(array.shape)
    shape[axis] = 1
    return np.concatenate([np.full(shape, name == "cumulative_prod", dtype), result], axis=axis)


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_against_numpy(name, dtype, initial):
    function = getattr(tw, name)
    # NumPy's complex products may be fused.
    rtol = {"complex64": 1e-4, "complex128": 1e-12}.get(dtype, 0.0)
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in range(-array.ndim, array.ndim):
                expected = scanned(name, array, axis, natural(dtype), initial)
                check(function(tensor, axis=axis, include_initial=initial), expected, rtol=rtol)


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("of", ["bool", "int8", "uint32", "float32"])
def test_dtypes(of, dtype):
    array = np.arange(6).astype(of)
    for name in ("cumulative_sum", "cumulative_prod"):
        expected = scanned(name, array, 0, dtype, False)
        check(getattr(tw, name)(tw.asarray(array), dtype=dtype), expected)


def test_zeros_keep_their_sign():
    assert tw.signbit(tw.cumulative_sum(tw.asarray([-0.0, -0.0]))).tolist() == [True, True]
    check(tw.cumulative_sum(tw.asarray([[-0.0, 1.0]]), axis=0), np.asarray([[-0.0, 1.0]], "float32"))


@pytest.mark.skipif(tw.engine().mode == "sync", reason="the operator runs while its caller holds the input")
def test_a_scan_may_take_over_its_input():
    before = tw.stats()["donated"]
    x = tw.cumulative_sum(tw.ones(100_000) * 2)
    check(x[-1], np.float32(200_000))
    assert tw.stats()["donated"] > before


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_errors(name):
    function = getattr(tw, name)
    with pytest.raises(ValueError, match=f"^{name}: axis must be given for 2 dimensions"):
        function(tw.ones((2, 2)))
    with pytest.raises(IndexError, match=f"^{name}: axis 2"):
        function(tw.ones((2, 2)), axis=2)
    with pytest.raises(TypeError, match=f"^{name}: dtype bool"):
        function(tw.ones(2), dtype="bool")
    with pytest.raises(TypeError, match=f"^{name}: expected a Tensor"):
        function([1, 2])
    with pytest.raises(TypeError, match=f"^{name}: axis must be an int"):
        function(tw.ones(2), axis=0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_diff(dtype):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in range(-array.ndim, array.ndim):
                for n in (0, 1, 2):
                    check(tw.diff(tensor, axis=axis, n=n), np.diff(array, axis=axis, n=n))


def test_diff_of_more_times_than_elements():
    assert tw.diff(tw.ones((2, 3)), n=2**70).shape == (2, 0)
    assert tw.diff(tw.ones((2, 3)), n=2**40, axis=0, append=tw.ones((1, 3))).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_diff_with_ends(dtype):
    array = samples(dtype, (3, 5))
    x = tw.asarray(array)
    for axis in (0, 1):
        front, back = (array[:, :1], array[:, :2]) if axis else (array[:1], array[:2])
        expected = np.diff(array, axis=axis, prepend=front, append=back)
        check(tw.diff(x, axis=axis, prepend=tw.asarray(front), append=tw.asarray(back)), expected)
    with pytest.raises(ValueError, match="^diff: n is -1"):
        tw.diff(x, n=-1)
    with pytest.raises(IndexError, match="^diff: axis 2"):
        tw.diff(x, axis=2)
    with pytest.raises(ValueError, match="^concat: "):
        tw.diff(x, prepend=tw.ones((2, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_names(dtype):
    for shape in [(7,), (3, 4)]:
        x = tw.asarray(samples(dtype, shape))
        for axis in range(-len(shape), len(shape)):
            check(tw.cumsum(x, axis), tw.cumulative_sum(x, axis=axis).numpy())
            check(tw.cumprod(x, axis), tw.cumulative_prod(x, axis=axis).numpy())
    check(tw.cumsum(x[0], dtype="complex128"), tw.cumulative_sum(x[0], dtype="complex128").numpy())
    with pytest.raises(ValueError, match="^cumprod: axis must be given"):
        tw.cumprod(x)

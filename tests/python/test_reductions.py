# test_reductions.py: reductions against NumPy over dtypes, shapes, axes and layouts.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, INTEGERS, REAL, check, layouts, samples

SHAPES = [(), (1,), (7,), (3, 4), (2, 3, 4), (65, 33)]


def axes_of(ndim: int):
    yield None
    for axis in range(ndim):
        yield axis
        yield axis - ndim
    if ndim >= 2:
        yield (0, 1)
        yield (ndim - 1, 0)
        yield tuple(range(ndim))
    yield ()


def finite(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    array = samples(dtype, shape)
    return np.nan_to_num(array, posinf=3, neginf=-3) if dtype in FLOATS + COMPLEX else array


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean"])
def test_against_numpy(name, dtype, keepdims):
    for shape in SHAPES:
        if name in ("max", "min") and dtype in COMPLEX:
            continue  # complex numbers have no order: test_complex.py
        values = finite(dtype, shape)
        # Where the order of floating operations shows, stay away from overflow and cancellation.
        if name == "prod" and dtype in FLOATS + COMPLEX:
            values = (1 + np.tanh(values) / 100).astype(dtype)
        if name == "mean" and dtype in INTEGERS:
            values = values % np.asarray(100, dtype)
        for _, tensor, array in layouts(values):
            for axis in axes_of(array.ndim):
                expected = getattr(np, name)(array, axis=axis, keepdims=keepdims)
                tolerance = (
                    (1e-5 if dtype in ("float32", "complex64") else 1e-9)
                    if name in ("sum", "prod", "mean")
                    else 0
                )
                if dtype not in FLOATS + COMPLEX and name != "mean":
                    tolerance = 0
                result = getattr(tw, name)(tensor, axis=axis, keepdims=keepdims)
                check(result, expected, rtol=tolerance * 10, atol=tolerance * 100)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
@pytest.mark.parametrize("dtype", ["int16", *FLOATS])
def test_var_and_std(name, correction, dtype):
    array = finite(dtype, (6, 5)) % 11
    for axis in (None, 0, 1, (0, 1)):
        expected = getattr(np, name)(array, axis=axis, ddof=correction)
        check(getattr(tw, name)(tw.asarray(array), axis=axis, correction=correction), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", REAL)
def test_argmax_and_argmin(name, dtype):
    for shape in ((7,), (3, 4), (2, 3, 4), (65, 33)):
        for _, tensor, array in layouts(samples(dtype, shape)):
            for axis in (None, *range(array.ndim), -1):
                for keepdims in (False, True):
                    expected = getattr(np, name)(array, axis=axis, keepdims=keepdims)
                    check(getattr(tw, name)(tensor, axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_non_finite_values(name):
    for values in ([1.0, np.nan, 2.0], [np.inf, 1.0], [-np.inf, np.inf]):
        check(getattr(tw, name)(tw.asarray(values)), getattr(np, name)(np.asarray(values, "float32")))


def test_accumulation_dtypes():
    assert tw.asarray([True]).sum().dtype == tw.int64
    assert tw.asarray([1], dtype="int8").sum().dtype == tw.int64
    assert tw.asarray([1], dtype="uint8").sum().dtype == tw.uint64
    assert tw.ones(2).sum().dtype == tw.float32
    assert tw.ones(2).sum(dtype="float64").dtype == tw.float64
    assert tw.asarray([1.5, 1.5]).sum(dtype="int32").item() == 2
    assert tw.asarray([1]).mean().dtype == tw.float64


def test_integer_overflow_wraps():
    array = np.asarray([2**62, 2**62, 2**62])
    check(tw.asarray(array).sum(), array.sum())
    check(tw.asarray(array).prod(), array.prod())


def test_nothing_to_reduce():
    empty = tw.ones((0, 3))
    check(empty.sum(), np.float32(0))
    check(empty.prod(axis=0), np.ones(3, "float32"))
    check(empty.any(axis=1), np.zeros(0, bool))
    check(empty.all(), np.True_)
    assert np.isnan(empty.mean().item())
    assert empty.max(axis=1).shape == (0,)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match=name):
            getattr(empty, name)()


def test_bad_axes():
    tensor = tw.ones((2, 3))
    with pytest.raises(IndexError, match="sum"):
        tensor.sum(axis=2)
    with pytest.raises(IndexError):
        tensor.sum(axis=(0, -3))
    with pytest.raises(ValueError):
        tensor.sum(axis=(0, 0))
    with pytest.raises(TypeError):
        tensor.sum(axis=1.5)
    with pytest.raises(TypeError):
        tensor.sum(axis="0")
    with pytest.raises(TypeError):
        tensor.sum(keepdims=1)
    with pytest.raises(TypeError):
        tw.sum([1, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_sums_are_accurate(dtype):
    array = np.random.default_rng(0).random(1_000_003).astype(dtype)
    check(tw.asarray(array).sum(), np.asarray(array.astype("float64").sum(), dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.timeout(120)
def test_bits_do_not_depend_on_the_number_of_threads(dtype):
    array = np.random.default_rng(0).standard_normal((300, 401)).astype(dtype)
    results = []
    for threads in (1, 2, 4):
        with tw.Engine(num_threads=threads) as engine:
            tensor = tw.asarray(array)
            results.append(
                [
                    tensor.sum().item(),
                    tensor.sum(axis=0).tolist(),
                    tensor.T.mean(axis=0).tolist(),
                    tensor.prod(axis=1).tolist(),
                    None if dtype in COMPLEX else tensor.var().item(),
                ]
            )
            del tensor
            engine.close()
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_methods(dtype):
    array = samples(dtype, (3, 4)) % np.asarray(100, dtype)
    tensor = tw.asarray(array)
    for name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin"):
        check(getattr(tensor, name)(), getattr(array, name)(), rtol=1e-12)
        check(getattr(tensor, name)(1), getattr(array, name)(1), rtol=1e-12)
        check(
            getattr(tensor, name)(axis=0, keepdims=True),
            getattr(array, name)(axis=0, keepdims=True),
            rtol=1e-12,
        )

# test_half_casts.py: float16 and bfloat16: casts, promotion and creation.
from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, INTEGERS
from halves import (
    FORMATS,
    HALVES,
    VIEWS,
    bits_of,
    check_half,
    from_bits,
    half,
    pair,
    rounded,
    value_of,
    views,
)

# --- casts


def test_float16_is_numpys_in_every_value():
    bits = np.arange(0x10000, dtype="uint16")
    ours, numpys = from_bits(bits, "float16"), bits.view("float16")
    np.testing.assert_array_equal(ours.numpy(), numpys)
    for dtype in ("float32", "float64"):
        np.testing.assert_array_equal(tw.astype(ours, dtype).numpy(), numpys.astype(dtype))
        again = bits_of(tw.astype(tw.asarray(numpys.astype(dtype)), "float16"))
        np.testing.assert_array_equal(again[~np.isnan(numpys)], bits[~np.isnan(numpys)])
        assert np.isnan(again.view("float16")[np.isnan(numpys)]).all()


def test_bfloat16_is_the_upper_half_of_float32():
    bits = np.arange(0x10000, dtype="uint16")
    wide = (bits.astype("uint32") << 16).view("float32")
    np.testing.assert_array_equal(tw.astype(from_bits(bits, "bfloat16"), "float32").numpy(), wide)
    again = bits_of(tw.astype(tw.asarray(wide), "bfloat16"))
    np.testing.assert_array_equal(again[~np.isnan(wide)], bits[~np.isnan(wide)])
    assert np.isnan(value_of(from_bits(again[np.isnan(wide)], "bfloat16"))).all()


@half
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_rounding_is_to_nearest_with_ties_to_even(dtype, source):
    values = value_of(from_bits(np.arange(0x7C00 if dtype == "float16" else 0x7F80), dtype))
    middles = (values[:-1] + values[1:]) / 2
    exact = middles.astype(source)
    limits = np.array([np.inf, 0], source)
    around = np.concatenate([exact, np.nextafter(exact, limits[0]), np.nextafter(exact, limits[1])])
    special = np.array([1e30, 65519.99, 65520, 3.4e38, np.inf, np.nan], source)
    around = np.concatenate([around, -around, special])
    check_half(tw.astype(tw.asarray(around), dtype), around, dtype)


@half
@pytest.mark.parametrize("source", INTEGERS)
def test_casts_from_integers_round_once(dtype, source):
    info = np.iinfo(source)
    rng = np.random.default_rng(0)
    numbers = rng.integers(info.min, info.max, 5000, dtype=source, endpoint=True)
    numbers = numbers >> rng.integers(0, info.bits, 5000).astype(source)  # of all sizes
    # float64 holds no more than 53 bits, which is enough for all but numbers beside a tie: see half_test.cpp.
    check_half(tw.astype(tw.asarray(numbers), dtype), numbers.astype("float64"), dtype)


@half
@pytest.mark.parametrize("target", DTYPES)
def test_casts_to_others_are_those_of_float32(dtype, target):
    for view in VIEWS:
        x, wide = pair(dtype, view)
        found, expected = tw.astype(x, target), tw.astype(wide, target)
        assert found.dtype == target
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@views
def test_casts_between_halves(view):
    x, wide = pair("float16", view)
    check_half(tw.astype(x, "bfloat16"), wide.numpy(), "bfloat16")
    x, wide = pair("bfloat16", view)
    check_half(tw.astype(x, "float16"), wide.numpy(), "float16")
    assert bool(tw.all(tw.astype(tw.asarray([True, False]), "float16") == tw.asarray([1.0, 0.0])))


@half
def test_complex_values_have_no_half(dtype):
    with pytest.raises(tw.DTypeError, match="astype: complex64 does not become"):
        tw.astype(tw.ones(2, dtype="complex64"), dtype)


# --- dtypes


def test_promotion():
    for dtype in HALVES:
        for other in INTEGERS:
            assert tw.result_type(dtype, other) == dtype
            assert (tw.ones(2, dtype=dtype) * tw.ones(2, dtype=other)).dtype == dtype
        for wide in ("float32", "float64", "complex64", "complex128"):
            assert tw.result_type(dtype, wide) == tw.result_type(wide, dtype) == wide
        assert tw.result_type(dtype, "bool") == dtype
        assert tw.result_type(dtype, dtype, 1, 2.5) == dtype
        assert tw.result_type(dtype, 1j) == "complex64"
        assert (tw.ones(2, dtype=dtype) + 0.5).dtype == (1 - tw.ones(2, dtype=dtype)).dtype == dtype
        assert (tw.ones(2, dtype=dtype) * 1j).dtype == "complex64"
        assert tw.can_cast(dtype, "float32")
        assert not tw.can_cast("float32", dtype)
        assert tw.can_cast("int64", dtype)
    assert tw.result_type("float16", "bfloat16") == "float32"
    assert not tw.can_cast("float16", "bfloat16")


def test_the_dtype_objects():
    for dtype, numbers in (("float16", np.finfo("float16")), ("bfloat16", None)):
        info = tw.finfo(dtype)
        digits, lowest, largest = FORMATS[dtype]
        assert (info.bits, info.max, info.min) == (16, largest, -largest)
        assert (info.eps, info.smallest_normal, info.dtype) == (2.0 ** (1 - digits), 2.0**lowest, dtype)
        if numbers is not None:
            assert (info.eps, info.max) == (numbers.eps, numbers.max)
        assert tw.isdtype(dtype, "real floating") and tw.isdtype(dtype, "numeric")
        assert not tw.isdtype(dtype, "complex floating")
        assert tw.dtype(dtype) is getattr(tw, dtype)
        assert (tw.dtype(dtype).itemsize, tw.dtype(dtype).kind) == (2, "real floating")
        assert repr(tw.dtype(dtype)) == f"thalweg.{dtype}"
        assert pickle.loads(pickle.dumps(tw.dtype(dtype))) is tw.dtype(dtype)
        with pytest.raises(tw.DTypeError, match=f"iinfo: {dtype}"):
            tw.iinfo(dtype)
    assert tw.dtype(np.float16) is tw.dtype(np.dtype("float16")) is tw.float16
    assert tw.float16 == np.float16 and np.dtype(tw.float16) == np.float16
    assert not set(HALVES) & set(tw.__array_namespace_info__().dtypes())
    assert tw.asarray(1.5).dtype == "float32"


# --- creation


@half
def test_creation(dtype):
    for tensor, expected in (
        (tw.zeros((2, 3), dtype=dtype), np.zeros((2, 3))),
        (tw.ones((), dtype=dtype), np.ones(())),
        (tw.full((3,), 1 / 3, dtype=dtype), np.full(3, 1 / 3)),
        (tw.full((3,), 2**40 + 2**32 + 1, dtype=dtype), np.full(3, 2.0**40 + 2**32 + 1)),
        (tw.full((2,), 1e300, dtype=dtype), np.full(2, np.inf)),
        (tw.full((2,), True, dtype=dtype), np.ones(2)),
        (tw.full((2,), math.nan, dtype=dtype), np.full(2, np.nan)),
        (tw.arange(3000, dtype=dtype), np.arange(3000)),
        (tw.arange(0, 1, 0.1, dtype=dtype), np.arange(0, 1, 0.1)),
        (tw.linspace(-1, 2, 777, dtype=dtype), np.linspace(-1, 2, 777)),
        (tw.eye(3, 5, k=1, dtype=dtype), np.eye(3, 5, k=1)),
        (tw.full_like(tw.zeros(3, dtype=dtype), 0.1), np.full(3, 0.1)),
        (tw.asarray([[1, 2.5], [True, -0.1]], dtype=dtype), np.array([[1, 2.5], [1, -0.1]])),
        (tw.asarray(2**63, dtype=dtype), np.array(2.0**63)),
        (tw.asarray(np.arange(4), dtype=dtype), np.arange(4)),
        (tw.empty((0, 3), dtype=dtype), np.empty((0, 3))),
    ):
        check_half(tensor, expected, dtype)
    assert tw.empty((2, 2), dtype=dtype).dtype == dtype
    with pytest.raises(tw.DTypeError, match="asarray: .*complex"):
        tw.asarray([1j], dtype=dtype)


@half
def test_random_numbers(dtype):
    u = value_of(tw.uniform((100_001,), dtype=dtype, generator=tw.Generator(3)))
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    wide = tw.uniform((100_001,), generator=tw.Generator(3)).numpy()
    below = 1 - 2.0 ** -FORMATS[dtype][0]
    np.testing.assert_array_equal(u, np.minimum(rounded(wide, dtype), below))
    low = value_of(tw.uniform((1000,), -3, -2, dtype=dtype))
    assert low.min() >= -3 and low.max() < -2
    assert (value_of(tw.uniform((9,), 2, 2, dtype=dtype)) == 2).all()
    n = tw.normal((100_001,), 1, 2, dtype=dtype, generator=tw.Generator(4))
    check_half(n, tw.normal((100_001,), 1, 2, generator=tw.Generator(4)).numpy(), dtype)
    assert tw.exponential((5,), dtype=dtype).dtype == dtype
    with pytest.raises(tw.DTypeError, match="randint"):
        tw.randint(0, 5, (3,), dtype=dtype)


def test_uniform_refuses_bounds_that_are_infinite():
    with pytest.raises(ValueError, match="uniform: 1000000.0 is too large for float16"):
        tw.uniform((3,), 0, 1e6, dtype="float16")

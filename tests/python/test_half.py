# test_half.py: float16 and bfloat16: stored in 16 bits, computed in float32, rounded once.
from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, INTEGERS

HALVES = ["float16", "bfloat16"]
#: Bits of the significand, the exponent of the smallest normal number, the largest number.
FORMATS = {"float16": (11, -14, 65504.0), "bfloat16": (8, -126, (2 - 2.0**-7) * 2.0**127)}

half = pytest.mark.parametrize("dtype", HALVES)


def rounded(values, dtype: str) -> np.ndarray:
    """float64 values of a half-precision dtype nearest to `values`, ties to even, by its definition."""
    digits, lowest, largest = FORMATS[dtype]
    values = np.asarray(values, "float64")
    _, exponent = np.frexp(values)
    last_place = np.ldexp(1.0, np.maximum(exponent - digits, lowest - digits + 1))
    nearest = np.rint(values / last_place) * last_place
    return np.where(np.abs(nearest) > largest, np.copysign(np.inf, values), nearest)


def value_of(tensor: tw.Tensor) -> np.ndarray:
    return tw.astype(tensor, "float64").numpy()


def check_half(tensor: tw.Tensor, expected, dtype: str, rtol: float = 0.0) -> None:
    """The dtype, the shape and the values of `expected`, rounded; or within a share of them."""
    expected = np.asarray(expected)
    assert tensor.dtype == dtype
    assert tensor.shape == expected.shape
    if rtol:
        np.testing.assert_allclose(value_of(tensor), expected, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(value_of(tensor), rounded(expected, dtype))


def check_against_float32(found, wide, dtype: str) -> None:
    """`found` is what the same call gave in float32, rounded once; what is not floating is equal."""
    if isinstance(found, (tuple, list)):
        assert len(found) == len(wide)
        for each, other in zip(found, wide, strict=True):
            check_against_float32(each, other, dtype)
    elif wide.dtype == "float32":
        check_half(found, wide.numpy(), dtype)
    else:
        assert found.dtype == wide.dtype
        np.testing.assert_array_equal(found.numpy(), wide.numpy())


def numbers(shape, dtype: str, seed: int = 0) -> np.ndarray:
    """float32 values that the dtype holds, non-finite ones among them."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal(shape) * 3).astype("float32")
    flat = values.reshape(-1)
    for i, each in enumerate([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 65504.0, 2.0**-14, 2.0**-20]):
        if flat.size > 20:
            flat[i * 2] = each
    return rounded(values, dtype).astype("float32")


VIEWS = {
    "contiguous": lambda x: x,
    "reversed": lambda x: x[::-1, ::-2],
    "transposed": lambda x: tw.permute_dims(x, (1, 0)),
    "gapped": lambda x: x[1::2, 2::3],
    "row": lambda x: tw.broadcast_to(x[1], (5, x.shape[1])),
    "column": lambda x: tw.broadcast_to(x[:, 2:3], (x.shape[0], 6)),
    "one element": lambda x: x[2:3, 1:2],
    "0-d": lambda x: x[3, 4],
    "empty": lambda x: x[:, 3:3],
}
views = pytest.mark.parametrize("view", VIEWS)


def pair(dtype: str, view: str, shape=(37, 41), seed: int = 0) -> tuple[tw.Tensor, tw.Tensor]:
    """A view of half-precision values and the same in float32."""
    wide = tw.asarray(numbers(shape, dtype, seed))
    return VIEWS[view](tw.astype(wide, dtype)), VIEWS[view](wide)


UNARY = [
    "negative", "positive", "abs", "sign", "square", "reciprocal", "logical_not", "isnan", "isinf",
    "isfinite", "signbit", "sqrt", "floor", "ceil", "trunc", "round", "exp", "expm1", "log", "log1p",
    "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "erfc", "conj",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "minimum", "maximum",
    "copysign", "atan2", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal",
]  # fmt: skip
EXACT = ["add", "subtract", "multiply", "divide", "minimum", "maximum", "copysign"]


@half
@views
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name, dtype, view):
    x, wide = pair(dtype, view)
    check_against_float32(getattr(tw, name)(x), getattr(tw, name)(wide), dtype)


@half
@views
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name, dtype, view):
    x, wide = pair(dtype, view)
    y, other = pair(dtype, view, seed=1)
    function = getattr(tw, name)
    check_against_float32(function(x, y), function(wide, other), dtype)
    y, other = (each[..., :1] if each.ndim else each for each in (y, other))
    check_against_float32(function(x, y), function(wide, other), dtype)
    check_against_float32(function(x, 2), function(wide, 2), dtype)
    check_against_float32(function(0.5, x), function(0.5, wide), dtype)


@half
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_are_numpys(name, dtype):
    x, y = numbers((50, 60), dtype), numbers((50, 60), dtype, seed=1)
    expected = getattr(np, name)(x, y)
    check_half(getattr(tw, name)(tw.asarray(x, dtype=dtype), tw.asarray(y, dtype=dtype)), expected, dtype)
    np.testing.assert_array_equal(
        value_of(tw.sqrt(tw.asarray(x, dtype=dtype))), rounded(np.sqrt(x.astype("float64")), dtype)
    )


@half
@views
def test_where_and_clip(dtype, view):
    x, wide = pair(dtype, view)
    y, other = pair(dtype, view, seed=1)
    check_against_float32(tw.where(x > y, x, y), tw.where(wide > other, wide, other), dtype)
    check_against_float32(tw.where(x > y, x, 1.5), tw.where(wide > other, wide, 1.5), dtype)
    check_against_float32(tw.clip(x, -1, y), tw.clip(wide, -1, other), dtype)
    check_against_float32(tw.clip(x, -1, 1), tw.clip(wide, -1, 1), dtype)


@half
@pytest.mark.parametrize("exponent", [2, -1, 0.5, 3])
def test_powers_of_one_exponent(dtype, exponent):
    x, wide = pair(dtype, "contiguous")
    check_against_float32(x**exponent, wide**exponent, dtype)
    check_against_float32(
        x ** tw.asarray(exponent, dtype=dtype), wide ** tw.asarray(exponent, dtype="float32"), dtype
    )


@half
def test_nextafter_moves_by_one_place(dtype):
    bits = np.arange(0x8000, dtype="uint16")
    values = from_bits(bits, dtype)
    infinite = int(np.flatnonzero(np.isinf(value_of(values)))[0])
    up = tw.nextafter(values, tw.asarray(math.inf, dtype=dtype))
    np.testing.assert_array_equal(bits_of(up)[:infinite], bits[1 : infinite + 1])
    down = tw.nextafter(-values, tw.asarray(-math.inf, dtype=dtype))
    np.testing.assert_array_equal(bits_of(down)[:infinite], bits[1 : infinite + 1] | 0x8000)
    back = tw.nextafter(values[1:], tw.asarray(-1.0, dtype=dtype))
    np.testing.assert_array_equal(bits_of(back)[:infinite], bits[:infinite])
    assert bits_of(tw.nextafter(values[:1], tw.asarray(-1.0, dtype=dtype))).tolist() == [0x8001]
    assert np.isnan(value_of(tw.nextafter(values, tw.asarray(math.nan, dtype=dtype)))).all()


# --- casts


def from_bits(bits, dtype: str) -> tw.Tensor:
    return tw._C.reinterpret(tw.asarray(np.asarray(bits, "uint16")), dtype)


def bits_of(tensor: tw.Tensor) -> np.ndarray:
    return tw._C.reinterpret(tensor, "uint16").numpy()


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


# --- reductions, scans, products, order


REDUCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "count_nonzero"]


@half
@views
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype, view):
    x, wide = pair(dtype, view)
    function = getattr(tw, name)
    for axis in (None, *range(x.ndim)):
        if name in ("max", "min") and (x.size == 0 and (axis is None or x.shape[axis] == 0)):
            continue
        for keepdims in (False, True):
            check_against_float32(
                function(x, axis=axis, keepdims=keepdims), function(wide, axis=axis, keepdims=keepdims), dtype
            )


@half
def test_sums_accumulate_in_float32(dtype):
    x = tw.ones(60_000, dtype=dtype)
    assert tw.sum(x).item() == rounded(60_000, dtype)
    assert tw.mean(tw.full((70_000,), 300.0, dtype=dtype)).item() == 300
    assert tw.sum(tw.full((4,), 40000.0, dtype="float16")).item() == math.inf
    assert tw.sum(tw.full((4,), 40000.0, dtype="float16"), dtype="float32").item() == 160000
    assert tw.sum(tw.ones(5, dtype="int8"), dtype=dtype).dtype == dtype


@half
@views
def test_scans_and_order(dtype, view):
    x, wide = pair(dtype, view)
    for axis in range(x.ndim):
        for name in ("cumulative_sum", "cumulative_prod", "sort", "argsort"):
            function = getattr(tw, name)
            check_against_float32(function(x, axis=axis), function(wide, axis=axis), dtype)
        check_against_float32(
            tw.sort(x, axis=axis, descending=True), tw.sort(wide, axis=axis, descending=True), dtype
        )
        if x.shape[axis]:
            for name in ("argmax", "argmin"):
                function = getattr(tw, name)
                check_against_float32(function(x, axis=axis), function(wide, axis=axis), dtype)
            k = min(3, x.shape[axis])
            check_against_float32(tw.topk(x, k, axis=axis), tw.topk(wide, k, axis=axis), dtype)
    if x.ndim:
        check_against_float32(tw.nonzero(x), tw.nonzero(wide), dtype)
    check_against_float32(tw.unique_values(x), tw.unique_values(wide), dtype)


@half
def test_searchsorted(dtype):
    x, wide = pair(dtype, "contiguous")
    line = tw.sort(x[4])
    for side in ("left", "right"):
        found = tw.searchsorted(line, x[5], side=side)
        np.testing.assert_array_equal(
            found.numpy(), tw.searchsorted(tw.sort(wide[4]), wide[5], side=side).numpy()
        )


def finite_pair(dtype: str, shape, seed: int = 0) -> tuple[tw.Tensor, tw.Tensor]:
    values = rounded(np.random.default_rng(seed).standard_normal(shape), dtype).astype("float32")
    return tw.asarray(values, dtype=dtype), tw.asarray(values)


@half
@pytest.mark.parametrize(
    "shapes",
    [
        ((5,), (5,)),
        ((3, 4), (4,)),
        ((17, 33), (33, 9)),
        ((2, 1, 5, 6), (3, 6, 4)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((130, 257), (257, 65)),
    ],
)
def test_matmul(dtype, shapes):
    (x, wide), (y, other) = finite_pair(dtype, shapes[0]), finite_pair(dtype, shapes[1], seed=1)
    check_against_float32(x @ y, wide @ other, dtype)
    if x.ndim > 1 and y.ndim > 1:
        turned = tw.matrix_transpose(tw.matrix_transpose(x) + 0)
        check_half(turned @ y, wide.numpy() @ other.numpy(), dtype, rtol=2.0 ** -FORMATS[dtype][0] * 4)
    exact = wide.numpy().astype("float64") @ other.numpy().astype("float64")
    check_half(x @ y, exact, dtype, rtol=2.0 ** -FORMATS[dtype][0] * 4)


@half
def test_products_of_several_axes(dtype):
    (x, wide), (y, other) = finite_pair(dtype, (3, 4, 5)), finite_pair(dtype, (4, 5, 6), seed=1)
    check_against_float32(tw.tensordot(x, y), tw.tensordot(wide, other), dtype)
    found = tw.einsum("abc,bcd,a->d", x, y, x[:, 0, 0])
    check_against_float32(found, tw.einsum("abc,bcd,a->d", wide, other, wide[:, 0, 0]), dtype)
    check_against_float32(tw.vecdot(x, x), tw.vecdot(wide, wide), dtype)
    check_against_float32(tw.kron(x[0], y[0]), tw.kron(wide[0], other[0]), dtype)
    check_against_float32(tw.linalg.outer(x[0, 0], y[0, 0]), tw.linalg.outer(wide[0, 0], other[0, 0]), dtype)
    check_against_float32(
        tw.linalg.cross(x[..., :3], x[..., 1:4]), tw.linalg.cross(wide[..., :3], wide[..., 1:4]), dtype
    )
    check_against_float32(tw.linalg.trace(x), tw.linalg.trace(wide), dtype)


# --- movement


MOVEMENTS = {
    "concat": lambda x: tw.concat([x, x[1:], x[:1]], axis=0),
    "concat flat": lambda x: tw.concat([x, x], axis=None),
    "stack": lambda x: tw.stack([x, x], axis=1),
    "unstack": lambda x: tw.unstack(x, axis=0),
    "split": lambda x: tw.split(x, [2, 5]),
    "roll": lambda x: tw.roll(x, (2, -1), axis=(0, 1)),
    "flip": lambda x: tw.flip(x) + 0,
    "take": lambda x: tw.take(x, tw.asarray([2, 0, -1]), axis=0),
    "take_along_axis": lambda x: tw.take_along_axis(x, tw.asarray([[1, 0, 2]]), axis=1),
    "put_along_axis": lambda x: tw.put_along_axis(x, tw.asarray([[1, 0, 2]]), 0.1, axis=1),
    "index": lambda x: x[tw.asarray([3, 1]), 2:],
    "mask": lambda x: x[x > 0],
    "repeat": lambda x: tw.repeat(x, 3, axis=1),
    "tile": lambda x: tw.tile(x, (2, 2)),
    "tril": lambda x: tw.tril(x, k=1),
    "triu": lambda x: tw.triu(x),
    "pad": lambda x: tw.pad(x, ((1, 2), (0, 3)), constant_values=0.1),
    "pad by reflection": lambda x: tw.pad(x, 2, mode="reflect"),
    "reshape": lambda x: tw.reshape(x.T, (-1,)),
    "astype copy": lambda x: tw.astype(x, x.dtype),
    "diagonal": lambda x: tw.linalg.diagonal(x) + 0,
    "meshgrid": lambda x: tw.meshgrid(x[0], x[:, 0]),
    "masked_fill": lambda x: tw.masked_fill(x, x < 0, 7),
    "embedding": lambda x: tw.embedding(tw.asarray([[1, 2], [0, 1]]), x),
    "diff": lambda x: tw.diff(x),
}


@half
@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name, dtype):
    x, wide = pair(dtype, "contiguous", shape=(7, 9))
    for turn in (lambda x: x, lambda x: x.T):
        check_against_float32(MOVEMENTS[name](turn(x)), MOVEMENTS[name](turn(wide)), dtype)


def assign_all(x: tw.Tensor, value: tw.Tensor) -> tw.Tensor:
    x = x + 0
    x[0] = 3
    x[1, ::2] = 0.1
    x[2:4] = value
    x[tw.asarray([5, 6])] = value[1]
    x[x > 2] = -1.5
    x[:, 0] = tw.arange(x.shape[0])
    x[4, :2] = [0.3, 2]
    x[x < -2] = tw.zeros(int(tw.count_nonzero(x < -2)))
    return x


@half
def test_assignment(dtype):
    (x, wide), (y, other) = finite_pair(dtype, (7, 9)), finite_pair(dtype, (2, 9), seed=1)
    # float32 does not round the numbers that are assigned.
    check_half(assign_all(x, y), assign_all(wide, other).numpy(), dtype)
    check_half(assign_all(x, tw.astype(y, "float32")), assign_all(wide, other).numpy(), dtype)


@half
def test_in_place_forms(dtype):
    x, wide = finite_pair(dtype, (300,))
    before = x
    x += 1
    x *= x
    x /= 3
    expected = rounded(rounded((rounded(wide.numpy() + np.float32(1), dtype)) ** 2, dtype) / 3, dtype)
    check_half(x, expected, dtype)
    assert before.dtype == x.dtype == dtype


# --- functions composed of several operators


COMPOSED = {
    "relu": lambda x: tw.relu(x),
    "leaky_relu": lambda x: tw.leaky_relu(x, 0.25),
    "sigmoid": lambda x: tw.sigmoid(x),
    "silu": lambda x: tw.silu(x),
    "softplus": lambda x: tw.softplus(x, 2.0),
    "gelu": lambda x: tw.gelu(x),
    "gelu tanh": lambda x: tw.gelu(x, approximate="tanh"),
    "softmax": lambda x: tw.softmax(x, axis=0),
    "log_softmax": lambda x: tw.log_softmax(x),
    "logsumexp": lambda x: tw.logsumexp(x, axis=1),
    "layer_norm": lambda x: tw.layer_norm(x, 9, weight=x[0], bias=x[1]),
    "rms_norm": lambda x: tw.rms_norm(x * 256, 9),
    "batch_norm": lambda x: tw.batch_norm(x, x[0], abs(x[1]), training=True),
    "mse_loss": lambda x: tw.mse_loss(x, x * 0.5),
    "bce": lambda x: tw.binary_cross_entropy_with_logits(x, tw.sigmoid(x)),
    "cross_entropy": lambda x: tw.cross_entropy(x, tw.asarray([0, 1, 2, 3, 4, 5, 6])),
    "attention": lambda x: tw.scaled_dot_product_attention(x, x, x),
    "conv1d": lambda x: tw.conv1d(x[None], x[:4, :3][:, None] + x[:4, None, :7].reshape(4, 7, 1), x[:4, 0]),
    "conv2d": lambda x: tw.conv2d(x[None], x[None, None, :2, :3], x[0, :1]),
    "max_pool1d": lambda x: tw.max_pool1d(x, 2),
    "max_pool2d": lambda x: tw.max_pool2d(x[None], 2, padding=1),
    "avg_pool1d": lambda x: tw.avg_pool1d(x, 3, padding=1),
    "avg_pool2d": lambda x: tw.avg_pool2d(x[None], (2, 3)),
    "dropout": lambda x: tw.dropout(x, 0.5, generator=tw.Generator(7)),
    "isin": lambda x: tw.isin(x, x[0]),
}


@half
@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_round_once(name, dtype):
    x, wide = finite_pair(dtype, (7, 9))
    # Values of few digits: sums and products of them in the arguments above are exact.
    x, wide = tw.round(x * 4), tw.round(wide * 4)
    if name == "bce":  # the target is rounded on the way
        target = tw.asarray(rounded(tw.sigmoid(wide).numpy(), dtype).astype("float32"))
        wide_result = tw.binary_cross_entropy_with_logits(wide, target)
    else:
        wide_result = COMPOSED[name](wide)
    check_against_float32(COMPOSED[name](x), wide_result, dtype)


@half
def test_composed_functions_of_mixed_dtypes(dtype):
    x, wide = finite_pair(dtype, (7, 9))
    assert tw.layer_norm(x, 9, weight=tw.ones(9)).dtype == "float32"
    np.testing.assert_array_equal(
        tw.layer_norm(x, 9, weight=tw.ones(9)).numpy(), tw.layer_norm(wide, 9, weight=tw.ones(9)).numpy()
    )


LINALG = [
    "cholesky", "det", "slogdet", "inv", "qr", "svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals",
    "matrix_norm", "vector_norm", "matrix_rank", "pinv",
]  # fmt: skip


@half
def test_fft_and_linalg_refuse_halves(dtype):
    x = tw.ones((4, 4), dtype=dtype)
    for name in ("fft", "ifft", "rfft", "irfft", "fftn", "rfftn", "hfft"):
        with pytest.raises(tw.DTypeError, match=rf"^{name}: .*{dtype}.*float32"):
            getattr(tw.fft, name)(x)
    for name in LINALG:
        with pytest.raises(tw.DTypeError, match=rf"^{name}: .*{dtype}.*float32"):
            getattr(tw.linalg, name)(x)
    with pytest.raises(tw.DTypeError, match=rf"^solve: .*{dtype}.*float32"):
        tw.linalg.solve(x, x)
    for name in ("bitwise_and", "bitwise_left_shift"):
        with pytest.raises(tw.DTypeError, match=name):
            getattr(tw, name)(x, x)
    with pytest.raises(tw.DTypeError, match="indices"):
        tw.take(x, x[0], axis=0)


# --- interchange


@half
def test_numbers_and_text(dtype):
    x = tw.asarray([[1.5, -2.0], [math.inf, 0.1]], dtype=dtype)
    tenth = float(rounded(0.1, dtype))
    assert x.tolist() == [[1.5, -2.0], [math.inf, tenth]]
    assert x[1, 1].item() == float(x[1, 1]) == tenth
    assert int(x[0, 0]) == 1 and bool(x[0, 0])
    assert repr(tw.asarray([1.0, 2.0], dtype=dtype)) == f"tensor([1., 2.], dtype={dtype})"
    assert f"{x[0, 0]:.2f}" == "1.50"
    assert x.itemsize == 2 and x.nbytes == 8


@half
@views
def test_pickle_and_copy(dtype, view):
    x, _ = pair(dtype, view)
    for again in (
        *(pickle.loads(pickle.dumps(x, protocol)) for protocol in range(2, 6)),
        copy.copy(x),
        copy.deepcopy(x),
    ):
        assert again.dtype == dtype
        assert again.shape == x.shape
        np.testing.assert_array_equal(value_of(again), value_of(x))


@views
def test_float16_with_numpy(view):
    x, wide = pair("float16", view)
    array = wide.numpy().astype("float16")
    for again in (x.numpy(), np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x))):
        assert again.dtype == np.float16 and again.shape == x.shape
        np.testing.assert_array_equal(again, array)
    assert memoryview(x).format == "e"
    for again in (tw.asarray(array), tw.from_dlpack(array.copy()), tw.asarray(array.astype(">f2"))):
        check_half(again, array, "float16")
    check_half(tw.ones(3, dtype="float16") * np.full(3, 2, "float16"), np.full(3, 2), "float16")
    check_half(tw.asarray(np.float16(1.5)), np.array(1.5), "float16")


def test_numpy_shares_the_bytes_of_halves():
    x = tw.asarray([1.0, 2.0], dtype="float16")
    assert x.numpy().__array_interface__["data"] == np.asarray(x).__array_interface__["data"]
    with pytest.raises(ValueError):
        x.numpy()[0] = 1


@views
def test_bfloat16_with_ml_dtypes(view):
    ml_dtypes = pytest.importorskip(
        "ml_dtypes", reason="ml_dtypes is not installed: tools/requirements.txt lists it"
    )
    x, wide = pair("bfloat16", view)
    array = wide.numpy().astype(ml_dtypes.bfloat16)
    for again in (x.numpy(), np.asarray(x), np.array(x)):
        assert again.dtype == ml_dtypes.bfloat16 and again.shape == x.shape
        np.testing.assert_array_equal(again.astype("float32"), array.astype("float32"))
    check_half(tw.asarray(array), wide.numpy(), "bfloat16")
    check_half(tw.asarray([array, array]), np.stack([wide.numpy()] * 2), "bfloat16")
    check_half(tw.ones((), dtype="bfloat16") * array, wide.numpy(), "bfloat16")
    if x.size:
        assert x.numpy().__array_interface__["data"] == x.numpy().__array_interface__["data"]
        assert not x.numpy().flags.writeable


def test_bfloat16_scalars_and_dtypes_of_ml_dtypes():
    ml_dtypes = pytest.importorskip(
        "ml_dtypes", reason="ml_dtypes is not installed: tools/requirements.txt lists it"
    )
    assert tw.dtype(ml_dtypes.bfloat16) is tw.dtype(np.dtype(ml_dtypes.bfloat16)) is tw.bfloat16
    assert tw.bfloat16 == ml_dtypes.bfloat16 and np.dtype(tw.bfloat16) == ml_dtypes.bfloat16
    assert tw.asarray(ml_dtypes.bfloat16(1.5)).dtype == "bfloat16"
    assert tw.asarray(ml_dtypes.bfloat16(1.5)).item() == 1.5
    with pytest.raises(tw.DTypeError):
        tw.asarray(np.ones(2, ml_dtypes.float8_e5m2))


def test_bfloat16_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    for shape in ((2,), (0,)):
        with pytest.raises(tw.DTypeError, match="install ml_dtypes, or cast"):
            tw.ones(shape, dtype="bfloat16").numpy()
    assert tw.ones(2, dtype="bfloat16").tolist() == [1, 1]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(tw.ones(2, dtype="bfloat16"))


@half
@pytest.mark.parametrize(
    "view", [view for view in VIEWS if view != "reversed"]
)  # torch has no negative strides
def test_dlpack_with_torch(dtype, view):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, wide = pair(dtype, view)
    theirs = torch.from_dlpack(x)
    assert theirs.dtype == getattr(torch, dtype)
    np.testing.assert_array_equal(theirs.to(torch.float32).numpy(), wide.numpy())
    check_half(tw.from_dlpack(theirs), wide.numpy(), dtype)
    check_half(tw.from_dlpack(torch.tensor(wide.numpy()).to(getattr(torch, dtype))), wide.numpy(), dtype)


@half
@views
def test_dlpack_with_itself(dtype, view):
    x, wide = pair(dtype, view)
    check_half(tw.from_dlpack(x), wide.numpy(), dtype)


# --- the same bits, always


def some_work(dtype: str) -> list[np.ndarray]:
    x = tw.normal((700, 900), dtype=dtype, generator=tw.Generator(1))
    y = tw.uniform((900, 300), dtype=dtype, generator=tw.Generator(2))
    results = [
        x @ y,
        tw.softmax(x),
        tw.sum(x, axis=0),
        tw.var(x.T, axis=1),
        tw.cumulative_sum(x, axis=1),
        x.T * 3 + x.T,
        tw.sort(x),
        tw.where(x > 0, x, 1),
        tw.exp(x[::-1, ::2]),
        tw.layer_norm(x, 900),
        tw.astype(x, "bfloat16" if dtype == "float16" else "float16"),
    ]
    return [bits_of(each) for each in results]


@half
def test_the_same_bits_for_any_number_of_threads(dtype):
    with tw.Engine(mode="sync", num_threads=1):
        expected = some_work(dtype)
    for threads in (1, 2, 8):
        with tw.Engine(num_threads=threads):
            for found, bits in zip(some_work(dtype), expected, strict=True):
                np.testing.assert_array_equal(found, bits)


def test_an_error_in_a_kernel_fails_the_result():
    x = tw.ones(3, dtype="float16")
    failed = tw.take(x, tw.asarray([5])) + 1
    with pytest.raises(IndexError, match="take"):
        failed.numpy()

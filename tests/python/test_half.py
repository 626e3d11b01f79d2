# test_half.py: float16 and bfloat16: stored in 16 bits, computed in float32, rounded once.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from halves import (
    FORMATS,
    bits_of,
    check_against_float32,
    check_half,
    from_bits,
    half,
    numbers,
    pair,
    rounded,
    value_of,
    views,
)

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

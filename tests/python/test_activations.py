# test_activations.py: activation functions against their formulas in float64, at infinities and in every way
# to drive an engine.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import FLOATS, INTEGERS, SHAPES, check, layouts, samples

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}


def np_sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def np_gelu(x):
    return np.vectorize(lambda v: v * math.erfc(-v / math.sqrt(2)) / 2, otypes=[x.dtype])(x)


def np_gelu_tanh(x):
    return x * np_sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def np_shifted(x, axis):
    return x - np.max(x, axis=axis, keepdims=True)


def np_softmax(x, axis=-1):
    powers = np.exp(np_shifted(x, axis))
    return powers / powers.sum(axis=axis, keepdims=True)


def np_log_softmax(x, axis=-1):
    shifted = np_shifted(x, axis)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


ELEMENTWISE = {
    "relu": (tw.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (tw.leaky_relu, lambda x: np.where(x >= 0, x, 0.01 * x)),
    "leaky_relu of slope 0.5": (lambda x: tw.leaky_relu(x, 0.5), lambda x: np.where(x >= 0, x, 0.5 * x)),
    "sigmoid": (tw.sigmoid, np_sigmoid),
    "silu": (tw.silu, lambda x: x * np_sigmoid(x)),
    "softplus": (tw.softplus, lambda x: np.logaddexp(x, 0)),
    "softplus of beta 3": (lambda x: tw.softplus(x, 3), lambda x: np.logaddexp(3 * x, 0) / 3),
    "gelu": (tw.gelu, np_gelu),
    "gelu of tanh": (lambda x: tw.gelu(x, "tanh"), np_gelu_tanh),
}
ALONG_AN_AXIS = {"softmax": (tw.softmax, np_softmax), "log_softmax": (tw.log_softmax, np_log_softmax)}


def finite(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.nan_to_num(samples(dtype, shape), nan=2.5, posinf=7, neginf=-7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_against_formulas(name, dtype):
    function, reference = ELEMENTWISE[name]
    for shape in SHAPES:
        for _, tensor, array in layouts(finite(dtype, shape)):
            expected = reference(array.astype("float64")).astype(dtype)
            # An error of one rounding in x is one of x**2 roundings in exp(-x**2).
            check(function(tensor), expected, rtol=400 * ROUNDING[dtype], atol=1e-300)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_values_far_from_zero(name, dtype):
    function, reference = ELEMENTWISE[name]
    array = np.array([-1e30, -100, -30, -15, -9, -1e-3, -1e-30, 0, 1e-30, 1e-3, 9, 15, 30, 100, 1e30], dtype)
    with np.errstate(over="ignore"):
        expected = reference(array.astype("float64")).astype(dtype)
    smallest = np.finfo(dtype).smallest_normal
    check(function(tw.asarray(array)), expected, rtol=6000 * ROUNDING[dtype], atol=float(smallest))


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_nans(dtype):
    x = tw.asarray(np.array([-np.inf, np.inf, np.nan], dtype))
    expected = {
        "relu": [0, np.inf, np.nan],
        "leaky_relu": [-np.inf, np.inf, np.nan],
        "sigmoid": [0, 1, np.nan],
        "silu": [0, np.inf, np.nan],
        "softplus": [0, np.inf, np.nan],
        "gelu": [0, np.inf, np.nan],
        "gelu of tanh": [0, np.inf, np.nan],
    }
    for name, values in expected.items():
        check(ELEMENTWISE[name][0](x), np.array(values, dtype))


def test_gelu_keeps_the_digits_of_small_results():
    for dtype in FLOATS:
        x = np.linspace(-12, 12, 4001).astype(dtype)
        expected = np_gelu(x.astype("float64")).astype(dtype)
        smallest = float(np.finfo(dtype).smallest_normal)
        check(tw.gelu(tw.asarray(x)), expected, rtol=144 * 5 * ROUNDING[dtype], atol=smallest)
        near = np.abs(x) < 3
        check(tw.gelu(tw.asarray(x[near])), expected[near], rtol=9 * 5 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_integers_are_computed_as_float64(dtype):
    array = np.array([0, 1, 3]).astype(dtype)
    for name, (function, reference) in {**ELEMENTWISE, **ALONG_AN_AXIS}.items():
        if name != "relu":
            check(function(tw.asarray(array)), reference(array.astype("float64")), rtol=1e-14)
    check(tw.logsumexp(tw.asarray(array)), np.log(np.exp(array.astype("float64")).sum()), rtol=1e-14)
    if dtype != "bool":
        check(tw.relu(tw.asarray(array)), array)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALONG_AN_AXIS)
def test_softmax_against_formulas(name, dtype):
    function, reference = ALONG_AN_AXIS[name]
    for shape in [(1,), (7,), (3, 4), (2, 3, 4), (33, 65)]:
        for _, tensor, array in layouts(finite(dtype, shape)):
            for axis in [*range(-array.ndim, array.ndim), None, tuple(range(array.ndim))[:2]]:
                expected = reference(array.astype("float64"), axis)
                close = {"rtol": 50 * ROUNDING[dtype], "atol": 4 * ROUNDING[dtype]}
                check(function(tensor, axis=axis), expected.astype(dtype), **close)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALONG_AN_AXIS)
def test_softmax_of_rows_of_any_length(name, dtype):
    function, reference = ALONG_AN_AXIS[name]
    rng = np.random.default_rng(1)
    for length in (*range(1, 70), 127, 128, 129, 4095, 4096, 4097, 32768, 32769, 100_001):
        array = (3 * rng.standard_normal((2, length))).astype(dtype)
        expected = reference(array.astype("float64")).astype(dtype)
        close = {"rtol": 10 * ROUNDING[dtype], "atol": 1e-300 if name == "softmax" else 4 * ROUNDING[dtype]}
        check(function(tw.asarray(array)), expected, **close)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALONG_AN_AXIS)
def test_softmax_along_inner_axes(name, dtype):
    function, reference = ALONG_AN_AXIS[name]
    for shape in [(2, 5, 15), (2, 5, 16), (3, 4, 50), (33_000, 3), (5000, 17), (2, 3, 4, 5)]:
        array = (np.random.default_rng(2).standard_normal(shape)).astype(dtype)
        for axis in (0, 1, (0, 1), (1, 0), (-1, 0), ()):
            expected = reference(array.astype("float64"), axis).astype(dtype)
            close = {"rtol": 10 * ROUNDING[dtype], "atol": 4 * ROUNDING[dtype]}
            check(function(tw.asarray(array), axis=axis), expected, **close)


def test_softmax_of_numbers_that_hardly_count():
    x = tw.asarray(np.array([0, -90, -100, -103, -105, -1e30, -math.inf], "float32"))
    powers = np.exp(x.numpy().astype("float64"))
    check(tw.softmax(x), (powers / powers.sum()).astype("float32"), atol=2e-45)


def test_softmax_of_a_scalar():
    assert tw.softmax(tw.asarray(3.0), axis=None).item() == 1
    assert tw.log_softmax(tw.asarray(3.0), axis=()).item() == 0


def test_a_nan_stays_in_its_row():
    for length in (5, 40, 5000, 40_000):
        array = np.ones((3, length), "float32")
        array[1, length // 2] = np.nan
        for function in (tw.softmax, tw.log_softmax):
            for result in (function(tw.asarray(array)), function(tw.asarray(array.T.copy()), axis=0).T):
                assert np.isnan(result.numpy()).all(axis=1).tolist() == [False, True, False]
                assert np.isnan(result.numpy()).any(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_softmax_of_nothing_is_nothing(shape):
    x = tw.zeros(shape)
    for function in (tw.softmax, tw.log_softmax):
        y = function(x)
        check(y, np.zeros(shape, "float32"))
        y += 1
        assert y is not x


def test_softmax_does_not_overflow():
    x = tw.asarray([1000.0, 0.0, -1000.0, -math.inf])
    check(tw.softmax(x), np.array([1, 0, 0, 0], "float32"))
    check(tw.log_softmax(x), np.array([0, -1000, -2000, -math.inf], "float32"))
    for values in ([-math.inf, -math.inf], [math.inf, 0.0], [math.nan, 0.0]):
        check(tw.softmax(tw.asarray(values)), np.array([np.nan, np.nan], "float32"))
        check(tw.log_softmax(tw.asarray(values)), np.array([np.nan, np.nan], "float32"))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexp_against_formula(dtype, keepdims):
    for shape in [(), (1,), (7,), (3, 4), (2, 3, 4), (33, 65), (0,), (2, 0, 3)]:
        for _, tensor, array in layouts(finite(dtype, shape)):
            axes = [None, (), *range(-array.ndim, array.ndim), tuple(range(array.ndim))[1:]]
            for axis in axes:
                sums = np.exp(array.astype("float64")).sum(axis=axis, keepdims=keepdims)
                expected = np.log(sums).astype(dtype)
                result = tw.logsumexp(tensor, axis=axis, keepdims=keepdims)
                check(result, expected, rtol=20 * ROUNDING[dtype], atol=20 * ROUNDING[dtype])


def test_logsumexp_at_infinities():
    inf, nan = math.inf, math.nan
    rows = [[-inf, -inf], [inf, -inf], [inf, 3.0], [nan, inf], [nan, -inf], [5.0, -inf], [1e30, -1e30]]
    expected = np.array([-inf, inf, inf, nan, nan, 5, 1e30], "float32")
    check(tw.logsumexp(tw.asarray(rows), axis=1), expected)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.relu(tw.asarray([True])), tw.DTypeError, "^relu: bool"),
        (lambda: tw.relu(3.0), tw.DTypeError, "^relu: expected a Tensor, not float"),
        (lambda: tw.sigmoid(tw.ones(2, dtype="complex64")), tw.DTypeError, "^sigmoid: complex64"),
        (lambda: tw.leaky_relu(tw.ones(2), math.inf), tw.ValueError, "negative_slope is inf"),
        (lambda: tw.leaky_relu(tw.ones(2), "1"), tw.DTypeError, "negative_slope must be a number, not str"),
        (lambda: tw.softplus(tw.ones(2), 0), tw.ValueError, "^softplus: beta is 0; it must be above 0"),
        (lambda: tw.gelu(tw.ones(2), "erf"), tw.ValueError, "^gelu: approximate must be .* not 'erf'"),
        (lambda: tw.softmax(tw.ones(2), axis=1), tw.IndexError, "^softmax: axis 1 is out of bounds"),
        (lambda: tw.softmax(tw.asarray(1.0)), tw.IndexError, "^softmax: axis -1 .* 0-d tensor"),
        (lambda: tw.softmax(tw.ones(2), axis="x"), tw.DTypeError, "^softmax: axis must be an int, not str"),
        (lambda: tw.log_softmax(tw.ones(2), axis=2.0), tw.DTypeError, "axis must be an int, not float"),
        (lambda: tw.logsumexp(tw.ones((2, 3)), axis=(0, -2)), tw.ShapeError, "name an axis twice"),
        (lambda: tw.logsumexp(tw.ones(2, dtype="complex128")), tw.DTypeError, "^logsumexp: complex128"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_nothing_waits():
    x = tw.randn(500, 40)
    with tw.on_sync("error"):
        for function, _ in (*ELEMENTWISE.values(), *ALONG_AN_AXIS.values()):
            function(x)
        tw.logsumexp(x, axis=0)


def program() -> list[bytes]:
    x = tw.randn(300, 401, generator=tw.Generator(3))
    results = [function(x) for function, _ in (*ELEMENTWISE.values(), *ALONG_AN_AXIS.values())]
    long = tw.randn(2, 60_000, generator=tw.Generator(4))
    results += [
        f(y, axis) for f in (tw.softmax, tw.log_softmax) for y, axis in ((x, 0), (long, 1), (long.T, 0))
    ]
    return [result.numpy().tobytes() for result in (*results, tw.logsumexp(x, axis=0))]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

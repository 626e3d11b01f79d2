# test_convolution.py: convolutions and pooling against explicit loops over their windows, and against torch.
from __future__ import annotations

import itertools

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, FLOATS, INTEGERS, check

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}
CONV = {1: tw.conv1d, 2: tw.conv2d}
MAX_POOL = {1: tw.max_pool1d, 2: tw.max_pool2d}
AVG_POOL = {1: tw.avg_pool1d, 2: tw.avg_pool2d}


def normals(shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    if "int" in dtype:
        return rng.integers(0, 5, shape).astype(dtype)
    values = rng.standard_normal(shape).astype(dtype)
    return values + 1j * rng.standard_normal(shape).astype(dtype) if dtype in COMPLEX else values


def each(value, rank):
    return (value,) * rank if isinstance(value, int) else tuple(value)


def np_conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Output element by output element."""
    rank = weight.ndim - 2
    stride, dilation = each(stride, rank), each(dilation, rank)
    kernel = weight.shape[2:]
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        ends = [(total // 2, total - total // 2) for total in totals]
    else:
        ends = [(p, p) for p in each(0 if padding == "valid" else padding, rank)]
    padded = np.pad(x, [(0, 0), (0, 0), *ends])
    count = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    ]
    outputs, inputs = weight.shape[:2]
    result = np.zeros((x.shape[0], outputs, *count), np.result_type(x, weight))
    for place in itertools.product(*map(range, count)):
        window = tuple(
            slice(i * s, i * s + d * (k - 1) + 1, d)
            for i, s, d, k in zip(place, stride, dilation, kernel, strict=True)
        )
        for out in range(outputs):
            first = out // (outputs // groups) * inputs
            seen = padded[(slice(None), slice(first, first + inputs), *window)]
            result[(slice(None), out, *place)] = (seen * weight[out]).sum(axis=tuple(range(1, x.ndim)))
    return result if bias is None else result + bias.reshape(-1, *(1,) * rank)


CONV_CASES = [
    ((2, 3, 8), (4, 3, 3), {}),
    ((2, 3, 8), (4, 3, 3), {"stride": 2, "padding": 2}),
    ((2, 4, 9), (6, 2, 2), {"groups": 2, "dilation": 3}),
    ((1, 4, 9), (4, 1, 4), {"groups": 4, "padding": "same"}),
    ((2, 3, 5), (1, 3, 5), {"padding": "valid"}),
    ((2, 3, 5), (2, 3, 1), {"stride": (2,)}),
    ((0, 3, 5), (2, 3, 2), {}),
    ((2, 0, 5), (2, 0, 2), {}),
    ((2, 3, 0), (2, 3, 2), {"padding": 1}),
    ((2, 3, 6, 7), (4, 3, 3, 2), {}),
    ((2, 3, 6, 7), (4, 3, 1, 1), {}),
    ((2, 3, 6, 7), (4, 3, 3, 3), {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2)}),
    ((2, 4, 6, 7), (6, 2, 3, 3), {"groups": 2, "stride": 3, "padding": 1}),
    ((2, 4, 6, 7), (4, 1, 2, 3), {"groups": 4, "padding": "same", "dilation": (2, 1)}),
    ((1, 1, 4, 4), (1, 1, 4, 4), {}),
]


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("case", CONV_CASES, ids=str)
def test_convolution_against_loops(case, dtype, with_bias):
    shape, kernel, options = case
    x, weight = normals(shape, dtype), normals(kernel, dtype, 1)
    bias = normals(kernel[:1], dtype, 2) if with_bias else None
    expected = np_conv(x, weight, bias, **options)
    tolerance = {"rtol": 100 * ROUNDING[dtype], "atol": 50 * ROUNDING[dtype]} if dtype in ROUNDING else {}
    given = None if bias is None else tw.asarray(bias)
    rank = len(kernel) - 2
    result = CONV[rank](tw.asarray(x), tw.asarray(weight), given, **options)
    check(result, expected, **tolerance)
    if shape[0] > 0:
        check(CONV[rank](tw.asarray(x)[0], tw.asarray(weight), given, **options), expected[0], **tolerance)


BLOCK_CASES = [  # of several blocks, or of more outputs or terms than are summed together
    ((1, 2, 2500), (3, 2, 3), {}),
    ((2, 2, 2501), (2, 2, 5), {"stride": 2, "padding": 4, "dilation": 3}),
    ((2, 3, 70, 65), (2, 3, 3, 3), {"padding": 1}),
    ((1, 2, 5, 1100), (2, 2, 3, 2), {"padding": (1, 0)}),
    ((1, 40, 9, 8), (19, 40, 2, 3), {"padding": 1}),
    ((1, 600, 6, 6), (9, 600, 2, 2), {"stride": 2}),
    ((2, 3, 20, 21), (5, 3, 2, 2), {"stride": (3, 4)}),
    ((2, 3, 20, 21), (5, 3, 3, 4), {"stride": (3, 2), "dilation": (2, 3), "padding": (4, 5)}),
    ((1, 64, 7, 7), (70, 32, 1, 1), {"groups": 2}),
    ((1, 2, 9, 9), (600, 2, 3, 3), {"padding": 1}),
]


@pytest.mark.parametrize("dtype", ["int16", *FLOATS, "complex64"])
@pytest.mark.parametrize("case", BLOCK_CASES, ids=str)
def test_large_convolution_against_loops(case, dtype):
    shape, kernel, options = case
    x, weight = normals(shape, dtype), normals(kernel, dtype, 1)
    bias = normals(kernel[:1], dtype, 2)
    expected = np_conv(x, weight, bias, **options)
    tolerance = {"rtol": 200 * ROUNDING[dtype], "atol": 300 * ROUNDING[dtype]} if dtype in ROUNDING else {}
    function = CONV[len(kernel) - 2]
    for tensor in (tw.asarray(x), tw.asarray(np.repeat(x, 2, -1))[..., ::2], tw.asarray(x.T.copy()).T):
        check(function(tensor, tw.asarray(weight), tw.asarray(bias), **options), expected, **tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("outputs", range(1, 18))
def test_convolution_to_any_number_of_channels(outputs, dtype):
    x, weight = normals((2, 3, 9, 8), dtype), normals((outputs, 3, 2, 3), dtype, 1)
    tolerance = {"rtol": 100 * ROUNDING[dtype], "atol": 50 * ROUNDING[dtype]}
    check(tw.conv2d(tw.asarray(x), tw.asarray(weight)), np_conv(x, weight), **tolerance)


def test_convolution_of_bool_is_any_of_and():
    x, weight = normals((2, 3, 9)) > 0.8, normals((4, 3, 2), seed=1) > 0
    expected = np_conv(x.astype("int64"), weight.astype("int64")) > 0
    check(tw.conv1d(tw.asarray(x), tw.asarray(weight)), expected)


def test_padding_takes_part():
    result = tw.conv1d(tw.ones((1, 1, 3)), tw.asarray([[[np.inf, 1.0]]]), padding=1).numpy()
    np.testing.assert_array_equal(result, np.array([[[np.nan, np.inf, np.inf, np.inf]]], "float32"))


def test_convolution_of_halves_rounds_once():
    x, weight = normals((1, 8, 12, 12), "float32"), normals((3, 8, 3, 3), "float32", 1)
    for dtype in ("float16", "bfloat16"):
        half, kernel = tw.asarray(x).astype(dtype), tw.asarray(weight).astype(dtype)
        bias = tw.asarray(normals((3,), "float32", 2)).astype(dtype)
        result = tw.conv2d(half, kernel, bias, padding="same")
        wide = tw.conv2d(*(each.astype("float32") for each in (half, kernel, bias)), padding="same")
        assert result.dtype == dtype
        check(result.astype("float32"), wide.astype(dtype).astype("float32").numpy())


def test_bias_is_promoted():
    x, weight = normals((2, 5, 8), "float32"), normals((4, 5, 3), "float32")
    bias = normals((4,), "float64")
    result = tw.conv1d(tw.asarray(x), tw.asarray(weight), tw.asarray(bias))
    check(result, np_conv(x.astype("float64"), weight.astype("float64"), bias), rtol=1e-12, atol=1e-12)


def test_convolution_promotes_and_takes_views():
    x, weight = normals((2, 5, 8), "float32"), normals((4, 5, 3), "float64")
    result = tw.conv1d(tw.asarray(np.ascontiguousarray(x.swapaxes(1, 2))).mT, tw.asarray(weight))
    check(result, np_conv(x.astype("float64"), weight), rtol=1e-12, atol=1e-12)


def test_nans_stay_in_the_windows_that_see_them():
    x = np.ones((1, 1, 6), "float32")
    x[..., 1] = np.nan
    result = tw.conv1d(tw.asarray(x), tw.ones((1, 1, 2))).numpy()
    assert np.isnan(result[0, 0]).tolist() == [True, True, False, False, False]
    result = tw.max_pool1d(tw.asarray(x), 2).numpy()
    assert np.isnan(result[0, 0]).tolist() == [True, False, False]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CONV_CASES, ids=str)
def test_convolution_against_torch(case, dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed: the explicit loops remain")
    shape, kernel, options = case
    if 0 in shape[1:]:
        pytest.skip("torch refuses convolutions of axes of size 0")
    x, weight = normals(shape, dtype), normals(kernel, dtype, 1)
    function = getattr(torch.nn.functional, f"conv{len(kernel) - 2}d")
    expected = function(torch.tensor(x), torch.tensor(weight), **options).numpy()
    result = CONV[len(kernel) - 2](tw.asarray(x), tw.asarray(weight), **options)
    check(result, expected, rtol=100 * ROUNDING[dtype], atol=50 * ROUNDING[dtype])


def pooled(x, rank, kernel, stride, padding, dilation, ceil_mode, reduce):
    """Window by window; reduce takes the elements of x in it and how many places of it are padding."""
    kernel, padding, dilation = each(kernel, rank), each(padding, rank), each(dilation, rank)
    stride = kernel if stride is None else each(stride, rank)
    count = []
    for size, k, s, p, d in zip(x.shape[-rank:], kernel, stride, padding, dilation, strict=True):
        starts = []
        for start in itertools.count(-p, s):
            fits = start + d * (k - 1) < size + p
            if not fits and not (
                ceil_mode and start < size and starts and starts[-1] + d * (k - 1) + 1 < size + p
            ):
                break
            starts.append(start)
        count.append(starts)
    result = np.zeros((*x.shape[:-rank], *(len(starts) for starts in count)), x.dtype)
    for place in itertools.product(*(range(len(starts)) for starts in count)):
        inside, padded = [], 1
        for axis, i in enumerate(place):
            size, p = x.shape[axis - rank], padding[axis]
            places = [count[axis][i] + j * dilation[axis] for j in range(kernel[axis])]
            inside.append([at for at in places if 0 <= at < size])
            padded *= sum(-p <= at < size + p for at in places)
        result[(..., *place)] = reduce(x[np.ix_(*map(range, x.shape[:-rank]), *inside)], rank, padded)
    return result


POOL_CASES = [
    ((2, 3, 8), {"kernel_size": 2}),
    ((2, 3, 9), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((2, 3, 9), {"kernel_size": 2, "ceil_mode": True}),
    ((3, 10), {"kernel_size": 3, "stride": 4, "padding": 1, "ceil_mode": True}),
    ((2, 3, 8), {"kernel_size": (2,), "stride": 5, "padding": 1, "ceil_mode": True}),
    ((1, 1, 1), {"kernel_size": 1}),
    ((0, 3, 8), {"kernel_size": 2}),
    ((2, 3, 6, 7), {"kernel_size": 2}),
    ((2, 3, 6, 7), {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)}),
    ((3, 7, 7), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((2, 3, 6, 8), {"kernel_size": 3, "stride": (2, 3), "padding": (0, 1), "ceil_mode": True}),
]


def rank_of(options: dict, shape: tuple[int, ...]) -> int:
    return 2 if len(shape) == 4 or shape == (3, 7, 7) else 1


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("case", POOL_CASES, ids=str)
def test_max_pool_against_loops(case, dtype, dilation):
    shape, options = case
    rank = rank_of(options, shape)
    array = (normals(shape) * 4).astype(dtype)
    complete = {"stride": None, "padding": 0, "ceil_mode": False, **options}
    kernel = complete.pop("kernel_size")

    def largest(window, rank, padded):
        return window.max(axis=tuple(range(-rank, 0)))

    expected = pooled(array, rank, kernel, dilation=dilation, reduce=largest, **complete)
    check(MAX_POOL[rank](tw.asarray(array), dilation=dilation, **options), expected)


@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", POOL_CASES, ids=str)
def test_avg_pool_against_loops(case, dtype, count_include_pad):
    shape, options = case
    rank = rank_of(options, shape)
    array = normals(shape, dtype)
    complete = {"stride": None, "padding": 0, "ceil_mode": False, **options}
    kernel = complete.pop("kernel_size")

    def mean(window, rank, padded):
        places = np.prod(window.shape[-rank:])
        return window.sum(axis=tuple(range(-rank, 0))) / (padded if count_include_pad else places)

    expected = pooled(array.astype("float64"), rank, kernel, dilation=1, reduce=mean, **complete)
    result = AVG_POOL[rank](tw.asarray(array), count_include_pad=count_include_pad, **options)
    check(result, expected.astype(dtype), rtol=20 * ROUNDING[dtype], atol=4 * ROUNDING[dtype])


@pytest.mark.parametrize("case", POOL_CASES, ids=str)
def test_pooling_against_torch(case):
    torch = pytest.importorskip("torch", reason="torch is not installed: the explicit loops remain")
    shape, options = case
    if 0 in shape:
        pytest.skip("torch refuses some pools of no example")
    rank = rank_of(options, shape)
    array = normals(shape, "float32")
    functional = torch.nn.functional
    expected = getattr(functional, f"max_pool{rank}d")(torch.tensor(array), **options)
    check(MAX_POOL[rank](tw.asarray(array), **options), expected.numpy())
    for counted in (False, True):
        options = {**options, "count_include_pad": counted}
        expected = getattr(functional, f"avg_pool{rank}d")(torch.tensor(array), **options)
        check(AVG_POOL[rank](tw.asarray(array), **options), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_avg_pool_of_integers_is_float64():
    check(tw.avg_pool1d(tw.asarray([[1, 2, 3, 5]]), 2), np.array([[1.5, 4]]))


X1, X2 = tw.ones((2, 4, 6)), tw.ones((2, 4, 6, 5))
W1, W2 = tw.ones((6, 4, 3)), tw.ones((6, 4, 3, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.conv1d(X2, W1), tw.ShapeError, r"^conv1d: x must be \(N, C, L\) or \(C, L\)"),
        (lambda: tw.conv2d(X2, W1), tw.ShapeError, "^conv2d: weight must be"),
        (lambda: tw.conv1d(X1, tw.ones((6, 4, 0))), tw.ShapeError, "weight must be"),
        (lambda: tw.conv1d(X1, tw.ones((6, 3, 3))), tw.ShapeError, "needs 3 channels, x .* has 4"),
        (lambda: tw.conv1d(X1, tw.ones((6, 2, 3)), groups=4), tw.ValueError, "groups is 4; it must divide"),
        (lambda: tw.conv1d(X1, W1, groups=0), tw.ValueError, "groups is 0"),
        (lambda: tw.conv1d(X1, W1, groups=1.0), tw.DTypeError, "groups must be an int"),
        (lambda: tw.conv1d(X1, W1, tw.ones(4)), tw.ShapeError, r"bias has shape \(4,\); it must be \(6,\)"),
        (lambda: tw.conv1d(X1, W1, stride=0), tw.ValueError, "stride is 0; it must be at least 1"),
        (lambda: tw.conv1d(X1, W1, dilation=3), tw.ShapeError, "window of 7 does not fit .* size 6"),
        (lambda: tw.conv2d(X2, W2, stride=(1, 2, 3)), tw.ValueError, "must be an int or 2 of them"),
        (lambda: tw.conv2d(X2, W2, padding=-1), tw.ValueError, "padding is -1; it must be at least 0"),
        (lambda: tw.conv2d(X2, W2, padding="full"), tw.ValueError, "'valid' or 'same', not 'full'"),
        (lambda: tw.conv2d(X2, W2, padding="same", stride=2), tw.ValueError, "'same' needs stride 1"),
        (lambda: tw.conv2d(X2, W2, stride=1.5), tw.DTypeError, "stride must be an int or a tuple of ints"),
        (lambda: tw.conv1d(X1, 1.0), tw.DTypeError, "expected a Tensor"),
        (lambda: tw.max_pool1d(tw.ones(3), 2), tw.ShapeError, "^max_pool1d: x must be"),
        (lambda: tw.max_pool2d(X2, (2, 7)), tw.ShapeError, "^max_pool2d: a window of 7 does not fit"),
        (lambda: tw.max_pool1d(X1, 3, padding=2), tw.ValueError, "padding 2 is more than half"),
        (lambda: tw.max_pool1d(X1, 0), tw.ValueError, "kernel_size is 0"),
        (lambda: tw.max_pool1d(X1.astype("complex64"), 2), tw.DTypeError, "^max_pool1d: complex64"),
        (lambda: tw.avg_pool2d(X2, (1, 2, 3)), tw.ValueError, "^avg_pool2d: kernel_size"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_nothing_waits():
    x, weight = tw.randn(2, 3, 40, 50), tw.randn(8, 3, 5, 5)
    with tw.on_sync("error"):
        y = tw.max_pool2d(tw.conv2d(x, weight, padding="same"), 2, ceil_mode=True)
        tw.avg_pool2d(y, 3, padding=1, count_include_pad=False)


def program() -> list[bytes]:
    generator = tw.Generator(3)
    x, weight = tw.randn(3, 8, 30, 41, generator=generator), tw.randn(12, 4, 3, 3, generator=generator)
    y = tw.conv2d(x, weight, groups=2, padding="same")
    line, kernel = tw.randn(2, 7, 5000, generator=generator), tw.randn(21, 7, 5, generator=generator)
    results = [
        y,
        tw.conv1d(line, kernel, stride=2, dilation=3),
        tw.max_pool2d(y, 2),
        tw.avg_pool2d(y, 3, padding=1, count_include_pad=False),
    ]
    return [result.numpy().tobytes() for result in results]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

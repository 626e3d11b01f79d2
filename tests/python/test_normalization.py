# test_normalization.py: layer_norm, rms_norm and batch_norm against explicit formulas in float64.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import FLOATS, check, layouts
from thalweg import _C

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}


def normals(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 2 + 1).astype(dtype)


def check_close(result: tw.Tensor, expected, dtype: str) -> None:
    check(result, np.asarray(expected, dtype), rtol=100 * ROUNDING[dtype], atol=100 * ROUNDING[dtype])


def parameters(shape, dtype: str, given: bool):
    if not given:
        return None, None, 1.0, 0.0
    weight, bias = normals(shape, dtype, 5), normals(shape, dtype, 6)
    return tw.asarray(weight), tw.asarray(bias), weight, bias


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(dtype, given):
    for shape, sizes in [((7,), 7), ((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((5, 33), [33]), ((0, 3), 3)]:
        for _, tensor, array in layouts(normals(shape, dtype)):
            wide = array.astype("float64")
            rank = 1 if isinstance(sizes, int) else len(sizes)
            axes = tuple(range(array.ndim - rank, array.ndim))
            weight, bias, w, b = parameters(array.shape[axes[0] :], dtype, given)
            centred = wide - wide.mean(axis=axes, keepdims=True)
            expected = centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + 1e-5) * w + b
            check_close(tw.layer_norm(tensor, sizes, weight, bias), expected, dtype)


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rms_norm(dtype, given, eps):
    for shape, sizes in [((7,), 7), ((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((5, 33), 33), ((0, 3), 3)]:
        for _, tensor, array in layouts(normals(shape, dtype)):
            wide = array.astype("float64")
            rank = 1 if isinstance(sizes, int) else len(sizes)
            axes = tuple(range(array.ndim - rank, array.ndim))
            weight, _, w, _ = parameters(array.shape[axes[0] :], dtype, given)
            added = np.finfo(dtype).eps if eps is None else eps
            expected = wide / np.sqrt((wide**2).mean(axis=axes, keepdims=True) + added) * w
            check_close(tw.rms_norm(tensor, sizes, weight, eps=eps), expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_of_any_length(dtype):
    for length in (*range(1, 70), 127, 128, 129, 4095, 4096, 4097, 32768, 32769, 100_001):
        array = normals((2, length), dtype)
        wide = array.astype("float64")
        weight, bias, w, b = parameters((length,), dtype, True)
        centred = wide - wide.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        x = tw.asarray(array)
        check_close(tw.layer_norm(x, length), scaled, dtype)
        check_close(tw.layer_norm(x, length, weight), scaled * w, dtype)
        check_close(tw.layer_norm(x, length, None, bias), scaled + b, dtype)
        check_close(tw.layer_norm(x, length, weight, bias), scaled * w + b, dtype)
        root = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
        check_close(tw.rms_norm(x, length, eps=1e-5), root, dtype)
        check_close(tw.rms_norm(x, length, weight, eps=1e-5), root * w, dtype)


def test_parameters_are_promoted():
    x, weight = tw.asarray(normals((3, 5), "float32")), tw.asarray(normals((5,)))
    for result in (
        tw.layer_norm(x, 5, weight),
        tw.layer_norm(x, 5, None, weight),
        tw.layer_norm(x, 5, weight[::2][[0, 1, 2, 1, 0]], weight.astype("float32")),
        tw.rms_norm(x, 5, weight),
    ):
        assert result.dtype == "float64"


def test_rms_norm_of_halves_has_the_eps_of_float32():
    x = tw.zeros((2, 4), dtype="float16") + tw.asarray(2.0**-12, dtype="float16")
    expected = 2.0**-12 / np.sqrt(2.0**-24 + 2.0**-23)
    assert abs(tw.rms_norm(x, 4)[0, 0].item() - expected) < 1e-3


def test_rows_of_equal_values_and_no_eps_are_nan():
    assert np.isnan(tw.layer_norm(tw.ones((2, 5)), 5, eps=0).numpy()).all()
    assert np.isnan(tw.rms_norm(tw.zeros((2, 5)), 5, eps=0).numpy()).all()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm(dtype, given, training):
    for shape in [(6, 3), (4, 3, 5), (2, 3, 4, 5)]:
        array = normals(shape, dtype)
        wide = array.astype("float64")
        axes = (0, *range(2, len(shape)))
        across = (-1,) + (1,) * (len(shape) - 2)
        weight, bias, w, b = parameters((3,), dtype, given)
        w, b = (np.reshape(each, across) if given else each for each in (w, b))
        mean, var = np.array([0.5, 1, -1], dtype), np.array([1, 2, 0.5], dtype)
        used_mean, used_var = mean, var
        next_mean, next_var = mean, var
        if training:
            used_mean, used_var = wide.mean(axis=axes), wide.var(axis=axes)
            next_mean = 0.7 * mean + 0.3 * used_mean
            next_var = 0.7 * var + 0.3 * wide.var(axis=axes, ddof=1)
        expected = (wide - used_mean.reshape(across)) / np.sqrt(used_var.reshape(across) + 1e-4) * w + b
        options = {"training": training, "momentum": 0.3, "eps": 1e-4}
        result = tw.batch_norm(tw.asarray(array), tw.asarray(mean), tw.asarray(var), weight, bias, **options)
        check_close(result.output, expected, dtype)
        check_close(result.running_mean, next_mean, dtype)
        check_close(result.running_var, next_var, dtype)


def test_batch_norm_without_statistics():
    x = tw.asarray([[1.0, 5.0], [3.0, 5.0]])
    output, mean, var = tw.batch_norm(x, training=True, eps=0.0)
    assert mean is None and var is None
    check(output, np.array([[-1, np.nan], [1, np.nan]], "float32"))


def test_the_statistics_given_stay_as_they_are():
    mean, var = tw.zeros(2), tw.ones(2)
    result = tw.batch_norm(tw.asarray([[1.0, 5.0], [3.0, 5.0]]), mean, var, training=True, momentum=1)
    assert (mean.tolist(), var.tolist()) == ([0, 0], [1, 1])
    assert (result.running_mean.tolist(), result.running_var.tolist()) == ([2, 5], [2, 0])


def test_integers_are_computed_as_float64():
    x = tw.asarray([[1, 2], [3, 5]])
    check(tw.layer_norm(x, 2, eps=0), np.array([[-1.0, 1], [-1, 1]]))
    assert tw.rms_norm(x, 2).dtype == "float64"
    assert tw.batch_norm(x, training=True).output.dtype == "float64"


def test_large_offsets_do_not_lose_the_variance():
    x = tw.asarray(np.arange(8, dtype="float32") + 1e6)
    expected = (np.arange(8) - 3.5) / np.sqrt(5.25)
    check(tw.layer_norm(x, 8, eps=0), expected.astype("float32"), rtol=1e-6)


def test_nan_stays_in_its_row():
    x = tw.asarray([[1.0, np.nan], [1.0, 3.0]])
    assert np.isnan(tw.layer_norm(x, 2).numpy()).tolist() == [[True, True], [False, False]]
    assert np.isnan(tw.rms_norm(x, 2).numpy()).tolist() == [[True, True], [False, False]]


X = tw.ones((2, 3))
_layer_norm = _C.op("layer_norm")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.layer_norm(X, 2), tw.ShapeError, r"normalized_shape \(2,\) must be the last sizes"),
        (lambda: tw.layer_norm(X, ()), tw.ShapeError, r"normalized_shape \(\)"),
        (lambda: tw.layer_norm(X, (1, 2, 3)), tw.ShapeError, r"normalized_shape \(1, 2, 3\)"),
        (
            lambda: tw.layer_norm(X, 3, tw.ones(2)),
            tw.ShapeError,
            r"weight has shape \(2,\); it must be \(3,\)",
        ),
        (lambda: tw.layer_norm(X, 3, eps=-1), tw.ValueError, "eps is -1; .* at least 0"),
        (lambda: tw.layer_norm(X.astype("complex64"), 3), tw.DTypeError, "^layer_norm: complex64"),
        (lambda: tw.rms_norm(X, 3, tw.ones((2, 3))), tw.ShapeError, "^rms_norm: weight has shape"),
        (
            lambda: _layer_norm(X, axes=3, eps=0.0),
            tw.ValueError,
            "axes is 3; it must be from 1 to 2",
        ),
        (lambda: _layer_norm(X, axes=1, eps=-1.0), tw.ValueError, "^layer_norm: eps is -1"),
        (lambda: _layer_norm(X, *(X[0],) * 3, axes=1, eps=0.0), tw.ValueError, "at most 3 inputs, not 4"),
        (lambda: _layer_norm(X, X[0], X, axes=1, eps=0.0), tw.ShapeError, "bias has shape"),
        (lambda: _layer_norm(X.astype("int8"), axes=1, eps=0.0), tw.DTypeError, "int8 is not floating"),
        (lambda: tw.rms_norm(X, "a"), tw.DTypeError, "^rms_norm: shape must be"),
        (lambda: tw.batch_norm(X), tw.ValueError, "must be given when training is False"),
        (lambda: tw.batch_norm(X, tw.ones(3), training=True), tw.ValueError, "given both or not at all"),
        (lambda: tw.batch_norm(X, tw.ones(2), tw.ones(2)), tw.ShapeError, "running_mean has shape"),
        (lambda: tw.batch_norm(X[:1], training=True), tw.ShapeError, r"shape \(1, 3\) has 1"),
        (lambda: tw.batch_norm(tw.ones(3), training=True), tw.ShapeError, r"\(N, C\)"),
        (lambda: tw.batch_norm(X, training=True, momentum=2), tw.ValueError, "momentum is 2"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def program() -> list[bytes]:
    x = tw.randn(30, 41, 50, generator=tw.Generator(3))
    statistics = tw.batch_norm(x, tw.zeros(41), tw.ones(41), training=True)
    long = tw.reshape(x, (1, -1))
    results = [tw.layer_norm(x, (41, 50)), tw.rms_norm(x, 50), *statistics]
    results += [tw.layer_norm(long, long.shape[1]), tw.rms_norm(long, long.shape[1])]
    return [result.numpy().tobytes() for result in results]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

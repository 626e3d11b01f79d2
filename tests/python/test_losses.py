# test_losses.py: losses against explicit loops, at the edges of their targets and in every way to drive an
# engine.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import FLOATS, INTEGERS, check
from thalweg import _C

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}
REDUCTIONS = ["mean", "sum", "none"]


def reduced(loss: np.ndarray, reduction: str, count: float | None = None) -> np.ndarray:
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else total / np.float64(loss.size if count is None else count)


def normals(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def check_close(result: tw.Tensor, expected, dtype: str) -> None:
    check(result, np.asarray(expected, dtype), rtol=100 * ROUNDING[dtype], atol=20 * ROUNDING[dtype])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_mse_loss(dtype, reduction):
    for shape in [(), (0,), (7,), (2, 3, 4)]:
        a, b = normals(shape, dtype), normals(shape, dtype, 1)
        expected = reduced((a.astype("float64") - b) ** 2, reduction)
        check_close(tw.mse_loss(tw.asarray(a), tw.asarray(b), reduction=reduction), expected, dtype)


def test_mse_loss_promotes():
    x, ints = tw.asarray([1.0, 2.0]), tw.asarray([3, 5])
    assert tw.mse_loss(x, tw.asarray([1.0, 2.0], dtype="float64")).dtype == "float64"
    check(tw.mse_loss(ints, tw.asarray([1, 1]), reduction="none"), np.array([4.0, 16.0]))


def log1pexp(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", ["none", "weight", "pos_weight", "both"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_cross_entropy(dtype, weights, reduction):
    x = normals((5, 3), dtype)
    t = np.random.default_rng(2).random((5, 3)).astype(dtype)
    weight = np.array([[0.5], [1], [2], [3], [0]], dtype) if weights in ("weight", "both") else None
    pos_weight = np.array([1, 2, 0.25], dtype) if weights in ("pos_weight", "both") else None
    wide = x.astype("float64")
    loss = t * log1pexp(-wide) * (1 if pos_weight is None else pos_weight) + (1 - t) * log1pexp(wide)
    loss = loss * (1 if weight is None else weight)
    result = tw.binary_cross_entropy_with_logits(
        tw.asarray(x),
        tw.asarray(t),
        None if weight is None else tw.asarray(weight),
        pos_weight=None if pos_weight is None else tw.asarray(pos_weight),
        reduction=reduction,
    )
    check_close(result, reduced(loss, reduction), dtype)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_binary_targets_take_the_dtype_of_the_input(dtype):
    x, t = tw.asarray([2.0, -2.0]), tw.asarray(np.array([1, 0]).astype(dtype))
    loss = tw.binary_cross_entropy_with_logits(x, t, reduction="none")
    check(loss, np.full(2, math.log1p(math.exp(-2)), "float32"), rtol=1e-6)


def test_binary_cross_entropy_does_not_overflow():
    x = tw.asarray([1000.0, -1000.0, 1000.0, -1000.0, -40.0, 40.0])
    t = tw.asarray([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    expected = np.array([0, 0, 1000, 1000, math.exp(-40), math.exp(-40)], "float32")
    check(tw.binary_cross_entropy_with_logits(x, t, reduction="none"), expected, rtol=1e-6)


def np_cross_entropy(x, target, ignore_index=-100, smoothing=0.0, reduction="mean"):
    """Example by example."""
    x = x.astype("float64")
    axis = min(1, x.ndim - 1)
    rows = np.moveaxis(x, axis, -1)
    classes = rows.shape[-1]
    loss, count = np.zeros(rows.shape[:-1]), 0
    for place in np.ndindex(*rows.shape[:-1]):
        row = rows[place]
        logs = row - row.max() - np.log(np.exp(row - row.max()).sum())
        if target.dtype.kind == "f":
            share = np.moveaxis(target, axis, -1)[place].astype("float64")
        elif target[place] == ignore_index:
            continue
        else:
            share = np.zeros(classes)
            share[target[place]] = 1
        count += 1
        share = share * (1 - smoothing) + smoothing / classes
        loss[place] = -sum(s * v for s, v in zip(share, logs, strict=True) if s != 0)
    return reduced(loss, reduction, count)


SHAPES = [(4,), (5, 3), (2, 3, 4), (2, 5, 3, 2), (1, 1)]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_cross_entropy_of_classes(dtype, smoothing, reduction):
    rng = np.random.default_rng(4)
    for shape in SHAPES:
        x = normals(shape, dtype)
        axis = min(1, len(shape) - 1)
        target = rng.integers(0, shape[axis], shape[:axis] + shape[axis + 1 :])
        for ignored in (-100, 0):
            if ignored == 0 and (target == 0).all():
                continue
            options = {"ignore_index": ignored, "label_smoothing": smoothing, "reduction": reduction}
            expected = np_cross_entropy(x, np.asarray(target), ignored, smoothing, reduction)
            check_close(tw.cross_entropy(tw.asarray(x), tw.asarray(target), **options), expected, dtype)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_cross_entropy_of_probabilities(dtype, smoothing, reduction):
    for shape in SHAPES:
        x = normals(shape, dtype)
        axis = min(1, len(shape) - 1)
        target = np.exp(normals(shape, dtype, 1))
        target /= target.sum(axis=axis, keepdims=True)
        options = {"label_smoothing": smoothing, "reduction": reduction}
        expected = np_cross_entropy(x, target, smoothing=smoothing, reduction=reduction)
        check_close(tw.cross_entropy(tw.asarray(x), tw.asarray(target), **options), expected, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_classes_may_have_any_integer_dtype(dtype):
    x = normals((3, 4), "float32")
    target = np.array([3, 0, 1], dtype)
    check_close(tw.cross_entropy(tw.asarray(x), tw.asarray(target)), np_cross_entropy(x, target), "float32")


WEIGHTED = {
    "classes": ((5, 3), {}),
    "ignored": ((5, 3), {"ignore_index": 1}),
    "smoothed": ((4, 3, 2, 2), {"label_smoothing": 0.2}),
    "ignored and smoothed": ((6, 3), {"ignore_index": 0, "label_smoothing": 0.1}),
    "one example": ((3,), {}),
    "probabilities": ((5, 3), {}),
    "probabilities smoothed": ((2, 3, 4), {"label_smoothing": 0.3}),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", WEIGHTED)
def test_cross_entropy_with_weights_of_classes(kind, reduction):
    torch = pytest.importorskip("torch")
    shape, options = WEIGHTED[kind]
    rng = np.random.default_rng(5)
    x, weight = rng.standard_normal(shape), np.array([0.5, 2.0, 0.0])
    axis = min(1, len(shape) - 1)
    if "probabilities" in kind:
        target = rng.uniform(size=shape)
    else:
        target = rng.integers(0, 3, shape[:axis] + shape[axis + 1 :])
    a, b = tw.asarray(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    result = tw.cross_entropy(a, tw.asarray(target), tw.asarray(weight), reduction=reduction, **options)
    expected = torch.nn.functional.cross_entropy(
        b, torch.tensor(target), torch.tensor(weight), reduction=reduction, **options
    )
    assert np.allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-12, equal_nan=True)
    result.sum().backward()
    expected.sum().backward()
    assert np.allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-14, equal_nan=True)


def test_weights_of_classes_by_hand():
    # -log p is log 2 for both; the mean weighs by 3 and by 1.
    x = tw.zeros((2, 2), dtype="float16")
    loss = tw.cross_entropy(x, tw.asarray([0, 1]), weight=tw.asarray([3, 1]), reduction="none")
    check(loss, np.array([3 * math.log(2), math.log(2)], "float16"), rtol=1e-3)
    mean = tw.cross_entropy(tw.asarray([[0.0, 0.0], [0.0, 3.0]]), tw.asarray([0, 1]), tw.asarray([3.0, 1.0]))
    assert mean.item() == pytest.approx((3 * math.log(2) + math.log(1 + math.exp(-3))) / 4, rel=1e-6)
    with pytest.raises(_C.ShapeError, match=r"weight has shape \(3,\); 2 classes need \(2,\)"):
        tw.cross_entropy(x, tw.asarray([0, 1]), weight=tw.ones(3))
    with pytest.raises(_C.DTypeError, match="cross_entropy"):
        tw.cross_entropy(x, tw.asarray([0, 1]), weight=tw.ones(2, dtype="complex64"))
    with pytest.raises(IndexError):
        tw.cross_entropy(x, tw.asarray([0, -1]), weight=tw.ones(2)).item()


def test_cross_entropy_at_its_edges():
    x = tw.asarray([[0.0, -math.inf], [500.0, -500.0]])
    none = {"reduction": "none"}
    check(tw.cross_entropy(x, tw.asarray([0, 1]), **none), np.array([0, 1000], "float32"))
    check(tw.cross_entropy(x, tw.asarray([1, 0]), **none), np.array([np.inf, 0], "float32"))
    certain = tw.asarray([[1.0, 0.0], [0.0, 1.0]])
    check(tw.cross_entropy(x, certain, **none), np.array([0, 1000], "float32"))
    check(tw.cross_entropy(x, tw.asarray([-100, -100])), np.float32(np.nan))
    check(tw.cross_entropy(x, tw.asarray([-100, -100]), reduction="sum"), np.float32(0))
    check(tw.cross_entropy(tw.zeros((0, 3)), tw.zeros(0, dtype="int64")), np.float32(np.nan))


@pytest.mark.parametrize("wrong", [2, 3, -1, -2])
def test_classes_out_of_range_fail_the_loss(wrong):
    target = tw.asarray([wrong, 0])
    with pytest.raises(IndexError):
        tw.cross_entropy(tw.zeros((2, 2)), target).item()
    assert tw.cross_entropy(tw.zeros((2, 2)), target, ignore_index=wrong).item() == pytest.approx(math.log(2))


def test_against_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed: the explicit loops remain")
    functional = torch.nn.functional
    x, ints = normals((6, 5, 2), "float32"), np.random.default_rng(5).integers(0, 5, (6, 2))
    ints[0, 0] = -100
    for reduction in REDUCTIONS:
        options = {"reduction": reduction, "label_smoothing": 0.2}
        expected = functional.cross_entropy(torch.tensor(x), torch.tensor(ints), **options).numpy()
        check_close(tw.cross_entropy(tw.asarray(x), tw.asarray(ints), **options), expected, "float32")


X = tw.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.mse_loss(X, tw.ones(3)), tw.ShapeError, r"input has shape \(2, 3\) and target \(3,\)"),
        (lambda: tw.mse_loss(X, X, reduction="max"), tw.ValueError, "reduction must be .* not 'max'"),
        (lambda: tw.mse_loss(X, 1.0), tw.DTypeError, "expected a Tensor, not float"),
        (lambda: tw.mse_loss(X, X.astype("complex64")), tw.DTypeError, "^mse_loss: complex64"),
        (lambda: tw.cross_entropy(X, tw.ones(2) > 0), tw.DTypeError, "target must have an integer"),
        (lambda: tw.cross_entropy(X, tw.ones(2)), tw.DTypeError, "give classes as integers"),
        (lambda: tw.cross_entropy(X, tw.ones(3)), tw.ShapeError, r"target \(3,\)"),
        (lambda: tw.cross_entropy(X, tw.asarray([1, 2, 0])), tw.ShapeError, r"needs \(2,\)"),
        (lambda: tw.cross_entropy(tw.asarray(1.0), tw.asarray(1)), tw.ShapeError, "axis of classes"),
        (lambda: tw.cross_entropy(tw.ones((2, 0)), tw.asarray([0, 0])), tw.ShapeError, "no class"),
        (lambda: tw.cross_entropy(X, X, ignore_index=None), tw.DTypeError, "ignore_index must be an int"),
        (lambda: tw.cross_entropy(X, X, label_smoothing=1.5), tw.ValueError, "label_smoothing is 1.5"),
        (
            lambda: tw.binary_cross_entropy_with_logits(X, X, pos_weight=tw.ones(2)),
            tw.ShapeError,
            r"pos_weight of shape \(2,\) does not broadcast to shape \(2, 3\)",
        ),
        (
            lambda: tw.binary_cross_entropy_with_logits(X, X, tw.ones((4, 2, 3))),
            tw.ShapeError,
            r"weight of shape \(4, 2, 3\)",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def program() -> list[bytes]:
    generator = tw.Generator(3)
    x = tw.randn(300, 41, generator=generator)
    target = tw.randint(0, 41, (300,), generator=generator)
    losses = [
        tw.cross_entropy(x, target, label_smoothing=0.1),
        tw.cross_entropy(x, tw.softmax(x * 2, axis=1)),
        tw.binary_cross_entropy_with_logits(x, x > 0),
        tw.mse_loss(x, x * 0.5, reduction="none"),
    ]
    return [loss.numpy().tobytes() for loss in losses]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

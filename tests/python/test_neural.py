# test_neural.py: masked_fill, embedding, one_hot, dropout and attention.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, FLOATS, INTEGERS, check, layouts, samples

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52}


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_fill(dtype):
    for shape in [(), (0,), (7,), (3, 4), (2, 0, 3)]:
        for _, tensor, array in layouts(samples(dtype, shape)):
            mask = np.random.default_rng(0).random(array.shape) < 0.5
            expected = np.where(mask, np.asarray(1, dtype), array)
            check(tw.masked_fill(tensor, tw.asarray(mask), 1), expected)
            check(tensor, array)


def test_masked_fill_broadcasts_and_casts():
    x = tw.zeros((2, 3))
    filled = tw.masked_fill(x, tw.asarray([True, False, True]), tw.asarray([[1], [2]]))
    check(filled, np.array([[1, 0, 1], [2, 0, 2]], "float32"))
    check(tw.masked_fill(x, tw.asarray(True), -math.inf), np.full((2, 3), -np.inf, "float32"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_embedding_and_one_hot_of_any_integer_dtype(dtype):
    indices = np.array([[0, 3], [2, 2]], dtype)
    table = np.arange(20, dtype="float32").reshape(4, 5)
    check(tw.embedding(tw.asarray(indices), tw.asarray(table)), table[indices])
    check(tw.one_hot(tw.asarray(indices), 4), np.eye(4, dtype="int64")[indices])
    check(tw.one_hot(tw.asarray(indices), 4, dtype="float32"), np.eye(4, dtype="float32")[indices])


def test_embedding_of_other_shapes():
    table = np.arange(4)
    check(tw.embedding(tw.asarray(-1), tw.asarray(table)), table[-1])
    check(tw.embedding(tw.zeros((0, 2), dtype="int64"), tw.ones((3, 2))), np.ones((0, 2, 2), "float32"))
    with pytest.raises(IndexError, match="index 4"):
        tw.embedding(tw.asarray([4]), tw.asarray(table)).tolist()


def test_one_hot_of_numbers_that_are_no_class():
    check(tw.one_hot(tw.asarray([-1, 2, 1]), 2), np.array([[0, 0], [0, 0], [0, 1]]))
    check(tw.one_hot(tw.asarray(1), 2), np.array([0, 1]))
    check(tw.one_hot(tw.asarray([1, 2]), 0), np.zeros((2, 0), "int64"))
    check(tw.one_hot(tw.asarray([2**64 - 1, 1], dtype="uint64"), 2), np.array([[0, 0], [0, 1]]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_keeps_the_mean(dtype):
    x = tw.ones(100_000, dtype=dtype)
    y = tw.dropout(x, 0.25, generator=tw.Generator(1)).numpy()
    assert y.dtype == dtype
    assert np.unique(y).tolist() == [0, np.asarray(1 / 0.75, dtype)]
    # Five standard deviations.
    assert abs((y == 0).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / y.size)


def test_dropout_draws_from_its_generator():
    x = tw.ones(1000)
    first, second = tw.Generator(7), tw.Generator(7)
    draws = [tw.dropout(x, generator=first).numpy() for _ in range(2)]
    assert not (draws[0] == draws[1]).all()
    for draw in draws:
        check(tw.dropout(x, generator=second), draw)
    tw.manual_seed(7)
    check(tw.dropout(x), draws[0])


def test_dropout_at_its_ends():
    x = tw.asarray([1.0, -math.inf, math.nan])
    generator = tw.Generator(1)
    before = generator.get_state()
    for y in (tw.dropout(x, training=False, generator=generator), tw.dropout(x, 0, generator=generator)):
        check(y, x.numpy())
        y += 1
        assert x[0].item() == 1
    assert generator.get_state() == before
    check(tw.dropout(x, 1), np.zeros(3, "float32"))
    check(tw.dropout(tw.zeros((0, 3))), np.zeros((0, 3), "float32"))
    assert tw.dropout(tw.asarray([1, 2])).dtype == "float64"


def np_attention(q, k, v, mask=None, causal=False, scale=None):
    """Query by query."""
    q, k, v = (each.astype("float64") for each in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (np.broadcast_to(each, batch + each.shape[-2:]) for each in (q, k, v))
    length, keys = q.shape[-2], k.shape[-2]
    added = np.zeros(batch + (length, keys))
    if mask is not None:
        added = added + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask)
    result = np.zeros(batch + (length, v.shape[-1]))
    for place in np.ndindex(*batch, length):
        scores = k[place[:-1]] @ q[place] * scale + added[place]
        if causal:
            scores[place[-1] + 1 :] = -np.inf
        if (scores > -np.inf).any():
            weights = np.exp(scores - scores.max())
            result[place] = weights / weights.sum() @ v[place[:-1]]
    return result


def normals(shape, dtype="float32", seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


ATTENTION_SHAPES = [
    ((3, 4), (5, 4), (5, 2)),
    ((2, 3, 4), (2, 5, 4), (2, 5, 2)),
    ((2, 3, 6, 4), (3, 6, 4), (2, 1, 6, 4)),
    ((1, 1), (1, 1), (1, 1)),
    ((3, 4), (0, 4), (0, 2)),
    ((2, 0, 4), (2, 5, 4), (2, 5, 2)),
]


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "bool", "additive", "of each query"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_attention(dtype, mask, causal, scale):
    for shapes in ATTENTION_SHAPES:
        q, k, v = (normals(shape, dtype, i) for i, shape in enumerate(shapes))
        length, keys = q.shape[-2], k.shape[-2]
        masks = {
            "none": None,
            "bool": np.arange(length * keys).reshape(length, keys) % 3 != 1,
            "additive": normals((length, keys), dtype, 9),
            "of each query": np.arange(length).reshape(length, 1) % 2 == 0,
        }
        given = None if masks[mask] is None else tw.asarray(masks[mask])
        result = tw.scaled_dot_product_attention(
            *map(tw.asarray, (q, k, v)), given, is_causal=causal, scale=scale
        )
        expected = np_attention(q, k, v, masks[mask], causal, scale).astype(dtype)
        check(result, expected, rtol=50 * ROUNDING[dtype], atol=20 * ROUNDING[dtype])


def test_a_query_that_sees_no_key_gives_zeros():
    x = tw.randn(2, 4, generator=tw.Generator(1))
    mask = tw.asarray([[False, False], [True, False]])
    result = tw.scaled_dot_product_attention(x, x, x, mask)
    check(result, np.stack([np.zeros(4, "float32"), x[0].numpy()]))


def test_attention_does_not_overflow_and_shows_nans():
    x = tw.asarray([[100.0], [-100.0]])
    result = tw.scaled_dot_product_attention(x, x, tw.asarray([[1.0], [2.0]]), scale=1)
    check(result, np.array([[1], [2]], "float32"))
    x = tw.asarray([[math.nan], [1.0]])
    assert np.isnan(tw.scaled_dot_product_attention(x, x, x).numpy()).all()


def test_attention_drops_weights():
    x, v = tw.zeros((50, 4)), tw.eye(50)
    weights = tw.scaled_dot_product_attention(x, x, v, dropout_p=0.5, generator=tw.Generator(1)).numpy()
    assert set(np.round(np.unique(weights) * 50, 4)) == {0, 2}
    again = tw.scaled_dot_product_attention(x, x, v, dropout_p=0.5, generator=tw.Generator(1))
    check(again, weights)


def test_attention_on_two_devices_raises_and_draws_nothing():
    with tw.Engine(cpu_devices=2):
        x, y, generator = tw.ones((2, 3)), tw.ones((2, 3), device="cpu:1"), tw.Generator(1)
        for operands, what in [((x, x, y), "value"), ((x, y, x), "key")]:
            with pytest.raises(tw.DeviceError, match=f"{what} is on cpu:1 and query on cpu:0"):
                tw.scaled_dot_product_attention(*operands, dropout_p=0.5, generator=generator)
        assert generator.counter == 0


def test_attention_against_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed: the explicit loops remain")
    q, k, v = normals((2, 3, 6, 8)), normals((2, 3, 6, 8), seed=1), normals((2, 3, 6, 5), seed=2)
    expected = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), is_causal=True)
    result = tw.scaled_dot_product_attention(*map(tw.asarray, (q, k, v)), is_causal=True)
    check(result, expected.numpy(), rtol=1e-5, atol=1e-6)


X = tw.ones((2, 3))
attention = tw.scaled_dot_product_attention


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.masked_fill(X, tw.asarray([0, 1, 0]), 1), tw.DTypeError, "mask must be bool"),
        (lambda: tw.masked_fill(X, X[:, :2] > 0, 1), tw.ShapeError, "does not broadcast"),
        (lambda: tw.masked_fill(X[0], X[0] > 0, X), tw.ShapeError, r"value of shape \(2, 3\) does not"),
        (lambda: tw.masked_fill(1.0, X > 0, 1), tw.DTypeError, "^masked_fill: expected a Tensor"),
        (lambda: tw.embedding(X, X), tw.DTypeError, "indices must have an integer dtype, not float32"),
        (lambda: tw.embedding(tw.asarray([1]), tw.asarray(1)), tw.ShapeError, "axis of rows"),
        (lambda: tw.one_hot(X, 3), tw.DTypeError, "^one_hot: x must have an integer dtype"),
        (lambda: tw.one_hot(tw.asarray([1]), -1), tw.ValueError, "num_classes is -1"),
        (lambda: tw.one_hot(tw.asarray([1]), 2.0), tw.DTypeError, "num_classes must be an int, not float"),
        (lambda: tw.dropout(X, 1.5), tw.ValueError, "^dropout: p is 1.5; it must be from 0 to 1"),
        (lambda: tw.dropout(X, math.nan), tw.ValueError, "^dropout: p is nan"),
        (lambda: tw.dropout(X, generator=3), tw.DTypeError, "generator must be a Generator"),
        (lambda: tw.dropout(X.astype("complex64")), tw.DTypeError, "^dropout: complex64"),
        (lambda: attention(X[0], X, X), tw.ShapeError, "query needs at least 2 dimensions"),
        (lambda: attention(X, X[:, :2], X), tw.ShapeError, "differ in size at axis -1"),
        (lambda: attention(X, X, X[:1]), tw.ShapeError, "differ in size at axis -2"),
        (lambda: attention(tw.ones((2, 1, 1)), tw.ones((3, 1, 1)), X[:1]), tw.ShapeError, "do not broadcast"),
        (lambda: attention(X, X, X, tw.ones((3, 2)) > 0), tw.ShapeError, r"attn_mask of shape \(3, 2\)"),
        (
            lambda: attention(X, X, X, tw.asarray([[1, 0]])),
            tw.DTypeError,
            "attn_mask must be bool or floating",
        ),
        (lambda: attention(X, X, X, dropout_p=2), tw.ValueError, "dropout_p is 2"),
        (lambda: attention(X, X, X, scale=math.inf), tw.ValueError, "scale is inf"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def program() -> list[bytes]:
    generator = tw.Generator(3)
    x = tw.randn(3, 60, 32, generator=generator)
    results = [
        attention(x, x, x, is_causal=True, dropout_p=0.1, generator=generator),
        tw.dropout(x, generator=generator),
        tw.embedding(tw.randint(60, shape=(500,), generator=generator), x[0]),
    ]
    return [result.numpy().tobytes() for result in results]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

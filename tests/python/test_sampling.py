# test_sampling.py: random choices: how often what comes, and that streams can be repeated.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import FLOATS, INTEGERS, check

CALLS = {
    "bernoulli": lambda g: tw.bernoulli(0.3, 100, generator=g),
    "bernoulli of a tensor": lambda g: tw.bernoulli(tw.linspace(0, 1, 50), (20, 50), generator=g),
    "exponential": lambda g: tw.exponential((7, 11), 2.0, generator=g),
    "gamma": lambda g: tw.gamma(0.7, (7, 11), 2.0, generator=g),
    "gamma of a tensor": lambda g: tw.gamma(tw.linspace(0, 9, 50), (20, 50), generator=g),
    "integers": lambda g: tw.integers(3, 9, (50,), generator=g),
    "permutation": lambda g: tw.permutation(100, generator=g),
    "permutation of a tensor": lambda g: tw.permutation(tw.arange(300).reshape(3, 100), 1, generator=g),
    "choice": lambda g: tw.choice(50, (4, 5), generator=g),
    "choice without replacement": lambda g: tw.choice(50, 20, replace=False, generator=g),
    "choice by p": lambda g: tw.choice(50, 100, p=tw.arange(50), generator=g),
    "choice by p without replacement": lambda g: tw.choice(50, 20, replace=False, p=tw.ones(50), generator=g),
    "uniform": lambda g: tw.uniform(100, -1.0, 1.0, generator=g),
    "normal": lambda g: tw.normal(100, 5.0, 2.0, generator=g),
}


@pytest.mark.parametrize("name", CALLS)
def test_streams_can_be_repeated(name):
    call = CALLS[name]
    generator = tw.Generator(7)
    first, second = call(generator), call(generator)
    assert first.tolist() != second.tolist()
    again = tw.Generator(7)
    assert call(again).tolist() == first.tolist()
    assert call(again).tolist() == second.tolist()
    tw.manual_seed(7)
    assert call(None).tolist() == first.tolist()


def program() -> list[bytes]:
    generator = tw.Generator(3)
    return [call(generator).numpy().tobytes() for call in CALLS.values()]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected


def test_nothing_waits():
    with tw.on_sync("error"):
        for call in CALLS.values():
            call(None)


def check_shares(counts: np.ndarray, expected: np.ndarray) -> None:
    """Counts are those expected, give or take five standard deviations."""
    total = counts.sum()
    deviation = np.sqrt(expected * (1 - expected) * total)
    assert (np.abs(counts - expected * total) <= 5 * deviation).all(), (counts, expected * total)


@pytest.mark.parametrize("dtype", [None, "bool", "int32", "float32"])
def test_bernoulli(dtype):
    values = tw.bernoulli(0.3, 100_000, dtype=dtype, generator=tw.Generator(1))
    assert values.dtype == (dtype or "bool")
    hits = (values.numpy() != 0).sum()
    check_shares(np.array([hits, 100_000 - hits]), np.array([0.3, 0.7]))
    for p in (0, 1):
        assert (tw.bernoulli(p, 1000).numpy() == p).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_of_a_tensor(dtype):
    p = tw.asarray(np.array([[0], [0.25], [1], [-1], [2], [np.nan]], dtype))
    assert tw.bernoulli(p).shape == (6, 1)
    hits = tw.bernoulli(p, (6, 20_000), generator=tw.Generator(1)).numpy().sum(axis=1)
    assert hits[[0, 2, 3, 4, 5]].tolist() == [0, 20_000, 0, 20_000, 0]
    check_shares(np.array([hits[1], 20_000 - hits[1]]), np.array([0.25, 0.75]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(dtype):
    values = tw.exponential(100_000, 2.0, dtype=dtype, generator=tw.Generator(1))
    assert values.dtype == dtype
    array = values.numpy()
    assert array.min() >= 0
    bounds = np.array([0.5, 1, 2, 4, 8])
    shares = np.diff(np.concatenate([[0], 1 - np.exp(-bounds / 2), [1]]))
    check_shares(np.bincount(np.searchsorted(bounds, array), minlength=6), shares)
    uniform = tw.uniform(100_000, dtype="float64", generator=tw.Generator(1)).numpy()
    check(values, (-2 * np.log1p(-uniform)).astype(dtype), rtol=1e-6 if dtype == "float32" else 1e-14)
    check(tw.exponential((2, 0)), np.zeros((2, 0), "float32"))
    check(tw.exponential(3, 0), np.zeros(3, "float32"))


def gamma_cdf(concentration: float, x: float) -> float:
    """The regularised lower incomplete gamma function by its power series (DLMF 8.7.1)."""
    term = total = 1 / math.gamma(concentration + 1)
    for n in range(1, 400):
        term *= x / (concentration + n)
        total += term
    return total * x**concentration * math.exp(-x)


@pytest.mark.parametrize("concentration", [0.05, 0.5, 1.0, 2.5, 30.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_gamma(dtype, concentration):
    values = tw.gamma(concentration, 100_000, 3.0, dtype=dtype, generator=tw.Generator(1))
    assert values.dtype == dtype
    array = values.numpy().astype("float64") / 3
    assert array.min() >= 0
    bounds = concentration * np.array([0.25, 0.5, 0.9, 1.1, 1.5, 2, 3])
    below = [gamma_cdf(concentration, x) for x in bounds]
    counts = np.bincount(np.searchsorted(bounds, array), minlength=8)
    check_shares(counts, np.diff(np.concatenate([[0], below, [1]])))
    assert abs(array.mean() - concentration) < 6 * math.sqrt(concentration / 100_000)


def test_gamma_of_a_tensor():
    k = tw.asarray([[0.0], [1.0], [-1.0], [math.nan], [math.inf]])
    assert tw.gamma(k).shape == (5, 1)
    values = tw.gamma(k, (5, 1000), dtype="float64", generator=tw.Generator(1)).numpy()
    assert not values[0].any()
    assert abs(values[1].mean() - 1) < 0.2
    assert np.isnan(values[2:4]).all()
    assert np.isposinf(values[4]).all()
    # A number of its own for each element: a slice of the tensor gives the slice of the numbers.
    whole = tw.gamma(tw.linspace(0.1, 5, 3000), generator=tw.Generator(3))
    check(tw.gamma(tw.linspace(0.1, 5, 3000)[:70], generator=tw.Generator(3)), whole.numpy()[:70])
    ints = tw.gamma(tw.asarray([3, 4]), generator=tw.Generator(3))
    check(ints, tw.gamma(tw.asarray([3.0, 4.0]), generator=tw.Generator(3)).numpy())
    check(tw.gamma(2.0, (2, 0)), np.zeros((2, 0), "float32"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    values = tw.integers(2, 6, 10_000, dtype=dtype, generator=tw.Generator(1))
    assert values.dtype == dtype
    check(values, tw.randint(2, 6, 10_000, dtype=dtype, generator=tw.Generator(1)).numpy())
    check_shares(np.bincount(values.numpy().astype(int), minlength=6)[2:], np.full(4, 0.25))
    with_end = tw.integers(2, 6, 1000, endpoint=True, dtype=dtype).numpy()
    assert (with_end.min(), with_end.max()) == (2, 6)
    info = np.iinfo(dtype)
    ends = tw.integers(info.max, info.max, 3, endpoint=True, dtype=dtype)
    assert ends.tolist() == [info.max] * 3
    assert tw.integers(5).shape == ()


def test_permutation():
    x = tw.arange(12).reshape(3, 4)
    for axis in (0, 1, -1):
        shuffled = tw.permutation(x, axis, generator=tw.Generator(2)).numpy()
        assert sorted(np.moveaxis(shuffled, axis, 0).tolist()) == np.moveaxis(x.numpy(), axis, 0).tolist()
    assert sorted(tw.permutation(1000).tolist()) == list(range(1000))
    check(tw.permutation(0), np.zeros(0, "int64"))
    check(tw.permutation(tw.zeros((2, 0)), 1), np.zeros((2, 0), "float32"))
    generator = tw.Generator(3)
    orders = [tuple(tw.permutation(3, generator=generator).tolist()) for _ in range(3000)]
    counts = np.array([orders.count(order) for order in sorted(set(orders))])
    assert len(counts) == 6
    check_shares(counts, np.full(6, 1 / 6))


def test_choice_with_replacement():
    drawn = tw.choice(5, 10_000, generator=tw.Generator(1))
    check_shares(np.bincount(drawn.numpy(), minlength=5), np.full(5, 0.2))
    table = tw.asarray([[1.0, 2.0], [3.0, 4.0]])
    rows = tw.choice(table, (3, 5), generator=tw.Generator(1))
    assert rows.shape == (3, 5, 2)
    assert {tuple(row) for row in rows.numpy().reshape(-1, 2).tolist()} <= {(1, 2), (3, 4)}
    assert tw.choice(table, 7, axis=1).shape == (2, 7)
    assert tw.choice(3).shape == ()


def test_choice_by_probability():
    p = np.array([0, 1, 3, 0, 4, 2, 0])
    for dtype in ("int64", "float32", "float64"):
        drawn = tw.choice(7, 50_000, p=tw.asarray(p.astype(dtype)), generator=tw.Generator(1)).numpy()
        check_shares(np.bincount(drawn, minlength=7), p / p.sum())


def test_choice_without_replacement():
    drawn = tw.choice(20, (4, 5), replace=False).numpy()
    assert sorted(drawn.reshape(-1).tolist()) == list(range(20))
    generator = tw.Generator(4)
    first = [tw.choice(4, 2, replace=False, generator=generator).tolist() for _ in range(4000)]
    pairs = np.array([a * 4 + b for a, b in first])
    counts = np.bincount(pairs, minlength=16).reshape(4, 4)
    assert np.diag(counts).tolist() == [0] * 4
    check_shares(counts[~np.eye(4, dtype=bool)], np.full(12, 1 / 12))


def test_choice_by_probability_without_replacement():
    p = np.array([1, 2, 0, 5]) / 8
    generator = tw.Generator(5)
    given = tw.asarray(p)
    drawn = [tw.choice(4, 2, replace=False, p=given, generator=generator).tolist() for _ in range(4000)]
    counts = np.bincount([a * 4 + b for a, b in drawn], minlength=16).reshape(4, 4)
    # The second is chosen among the rest.
    expected = np.array([[0 if i == j else p[i] * p[j] / (1 - p[i]) for j in range(4)] for i in range(4)])
    check_shares(counts.reshape(-1), expected.reshape(-1))


def test_choice_of_nothing():
    check(tw.choice(0, 0), np.zeros(0, "int64"))
    check(tw.choice(tw.zeros((0, 3)), (2, 0)), np.zeros((2, 0, 3), "float32"))


ERRORS = [
    (lambda: tw.bernoulli(1.5), tw.ValueError, "^bernoulli: p is 1.5; it must be from 0 to 1"),
    (lambda: tw.bernoulli(math.nan), tw.ValueError, "^bernoulli: p is nan"),
    (lambda: tw.bernoulli("x"), tw.DTypeError, "p must be a number, not str"),
    (lambda: tw.bernoulli(tw.ones(3), (2,)), tw.ShapeError, r"p of shape \(3,\) does not broadcast"),
    (lambda: tw.bernoulli(tw.ones(3, dtype="complex64")), tw.DTypeError, "^bernoulli: complex64"),
    (lambda: tw.bernoulli(0.5, 3, dtype="colour"), tw.DTypeError, "colour"),
    (lambda: tw.exponential(3, -1), tw.ValueError, "^exponential: scale is -1"),
    (lambda: tw.exponential(3, dtype="int64"), tw.DTypeError, "dtype int64 is not floating"),
    (lambda: tw.exponential(3, generator=5), tw.DTypeError, "generator must be a Generator"),
    (lambda: tw.gamma(-1), tw.ValueError, "^gamma: concentration is -1"),
    (lambda: tw.gamma(1, 3, -2), tw.ValueError, "^gamma: scale is -2"),
    (lambda: tw.gamma(1, 3, dtype="int64"), tw.DTypeError, "^gamma: dtype int64 is not floating"),
    (lambda: tw.gamma(tw.ones(3), (2,)), tw.ShapeError, r"of shape \(3,\) does not broadcast"),
    (lambda: tw.gamma(tw.ones(3, dtype="complex64")), tw.DTypeError, "^gamma: complex64"),
    (lambda: tw.integers(5, 5), tw.ValueError, "randint"),
    (lambda: tw.integers(0, 300, 3, dtype="uint8"), ValueError, "uint8"),
    (lambda: tw.permutation(-1), tw.ValueError, "^permutation: -1 must not be negative"),
    (lambda: tw.permutation(2.0), tw.DTypeError, "expected an int or a Tensor, not float"),
    (lambda: tw.permutation(tw.asarray(1)), tw.ShapeError, "0-d tensor has no axis"),
    (lambda: tw.permutation(tw.ones(3), 1), tw.IndexError, "axis 1 is out of bounds"),
    (lambda: tw.choice(3, 4, replace=False), tw.ValueError, "cannot choose 4 of 3 without replacement"),
    (lambda: tw.choice(0, 4), tw.ValueError, "^choice: cannot choose 4 of 0"),
    (lambda: tw.choice(3, 4, p=tw.ones(2)), tw.ShapeError, r"p has shape \(2,\); it must be \(3,\)"),
    (lambda: tw.choice(3, 4, p=[1, 2, 3]), tw.DTypeError, "^choice: expected a Tensor, not list"),
    (lambda: tw.choice(tw.asarray(1), 4), tw.ShapeError, "0-d tensor has no axis"),
    (lambda: tw.choice(3, "x"), tw.DTypeError, "^choice: shape must be"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_a_call_that_raises_draws_nothing(call, error, message):
    tw.manual_seed(5)
    with pytest.raises(error, match=message):
        call()
    assert tw.default_generator().counter == 0


def test_p_must_be_on_the_device_of_the_result():
    with tw.Engine(cpu_devices=2):
        p = tw.ones(3, device="cpu:1")
        assert tw.bernoulli(p).device == "cpu:1"
        assert tw.choice(3, 2, p=p).device == "cpu:1"
        generator = tw.Generator(1)
        for call in (
            lambda: tw.bernoulli(p, device="cpu:0", generator=generator),
            lambda: tw.choice(tw.arange(3), 2, p=p, generator=generator),
        ):
            with pytest.raises(tw.DeviceError, match="p is on cpu:1"):
                call()
        assert generator.counter == 0

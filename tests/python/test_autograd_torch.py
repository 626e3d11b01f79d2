# test_autograd_torch.py: gradients of random programs, compared with PyTorch's where it is installed.
from __future__ import annotations

import random

import numpy as np
import pytest
import thalweg as tw

torch = pytest.importorskip("torch", reason="torch is not installed: tools/bench --install-peers adds it")

ROWS = np.array([2, 0, 2, 1])
PLACES = np.array([[0, 2, 1], [1, 1, 0], [2, 0, 0]])
MASK = np.array([[True, False, True], [False, True, True], [True, True, False]])


def replaced(x, key, value):
    y = x * 1
    y[key] = value
    return y


class Ours:
    """What the libraries call or pass differently, in thalweg."""

    array = staticmethod(tw.asarray)
    norm = staticmethod(lambda x, w, b: tw.layer_norm(x, (3,), w, b))

    def __getattr__(self, name):
        return getattr(tw, name)


class Theirs:
    """The same in PyTorch."""

    array = staticmethod(torch.tensor)
    norm = staticmethod(lambda x, w, b: torch.nn.functional.layer_norm(x, (3,), w, b))
    gelu = staticmethod(lambda x: torch.nn.functional.gelu(x))
    silu = staticmethod(lambda x: torch.nn.functional.silu(x))
    softplus = staticmethod(lambda x: torch.nn.functional.softplus(x))
    log_softmax = staticmethod(lambda x, axis: torch.log_softmax(x, axis))
    max = staticmethod(lambda x, axis: torch.amax(x, axis))
    min = staticmethod(lambda x, axis: torch.amin(x, axis))
    var = staticmethod(lambda x, axis: torch.var(x, axis, correction=0))
    std = staticmethod(lambda x, axis: torch.std(x, axis, correction=0))
    sort = staticmethod(lambda x, axis: torch.sort(x, axis)[0])
    cumulative_sum = staticmethod(lambda x, axis: torch.cumsum(x, axis))
    cumulative_prod = staticmethod(lambda x, axis: torch.cumprod(x, axis))
    concat = staticmethod(lambda xs, axis: torch.cat(xs, axis))
    stack = staticmethod(lambda xs, axis: torch.stack(xs, axis))
    flip = staticmethod(lambda x, axis: torch.flip(x, (axis,)))
    roll = staticmethod(lambda x, shift, axis: torch.roll(x, shift, axis))
    take_along_axis = staticmethod(lambda x, places, axis: torch.gather(x, axis, places))
    clip = staticmethod(lambda x, low, high: torch.clamp(x, low, high))
    permute_dims = staticmethod(lambda x, axes: x.permute(axes))
    broadcast_to = staticmethod(lambda x, shape: x.expand(shape))
    matmul = staticmethod(torch.matmul)

    def __getattr__(self, name):
        return getattr(torch, name)


#: Of a matrix of 3 x 3, to what broadcasts with one.
UNARY = [
    lambda m, x: m.sin(x),
    lambda m, x: m.exp(-x * x),
    lambda m, x: m.tanh(x),
    lambda m, x: m.log(x * x + 1),
    lambda m, x: m.sqrt(x * x + 0.5),
    lambda m, x: m.abs(x),
    lambda m, x: m.atan(x) + m.erf(x),
    lambda m, x: m.expm1(x / 4) - m.log1p(x * x),
    # activations
    lambda m, x: m.sigmoid(x),
    lambda m, x: m.relu(x),
    lambda m, x: m.gelu(x),
    lambda m, x: m.silu(x),
    lambda m, x: m.softplus(x),
    lambda m, x: m.softmax(x, axis=-1),
    lambda m, x: m.log_softmax(x, axis=0),
    # reductions and scans
    lambda m, x: x - x.mean(),
    lambda m, x: x.sum(0) + x,
    lambda m, x: m.max(x, axis=1),
    lambda m, x: m.min(x, axis=0),
    lambda m, x: m.var(x, axis=0),
    lambda m, x: m.std(x, axis=1) + x,
    lambda m, x: m.prod(x, axis=1),
    lambda m, x: m.cumulative_sum(x, axis=1),
    lambda m, x: m.cumulative_prod(x, axis=0),
    lambda m, x: m.sort(x, axis=1),
    # views and copies
    lambda m, x: x.T * x,
    lambda m, x: x[1:2] * x,
    lambda m, x: x.reshape((-1,)).reshape(tuple(x.shape)),
    lambda m, x: m.flip(x, axis=1) + m.roll(x, 1, axis=0),
    lambda m, x: m.tril(x) - m.sin(m.triu(x)),
    lambda m, x: m.permute_dims(m.broadcast_to(x, (2, 3, 3)), (1, 0, 2)).sum(1),
    # indexing
    lambda m, x: x[m.array(ROWS)].sum(0) * x,
    lambda m, x: x[m.array(ROWS), m.array(ROWS[::-1].copy())][:3],
    lambda m, x: m.take_along_axis(x, m.array(PLACES), axis=1),
    lambda m, x: x[m.array(MASK)].reshape((2, 3)).sum(0),
    lambda m, x: x[:, 2] - x[0, None],
    lambda m, x: m.clip(x, -0.5, 0.5),
]
BINARY = [
    lambda m, x, y: x + y,
    lambda m, x, y: x - y,
    lambda m, x, y: x * y,
    lambda m, x, y: x / (y * y + 1),
    lambda m, x, y: m.maximum(x, y),
    lambda m, x, y: m.minimum(x, y),
    lambda m, x, y: m.where(x > y, x, y * 2),
    lambda m, x, y: x @ y,
    lambda m, x, y: m.matmul(m.stack([x, y], axis=0), y).sum(0),
    lambda m, x, y: m.einsum("ij,kj->ik", x, y),
    lambda m, x, y: (x * x + 0.5) ** (y / 10),
    lambda m, x, y: m.concat([x, y], axis=0)[1:4],
    lambda m, x, y: m.concat([x[:, :1], y[:, 1:]], axis=1),
    lambda m, x, y: m.stack([x, y], axis=1).sum(1),
    lambda m, x, y: m.norm(x, y[0], y[:, 1]),
    lambda m, x, y: m.hypot(x, y + 3) + m.logaddexp(x, y),
    lambda m, x, y: replaced(x, (slice(None), 1), y[0]),
    lambda m, x, y: replaced(x, (m.array(ROWS[:2]), m.array(ROWS[1:3])), y[0, :2]),
    lambda m, x, y: replaced(x, m.array(MASK), y[1, 1]),
]


def plan(seed: int, leaves: int):
    """Functions, and which of the values so far they take."""
    rng = random.Random(seed)
    for made in range(rng.randint(3, 12)):
        kind = UNARY if rng.random() < 0.5 else BINARY
        count = 1 if kind is UNARY else 2
        yield rng.choice(kind), [rng.randrange(leaves + made) for _ in range(count)]


def program(seed: int, library, leaves):
    """The same operators on the tensors of either library."""
    pool = list(leaves)
    for function, taken in plan(seed, len(leaves)):
        result = function(library, *(pool[i] for i in taken))
        pool.append(library.broadcast_to(result, (3, 3)))
    total = pool[-1]
    for each in pool[len(leaves) : -1]:
        total = total + each * 0.1
    return total.sum()


def test_the_programs_use_every_function():
    used = {function for seed in range(200) for function, _ in plan(seed, 3)}
    assert used == {*UNARY, *BINARY}


def both(seed: int):
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (3, 3)) for _ in range(3)]
    ours = [tw.asarray(each).requires_grad_() for each in arrays]
    return ours, [torch.tensor(each, requires_grad=True) for each in arrays]


def check_equal(ours, theirs) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        if other is None:
            assert mine is None
            continue
        other = other.detach().numpy()
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(mine.detach().numpy(), other, rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.parametrize("seed", range(200))
def test_gradients_of_random_programs(seed):
    ours, theirs = both(seed)
    program(seed, Ours(), ours).backward()
    program(seed, Theirs(), theirs).backward()
    check_equal([each.grad for each in ours], [each.grad for each in theirs])


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_second_gradients_of_random_programs(seed):
    ours, theirs = both(seed)
    results = [program(seed, Ours(), ours), program(seed, Theirs(), theirs)]
    for library, leaves, result in zip((tw, torch), (ours, theirs), results, strict=True):
        first = library.autograd.grad(result, leaves, create_graph=True, allow_unused=True)
        total = result * 0
        for each in first:
            if each is not None:
                total = total + (each * each).sum()
        total.backward()
    check_equal([each.grad for each in ours], [each.grad for each in theirs])


def pooled(module, x, axis):
    return x.max(axis) if module is tw else torch.amax(x, axis)


CASES = {
    "matmul of vectors": (lambda m, x, y: (x[0] @ y[0]) * (x @ y[:, 0]).sum(), (3, 3), (3, 3)),
    "batched matmul": (lambda m, x, y: (x @ y).sum(), (4, 2, 3), (3, 5)),
    "prod": (lambda m, x, y: x.prod() * y.sum(), (5,), (2,)),
    "ties of max": (lambda m, x, y: (pooled(m, m.floor(x) + y, 0) * 2).sum(), (4, 3), (3,)),
    "pow of tensors": (lambda m, x, y: ((x * x) ** y).sum(), (3, 3), (3,)),
    "hypot": (lambda m, x, y: m.hypot(x, y).sum(), (3, 3), (3,)),
    "atan2": (lambda m, x, y: m.atan2(x, y).sum(), (3, 3), (3,)),
    "logaddexp": (lambda m, x, y: m.logaddexp(x, y).sum(), (3, 3), (3,)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_functions(name):
    function, *shapes = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, shape) for shape in shapes]
    ours = [tw.asarray(each).requires_grad_() for each in arrays]
    theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
    function(tw, *ours).backward()
    function(torch, *theirs).backward()
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "name", ["sin", "exp", "log", "sqrt", "tanh", "abs", "square", "reciprocal", "acosh"]
)
def test_gradients_of_complex_functions(name):
    rng = np.random.default_rng(0)
    array = rng.uniform(-1, 1, 7) + 1j * rng.uniform(-1, 1, 7)
    mine, other = tw.asarray(array).requires_grad_(), torch.tensor(array, requires_grad=True)
    start = rng.uniform(-1, 1, 7) + 1j * rng.uniform(-1, 1, 7)
    if name == "abs":
        start = start.real
    getattr(tw, name)(mine).backward(tw.asarray(start))
    getattr(torch, name)(other).backward(torch.tensor(start))
    np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-11)

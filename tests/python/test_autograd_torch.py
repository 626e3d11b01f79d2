# test_autograd_torch.py: gradients of random programs, compared with PyTorch's where it is installed.
from __future__ import annotations

import random

import numpy as np
import pytest
import thalweg as tw

torch = pytest.importorskip("torch", reason="torch is not installed: tools/bench --install-peers adds it")

UNARY = [
    lambda m, x: m.sin(x),
    lambda m, x: m.exp(-x * x),
    lambda m, x: m.tanh(x),
    lambda m, x: m.log(x * x + 1),
    lambda m, x: m.sqrt(x * x + 0.5),
    lambda m, x: m.abs(x),
    lambda m, x: m.sigmoid(x),
    lambda m, x: m.relu(x),
    lambda m, x: m.softmax(x, -1),
    lambda m, x: x - x.mean(),
    lambda m, x: x.sum(0) + x,
    lambda m, x: x.T.T,
    lambda m, x: x[1:2] * x,
    lambda m, x: x.reshape((-1,)).reshape(tuple(x.shape)),
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
    lambda m, x, y: (x * x + 0.5) ** (y / 10),
]


def program(seed: int, module, leaves):
    """The same operators on the tensors of either library."""
    rng = random.Random(seed)
    pool = list(leaves)
    for _ in range(rng.randint(3, 12)):
        if rng.random() < 0.5:
            pool.append(rng.choice(UNARY)(module, rng.choice(pool)))
        else:
            pool.append(rng.choice(BINARY)(module, rng.choice(pool), rng.choice(pool)))
    total = pool[-1]
    for each in pool[len(leaves) : -1]:
        total = total + each * 0.1
    return total.sum()


@pytest.mark.parametrize("seed", range(200))
def test_gradients_of_random_programs(seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (3, 3)) for _ in range(3)]
    ours = [tw.asarray(each).requires_grad_() for each in arrays]
    theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
    program(seed, tw, ours).backward()
    program(seed, torch, theirs).backward()
    for mine, other in zip(ours, theirs, strict=True):
        if other.grad is None:
            assert mine.grad is None
        else:
            np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-11)


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

# test_autograd_determinism.py: the gradients of random graphs have the same bits for any number of workers
# and devices, in all modes, and however long each kernel takes.
from __future__ import annotations

import contextlib
import random
import threading

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C

pytestmark = pytest.mark.timeout(120)

jitter = _C.op("test_jitter")
to_device = _C.op("to_device")  # Tensor.to makes no copy where the tensor is there already
SEEDS = range(6)
THREADS = 4
ROWS, COLUMNS = 300, 128  # enough for several chunks of a kernel
PICKED = np.random.default_rng(0).integers(0, ROWS, ROWS)
PARTS = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - y * 0.3,
    lambda x, y: tw.tanh(x) * y,
    lambda x, y: tw.softmax(x, axis=-1) + y,
    lambda x, y: tw.maximum(x, y),
    lambda x, y: tw.where(x > y, x, y * 2),
    lambda x, y: tw.matmul(x, tw.tanh(tw.matmul(y.T, x) * 0.01)),
    lambda x, y: x - tw.mean(y, axis=0),
    lambda x, y: x / (1 + tw.square(tw.sum(y, axis=1, keepdims=True))),
    lambda x, y: (
        tw.take(x, tw.asarray(PICKED, device=x.device), axis=0) + y
    ),  # sums of gradients in the kernel
    lambda x, y: tw.concat([y[:100], x[100:]], axis=0),
    lambda x, y: tw.layer_norm(x, (COLUMNS,)) * y,
    lambda x, y: tw.cumulative_sum(x, axis=1) * 0.1 + y,
    lambda x, y: tw.flip(x, axis=0) + y[::-1] * 0.7,
]


class Setting:
    """Where the operators of a graph run, and how long they take at most."""

    def __init__(self, devices: int = 1, delay_seed: int = 0, most_microseconds: int = 0) -> None:
        self.devices = devices
        self.delay_seed = delay_seed
        self.most_microseconds = most_microseconds

    def placed(self, x: tw.Tensor, number: int) -> tw.Tensor:
        return to_device(x, device=f"cpu:{number % self.devices}")

    def late(self, x: tw.Tensor, number: int) -> tw.Tensor:
        seed = self.delay_seed * 1000 + number
        return jitter(x, seed=seed, most_microseconds=self.most_microseconds)


def part(seed: int, leaves: list[tw.Tensor], setting: Setting, count: int) -> tw.Tensor:
    """The sum of a random graph on the leaves. Its values meet several times, so that gradients add up."""
    rng = random.Random(seed)
    pool = list(leaves)
    for number in range(count):
        x, y = (setting.placed(rng.choice(pool), number) for _ in range(2))
        result = rng.choice(PARTS)(x, y)
        pool.append(setting.late(setting.placed(tw.tanh(result), 0), 100 * seed + number))
    total = tw.zeros((), dtype="float32")
    for each in pool[len(leaves) :]:
        total = total + tw.mean(each)
    return total


def make_leaves(seed: int) -> list[tw.Tensor]:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((ROWS, COLUMNS)).astype("float32") for _ in range(3)]
    return [tw.asarray(each).requires_grad_() for each in arrays]


def by_one_thread(seed: int, leaves: list[tw.Tensor], setting: Setting) -> tw.Tensor:
    return part(seed, leaves, setting, 16)


def by_several_threads(seed: int, leaves: list[tw.Tensor], setting: Setting) -> tw.Tensor:
    """Each thread records a part of its own on the shared leaves, all at once."""
    found: list[tw.Tensor | None] = [None] * THREADS
    start = threading.Barrier(THREADS)
    engine = _C.current_engine()

    def record(which: int) -> None:
        start.wait()
        with engine:
            found[which] = part(seed * THREADS + which, leaves, setting, 6)

    threads = [threading.Thread(target=record, args=(which,)) for which in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    total = tw.zeros((), dtype="float32")
    for each in found:
        assert each is not None
        total = total + each
    return total


RECORDERS = pytest.mark.parametrize("record", [by_one_thread, by_several_threads], ids=lambda x: x.__name__)


@contextlib.contextmanager
def engine_of(**options):
    engine = tw.Engine(test_operators=True, **options)
    try:
        with engine:
            yield engine
    finally:
        engine.close()


def gradients(record, seed: int, setting: Setting) -> bytes:
    """In the current engine."""
    leaves = make_leaves(seed)
    record(seed, leaves, setting).backward()
    assert any(leaf.grad is not None for leaf in leaves)
    return b"".join(b"none" if leaf.grad is None else leaf.grad.numpy().tobytes() for leaf in leaves)


_expected: dict[tuple[object, int], bytes] = {}


def expected(record, seed: int) -> bytes:
    """Of the engine that runs each operator in the call."""
    if (record, seed) not in _expected:
        with engine_of(mode="sync"):
            _expected[record, seed] = gradients(record, seed, Setting())
    return _expected[record, seed]


ENGINES = {
    "1 worker": {"num_threads": 1},
    "2 workers": {"num_threads": 2},
    "8 workers": {"num_threads": 8},
    "caller": {"mode": "caller"},
    "sync": {"mode": "sync"},
}


@RECORDERS
@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("devices", [1, 4])
def test_workers_modes_and_devices(record, options, devices):
    with engine_of(**options, cpu_devices=devices):
        for seed in SEEDS:
            assert gradients(record, seed, Setting(devices)) == expected(record, seed), seed


@RECORDERS
@pytest.mark.parametrize("options", [{"num_threads": 2}, {"num_threads": 8, "cpu_devices": 4}], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_hundred_runs_with_random_delays_in_kernels(record, options, seed):
    with engine_of(**options):
        for run in range(100 // len(SEEDS) // 2 + 1):
            setting = Setting(options.get("cpu_devices", 1), delay_seed=run + 1, most_microseconds=300)
            assert gradients(record, seed, setting) == expected(record, seed), run


def test_another_order_of_the_same_sums_has_other_bits():
    """So that the tests above could fail: the parts of several threads, recorded by one after the other."""

    def one_after_the_other(seed, leaves, setting):
        total = tw.zeros((), dtype="float32")
        for which in range(THREADS):
            total = total + part(seed * THREADS + which, leaves, setting, 6)
        return total

    with engine_of(mode="sync"):
        found = [gradients(one_after_the_other, seed, Setting()) for seed in SEEDS]
    assert any(found[seed] != expected(by_several_threads, seed) for seed in SEEDS)


def test_delays_change_the_time_and_not_the_value():
    with engine_of(num_threads=2):
        x = tw.asarray([1.0, 2.0]).requires_grad_()
        y = jitter(x * 3, seed=1, most_microseconds=100)
        assert y.tolist() == [3, 6] and y.grad_fn.name() == "TestJitterBackward"
        y.sum().backward()
        assert x.grad.tolist() == [3, 3]

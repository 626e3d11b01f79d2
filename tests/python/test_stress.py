# test_stress.py: Python threads issue, read, fail, dump and drop for a while; every value is checked.
from __future__ import annotations

import contextlib
import io
import json
import os
import random
import threading
import time

import pytest
import thalweg as tw

SECONDS = float(os.environ.get("THALWEG_STRESS_SECONDS", "0")) or 3.0
pytestmark = pytest.mark.timeout(SECONDS + 120)

SIZE = 20


class Shared:
    """Values and what they must be, replaced by many threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.values = [(tw.zeros(SIZE, dtype="float64"), 0.0) for _ in range(32)]
        self.wrong = []

    def take(self, rng):
        with self.lock:
            return rng.choice(self.values)

    def put(self, rng, value):
        with self.lock:
            self.values[rng.randrange(len(self.values))] = value

    def check(self, tensor, expected):
        if tensor.tolist() != [expected] * SIZE:
            self.wrong.append((tensor.tolist(), expected))


def act(shared, rng):
    (a, x), (b, y) = shared.take(rng), shared.take(rng)
    choice = rng.randrange(12)
    if choice <= 2:
        shared.put(rng, ((a + b) * 0.5, (x + y) / 2))
    elif choice == 3:
        c = a + 0
        c += 1
        shared.put(rng, (c, x + 1))
    elif choice == 4:
        shared.put(rng, (a[::-1] + b, x + y))
    elif choice == 5:
        shared.put(rng, (tw.ones(SIZE, dtype="float64"), 1.0))
    elif choice == 6:
        shared.check(a, x)
    elif choice == 7:
        failed = tw._C.op("test_fail")(a, kind="value") + b
        if rng.random() < 0.3:
            with pytest.raises(ValueError, match="asked to fail"):
                failed.numpy()
    elif choice == 8:
        shared.put(rng, (a.reshape(4, 5).T.T.reshape(SIZE), x))
    elif choice == 9:
        (a * b).on_ready(lambda: None)
    elif choice == 10:
        (a * 2).is_ready()
        a.name_("shared")
    else:
        c = a + 0
        c[:] = 3.0
        shared.put(rng, (c, 3.0))


@pytest.mark.parametrize("mode", ["threaded", "caller", "sync"])
def test_threads_issue_read_fail_dump_and_drop(mode):
    engine = tw.Engine(mode=mode, test_operators=True, max_operators_in_flight=500)
    engine.__enter__()
    try:
        shared = Shared()
        stop = threading.Event()
        errors = []

        def guarded(work):
            with engine:
                try:
                    while not stop.is_set():
                        work()
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)

        def synchronize():
            with contextlib.suppress(ValueError):  # a failure nobody had read
                tw.synchronize()
            time.sleep(0.001)

        def dump():
            text = io.StringIO()
            tw.dump_graph(text)
            json.loads(text.getvalue())
            tw.memory_stats()
            time.sleep(0.001)

        def issue(seed):
            rng = random.Random(seed)

            def step():
                try:
                    act(shared, rng)
                except ValueError:
                    if mode != "sync":  # where a failure raises in the issuing call
                        raise

            return step

        works = [issue(seed) for seed in range(8)] + [synchronize, dump]
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        stop.wait(SECONDS / 3)
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if errors:
            raise errors[0]
        for tensor, expected in shared.values:
            shared.check(tensor, expected)
        assert shared.wrong == []
        engine.drain()
        stats = engine.stats()
        assert stats["executed"] == stats["issued"]
        assert stats["in_flight"] == 0
        shared.values.clear()
        tensor = None  # noqa: F841
    finally:
        engine.__exit__(None, None, None)
        engine.close()

# test_threads.py: tensors and engines shared by threads, and the number of threads.
from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest
import thalweg as tw

pytestmark = pytest.mark.timeout(90)


def in_threads(count, work):
    """Runs work(number) in threads; raises what one of them raised."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_tensor_of_one_thread_is_usable_on_all():
    x = tw.arange(1000)
    results = [None] * 8

    def work(number):
        results[number] = (x * number).sum()

    in_threads(8, work)
    assert [result.item() for result in results] == [499_500 * number for number in range(8)]


def test_threads_issue_and_read_side_by_side():
    def work(number):
        total = tw.zeros(64)
        for i in range(300):
            total = total + number
            if i % 20 == 0:
                assert total[5].item() == number * (i + 1)
        assert total.tolist() == [float(number * 300)] * 64

    in_threads(8, work)


def test_threads_share_values_they_replace():
    lock = threading.Lock()
    shared = {"value": tw.zeros(100), "expected": 0}

    def work(number):
        for _ in range(100):
            with lock:
                shared["value"] = shared["value"] + 1
                shared["expected"] += 1
                value, expected = shared["value"], shared["expected"]
            assert value[99].item() == expected

    in_threads(6, work)
    assert shared["value"].tolist() == [600.0] * 100


def test_tensors_dropped_by_ended_threads_are_freed():
    engine = tw.Engine()

    def work(_):
        with engine:
            for _ in range(50):
                tw.ones(10_000) + 1

    in_threads(8, work)
    engine.drain()
    assert engine.memory_stats()["live_bytes"] == 0
    engine.close()


def test_foreign_memory_is_released_on_a_python_thread():
    class Watched(np.ndarray):
        pass

    array = np.ones(10_000).view(Watched)
    gone = weakref.ref(array)
    x = tw.from_dlpack(np.ones(3)) if not hasattr(array, "__dlpack__") else tw.from_dlpack(array)
    y = x + 1
    del array, x
    assert y.sum().item() == 20_000
    del y
    tw.synchronize()
    gc.collect()
    tw.ones(1)  # the next engine call empties the list of what workers let go
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_set_num_threads(count):
    engine = tw.Engine()
    with engine:
        tw.set_num_threads(count)
        assert tw.get_num_threads() == count
        assert (tw.ones((50, 50)) @ tw.ones((50, 50))).sum().item() == 125_000
        with tw.num_threads(3):
            assert tw.get_num_threads() == 3
        assert tw.get_num_threads() == count
        with pytest.raises(ValueError, match="-1"):
            tw.set_num_threads(-1)
    engine.close()


def test_num_threads_may_change_while_others_work():
    engine = tw.Engine()
    stop = threading.Event()

    def work(number):
        with engine:
            if number == 0:
                for round_ in range(30):
                    tw.set_num_threads(1 + round_ % 3)
                stop.set()
                return
            while not stop.is_set():
                x = tw.zeros(200)
                for _ in range(30):
                    x = x + 1
                assert x[0].item() == 30

    in_threads(4, work)
    engine.close()


def test_results_do_not_depend_on_the_number_of_threads():
    def compute():
        x = tw.arange(300_000, dtype="float32") / 1000
        y = tw.sin(x) * tw.cos(x)
        m = y[:250_000].reshape(500, 500)
        return [
            np.asarray(value).tobytes()
            for value in (y, y.sum(), m @ m, m.mean(axis=0), tw.sqrt(tw.abs(m)).sum(axis=1))
        ]

    engine = tw.Engine()
    with engine:
        tw.set_num_threads(1)
        expected = compute()
        for count in (2, 3, 8):
            tw.set_num_threads(count)
            assert compute() == expected
    engine.close()


def test_generators_shared_by_threads_give_every_counter_once():
    generator = tw.Generator(5)
    pieces = [None] * 8

    def work(number):
        pieces[number] = [tw.rand(16, generator=generator) for _ in range(20)]

    in_threads(8, work)
    rows = {np.asarray(piece).tobytes() for mine in pieces for piece in mine}
    assert len(rows) == 160


def waiting(x):
    """A thread inside x.wait()."""
    thread = threading.Thread(target=x.wait)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    return thread


def test_an_in_place_loop_keeps_no_old_values_while_others_wait(test_engine):
    gate = tw._C.testing.new_gate()
    waiter = waiting(tw._C.op("test_gate")(tw.zeros(1), gate=gate))
    weights = tw.zeros(1 << 18).wait()
    before = tw.memory_stats()["live_bytes"]
    for _ in range(50):
        weights -= 1
        weights.wait()
    assert tw.memory_stats()["live_bytes"] <= before + 3 * weights.nbytes
    tw._C.testing.open_gate(gate)
    waiter.join()
    assert weights[7].item() == -50


def test_recover_of_a_good_value_keeps_what_others_made_of_it(test_engine):
    gate = tw._C.testing.new_gate()
    x = tw._C.op("test_gate")(tw.zeros(3), gate=gate)
    thread = threading.Thread(target=x.recover)
    thread.start()
    time.sleep(0.05)
    x += 1
    tw._C.testing.open_gate(gate)
    thread.join()
    assert x.tolist() == [1.0] * 3


def test_recover_looks_again_at_what_came_of_a_failed_value(test_engine):
    gate = tw._C.testing.new_gate()
    x = tw.ones(3)
    tw._C.op("test_gate").in_place(x, gate=gate)
    tw._C.op("test_fail").in_place(x, kind="value", message="no")
    thread = threading.Thread(target=x.recover)
    thread.start()
    time.sleep(0.05)
    x += 1
    tw._C.testing.open_gate(gate)
    thread.join()
    assert x.tolist() == [1.0] * 3

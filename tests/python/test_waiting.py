# test_waiting.py: reading, waiting, callbacks, and what is counted and allowed to block.
from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import thalweg as tw

pytestmark = pytest.mark.timeout(60)

gate = tw._C.op("test_gate")
fail = tw._C.op("test_fail")
needs_pending = pytest.mark.skipif(tw.engine().mode == "sync", reason="nothing is ever pending")


def eventually(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@pytest.fixture
def held(test_engine):
    """(a value that is not there yet, a function that lets it come)"""
    number = tw._C.testing.new_gate()
    yield gate(tw.ones(3), gate=number), lambda: tw._C.testing.open_gate(number)
    tw._C.testing.open_gate(number)


@needs_pending
def test_issuing_does_not_wait(held):
    value, let_go = held
    results = [value + i for i in range(50)]
    assert not any(result.is_ready() for result in results)
    let_go()
    assert results[49].tolist() == [50.0] * 3


@needs_pending
def test_is_ready_becomes_true_without_a_wait(held):
    value, let_go = held
    result = value * 2
    assert not result.is_ready()
    let_go()
    assert eventually(result.is_ready)


def test_wait_returns_the_tensor():
    x = tw.ones(3) + 1
    assert x.wait() is x
    assert x.is_ready()


@needs_pending
def test_waits_release_the_interpreter(held):
    value, let_go = held
    seen = []
    waiter = threading.Thread(target=lambda: seen.append(value.tolist()))
    waiter.start()
    time.sleep(0.05)
    let_go()  # would never run if the waiting thread kept the interpreter
    waiter.join(30)
    assert seen == [[1.0] * 3]


@needs_pending
@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.wait(),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        lambda t: t.sum().item(),
        lambda t: bool((t == 1).all()),
        lambda t: np.asarray(t),
        lambda t: float(t[0]),
        lambda t: int(t[0]),
        lambda t: memoryview(t),
        lambda t: t.__dlpack__(),
        lambda t: list(t)[0].item(),
        lambda t: repr(t),
        lambda t: tw.synchronize(),
    ],
)
def test_every_read_waits_with_the_interpreter_released(held, read):
    value, let_go = held
    opener = threading.Timer(0.05, let_go)
    opener.start()
    read(value + 0)
    opener.join()


@needs_pending
def test_on_ready_calls_once(held):
    value, let_go = held
    calls = []
    for i in range(5):
        value.on_ready(lambda i=i: calls.append(i))
    time.sleep(0.02)
    assert calls == []
    let_go()
    assert eventually(lambda: len(calls) == 5)
    time.sleep(0.02)
    assert sorted(calls) == list(range(5))


def test_on_ready_of_a_ready_value_calls():
    calls = []
    x = (tw.ones(2) + 1).wait()
    x.on_ready(lambda: calls.append(x.tolist()))
    assert eventually(lambda: calls == [[2.0, 2.0]])


@needs_pending
def test_on_ready_is_called_for_failures(test_engine):
    calls = []
    failed = fail(tw.ones(3))
    failed.on_ready(lambda: calls.append(failed.has_failed()))
    assert eventually(lambda: calls == [True])


@needs_pending
def test_a_callback_may_issue(held):
    value, let_go = held
    results = []
    value.on_ready(lambda: results.append(value + 1))
    let_go()
    assert eventually(lambda: results)
    assert results[0].tolist() == [2.0] * 3


@needs_pending
def test_an_exception_in_a_callback_is_shown_and_harms_nothing(held, capfd):
    value, let_go = held
    value.on_ready(lambda: 1 / 0)
    done = []
    value.on_ready(lambda: done.append(1))
    let_go()
    assert eventually(lambda: done)
    assert (value + 1).tolist() == [2.0] * 3


def test_on_ready_rejects_what_is_not_callable():
    with pytest.raises(TypeError):
        tw.ones(2).on_ready(3)


# --- synchronize ----------------------------------------


@needs_pending
def test_synchronize_waits_for_everything_of_all_threads(test_engine):
    results = []

    def work():
        x = tw.zeros(100)
        for _ in range(200):
            x = x + 1
        results.append(x)

    def in_engine():
        with test_engine:
            work()

    threads = [threading.Thread(target=in_engine) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tw.synchronize()
    assert all(result.is_ready() for result in results)
    assert all(result[0].item() == 200 for result in results)


@needs_pending
def test_synchronize_raises_the_oldest_unread_failure_once(test_engine):
    first = fail(tw.ones(2), kind="value", message="first")
    fail(tw.ones(2), kind="index", message="second")
    with pytest.raises(ValueError, match="first"):
        tw.synchronize()
    tw.synchronize()
    with pytest.raises(ValueError, match="first"):
        first.wait()


@needs_pending
def test_a_failure_that_was_read_is_not_raised_again_by_synchronize(test_engine):
    failed = fail(tw.ones(2), kind="kernel", message="read")
    with pytest.raises(tw.KernelError):
        failed.numpy()
    tw.synchronize()


# --- what blocks ----------------------------------------


@needs_pending
def test_sync_count_counts_reads_that_had_to_wait(held):
    value, let_go = held
    result = value + 1
    before = tw.sync_count()
    threading.Timer(0.05, let_go).start()
    result.tolist()
    assert tw.sync_count() == before + 1
    result.tolist()
    assert tw.sync_count() == before + 1, "the value was there"


@needs_pending
def test_on_sync_error_forbids_reads_that_would_wait(held):
    value, let_go = held
    with tw.on_sync("error"), pytest.raises(tw.SyncError):
        value.tolist()
    let_go()
    assert value.wait().tolist() == [1.0] * 3
    with tw.on_sync("error"):
        assert value.tolist() == [1.0] * 3


@needs_pending
def test_on_sync_warn_warns(held):
    value, let_go = held
    threading.Timer(0.05, let_go).start()
    with tw.on_sync("warn"), pytest.warns(RuntimeWarning):
        value.tolist()


def test_on_sync_restores_and_rejects():
    before = tw._C.get_sync_policy()
    with tw.on_sync("warn"):
        assert tw._C.get_sync_policy() == "warn"
    assert tw._C.get_sync_policy() == before
    with pytest.raises(ValueError, match="allow"):
        tw.on_sync("never")


# --- run-ahead and deep chains ----------------------------------------


@needs_pending
def test_issuing_blocks_at_the_run_ahead_and_goes_on():
    engine = tw.Engine(test_operators=True, max_operators_in_flight=8)
    number = tw._C.testing.new_gate()
    issued = []

    def work():
        with engine:
            x = gate(tw.ones(2), gate=number)
            for _ in range(50):
                x = x + 1
                issued.append(x)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    assert len(issued) <= 8
    tw._C.testing.open_gate(number)
    thread.join(30)
    assert issued[-1].tolist() == [51.0] * 2
    engine.close()


def test_a_chain_of_a_million_operators():
    x = tw.zeros(1)
    for _ in range(1_000_000):
        x = x + 1
    assert x.item() == 1_000_000


def test_a_chain_whose_tensors_are_all_kept_and_dropped_from_either_end():
    for reverse in (False, True):
        kept = [tw.zeros(1)]
        for _ in range(50_000):
            kept.append(kept[-1] + 1)
        assert kept[-1].item() == 50_000
        if reverse:
            kept.reverse()
        while kept:
            kept.pop()

# test_engines.py: several engines, their options and modes.
from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time

import numpy as np
import pytest
import thalweg as tw

pytestmark = pytest.mark.timeout(60)

MODES = ["threaded", "caller", "sync"]


def program():
    """Something of everything, as bytes."""
    rng = tw.Generator(7) if hasattr(tw, "Generator") else None
    a = tw.arange(600, dtype="float32").reshape(20, 30) / 7
    b = tw.ones((30, 20)) * 0.5
    c = a @ b
    c += c.T
    d = tw.exp(c / c.max()) - tw.sqrt(tw.abs(c))
    d[3:7, ::2] = 1.5
    e = tw.concat([d.sum(axis=0), d.mean(axis=1), tw.sin(d).reshape(-1)[::3]])
    for i in range(20):
        e = e * 0.9 + tw.roll(e, i)
    values = [c, d, e, tw.argmax(d, axis=1)]
    if rng is not None:
        values.append(tw.rand(100, generator=rng))
    return [np.asarray(value).tobytes() for value in values]


@pytest.fixture(scope="module")
def reference():
    with tw.Engine(mode="sync", num_threads=1, cpu_devices=1):
        return program()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("run_inline", [True, False])
def test_every_way_to_drive_an_engine_gives_the_same_bits(mode, threads, run_inline, reference):
    engine = tw.Engine(mode=mode, num_threads=threads, run_inline=run_inline)
    with engine:
        assert program() == reference
    engine.close()


def test_engines_are_independent_and_do_not_mix():
    one, two = tw.Engine(name="one"), tw.Engine(name="two")
    with one:
        a = tw.ones(3)
    with two:
        b = tw.ones(3)
        assert (b + 1).tolist() == [2.0] * 3
        assert (a + 1).tolist() == [2.0] * 3, "operators use the engine of their operands"
        with pytest.raises(tw.EngineError, match="engine"):
            a + b
    assert one.stats()["executed"] >= 1
    one.close()
    with pytest.raises(tw.EngineError, match="shut down"):
        a + 1
    assert a.tolist() == [1.0] * 3, "values stay readable"
    assert (b + 1).tolist() == [2.0] * 3
    two.close()
    assert one.closed and two.closed
    assert one.close() == []


def test_with_nests_and_is_per_thread():
    outer, inner = tw.Engine(), tw.Engine()
    default = tw.engine()
    seen = []
    with outer:
        with inner:
            assert tw.engine() is inner
            thread = threading.Thread(target=lambda: seen.append(tw.engine()))
            thread.start()
            thread.join()
        assert tw.engine() is outer
    assert tw.engine() is default
    assert seen == [default]


def test_close_returns_unread_failures():
    engine = tw.Engine(test_operators=True, mode="threaded")
    with engine:
        tw._C.op("test_fail")(tw.ones(3), message="unread")
    texts = engine.close()
    assert len(texts) == 1
    assert "unread" in texts[0]


def test_options():
    engine = tw.Engine(mode="caller", num_threads=3, cpu_devices=4, memory_limit=1 << 20, name="mine")
    assert engine.mode == "caller"
    assert engine.name == "mine"
    assert engine.get_num_threads() == 3
    assert [str(device) for device in engine.devices()] == ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]
    assert engine.memory_stats()["limit_bytes"] == 1 << 20
    assert "mine" in repr(engine)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mode": "quick"}, ValueError, "quick"),
        ({"perDevicePerProcess": True}, RuntimeError, "process"),
        ({"cpu_devices": 0}, ValueError, "cpu_devices"),
        ({"num_threads": -1}, ValueError, "num_threads"),
        ({"num_threads": 100_000}, ValueError, "1 to 1024"),
        ({"num_threads": "a"}, TypeError, "num_threads"),
        ({"memory_limit": -1}, ValueError, "memory_limit"),
        ({"cache_limit": -1}, ValueError, "cache_limit"),
        ({"max_operators_in_flight": 0}, ValueError, "run-ahead"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_bad_options_raise(options, error, text):
    with pytest.raises(error, match=text):
        tw.Engine(**options)


@pytest.mark.parametrize("count", [-1, 1025, 10**6, 2**31 - 1])
def test_numbers_of_threads_are_checked(count):
    before = tw.get_num_threads()
    with pytest.raises(ValueError, match="1 to 1024"):
        tw.set_num_threads(count)
    assert tw.get_num_threads() == before
    assert (tw.ones(2) + 1).tolist() == [2.0, 2.0]


def test_indices_go_to_the_tensors_device():
    with tw.Engine(cpu_devices=2) as engine:
        tensor = tw.arange(5).to("cpu:1")
        for taken in (tw.take(tensor, [0, 2]), tensor[[0, 2]]):
            assert taken.device == "cpu:1"
            assert taken.tolist() == [0, 2]
        assert tw.take(tensor, 3).tolist() == 3
        assert tw.take(tensor, [np.int64(1)]).device == "cpu:1"
    engine.close()


def test_per_device_per_process_may_be_false():
    engine = tw.Engine(perDevicePerProcess=False)
    with engine:
        assert (tw.ones(2) + 1).tolist() == [2.0, 2.0]
    engine.close()


def test_engines_work_in_parallel():
    results = {}

    def work(number):
        engine = tw.Engine(num_threads=1 + number % 2)
        with engine:
            results[number] = program()
        engine.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(result == results[0] for result in results.values())


@pytest.mark.parametrize("mode", MODES)
def test_posed_devices_give_the_same_bits(mode):
    def spread(devices):
        total = None
        for i in range(12):
            x = (tw.arange(500, dtype="float64") / 3).to(devices[i % len(devices)])
            x = tw.sin(x * (i + 1)) + 0.25
            x = x.to(devices[0])
            total = x if total is None else total + x * 0.5
        return np.asarray(total).tobytes()

    with tw.Engine(mode="sync", cpu_devices=1) as engine:
        expected = spread(engine.devices())
    with tw.Engine(mode=mode, cpu_devices=4) as engine:
        assert spread(engine.devices()) == expected


def test_stats_count_operators():
    engine = tw.Engine()
    with engine:
        x = tw.ones(1000)
        tw.synchronize()
        before = engine.stats()
        for _ in range(100):
            x = x + 1
        tw.synchronize()
        after = engine.stats()
    assert after["executed"] - before["executed"] == 100
    assert after["issued"] == after["executed"]
    assert after["in_flight"] == 0
    engine.close()


def test_memory_stats_follow_tensors():
    engine = tw.Engine()
    with engine:
        x = tw.ones(1 << 18).wait()
        assert engine.memory_stats()["live_bytes"] == 1 << 20
        del x
        # The thread that ran the operator may hold its own reference for a moment after the value is there.
        deadline = time.monotonic() + 10
        while engine.memory_stats()["live_bytes"] != 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert engine.memory_stats()["live_bytes"] == 0
        assert engine.memory_stats()["cached_bytes"] >= 1 << 20
        engine.empty_cache()
        assert engine.memory_stats()["cached_bytes"] == 0
        with pytest.raises(tw.DeviceError):
            engine.memory_stats("cpu:9")
    engine.close()


def test_the_memory_limit_raises_out_of_memory():
    engine = tw.Engine(memory_limit=1 << 20)
    with engine:
        with pytest.raises(MemoryError, match="limit"):
            (tw.ones(1 << 20) + 1).wait()
        assert (tw.ones(1000) + 1).sum().item() == 2000
    engine.close()


def test_asyncio_tasks_have_engines_of_their_own():
    first, second = tw.Engine(), tw.Engine()
    seen = []

    async def work(engine, pause):
        with engine:
            for _ in range(3):
                await asyncio.sleep(pause)
                seen.append(tw.engine() is engine)
        seen.append(tw.engine() is outside)

    async def both():
        await asyncio.gather(work(first, 0.001), work(second, 0.0015))

    outside = tw.engine()
    asyncio.run(both())
    assert seen == [True] * 8
    assert first.close() == second.close() == []


def test_blocks_may_be_left_in_any_order():
    first, second = tw.Engine(), tw.Engine()
    outside = tw.engine()

    def generator(engine):
        with engine:
            yield tw.engine()

    one, two = generator(first), generator(second)
    assert next(one) is first and next(two) is second
    one.close()
    assert tw.engine() is second
    two.close()
    assert tw.engine() is outside
    with first, second, first:
        assert tw.engine() is first
    assert tw.engine() is outside
    assert first.close() == second.close() == []


def test_a_closed_engine_keeps_no_memory():
    with tw.Engine() as engine:
        x = tw.ones(1 << 16) + 1
        y = x * 2
        engine.synchronize()
        del x
        assert engine.memory_stats()["cached_bytes"] > 0
        engine.close()
        assert engine.memory_stats()["cached_bytes"] == 0
        assert y.numpy()[5] == 4
        del y
        stats = engine.memory_stats()
        assert stats["live_bytes"] == stats["cached_bytes"] == 0


def test_values_of_a_closed_engine_can_be_saved_and_copied():
    engine = tw.Engine()
    with engine:
        values = [tw.arange(6.0), tw.reshape(tw.arange(6.0), (2, 3)).T, tw.arange(9)[::2], tw.zeros((0, 2))]
        values.append(tw.asarray([1.5, 2.5], dtype="bfloat16"))
        expected = [value.tolist() for value in values]
    engine.close()
    for value, want in zip(values, expected, strict=True):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert again.tolist() == want
            assert again.dtype == value.dtype
            assert (again + 0).shape == value.shape  # of the current engine

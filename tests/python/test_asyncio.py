# test_asyncio.py: `await tensor`.
from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest
import thalweg as tw
from conftest import check

pytestmark = pytest.mark.timeout(60)

gate = tw._C.op("test_gate")
fail = tw._C.op("test_fail")
needs_pending = pytest.mark.skipif(tw.engine().mode == "sync", reason="nothing is ever pending")


def test_await_gives_the_tensor():
    async def main():
        tensor = tw.ones(3) + 1
        assert await tensor is tensor
        assert await tensor is tensor
        return tensor

    check(asyncio.run(main()), np.full(3, 2, "float32"))


@needs_pending
def test_the_loop_goes_on_while_a_value_is_awaited(test_engine):
    number = tw._C.testing.new_gate()

    async def main():
        held = gate(tw.ones(3), gate=number)
        waiting = asyncio.ensure_future(wait_for(held))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        tw._C.testing.open_gate(number)
        return await waiting

    async def wait_for(tensor):
        return await tensor

    check(asyncio.run(main()), np.ones(3, "float32"))


@needs_pending
def test_waiting_does_not_poll(test_engine):
    async def main():
        held = tw._C.op("test_sleep")(tw.ones(3), milliseconds=300)
        start = time.process_time()
        await held
        return time.process_time() - start

    assert asyncio.run(main()) < 0.2


@needs_pending
def test_failures_raise(test_engine):
    async def main():
        with pytest.raises(tw.ValueError, match="test_fail failed"):
            await fail(tw.ones(3), kind="value")

    asyncio.run(main())


@needs_pending
def test_gather_and_cancel(test_engine):
    first, second = tw._C.testing.new_gate(), tw._C.testing.new_gate()

    async def wait_for(tensor):
        return await tensor

    async def main():
        a = asyncio.ensure_future(wait_for(gate(tw.ones(1), gate=first)))
        b = asyncio.ensure_future(wait_for(tw.ones(1) + 1))
        await b
        a.cancel()
        with pytest.raises(asyncio.CancelledError):
            await a
        tw._C.testing.open_gate(first)
        tw._C.testing.open_gate(second)
        results = await asyncio.gather(*(wait_for(gate(tw.ones(1) * i, gate=second)) for i in range(20)))
        return [each.item() for each in results]

    assert asyncio.run(main()) == list(range(20))


@needs_pending
def test_a_loop_may_close_before_the_value_is_there(test_engine):
    number = tw._C.testing.new_gate()

    # Made outside, and not returned by main: asyncio prints results of tasks, and that waits.
    held = gate(tw.ones(1), gate=number)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait_for(held), 0.05)

    async def wait_for(tensor):
        return await tensor

    asyncio.run(main())
    tw._C.testing.open_gate(number)
    check(held, np.ones(1, "float32"))


def test_loops_of_many_threads():
    results = []

    async def main(i):
        tensor = tw.full(10, i)
        for _ in range(50):
            tensor = await (tensor + 1)
        return tensor.tolist()

    def run(i):
        results.append((i, asyncio.run(main(i))))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(i, [i + 50] * 10) for i in range(4)]


@needs_pending
def test_a_tensor_that_is_rebound_while_it_is_awaited(test_engine):
    first, second = tw._C.testing.new_gate(), tw._C.testing.new_gate()

    async def wait_for(tensor):
        return await tensor

    async def main():
        tensor = gate(tw.ones(3), gate=first)
        waiting = asyncio.ensure_future(wait_for(tensor))
        await asyncio.sleep(0)
        tensor += gate(tw.ones(3), gate=second)
        tw._C.testing.open_gate(first)
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not waiting.done()
        tw._C.testing.open_gate(second)
        with tw.on_sync("error"):
            return await waiting

    check(asyncio.run(main()), np.full(3, 2, "float32"))

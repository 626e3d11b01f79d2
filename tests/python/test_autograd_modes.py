# test_autograd_modes.py: what is recorded where. The rows of the feature table: no_grad, enable_grad,
# set_grad_enabled, inference mode.
from __future__ import annotations

import asyncio
import threading

import pytest
import thalweg as tw


def recorded() -> bool:
    return (tw.ones(1).requires_grad_() * 2).requires_grad


def test_modes_nest_and_restore():
    assert recorded()
    with tw.no_grad():
        assert not recorded() and not tw.is_grad_enabled()
        with tw.enable_grad():
            assert recorded()
            with tw.set_grad_enabled(False):
                assert not recorded()
        assert not recorded()
    assert recorded()


def test_modes_restore_after_errors():
    with pytest.raises(KeyError), tw.no_grad():
        raise KeyError("x")
    assert recorded()


def test_one_guard_may_be_entered_again():
    guard = tw.no_grad()
    with guard:
        with guard:
            assert not recorded()
        assert not recorded()
    assert recorded()


def test_modes_are_of_a_thread():
    seen = []
    with tw.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_modes_as_decorators():
    @tw.no_grad()
    def quiet():
        """What it does."""
        return recorded()

    assert quiet() is False and quiet.__name__ == "quiet" and quiet.__doc__ == "What it does."
    assert recorded()
    assert tw.inference_mode()(recorded)() is False
    assert tw.inference_mode(recorded)() is False


def test_set_grad_enabled_as_a_function():
    tw.set_grad_enabled(False)
    try:
        assert not recorded()
        with tw.set_grad_enabled(True):
            assert recorded()
        assert not recorded()
    finally:
        tw.set_grad_enabled(True)
    assert recorded()


def test_set_grad_enabled_wraps_without_changing_the_callers_mode():
    @tw.set_grad_enabled(False)
    def quiet():
        return recorded()

    assert recorded()
    assert quiet() is False and quiet() is False
    assert recorded()


def test_modes_in_generator_functions():
    @tw.no_grad()
    def quiet():
        for _ in range(3):
            got = yield recorded()
        try:
            yield got
        except KeyError:
            yield "caught"
        return recorded()

    generator = quiet()
    assert next(generator) is False and recorded()
    with tw.enable_grad():
        assert generator.send(1) is False and recorded()
    assert generator.send(2) is False
    assert generator.send(3) == 3
    assert generator.throw(KeyError("x")) == "caught"
    with pytest.raises(StopIteration) as stopped:
        next(generator)
    assert stopped.value.value is False and recorded()
    generator = quiet()
    next(generator)
    generator.close()
    assert recorded()


def test_modes_in_coroutines():
    @tw.no_grad()
    async def quiet():
        first = recorded()
        await asyncio.sleep(0)
        return first, recorded()

    async def loud():
        seen = []
        for _ in range(5):
            seen.append(recorded())
            await asyncio.sleep(0)
        return seen

    async def both():
        return await asyncio.gather(quiet(), loud())

    (first, second), seen = asyncio.run(both())
    assert (first, second) == (False, False) and all(seen) and recorded()


def test_modes_in_asynchronous_generators():
    @tw.no_grad()
    async def quiet():
        for _ in range(2):
            await asyncio.sleep(0)
            yield recorded()

    async def use():
        return [(each, recorded()) async for each in quiet()]

    assert asyncio.run(use()) == [(False, True)] * 2


def test_inference_mode():
    assert not tw.is_inference_mode_enabled()
    with tw.inference_mode():
        assert tw.is_inference_mode_enabled() and not tw.is_grad_enabled()
        with tw.enable_grad():
            assert not recorded()
        with tw.inference_mode(False):
            assert recorded()
        made = tw.ones(2) * 3
    # Values are immutable: what was made there may be saved.
    x = tw.ones(2).requires_grad_()
    (x * made).sum().backward()
    assert x.grad.tolist() == [3, 3]

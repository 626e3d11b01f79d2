# test_tensor.py: properties, conversions and the object protocol of Tensor.
from __future__ import annotations

import copy
import gc
import math
import pickle
import threading
import weakref

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, samples


def test_properties_agree_with_numpy():
    array = samples("int16", (2, 3, 4))
    tensor = tw.asarray(array)
    assert tensor.shape == array.shape
    assert tensor.ndim == 3
    assert tensor.size == 24
    assert tensor.itemsize == 2
    assert tensor.nbytes == 48
    assert tensor.strides == array.strides
    assert tensor.T.strides == array.T.strides
    assert tensor.dtype == tw.int16 == "int16"
    assert tensor.device == "cpu:0"
    assert len(tensor) == 2


def test_type_belongs_to_the_package():
    assert type(tw.ones(1)).__module__ == "thalweg"
    with pytest.raises(TypeError):
        tw.Tensor()
    with pytest.raises(AttributeError):
        tw.ones(1).no_such_attribute  # noqa: B018
    with pytest.raises(AttributeError):
        tw.ones(1).anything = 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_item_and_tolist(dtype):
    array = samples(dtype, (3, 4))
    tensor = tw.asarray(array)
    assert str(tensor.tolist()) == str(array.tolist())
    item = tensor[1, 2].item()
    assert type(item) is type(array[1, 2].item())
    assert str(item) == str(array[1, 2].item())


def test_item_takes_one_element_only():
    assert tw.asarray([[5]]).item() == 5
    with pytest.raises(ValueError, match="one element"):
        tw.ones(2).item()
    with pytest.raises(ValueError):
        tw.ones(0).item()


def test_numbers_from_tensors():
    assert bool(tw.asarray(3)) is True
    assert bool(tw.asarray([[0.0]])) is False
    assert bool(tw.asarray(math.nan)) is True
    assert int(tw.asarray(-3.7)) == -3
    assert int(tw.asarray(2**64 - 1, dtype="uint64")) == 2**64 - 1
    assert float(tw.asarray([2.5])) == 2.5
    assert complex(tw.asarray(2.5)) == 2.5 + 0j
    assert [10, 20, 30][tw.asarray(1)] == 20
    assert f"{tw.asarray(2.5):.2f}" == "2.50"
    assert round(tw.asarray(2.5)).item() == 2.0


def test_numbers_from_unfit_tensors():
    for convert in (bool, int, float):
        for tensor in (tw.ones(2), tw.ones(0), tw.ones((2, 2))):
            with pytest.raises(ValueError, match="elements is ambiguous"):
                convert(tensor)
    with pytest.raises(TypeError):
        [1][tw.asarray(0.0)]
    with pytest.raises(TypeError):
        [1][tw.asarray([0])]
    with pytest.raises(TypeError):
        range(tw.asarray(True))


def test_iteration():
    assert [row.tolist() for row in tw.asarray([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert list(tw.ones((0, 3))) == []
    with pytest.raises(TypeError):
        iter(tw.asarray(1))
    with pytest.raises(TypeError):
        len(tw.asarray(1))


def test_contains():
    tensor = tw.asarray([1, 2, 3])
    assert 2 in tensor
    assert 5 not in tensor
    assert "x" not in tensor


def test_identity_hash_and_equality():
    a, b = tw.ones(3), tw.ones(3)
    assert len({a, b, a}) == 2
    assert (a == b).tolist() == [True] * 3
    assert (a == None) is False  # noqa: E711
    assert (a != "text") is True


def test_weak_references():
    tensor = tw.ones(3)
    reference = weakref.ref(tensor)
    assert reference() is tensor
    del tensor
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(dtype, protocol):
    array = samples(dtype, (3, 5))
    tensor = tw.asarray(array).T
    check(pickle.loads(pickle.dumps(tensor, protocol)), array.T)


def test_pickle_of_odd_tensors():
    for tensor in (tw.asarray(2.5), tw.ones((0, 3)), tw.ones(5)[::2]):
        again = pickle.loads(pickle.dumps(tensor))
        check(again, tensor.numpy())


def test_pickle_out_of_band():
    buffers: list[pickle.PickleBuffer] = []
    tensor = tw.arange(1000)
    data = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 500
    check(pickle.loads(data, buffers=buffers), np.arange(1000))


def test_pickle_of_values():
    for value in (tw.float32, tw.Device("cpu:0"), tw.Generator(5)):
        again = pickle.loads(pickle.dumps(value))
        assert str(again) == str(value)
    assert pickle.loads(pickle.dumps(tw.int8)) is tw.int8


def test_copy():
    tensor = tw.asarray([1, 2, 3])
    for again in (copy.copy(tensor), copy.deepcopy(tensor)):
        assert again is not tensor
        again += 1
        assert tensor.tolist() == [1, 2, 3]
        assert again.tolist() == [2, 3, 4]
    twice = copy.deepcopy([tensor, tensor])
    assert twice[0] is twice[1]


def test_astype_and_devices():
    tensor = tw.asarray([1.7, -1.7])
    assert tensor.astype("int8").tolist() == [1, -1]
    assert tensor.astype(np.float64).dtype == tw.float64
    assert tensor.astype(tw.float32, copy=False) is tensor
    assert tensor.to("cpu:0") is tensor
    assert tensor.to_device(tw.Device("cpu")) is tensor
    with pytest.raises(ValueError):
        tensor.to_device("cpu:0", stream=1)


def test_dtype_objects():
    assert str(tw.float32) == "float32"
    assert repr(tw.float32) == "thalweg.float32"
    assert tw.float32 == "float32" == tw.float32
    assert tw.float32 == np.float32
    assert tw.float32 == np.dtype("float32")
    assert tw.float32 != tw.float64
    assert tw.float32 != 3
    assert {tw.float32: 1}["float32"] == 1
    assert np.dtype(str(tw.uint8)) == np.uint8
    assert tw.dtype(np.int16) is tw.int16
    assert tw.dtype(bool) is tw.bool
    assert tw.dtype(int) is tw.int64
    assert tw.dtype(float) is tw.float64
    assert (tw.int16.itemsize, tw.int16.kind, tw.int16.name) == (2, "signed integer", "int16")
    assert tw.dtype(complex) is tw.complex128
    assert tw.dtype(np.complex64) is tw.complex64
    assert (tw.complex64.itemsize, tw.complex64.kind) == (8, "complex floating")
    assert len({tw.dtype(name) for name in DTYPES}) == 13


def test_unknown_dtypes():
    for unknown in ("float8", "complex32", np.clongdouble, np.longdouble, object, 5, None):
        with pytest.raises(TypeError):
            tw.dtype(unknown)
    with pytest.raises(tw.DTypeError, match="float8"):
        tw.zeros(3, dtype="float8")


def test_device_objects():
    device = tw.Device("cpu")
    assert (device.type, device.index, str(device)) == ("cpu", 0, "cpu:0")
    assert device == "cpu" == device
    assert device == "cpu:0"
    assert device != "cpu:1"
    assert device != "nonsense"
    assert len({device, tw.Device("cpu:0"), tw.Device("cpu:1")}) == 2


def test_waiting():
    tensor = tw.ones(100) + 1
    assert tensor.wait() is tensor
    assert tensor.is_ready()
    assert not tensor.has_failed()
    assert tensor.failure() is None
    assert tensor.name_("result") is tensor


@pytest.mark.timeout(60)
def test_on_ready_calls_back_on_its_own_thread(test_engine):
    if test_engine.mode == "sync":
        pytest.skip("nothing is ever pending in a synchronous engine")
    gate = tw._C.testing.new_gate()
    held = tw._C.op("test_gate")(tw.ones(3), gate=gate)
    called = threading.Event()
    threads = []

    def callback():
        threads.append(threading.current_thread())
        called.set()

    held.on_ready(callback)
    assert not called.is_set()
    tw._C.testing.open_gate(gate)
    assert called.wait(30)
    assert threads[0] is not threading.current_thread()


@pytest.mark.timeout(60)
def test_sync_count_and_policies(test_engine):
    gate = tw._C.testing.new_gate()
    hold = tw._C.op("test_gate")
    ready = tw.ones(3).wait()
    if test_engine.mode == "sync":
        pytest.skip("nothing is ever pending in a synchronous engine")
    before = tw.sync_count()
    ready.tolist()
    assert tw.sync_count() == before
    held = hold(ready, gate=gate)
    with tw.on_sync("error"), pytest.raises(tw.SyncError, match="test_tensor.py"):
        held.item() if held.size == 1 else held.wait()
    with tw.on_sync("error"):
        ready.wait()
    tw._C.testing.open_gate(gate)
    held.wait()
    held = tw._C.op("test_sleep")(ready, milliseconds=50)
    with tw.on_sync("warn"), pytest.warns(RuntimeWarning, match="blocking read"):
        held.wait()
    assert tw.sync_count() >= before + 2
    with pytest.raises(ValueError):
        tw.on_sync("maybe")


@pytest.mark.timeout(120)
def test_handles_are_safe_between_threads():
    """In-place forms on one thread while others read the same object: any of the values, never a crash."""
    shared = tw.zeros(8)
    stop = threading.Event()
    errors = []

    def read():
        try:
            while not stop.is_set():
                values = (shared + 0).tolist()
                assert len(set(values)) == 1
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(3000):
        shared += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert not errors
    assert shared.tolist() == [3000.0] * 8


def test_engines_are_independent():
    with tw.Engine(name="other") as other:
        assert tw.engine() is other
        a = tw.ones(3)
    b = tw.ones(3)
    assert tw.engine() is not other
    with pytest.raises(tw.EngineError):
        a + b
    assert (a + a).tolist() == [2.0] * 3


def test_an_engine_outlives_its_python_object_while_tensors_do():
    with tw.Engine():
        tensor = tw.ones(3)
    gc.collect()
    assert (tensor + 1).tolist() == [2.0] * 3


def test_engine_options():
    with pytest.raises(tw.EngineError):
        tw.Engine(perDevicePerProcess=True)
    with pytest.raises(TypeError, match="unknown option 'speed'; the options are mode, num_threads, "):
        tw.Engine(speed=11)
    with pytest.raises(ValueError, match="mode"):
        tw.Engine(mode="fast")
    engine = tw.Engine(mode="sync", cpu_devices=2, name="mine")
    with pytest.raises(tw.DTypeError, match="^set_memory_limit: bytes must be an int of 64 bits, not '30M'$"):
        engine.set_memory_limit("30M")
    with pytest.raises(tw.DTypeError, match="^set_run_ahead: operators must be an int of 64 bits, not 1.5$"):
        engine.set_run_ahead(1.5, 2**20)
    with pytest.raises(tw.DTypeError, match="^set_num_threads: count must be an int, not '2'$"):
        engine.set_num_threads("2")
    assert engine.mode == "sync"
    assert engine.name == "mine"
    assert [str(device) for device in engine.devices()] == ["cpu:0", "cpu:1"]


@pytest.mark.timeout(60)
def test_num_threads():
    with tw.Engine(num_threads=1):
        assert tw.get_num_threads() == 1
        with tw.num_threads(3):
            assert tw.get_num_threads() == 3
            assert tw.ones((500, 500)).sum().item() == 250000
        assert tw.get_num_threads() == 1
        with pytest.raises(ValueError):
            tw.set_num_threads(-1)


def test_statistics():
    with tw.Engine() as engine:
        tensor = tw.ones(1000) + 1
        tw.synchronize()
        stats = tw.stats()
        assert stats["issued"] == stats["executed"] == 2
        assert stats["in_flight"] == stats["failed"] == 0
        memory = tw.memory_stats()
        assert memory["live_bytes"] >= 4000
        assert memory["peak_bytes"] >= memory["live_bytes"]
        del tensor
        tw.reset_peak_memory()
        tw.empty_cache()
        assert tw.memory_stats("cpu:0")["cached_bytes"] == 0
        with pytest.raises(ValueError):
            tw.memory_stats("cpu:7")
        engine.close()


def test_random_streams():
    tw.manual_seed(7)
    first = tw.rand(100)
    second = tw.rand(100)
    tw.manual_seed(7)
    assert tw.rand(100).tolist() == first.tolist()
    assert second.tolist() != first.tolist()
    generator = tw.Generator(7)
    assert tw.rand(100, generator=generator).tolist() == first.tolist()
    state = generator.get_state()
    third = tw.randn((5, 5), generator=generator)
    generator.set_state(state)
    assert tw.randn(5, 5, generator=generator).tolist() == third.tolist()
    assert generator.seed == 7


def test_random_values():
    tw.manual_seed(0)
    values = tw.rand(10000).numpy()
    assert 0 <= values.min() < values.max() < 1
    assert abs(values.mean() - 0.5) < 0.02
    normal = tw.randn(10000, dtype="float64").numpy()
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    dice = tw.randint(1, 7, (1000,)).numpy()
    assert set(dice.tolist()) == {1, 2, 3, 4, 5, 6}
    assert tw.randint(5).shape == ()
    assert tw.rand().shape == ()
    assert tw.rand(0, 3).shape == (0, 3)
    with pytest.raises(ValueError):
        tw.randint(5, 5)
    with pytest.raises(TypeError):
        tw.rand(3, dtype="int32")


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(-(2**63), 2**63, "int64"), (0, 2**64, "uint64"), (2**63, 2**64, "uint64")]
)
def test_random_integers_of_all_64_bits(low, high, dtype):
    values = tw.randint(low, high, (1000,), dtype=dtype)
    assert values.dtype == dtype
    numbers = values.tolist()
    assert all(low <= number < high for number in numbers)
    # Each eighth of the range gets its share: 125 of 1,000, give or take five standard deviations.
    shares = np.bincount([(number - low) * 8 // (high - low) for number in numbers], minlength=8)
    assert shares.min() > 70
    assert shares.max() < 180
    with pytest.raises((ValueError, OverflowError)):
        tw.randint(low, high + 1, (3,), dtype=dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tw.rand(3, dtype="int64"),
        lambda: tw.rand(3, dtype="colour"),
        lambda: tw.rand(3, device="cuda"),
        lambda: tw.rand(2**70),
        lambda: tw.rand(2**40, 2**40),
        lambda: tw.rand(-1),
        lambda: tw.randn(3, device="cpu:63"),
        lambda: tw.randint(5, 5, 3),
    ],
)
def test_a_call_that_raises_draws_nothing(call):
    tw.manual_seed(5)
    expected = tw.rand(4).tolist()
    tw.manual_seed(5)
    with pytest.raises((TypeError, ValueError)):
        call()
    assert tw.default_generator().counter == 0
    assert tw.rand(4).tolist() == expected

# test_interchange.py: NumPy, the buffer protocol and DLPack, in both directions.
from __future__ import annotations

import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, SHAPES, check, samples


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numpy_and_back(dtype, shape):
    array = samples(dtype, shape)
    tensor = tw.asarray(array)
    for again in (
        tensor.numpy(),
        np.asarray(tensor),
        np.array(tensor),
        np.from_dlpack(tensor),
        np.asarray(memoryview(tensor)),
    ):
        assert again.dtype == array.dtype
        assert again.shape == array.shape
        np.testing.assert_array_equal(again, array)
    check(tw.from_dlpack(tensor), array)
    check(tw.from_numpy(tensor.numpy()), array)


def test_numpy_shares_the_bytes_read_only():
    tensor = tw.arange(6).reshape(2, 3)
    for array in (tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor)):
        assert not array.flags.writeable
        assert array.__array_interface__["data"][0] == tensor.numpy().__array_interface__["data"][0]
        with pytest.raises(ValueError):
            array[0, 0] = 1
        with pytest.raises(ValueError):
            array.flags.writeable = True
    assert tensor.T.numpy().strides == np.arange(6).reshape(2, 3).T.strides


def test_copies_for_numpy_are_writeable():
    tensor = tw.zeros(3)
    array = np.array(tensor)
    array[0] = 5
    check(tensor, np.zeros(3, "float32"))
    array = tensor.__array__(copy=True)
    array[0] = 5
    check(tensor, np.zeros(3, "float32"))


def test_array_protocol():
    tensor = tw.asarray([1.5, 2.5])
    assert np.asarray(tensor, dtype="int32").tolist() == [1, 2]
    assert tensor.__array__().dtype == np.float32
    assert tensor.__array__("float64").dtype == np.float64
    with pytest.raises(ValueError):
        tensor.__array__("float64", copy=False)
    assert np.asarray(tensor, copy=False).base is not None


def test_arrays_outlive_tensors_and_rebindings():
    tensor = tw.arange(1000) + 0
    array = tensor.numpy()
    tensor += 1
    del tensor
    gc.collect()
    junk = [tw.zeros(1000, dtype="int64") + 7 for _ in range(20)]
    np.testing.assert_array_equal(array, np.arange(1000))
    del junk


def test_buffers():
    tensor = tw.arange(6).reshape(2, 3)
    view = memoryview(tensor)
    assert (view.format, view.shape, view.strides, view.readonly) == ("l", (2, 3), (24, 8), True)
    assert [memoryview(tw.ones(2, dtype=dtype)).format for dtype in COMPLEX] == ["Zf", "Zd"]
    assert bytes(tensor) == np.arange(6).tobytes()
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(tensor)
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(tensor.T, dtype="int64")


def test_from_dlpack_aliases():
    array = np.zeros((2, 3))
    tensor = tw.from_dlpack(array)
    array[1, 2] = 9
    check(tensor, array)
    copied = tw.from_dlpack(array, copy=True)
    array[0, 0] = 7
    assert copied[0, 0].item() == 0
    check(tw.from_dlpack(array[::-1, ::2]), array[::-1, ::2])


def test_from_dlpack_keeps_its_source_alive_and_lets_it_go():
    class Source(np.ndarray):
        pass

    array = np.arange(5).view(Source)
    reference = weakref.ref(array)
    tensor = tw.from_dlpack(array)
    del array
    gc.collect()
    assert reference() is not None
    check(tensor * 2, np.arange(5) * 2)
    tw.synchronize()
    del tensor
    tw.ones(1) + 1
    gc.collect()
    for _ in range(100):
        if reference() is None:
            break
        (tw.ones(1) + 1).wait()
    assert reference() is None


class Producer:
    """An object with `__dlpack__` of an older DLPack: it takes no keywords."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_from_old_producers():
    check(tw.from_dlpack(Producer(np.arange(3))), np.arange(3))
    check(tw.asarray(Producer(np.arange(3))), np.arange(3))


def test_capsules():
    tensor = tw.arange(4)
    assert tensor.__dlpack_device__() == (1, 0)
    legacy, versioned = tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0))
    assert '"dltensor"' in repr(legacy)
    assert '"dltensor_versioned"' in repr(versioned)
    check(tw._C.from_dlpack(legacy), np.arange(4))
    check(tw._C.from_dlpack(versioned), np.arange(4))
    for used in (legacy, versioned):
        assert "used_dltensor" in repr(used)
        with pytest.raises(ValueError):
            tw._C.from_dlpack(used)
    with pytest.raises(ValueError):
        tw._C.from_dlpack("capsule")


class Legacy:
    def __init__(self, tensor, **keywords):
        self.tensor, self.keywords = tensor, keywords

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__(**self.keywords)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_legacy_capsules_hold_a_copy():
    tensor = tw.arange(4)
    copied = tw.from_dlpack(Legacy(tensor))
    shared = tw.from_dlpack(Legacy(tensor, max_version=(1, 0)))
    address = tensor.numpy().__array_interface__["data"][0]
    assert copied.numpy().__array_interface__["data"][0] != address
    assert shared.numpy().__array_interface__["data"][0] == address
    forced = tw.from_dlpack(Legacy(tensor, max_version=(1, 0), copy=True))
    assert forced.numpy().__array_interface__["data"][0] != address
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)
    assert np.from_dlpack(Legacy(tensor, max_version=(1, 0), copy=True)).flags.writeable


def test_a_device_that_is_not_there():
    for make in (tw.asarray, tw.from_dlpack):
        with pytest.raises(tw.DeviceError, match="cpu:9 does not exist here; there are: cpu:0"):
            make(np.ones(2), device="cpu:9")


def test_bad_dlpack_requests():
    tensor = tw.ones(2)
    with pytest.raises(ValueError):
        tensor.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):  # NumPy's own refusal
        tw.from_dlpack(np.zeros(2, dtype="longdouble"))
    with pytest.raises(tw.DTypeError, match="^from_dlpack: list has no __dlpack__; use asarray"):
        tw.from_dlpack([1, 2])


def test_dlpack_of_a_dtype_without_counterpart():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(tw.DTypeError, match="from_dlpack"):
        tw.from_dlpack(torch.zeros(2, dtype=torch.complex32))


def test_unused_capsules_free_their_tensors():
    with tw.Engine() as engine:
        tensor = tw.zeros(100_000)
        tensor.wait()
        for _ in range(100):
            tensor.__dlpack__(max_version=(1, 0))
            tensor.__dlpack__()
        assert tw.memory_stats()["live_bytes"] < 500_000
        del tensor
        engine.close()


def test_reads_wait():
    tensor = tw.ones((300, 300))
    for _ in range(20):
        tensor = tensor + 1
    np.testing.assert_array_equal(np.from_dlpack(tensor), np.full((300, 300), 21, "float32"))
    tensor = tensor + 1
    np.testing.assert_array_equal(np.asarray(tensor), np.full((300, 300), 22, "float32"))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_views(protocol):
    array = np.arange(24).reshape(2, 3, 4)
    tensor = tw.asarray(array)
    for view, expected in (
        (tensor[0, 0, ::2], array[0, 0, ::2]),
        (tensor[:, 1, 1], array[:, 1, 1]),
        (tw.flip(tensor), np.flip(array)),
        (tw.broadcast_to(tensor[0, 0], (3, 4)), np.broadcast_to(array[0, 0], (3, 4))),
        (tw.broadcast_to(tensor[0, 0, :1], (5,)), np.broadcast_to(array[0, 0, :1], (5,))),
        (tensor[1:1], array[1:1]),
    ):
        check(pickle.loads(pickle.dumps(view, protocol)), expected)


def test_functions_of_numpy_that_call_methods():
    array = np.arange(6.0).reshape(2, 3)
    tensor = tw.asarray(array)
    for name in ("sum", "prod", "mean", "max", "min", "var", "std"):
        function = getattr(np, name)
        for arguments in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            check(function(tensor, **arguments), function(array, **arguments), rtol=1e-15)
    check(np.var(tensor, ddof=1), np.var(array, ddof=1), rtol=1e-15)
    check(np.mean(tensor, dtype="float32"), np.mean(array, dtype="float32"))
    assert np.argmax(tensor).item() == 5
    assert np.any(tensor).item() is True
    with pytest.raises(TypeError, match="immutable"):
        np.sum(tensor, out=np.zeros(()))


def test_a_failed_tensor_of_no_elements_raises_on_every_read():
    if tw.engine().mode == "sync":
        pytest.skip("the failure raises in the call")
    empty = tw.take(tw.ones(3), tw.asarray([50]))[0:0]
    for read in (np.asarray, pickle.dumps, tw.Tensor.numpy, tw.Tensor.tolist, tw.Tensor.wait, np.from_dlpack):
        with pytest.raises(IndexError, match="50"):
            read(empty)


@pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4),
    reason="NumPy asks for __numpy_dtype__ from 2.4 on",
)
def test_dtypes_work_in_numpy():
    assert np.dtype(tw.float32) == np.float32
    assert np.zeros(2, dtype=tw.ones(2).dtype).dtype == np.float32
    assert np.ones(2).astype(tw.int8).dtype == np.int8


def test_making_a_tensor_by_its_type_names_the_function():
    with pytest.raises(TypeError, match="asarray"):
        tw.Tensor([1, 2])
    with pytest.raises(TypeError, match="dtype float128"):
        tw.asarray(np.ones(2, "longdouble"))

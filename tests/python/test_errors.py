# test_errors.py: types, texts and timing of errors; failed kernels and what can be done after them.
from __future__ import annotations

import builtins
import gc
import inspect
import re
import sys
import weakref

import numpy as np
import pytest
import thalweg as tw
from conftest import check

fail = tw._C.op("test_fail")
gate = tw._C.op("test_gate")


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("ShapeError", ValueError), ("DTypeError", TypeError), ("IndexError", IndexError),
        ("DeviceError", ValueError),
        ("ArgumentError", TypeError), ("ValueError", ValueError), ("OutOfMemoryError", MemoryError),
        ("EngineError", RuntimeError), ("KernelError", RuntimeError), ("SyncError", RuntimeError),
    ],
)  # fmt: skip
def test_classes(name, base):
    error = getattr(tw, name)
    assert issubclass(error, base)
    assert issubclass(error, tw.Error)
    assert error.__module__ == "thalweg"
    assert error.__doc__
    if hasattr(builtins, name):
        assert name not in tw.__all__


BAD_CALLS = [
    (
        lambda: tw.ones((2, 3)) + tw.ones(4),
        tw.ShapeError,
        r"add: shapes \(2, 3\) and \(4,\) do not broadcast",
    ),
    (lambda: tw.ones((2, 3)).sum(axis=5), tw.IndexError, "sum"),
    (lambda: tw.ones(2).astype("float128"), tw.DTypeError, "float128"),
    (lambda: tw.ones(2) & 1.5, tw.DTypeError, "bitwise_and"),
    (
        lambda: tw.ones(6).reshape(4),
        tw.ShapeError,
        r"reshape: shape \(6,\) has 6 elements and cannot become \(4,\)",
    ),
    (lambda: tw.ones(3)[3], tw.IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    (lambda: tw.ones((3, 4)) @ tw.ones((5, 6)), tw.ShapeError, r"matmul: shapes \(3, 4\) and \(5, 6\)"),
    (lambda: tw.ones(2, device="cpu:99"), tw.DeviceError, "cpu:99 does not exist here; there are: cpu:0"),
    (lambda: tw.ones(2, device="abacus"), tw.DeviceError, "abacus"),
    (
        lambda: tw._C.op("sum")(tw.ones(2), speed=1),
        tw.ArgumentError,
        "sum: has no attribute 'speed'; it has: axis",
    ),
    (lambda: tw._C.op("sum")(tw.ones(2), keepdims=3), tw.ArgumentError, "keepdims"),
    (lambda: tw._C.op("full")(), tw.ArgumentError, "full"),
    (lambda: tw._C.op("add")(tw.ones(2)), tw.ValueError, "add"),
    (lambda: tw._C.op("no_such_operation")(tw.ones(2)), tw.ValueError, "no_such_operation"),
    (lambda: tw.asarray([[1, 2], [3]]), tw.ShapeError, "ragged"),
    (lambda: bool(tw.ones(2)), tw.ValueError, "any"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS, ids=[each[2][:30] for each in BAD_CALLS])
def test_metadata_errors_raise_in_the_call(call, error, text):
    with pytest.raises(error, match=text):
        call()
    assert tw.engine().stats()["in_flight"] >= 0
    check(tw.ones(2) + 1, np.full(2, 2, "float32"))


KINDS = {
    "value": tw.ValueError,
    "index": tw.IndexError,
    "kernel": tw.KernelError,
    "runtime": RuntimeError,
    "invalid_argument": ValueError,
    "bad_alloc": MemoryError,
    "unknown": tw.KernelError,
}


def failing(kind: str = "runtime", message: str = "asked to fail") -> tw.Tensor:
    return fail(tw.ones(3), kind=kind, message=message)


needs_pending = pytest.mark.skipif(
    tw.engine().mode == "sync", reason="a synchronous engine raises in the call"
)


@needs_pending
@pytest.mark.parametrize(("kind", "error"), KINDS.items())
def test_failed_values_raise_on_every_read(test_engine, kind, error):
    tensor = failing(kind)
    for read in (
        tensor.wait,
        tensor.tolist,
        tensor.numpy,
        lambda: np.asarray(tensor),
        tensor.__dlpack__,
        tensor.wait,
    ):
        with pytest.raises(error, match="test_fail"):
            read()
    with pytest.raises(error):
        fail(tw.ones(()), kind=kind).item()
    with pytest.raises(error):
        bool(fail(tw.ones(()), kind=kind))
    assert tensor.has_failed()
    assert tensor.is_ready()


@needs_pending
def test_the_text_names_operator_device_and_place(test_engine):
    tensor = fail(tw.ones(3), message="the reason")
    line = here() - 1
    with pytest.raises(RuntimeError) as caught:
        tensor.wait()
    text = str(caught.value)
    assert "test_fail" in text
    assert "cpu:0" in text
    assert "the reason" in text
    assert f"test_errors.py:{line}" in text
    assert caught.value.op == "test_fail"
    assert caught.value.device == "cpu:0"
    assert caught.value.site.endswith(f"test_errors.py:{line}")


@needs_pending
def test_functions_of_the_package_are_not_the_place(test_engine):
    tensor = tw.pow(tw.asarray([2]), tw.asarray([-1]))
    line = here() - 1
    with pytest.raises(ValueError, match=f"test_errors.py:{line}"):
        tensor.wait()
    assert re.search(rf"test_errors.py:{here()}", tw._C.current_site())


@needs_pending
def test_dependants_inherit_the_failure(test_engine):
    tensor = failing("value")
    later = ((tensor + 1) * 2).sum()
    view = tensor[0]
    for each in (later, view):
        with pytest.raises(tw.ValueError, match="test_fail failed on cpu:0"):
            each.item()
    check(tw.ones(3) + 1, np.full(3, 2, "float32"))


@needs_pending
def test_repr_of_failed_values(test_engine):
    text = repr(failing("kernel"))
    assert text.startswith("tensor(<failed: KernelError: test_fail failed on cpu:0 at ")
    assert repr(fail(tw.ones((0, 2)))).startswith("tensor(<failed: RuntimeError: ")


@needs_pending
def test_synchronize_raises_the_oldest_unread_failure(test_engine):
    first, second = failing("value"), failing("index")
    with pytest.raises(tw.ValueError) as caught:
        tw.synchronize()
    oldest, count, other = str(caught.value).splitlines()
    assert oldest.startswith("test_fail failed on cpu:0 at ")
    assert count == "and 1 more unread failure:"
    assert other.startswith("  test_fail failed on cpu:0 at ")
    tw.synchronize()
    with pytest.raises(tw.IndexError):
        second.wait()
    third = failing("kernel")
    with pytest.raises(tw.KernelError):
        third.wait()
    tw.synchronize()
    del first


@needs_pending
def test_synchronize_loses_no_failure_behind_an_exception_that_is_not_ours(test_engine):
    first, second = fail(tw.ones(2), message="foreign"), failing("index")
    with pytest.raises(RuntimeError, match="foreign"):
        tw.synchronize()
    with pytest.raises(tw.IndexError):
        tw.synchronize()
    tw.synchronize()
    del first, second


@needs_pending
def test_recover_gives_the_last_good_value(test_engine):
    tensor = tw.ones(3)
    fail.in_place(tensor, message="lost")
    with pytest.raises(RuntimeError, match="lost"):
        tensor.wait()
    assert tensor.recover() is tensor
    check(tensor, np.ones(3, "float32"))
    assert tensor.recover() is tensor
    with pytest.raises(ValueError, match="recover"):
        failing().recover()


@needs_pending
def test_an_in_place_form_on_a_failed_operand(test_engine):
    tensor = tw.asarray([1.0, 2.0])
    fail.in_place(tensor)
    tensor += 1
    with pytest.raises(RuntimeError):
        tensor.wait()
    tensor.recover()
    check(tensor, np.asarray([1, 2], "float32"))


@needs_pending
def test_closing_reports_unread_failures(test_engine):
    tensor = failing("value", "nobody looked")
    unread = test_engine.close()
    assert len(unread) == 1
    assert "nobody looked" in unread[0]
    assert "test_errors.py" in unread[0]
    del tensor


@needs_pending
def test_failures_that_were_looked_at_are_not_reported(test_engine):
    lost = tw.ones(3)
    fail.in_place(lost)
    with pytest.raises(RuntimeError):
        lost.wait()
    recovered = tw.ones(3)
    fail.in_place(recovered)
    assert recovered.recover().tolist() == [1.0, 1.0, 1.0]
    assert test_engine.close() == []


def test_issuing_after_shutdown():
    engine = tw.Engine()
    with engine:
        tensor = tw.ones(3) + 1
        assert engine.close() == []
        assert engine.close() == []
        assert engine.closed
        with pytest.raises(tw.EngineError, match="shut down"):
            tensor + 1
        with pytest.raises(tw.EngineError):
            tw.ones(3)
        check(tensor, np.full(3, 2, "float32"))


def test_tensors_of_two_engines():
    with tw.Engine():
        a = tw.ones(2)
    with tw.Engine():
        b = tw.ones(2)
    with pytest.raises(tw.EngineError, match="another engine"):
        a + b
    with pytest.raises(tw.EngineError):
        a[0] = b[0]


def test_mixed_devices():
    with tw.Engine(cpu_devices=2):
        a, b = tw.ones(2), tw.ones(2, device="cpu:1")
        with pytest.raises(tw.DeviceError, match=r"cpu:0 and cpu:1; bring them together with \.to\(device\)"):
            a + b
        check(a.to("cpu:1") + b, np.full(2, 2, "float32"))
        assert (a.to("cpu:1") + b).device == "cpu:1"
        check(b + tw.asarray(1.0), np.full(2, 2, "float32"))


@pytest.mark.timeout(60)
def test_memory_limit():
    with tw.Engine(memory_limit=1 << 20) as engine:
        small = tw.ones(1000)
        if engine.mode == "sync":
            with pytest.raises(MemoryError):
                tw.ones(1 << 20)
        else:
            large = tw.ones(1 << 20)
            with pytest.raises(tw.OutOfMemoryError, match="full"):
                large.wait()
        check(small + 1, np.full(1000, 2, "float32"))
        with pytest.raises(MemoryError):
            tw.asarray(np.zeros(1 << 20))


@pytest.mark.timeout(300)
def test_deep_chains():
    tensor = tw.zeros(1)
    for _ in range(1_000_000):
        tensor = tensor + 1
    assert tensor.item() == 1_000_000


def test_errors_leak_no_references():
    tensor = tw.ones((2, 3))
    for _ in range(3):
        with pytest.raises(ValueError):
            tensor + tw.ones(4)
    gc.collect()
    before = sys.getrefcount(tensor)
    for _ in range(100):
        with pytest.raises(ValueError):
            tensor + tw.ones(4)
    gc.collect()
    assert sys.getrefcount(tensor) == before


def test_graph_dumps_reach_files(tmp_path):
    import io
    import json

    tensor = tw.ones(3).name_("mine")
    tw.dump_graph(tmp_path / "live.json")
    json.loads((tmp_path / "live.json").read_text())
    text = io.StringIO()
    with tw.record_graph(text):
        (tensor + 1).wait()
    assert '"add"' in text.getvalue()
    json.loads(text.getvalue())
    with (
        tw.record_graph(str(tmp_path / "outer.json")),
        pytest.raises(tw.EngineError),
        tw.record_graph(io.StringIO()),
    ):
        pass


@pytest.mark.parametrize("size", [1, 10, 40_000])
@pytest.mark.parametrize("kept", [False, True])
def test_a_failed_in_place_form_keeps_the_last_good_value(size, kept):
    def index(x):
        x[tw.asarray([10**9])] = 1
        return x

    def mask(x):
        x[tw.zeros(size, dtype="bool")] = tw.ones(3, dtype="int64")
        return x

    def power(x):
        x **= tw.full((size,), -1, dtype="int64")
        return x

    for form in (index, mask, power) if size > 3 else (index, power):
        x = tw.arange(size) + 1
        other = x[:] if kept else None
        x = form(x)
        with pytest.raises(tw.Error):
            x.wait()
        assert x.recover().tolist() == list(range(1, size + 1)), form.__name__
        assert other is None or other.tolist() == list(range(1, size + 1))


def test_code_that_issued_operators_may_die(test_engine):
    source = "def call(tw, fail):\n    x = tw.ones(2) + 1\n    return fail(x, kind='value', message='no')\n"
    codes = []
    for i in range(2000):
        made = {}
        exec(compile(source, f"<made {i % 3}>", "exec"), made)
        result = made["call"](tw, fail)
        codes.append(weakref.ref(made["call"].__code__))
    with pytest.raises(ValueError, match=r"<made 1>:3"):
        result.wait()
    del made, result
    gc.collect()
    assert sum(code() is not None for code in codes) == 0
    with pytest.raises(ValueError, match="no"):
        tw.synchronize()

# test_autograd_anomaly.py: where gradients go wrong. The row of the feature table "Anomaly mode".
from __future__ import annotations

import inspect
import sys
import threading

import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import Function, detect_anomaly, grad, is_anomaly_enabled, set_detect_anomaly


def leaf(values, dtype="float64") -> tw.Tensor:
    return tw.asarray(values, dtype=dtype).requires_grad_()


def line() -> int:
    return inspect.currentframe().f_back.f_lineno


def notes(error) -> list[str]:
    return getattr(error, "__notes__", [])


class Root(Function):
    """A square root whose derivative is NaN at 0."""

    @staticmethod
    def forward(ctx, x):
        y = tw.sqrt(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g / ctx.saved_tensors[0]


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("no derivative today")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64", "complex128"])
def test_anomaly_detect_nan(dtype):
    """The gradient fails where it is read; the error names the function and the line of forward."""
    x = leaf([0.0, 4.0], dtype)
    y = tw.sqrt(x)
    at = line() - 1
    z = (y * 0).sum()
    with detect_anomaly():
        z.backward(tw.asarray(1, dtype=dtype))
    with pytest.raises(_C.ValueError, match="SqrtBackward gave NaN as the gradient of its input 0") as caught:
        x.grad.tolist()
    assert f"{__file__}:{at}" in str(caught.value)


def test_the_nan_is_named_where_it_arose():
    """Nodes behind it see a failed value, which says the same."""
    x, w = leaf([0.0, 4.0]), leaf([1.0, 1.0])
    y = tw.exp(x * w) * x
    z = (Root.apply(y) * 0).sum()
    with detect_anomaly():
        z.backward()
    for each in (x, w):
        with pytest.raises(_C.ValueError, match="RootBackward gave NaN as the gradient of its input 0"):
            each.grad.tolist()
    assert x.grad.has_failed()


def test_other_leaves_keep_their_gradients():
    x, w = leaf([0.0]), leaf([2.0])
    z = (tw.sqrt(x) * 0 + w * 3).sum()
    with detect_anomaly():
        z.backward()
    assert w.grad.item() == 3
    with pytest.raises(_C.ValueError):
        x.grad.item()


def test_the_check_waits_for_nothing(test_engine):
    """backward returns although the values that it checks are not there yet."""
    number = _C.testing.new_gate()
    x = leaf([0.0])
    held = _C.op("test_gate")(tw.zeros(1, dtype="float64"), gate=number)
    with detect_anomaly():
        (tw.sqrt(x + held) * 0).sum().backward()
    assert not x.grad.is_ready()
    _C.testing.open_gate(number)
    with pytest.raises(_C.ValueError, match="SqrtBackward"):
        x.grad.item()


def test_anomaly_mode_no_check_nan():
    x = leaf([0.0])
    z = (tw.sqrt(x) * 0).sum()
    with detect_anomaly(check_nan=False):
        z.backward()
    assert tw.isnan(x.grad).item()


def test_without_anomaly_mode_nothing_is_checked():
    x = leaf([0.0])
    (tw.sqrt(x) * 0).sum().backward()
    assert tw.isnan(x.grad).item()


def test_infinite_gradients_are_none_of_its_business():
    x = leaf([0.0])
    with detect_anomaly():
        tw.sqrt(x).sum().backward()
    assert x.grad.item() == float("inf")


def test_higher_derivatives_pass_the_check():
    x = leaf([2.0])
    with detect_anomaly():
        (first,) = grad((x * x * x).sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)
    assert first.item() == 12 and second.item() == 12


def test_errors_in_backward_get_the_line_of_forward_as_a_note():
    x = leaf([1.0])
    y = Fails.apply(x)
    at = line() - 1
    with pytest.raises(RuntimeError, match="no derivative today") as caught, detect_anomaly():
        y.sum().backward(retain_graph=True)
    assert notes(caught.value) == [f"in FailsBackward, recorded at {__file__}:{at}"]
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert notes(caught.value) == []


def test_errors_of_hooks_and_of_the_graph_get_a_note_too():
    x = leaf([1.0])

    def fail(grad):
        raise KeyError("hook")

    y = x * x
    at = line() - 1
    handle = y.register_hook(fail)
    with pytest.raises(KeyError) as caught, detect_anomaly():
        y.sum().backward(retain_graph=True)
    assert notes(caught.value) == [f"in MultiplyBackward, recorded at {__file__}:{at}"]
    handle.remove()
    y.sum().backward()
    with pytest.raises(_C.EngineError, match="freed by an earlier backward") as caught, detect_anomaly():
        y.sum().backward()
    assert notes(caught.value) == [f"in MultiplyBackward, recorded at {__file__}:{at}"]
    x.register_hook(fail)
    with pytest.raises(KeyError) as caught, detect_anomaly():
        grad((x * 2).sum(), x)
    assert notes(caught.value) == ["in AccumulateGrad, recorded at an unknown place"]


def test_nested_anomaly_names_both_nodes():
    inner_leaf, x = leaf([1.0]), leaf([1.0])
    inner = Fails.apply(inner_leaf).sum()
    y = x * x
    y.register_hook(lambda grad: inner.backward())
    with pytest.raises(RuntimeError) as caught, detect_anomaly():
        y.sum().backward()
    assert [note.split(",")[0] for note in notes(caught.value)] == ["in FailsBackward", "in MultiplyBackward"]


def test_notes_are_shown_by_python():
    if sys.version_info < (3, 11):
        pytest.skip("exceptions have no notes before Python 3.11")
    import traceback

    y = Fails.apply(leaf([1.0]))
    with pytest.raises(RuntimeError) as caught, detect_anomaly():
        y.sum().backward()
    assert "in FailsBackward, recorded at" in "".join(traceback.format_exception(caught.value))


def test_modes_nest_restore_and_are_of_a_thread():
    assert not is_anomaly_enabled()
    found = []
    with detect_anomaly(check_nan=False):
        assert _C.anomaly_mode() == (True, False)
        with detect_anomaly():
            assert _C.anomaly_mode() == (True, True)
        thread = threading.Thread(target=lambda: found.append(is_anomaly_enabled()))
        thread.start()
        thread.join()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert _C.anomaly_mode() == (True, False)
    assert found == [False] and not is_anomaly_enabled()
    with pytest.raises(ZeroDivisionError), detect_anomaly():
        1 / 0  # noqa: B018
    assert not is_anomaly_enabled()


def test_set_detect_anomaly_as_a_function_and_as_a_decorator():
    set_detect_anomaly(True, check_nan=False)
    assert _C.anomaly_mode() == (True, False)
    set_detect_anomaly(False)
    assert not is_anomaly_enabled()

    @set_detect_anomaly(True)
    def inside():
        return is_anomaly_enabled()

    @detect_anomaly()
    def also():
        return _C.anomaly_mode()

    assert not is_anomaly_enabled()
    assert inside() and also() == (True, True)
    assert not is_anomaly_enabled()


def test_check_nan_of_other_dtypes_and_layouts():
    check = _C.op("check_nan")
    x = tw.asarray([[1.0, 2.0], [3.0, float("nan")]])
    assert check(x[:, :1], function="F", input=2).tolist() == [[1.0], [3.0]]
    assert check(tw.zeros((0, 3)), function="F", input=0).shape == (0, 3)
    with pytest.raises(_C.ValueError, match="F gave NaN as the gradient of its input 2"):
        check(x.T, function="F", input=2).tolist()
    with pytest.raises(_C.DTypeError, match="int64 has no NaN"):
        check(tw.asarray([1]), function="F", input=0)
    large = tw.zeros(3_000_000)
    assert check(large, function="F", input=0).sum().item() == 0
    large[2_999_999] = float("nan")
    with pytest.raises(_C.ValueError, match="F gave NaN"):
        check(large, function="F", input=0).sum().item()

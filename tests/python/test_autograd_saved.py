# test_autograd_saved.py: saved-tensor hooks. The row of the feature table of that name.
from __future__ import annotations

import gc
import threading
import weakref

import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import Function, grad
from thalweg.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def same(value):
    return value


def test_saved_variable_packing_unpacking_saved_original_with_hooks():
    """pack sees each saved value once, unpack gets what it returned, and the gradient comes from that."""
    x = leaf([3.0])
    packed = []

    def pack(value):
        packed.append(value.tolist())
        return ("packed", value * 10)

    with saved_tensors_hooks(pack, lambda pair: pair[1]):
        y = x * x  # saves both
        z = y + 1  # saves nothing
    assert packed == [[3.0], [3.0]]
    z.sum().backward()
    assert x.grad.item() == 60


def test_saved_outputs_are_packed_as_soon_as_there_are():
    x = leaf([0.0])
    seen = []
    with saved_tensors_hooks(lambda value: seen.append(value.item()) or value, same):
        y = tw.exp(x)
    assert seen == [1.0]
    y.sum().backward()
    assert x.grad.item() == 1


def test_what_needs_no_gradient_is_not_packed():
    x, constant = leaf([2.0]), tw.asarray([5.0], dtype="float64")
    seen = []
    with saved_tensors_hooks(lambda value: seen.append(value.item()) or value, same):
        _ = x * constant  # saves the constant only
        _ = constant * constant
        with tw.no_grad():
            _ = x * x
    assert seen == [5.0]


def test_setting_default_saved_variable_hooks_twice_should_use_inner():
    x = leaf([3.0])
    with saved_tensors_hooks(lambda value: value * 2, same):
        with saved_tensors_hooks(lambda value: value * 5, same):
            y = x * x
        z = x * x
    (y.sum()).backward()
    assert x.grad.item() == 30
    (z.sum()).backward()
    assert x.grad.item() == 30 + 12


def test_pack_hook_with_inplace_modification_changes_its_own_handle_only():
    """Where PyTorch refuses this, values here cannot change: the handle is pack's own."""
    x = leaf([3.0])

    def pack(value):
        value += 100
        return value - 100

    with saved_tensors_hooks(pack, same):
        y = x * x
    assert x.item() == 3
    y.sum().backward()
    assert x.grad.item() == 6


def test_nothing_in_pack_is_recorded():
    x = leaf([3.0])
    modes = []

    def pack(value):
        modes.append((tw.is_grad_enabled(), (x * x).requires_grad))
        return value

    with saved_tensors_hooks(pack, same):
        _ = x * x
        assert tw.is_grad_enabled()
    assert modes == [(False, False)] * 2


def test_unpack_hooks_exec_count():
    """unpack runs each time that a backward runs the node, and not for nodes that it does not run."""
    x, other = leaf([3.0]), leaf([1.0])
    count = []
    with saved_tensors_hooks(same, lambda value: count.append(1) or value):
        y = (x * x).sum()
        z = (other * other).sum()
    y.backward(retain_graph=True)
    assert len(count) == 2
    y.backward()
    assert len(count) == 4
    with pytest.raises(_C.EngineError, match="freed by an earlier backward"):
        y.backward()
    assert len(count) == 4
    grad(z, other)
    assert len(count) == 6


def test_saved_values_of_higher_derivatives():
    """With create_graph the unpacked values are those of the graph."""
    x = leaf([2.0])
    with saved_tensors_hooks(lambda value: value.tolist(), lambda list_: tw.asarray(list_, dtype="float64")):
        y = (x * x * x).sum()
        (first,) = grad(y, x, create_graph=True)
        (second,) = grad(first.sum(), x)
    assert first.item() == 12 and second.item() == 12


def test_saved_tensor_hooks_custom_error_propagation():
    class CustomError(Exception):
        pass

    def fail(value):
        raise CustomError

    x = leaf([2.0])
    with pytest.raises(CustomError), saved_tensors_hooks(fail, same):
        _ = x * x
    assert _C.saved_tensors_hooks() is None
    with saved_tensors_hooks(same, fail):
        y = x * x
    with pytest.raises(CustomError):
        y.sum().backward()
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.item() == 4


def test_an_error_of_pack_in_an_in_place_form_leaves_a_whole_graph():
    def fail(value):
        raise RuntimeError("no")

    x = leaf([2.0])
    y = x * 1
    with pytest.raises(RuntimeError), saved_tensors_hooks(fail, same):
        y *= x
    (y.sum()).backward()
    assert (y.item(), x.grad.item()) in ((4.0, 4.0), (2.0, 1.0))


@pytest.mark.parametrize(
    ("unpack", "error", "text"),
    [
        (lambda value: 3, _C.DTypeError, "saved_tensors_hooks: unpack returned int, not a Tensor"),
        (lambda value: value[None], _C.ShapeError, "MultiplyBackward: unpack returned shape"),
        (lambda value: value.astype("float32"), _C.DTypeError, "unpack returned float32 for a saved"),
    ],
)
def test_unpack_must_return_a_tensor_like_what_was_saved(unpack, error, text):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = leaf([2.0])
    with saved_tensors_hooks(same, unpack):
        y = x * x
        z = Square.apply(x)
    with pytest.raises(error, match=text):
        y.sum().backward()
    with pytest.raises(error, match="SquareBackward: unpack returned"):
        z.sum().backward()


def test_hooks_of_save_for_backward():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, nothing, y = ctx.saved_tensors
            assert nothing is None
            return 2 * g * x + 0 * y

    x = leaf([3.0])
    packed, unpacked = [], []
    with saved_tensors_hooks(
        lambda value: packed.append(value.item()) or value.item(),
        lambda number: unpacked.append(number) or tw.asarray([number], dtype="float64"),
    ):
        y = Square.apply(x)
    assert packed == [3.0, 9.0] and unpacked == []
    y.sum().backward(retain_graph=True)
    assert x.grad.item() == 6 and unpacked == [3.0, 9.0]
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first, x)
    assert second.item() == 2


def test_functions_without_a_gradient_pack_nothing():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

    with saved_tensors_hooks(lambda value: pytest.fail("packed"), same):
        Keep.apply(tw.ones(2))


def test_saved_tensors_hooks_are_of_a_thread():
    x = leaf([2.0])
    found = []

    def other():
        found.append(_C.saved_tensors_hooks())
        found.append((x * x).requires_grad)

    with saved_tensors_hooks(lambda value: pytest.fail("packed"), same):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [None, True]


def test_disable_saved_tensors_hooks():
    x = leaf([2.0])
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(_C.EngineError, match="not here"), saved_tensors_hooks(same, same):
            pass
        with (
            disable_saved_tensors_hooks("nor here"),
            pytest.raises(_C.EngineError, match="nor here"),
            saved_tensors_hooks(same, same),
        ):
            pass
        with pytest.raises(_C.EngineError, match="not here"), saved_tensors_hooks(same, same):
            pass
    with saved_tensors_hooks(lambda value: value * 2, same):
        with pytest.raises(_C.EngineError, match="too late"), disable_saved_tensors_hooks("too late"):
            pass
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 8
    with pytest.raises(_C.DTypeError, match="expected callables"):
        saved_tensors_hooks(same, 3)
    with pytest.raises(_C.EngineError, match="entered none"):
        _C.pop_saved_tensors_hooks()


def test_node_post_hook_registered_during_unpack_hook():
    x = leaf([2.0])
    seen = []

    def unpack(value):
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].item()))
        return value

    with saved_tensors_hooks(same, unpack):
        y = x * 3 * x
    y.sum().backward()
    assert seen == [2.0, 2.0]


class Token:
    pass


def test_packed_values_are_freed_with_the_graph_and_cycles_collected():
    class Held:
        def __init__(self, value):
            self.value = value

    x = leaf([2.0])
    alive = []

    def pack(value):
        held = Held(value)
        alive.append(weakref.ref(held))
        return held

    with saved_tensors_hooks(pack, lambda held: held.value):
        y = (x * x).sum()
    y.backward()
    assert all(each() is None for each in alive)

    token = Token()

    def pack_with_token(value, token=token):
        return value, token

    with saved_tensors_hooks(pack_with_token, lambda pair: pair[0]):
        y = (x * x).sum()
    token.result = y  # the graph holds the token, and that the graph
    gone = weakref.ref(token)
    del token, y, pack_with_token
    gc.collect()
    assert gone() is None


def test_saved_values_do_not_live_on_beside_their_packed_form():
    size = 100_000
    x = leaf([1.0] * size)
    with saved_tensors_hooks(lambda value: None, lambda nothing: tw.ones(size, dtype="float64")):
        tw.synchronize()
        before = tw.memory_stats()["live_bytes"]
        y = tw.exp(x).sum()
        tw.synchronize()
        assert tw.memory_stats()["live_bytes"] - before < 8 * size
    y.backward()
    assert x.grad[0].item() == 1

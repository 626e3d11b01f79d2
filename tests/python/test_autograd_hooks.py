# test_autograd_hooks.py: hooks of tensors and nodes. The rows of the feature table: hooks (order, when),
# post-accumulate hooks, cycles.
from __future__ import annotations

import gc
import weakref

import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import grad


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def test_hooks_replace_the_gradient_in_order():
    x = leaf([1.0])
    y = x * 2
    y.register_hook(lambda grad: grad + 1)
    y.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: None)
    y.sum().backward()
    assert x.grad.item() == 40


def test_hook_ordering():
    seen = []
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda grad: seen.append("tensor 1"))
    y.grad_fn.register_prehook(lambda grads: seen.append("pre"))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("post"))
    y.register_hook(lambda grad: seen.append("tensor 2"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("accumulated"))
    x.register_hook(lambda grad: seen.append("leaf"))
    y.sum().backward()
    assert seen == ["tensor 1", "tensor 2", "pre", "post", "leaf", "accumulated"]


def test_retained_gradient_is_what_the_tensor_hooks_made_of_it():
    y = leaf([1.0]) * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 3)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    y.sum().backward()
    assert y.grad.item() == 3


def test_node_hooks_replace_gradients():
    x = leaf([1.0])
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + outputs[0], None))
    y.sum().backward()
    assert x.grad.item() == 15


def test_handles_remove_their_hook_also_during_backward():
    x = leaf([1.0])
    seen = []

    def remove_the_other(grad):
        seen.append(1)
        second.remove()

    first = x.register_hook(remove_the_other)
    second = x.register_hook(lambda grad: seen.append(2))
    (x * 2).sum().backward()
    assert seen == [1]
    first.remove()
    first.remove()
    with x.register_hook(lambda grad: seen.append(3)):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [1, 3]


def test_hooks_fire_for_inputs_of_grad_but_node_hooks_only_if_it_runs():
    x = leaf([1.0])
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda grads: seen.append("node"))
    grad((y * 3).sum(), y, retain_graph=True)
    assert seen == ["tensor"]
    x.register_hook(lambda grad: grad * 7)
    assert grad((y * 3).sum(), x)[0].item() == 42 and seen == ["tensor", "tensor", "node"]


def test_hooks_see_the_grad_mode_of_the_backward():
    x = leaf([1.0])
    modes = []
    y = (x * x).sum()
    y.register_hook(lambda grad: modes.append(tw.is_grad_enabled()))
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    with tw.no_grad():
        y.backward()
        assert not tw.is_grad_enabled()
    assert modes == [False, True, False] and tw.is_grad_enabled()


def test_hook_errors_pass_through_and_leave_nothing_behind():
    x = leaf([3.0])
    y = x * x
    handle = y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    handle.remove()
    assert tw.is_grad_enabled()
    y.sum().backward()
    assert x.grad.item() == 6


def test_hooks_must_return_gradients():
    x = leaf([1.0, 2.0])
    for function, error, text in (
        (lambda grad: 3, _C.DTypeError, "returns None or a Tensor, not int"),
        (lambda grad: tw.ones(3, dtype="float64"), _C.ShapeError, r"from \(2,\) to \(3,\)"),
        (lambda grad: tw.ones(2, dtype="float32"), _C.DTypeError, "from float64 to float32"),
    ):
        with x.register_hook(function), pytest.raises(error, match=text):
            (x * 2).sum().backward()
    with pytest.raises(_C.DTypeError, match="callable"):
        x.register_hook(3)
    with pytest.raises(_C.EngineError, match="requires_grad_"):
        tw.ones(2).register_hook(print)


def test_hooks_may_read_values():
    x = leaf([3.0])
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))
    (x * x).sum().backward()
    assert seen == [6.0]


def test_post_accumulate_hooks_see_the_new_gradient():
    x = leaf([3.0])
    seen = []

    def step(parameter):
        seen.append(parameter.grad.item())
        with tw.no_grad():
            parameter -= 0.1 * parameter.grad
        parameter.grad = None

    x.register_post_accumulate_grad_hook(step)
    x.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad))
    (x * x).sum().backward()
    assert seen == [6.0, None] and abs(x.item() - 2.4) < 1e-12 and x.is_leaf


def test_post_accumulate_hook_on_non_leaf_and_with_a_result():
    x = leaf([3.0])
    with pytest.raises(_C.EngineError, match="only leaves"):
        (x * 2).register_post_accumulate_grad_hook(print)
    x.register_post_accumulate_grad_hook(lambda parameter: parameter)
    with pytest.raises(_C.EngineError, match="must return None"):
        (x * 2).sum().backward()


class Token:
    pass


def holding(*objects):
    """A hook that refers to the objects."""

    def hook(_):
        assert objects

    return hook


def dies(make) -> bool:
    """Whether what `make` returns a weak reference to goes with the next collection."""
    gc.collect()
    gc.disable()
    try:
        reference = make()
        gc.collect()
        return reference() is None
    finally:
        gc.enable()


def test_cycles_through_hooks_are_collected():
    def of_a_leaf():
        token, x = Token(), leaf([1.0])
        x.register_hook(holding(token, x))
        (x * 2).sum().backward()
        return weakref.ref(token)

    def of_a_result():
        token = Token()
        y = leaf([1.0]) * 2
        y.register_hook(holding(token, y))
        return weakref.ref(token)

    def of_a_result_behind():
        token, y = Token(), leaf([1.0]) * 2
        z = tw.exp(y)
        y.register_hook(holding(token, z))
        del y
        return weakref.ref(token)

    def of_a_post_accumulate_hook():
        token, x = Token(), leaf([1.0])
        x.register_post_accumulate_grad_hook(holding(token, x))
        return weakref.ref(token)

    for make in (of_a_leaf, of_a_result, of_a_result_behind, of_a_post_accumulate_hook):
        assert dies(make), make.__name__


def test_cycles_through_the_gradient_are_collected():
    def make():
        token, x = Token(), leaf([1.0])
        (x * x).sum().backward()
        gradient = x.grad.requires_grad_()
        gradient.register_hook(holding(token, x))
        return weakref.ref(token)

    assert dies(make)


def test_create_graph_makes_no_cycle():
    token = Token()
    reference = weakref.ref(token)
    x = leaf([3.0])
    y = x * x
    y.register_hook(lambda grad, token=token: None)
    y.sum().backward(create_graph=True)
    assert x.grad.requires_grad
    del token, y, x
    assert reference() is None


def test_tensors_without_gradients_are_not_tracked():
    assert not gc.is_tracked(tw.ones(3)) and not gc.is_tracked(tw.ones(3) + 1)
    x = leaf([1.0])
    assert gc.is_tracked(x) and gc.is_tracked(x * 2)


def test_free_deep_graph():
    x = leaf([1.0])
    y = x
    for _ in range(150_000):
        y = tw.reshape(y, (1,))
    y.backward()
    del y
    assert x.grad.item() == 1

# test_autograd_leaves.py: tensors that require gradients, where gradients are kept, and what in-place forms
# and conversions do. The rows of the feature table: leaf and AccumulateGrad, first and later grads,
# retain_grad, in-place, detach, retain_graph, create_graph, inputs=, undefined grads, errors.
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import grad


def leaf(values, dtype="float64") -> tw.Tensor:
    return tw.asarray(values, dtype=dtype).requires_grad_()


def test_requires_grad_only_for_floats():
    for dtype in ("int64", "bool", "uint8"):
        with pytest.raises(_C.DTypeError, match=rf"{dtype} has no gradient.*astype"):
            tw.ones(2, dtype=dtype).requires_grad_()
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        assert tw.ones(2, dtype=dtype).requires_grad_().requires_grad


def test_requires_grad_false_on_a_non_leaf_raises():
    y = leaf([1.0]) * 2
    with pytest.raises(_C.EngineError, match=r"detach\(\)"):
        y.requires_grad_(False)
    with pytest.raises(_C.EngineError, match=r"detach\(\)"):
        y.requires_grad = False
    y.requires_grad = True


def test_requires_grad_can_be_turned_off_and_on():
    x = leaf([1.0])
    y = (x * x).sum()
    x.requires_grad = False
    y.backward()
    assert x.grad is None and not (x * 2).requires_grad
    x.requires_grad_()
    (x * x).sum().backward()
    assert x.grad.item() == 2


def test_is_leaf():
    x = leaf([1.0])
    assert x.is_leaf and tw.ones(2).is_leaf and not (x * 2).is_leaf and (x * 2).detach().is_leaf


def test_accumulation_keeps_the_same_object():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first and first.tolist() == [4, 8]
    with tw.no_grad():
        x.grad.mul_(0.5)
    assert first.tolist() == [2, 4]
    (x * x).sum().backward()
    assert first.tolist() == [4, 8]


def test_grad_assignment():
    x = leaf([1.0, 2.0])
    x.grad = tw.asarray([1.0, 1.0], dtype="float64")
    given = x.grad
    (x * x).sum().backward()
    assert x.grad is given and given.tolist() == [3, 5]
    x.grad = None
    assert x.grad is None
    x.grad = given
    del x.grad
    assert x.grad is None
    with pytest.raises(_C.ShapeError, match=r"\(3,\).*\(2,\)"):
        x.grad = tw.ones(3, dtype="float64")
    with pytest.raises(_C.DTypeError, match="float32.*float64"):
        x.grad = tw.ones(2, dtype="float32")
    with pytest.raises(_C.DTypeError, match="expected a Tensor or None"):
        x.grad = [1.0, 2.0]
    with pytest.raises(_C.ValueError, match="its own gradient"):
        x.grad = x


def test_a_gradient_of_another_engine_is_refused():
    x = leaf([1.0, 2.0])
    with tw.Engine():
        gradient = tw.ones(2, dtype="float64")
    with pytest.raises(_C.EngineError, match="grad: the gradient belongs to another engine than the tensor"):
        x.grad = gradient
    assert x.grad is None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_first_gradient_is_not_the_users_tensor():
    x = leaf([1.0, 2.0])
    start = tw.ones(2, dtype="float64")
    x.backward(start)
    x.backward(start)
    assert x.grad.tolist() == [2, 2] and start.tolist() == [1, 1]


def test_retain_grad_keeps_and_adds():
    x = leaf([3.0])
    y = x * x
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    z = (y * 2).sum()
    z.backward(retain_graph=True)
    assert y.grad.item() == 2
    z.backward()
    assert y.grad.item() == 4
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(_C.EngineError, match="requires_grad_"):
        tw.ones(2).retain_grad()


def test_retain_grad_follows_in_place_forms():
    x = leaf([3.0])
    y = x * 1
    y.retain_grad()
    y *= 2
    (y * 5).sum().backward()
    assert y.grad.item() == 5 and x.grad.item() == 10


def test_tensor_grad_warns_on_a_plain_non_leaf():
    y = leaf([3.0]) * 2
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None


def test_in_place_on_a_leaf_raises_unless_recording_is_off():
    x = leaf([1.0, 2.0])
    with pytest.raises(_C.EngineError, match="add: a leaf .* no_grad"):
        x += 1
    with pytest.raises(_C.EngineError, match="a leaf"):
        x[0] = 5
    with pytest.raises(_C.EngineError, match="a leaf"):
        x.mul_(2)
    assert x.tolist() == [1, 2]
    with tw.no_grad():
        x += 1
        x[0] = 5
    assert x.is_leaf and x.requires_grad and x.tolist() == [5, 3]
    (x * x).sum().backward()
    assert x.grad.tolist() == [10, 6]


def test_no_grad_in_place_on_a_non_leaf_makes_a_constant():
    y = leaf([1.0]) * 2
    with tw.no_grad():
        y += 1
    assert not y.requires_grad and y.is_leaf


def test_in_place_never_changes_what_was_saved():
    x = leaf([3.0])
    y = x * 1
    z = (y * y).sum()
    y += 100
    y[0] = 7
    z.backward()
    assert x.grad.item() == 6


def test_in_place_records_and_hooks_stay_with_the_old_node():
    x = leaf([3.0])
    y = x * 1
    seen = []
    y.register_hook(lambda grad: seen.append(grad.item()))
    y *= 2
    assert y.grad_fn.name() == "MultiplyBackward"
    (y * 5).sum().backward()
    assert seen == [10.0] and x.grad.item() == 10


def test_setitem_into_a_constant_records():
    x = leaf([3.0])
    y = tw.zeros(3, dtype="float64")
    y[1] = x[0] * 2
    assert y.grad_fn.name() == "SliceAssignBackward"
    (y * y).sum().backward()
    assert x.grad.item() == 24


def test_detach():
    x = leaf([1.0])
    y = x.detach()
    y += 1
    assert x.tolist() == [1] and not y.requires_grad and y.grad_fn is None


def test_backward_twice_without_and_with_saved_values():
    x = leaf([3.0])
    plain = (x + x).sum()
    plain.backward()
    plain.backward()
    assert x.grad.item() == 4
    y = (x * x).sum()
    y.backward()
    with pytest.raises(_C.EngineError, match=r"MultiplyBackward: .*retain_graph=True"):
        y.backward()


def test_part_of_a_graph_that_was_not_visited_stays_usable():
    x, w = leaf([3.0]), leaf([5.0])
    y = x * x
    z = w * w
    (y + z).sum().backward(inputs=[x])
    z.sum().backward()
    assert x.grad.item() == 6 and w.grad.item() == 10


def test_create_graph_and_higher_derivatives():
    x = leaf(2.0)
    (first,) = grad(x**4, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True)
    (third,) = grad(second, x)
    assert (first.item(), second.item(), third.item()) == (32, 48, 48)
    assert second.requires_grad and not third.requires_grad


def test_hessian_vector():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = (x**2 + y * x + y**2).sum()
    z.backward(create_graph=True)
    assert x.grad.requires_grad
    np.testing.assert_allclose(x.grad.detach().numpy(), 2 * np.array([1, 2]) + [3, 4])
    (x.grad * tw.asarray([1.0, 2.0], dtype="float64")).sum().backward()
    np.testing.assert_allclose(x.grad.detach().numpy(), np.array([5, 8]) + 2 * np.array([1, 2]))


def test_grad_returns_and_leaves_dot_grad_alone():
    x, y = leaf([2.0]), leaf([5.0])
    z = x * y
    found = grad(z, [x, y])
    assert [each.tolist() for each in found] == [[5], [2]] and x.grad is None


def test_grad_of_non_leaves_and_of_a_leaf_and_its_descendant():
    x = leaf([2.0])
    y = x * x
    z = y * 3
    assert [each.item() for each in grad(z, [x, y], retain_graph=True)] == [12, 3]
    assert grad(z, z, retain_graph=True)[0].item() == 1


def test_grad_does_not_run_the_node_of_an_input():
    x = leaf([2.0])
    y = x * x
    ran = []
    y.grad_fn.register_hook(lambda inputs, outputs: ran.append(1))
    grad((y * 3).sum(), y, retain_graph=True)
    assert ran == []
    (y * 3).sum().backward(inputs=[y])
    assert ran == [] and y.grad.item() == 3 and x.grad is None


def test_grad_unused_inputs():
    x, y = leaf([2.0]), leaf([5.0])
    with pytest.raises(_C.EngineError, match="input 1 is not used"):
        grad(x * 2, [x, y])
    found = grad(x * 2, [x, y], allow_unused=True)
    assert found[1] is None
    found = grad(x * 2, [x, y], materialize_grads=True)
    assert found[1].tolist() == [0]
    with pytest.raises(_C.ValueError, match="allow_unused"):
        grad(x * 2, [x, y], materialize_grads=True, allow_unused=False)
    with pytest.raises(_C.ValueError, match="no input"):
        grad(x * 2, [])
    with pytest.raises(_C.EngineError, match="input 0 does not require a gradient"):
        grad(x * 2, tw.ones(1))


def test_backward_with_inputs():
    x, y = leaf([2.0]), leaf([5.0])
    z = x * y
    z.backward(inputs=x, retain_graph=True)
    assert x.grad.item() == 5 and y.grad is None
    z.backward(inputs=[y])
    assert y.grad.item() == 2
    with pytest.raises(_C.ValueError, match="inputs is empty"):
        z.backward(inputs=[])


def test_implicit_gradient_only_for_one_real_element():
    x = leaf([1.0, 2.0])
    with pytest.raises(_C.EngineError, match=r"shape \(2,\).*sum\(\)"):
        (x * 2).backward()
    with pytest.raises(_C.EngineError, match="complex128"):
        leaf(1.0, "complex128").backward()
    (x[:1] * 2).backward()
    assert x.grad.tolist() == [2, 0]


def test_explicit_gradient_is_checked():
    x = leaf([1.0, 2.0])
    with pytest.raises(_C.ShapeError, match=r"\(3,\).*\(2,\)"):
        (x * 2).backward(tw.ones(3))
    with pytest.raises(_C.DTypeError, match="complex"):
        (x * 2).backward(tw.ones(2, dtype="complex128"))
    (x * 2).backward(tw.ones(2, dtype="float32"))
    assert x.grad.dtype == "float64"


def test_root_without_a_gradient_raises():
    with pytest.raises(_C.EngineError, match="root 0 does not require a gradient"):
        tw.ones(()).backward()
    with tw.no_grad():
        y = leaf([1.0]) * 2
    with pytest.raises(_C.EngineError, match="does not require"):
        y.backward()


def test_gradients_take_the_dtype_of_the_leaf():
    x = leaf([1.0, 2.0], "float32")
    (x * tw.asarray([1.0, 3.0], dtype="float64")).sum().backward()
    assert x.grad.dtype == "float32" and x.grad.tolist() == [1, 3]


def test_real_leaves_beside_complex_values_get_the_real_part():
    x = leaf([1.0, 2.0])
    (x * tw.asarray([1 + 2j, 3j])).sum().backward(tw.asarray(1j, dtype="complex128"))
    assert x.grad.dtype == "float64" and x.grad.tolist() == [2, 3]


def test_a_failed_gradient_poisons_its_leaf_only_and_recovers(test_engine):
    x, w = leaf([1.0, 2.0], "float32"), leaf([3.0, 4.0], "float32")
    (x * w).sum().backward()
    fail = _C.op("test_fail")
    handle = w.register_hook(lambda grad: fail(grad))
    (x * w).sum().backward()
    handle.remove()
    tw.flush()
    assert x.grad.tolist() == [6, 8]
    with pytest.raises(Exception, match="test_fail"):
        w.grad.wait()
    # An optimiser's step with the failed gradient fails too; both recover to their last good values.
    with tw.no_grad():
        w -= w.grad * 0.1
    with pytest.raises(Exception, match="test_fail"):
        w.wait()
    assert w.recover().tolist() == [3, 4] and w.grad.recover().tolist() == [1, 2]
    assert w.is_leaf and w.requires_grad
    (x * w).sum().backward()
    assert w.grad.tolist() == [2, 4]


def test_conversions_of_tensors_that_require_a_gradient():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(x)
    with pytest.raises(BufferError, match="detach"):
        memoryview(x)
    with pytest.raises(BufferError, match="detach"):
        x.__dlpack__()
    assert x.tolist() == [1, 2] and x[0].item() == 1 and float(x[1]) == 2


def test_repr_shows_the_gradient():
    x = leaf([1.0], "float32")
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MultiplyBackward>)"
    assert repr((x * 2).grad_fn) == "<MultiplyBackward>"


def test_copies_of_leaves_are_leaves():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other is not x and other.is_leaf and other.requires_grad and other.tolist() == [1, 2]
    assert copy.deepcopy(x).grad.tolist() == [2, 4] and copy.copy(x).grad is None
    for function in (copy.deepcopy, pickle.dumps):
        with pytest.raises(_C.EngineError, match=r"detach\(\)"):
            function(x * 2)
    assert copy.copy(x * 2).grad_fn is not None


def test_node_metadata_and_identity():
    y = leaf([1.0]) * 2
    node = y.grad_fn
    node.metadata["place"] = "here"
    assert y.grad_fn is node and y.grad_fn.metadata == {"place": "here"}

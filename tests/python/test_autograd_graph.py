# test_autograd_graph.py: gradient edges, the leaf of an accumulation node, hooks on several tensors. The rows
# of the feature table: gradient edges, leaf and AccumulateGrad, multi-tensor hooks.
from __future__ import annotations

import gc

import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import Function, backward, execution_order, grad
from thalweg.autograd.graph import GradientEdge, get_gradient_edge, register_multi_grad_hook


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def test_the_accumulation_of_a_leaf_has_it_as_its_variable():
    x = leaf([1.0])
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    assert node.variable is x
    with tw.no_grad():
        x += 1
    assert node.variable is x
    with pytest.raises(AttributeError, match="MultiplyBackward has no variable"):
        y.grad_fn.variable  # noqa: B018
    del x
    gc.collect()
    assert node.variable is None


def test_grad_to_node():
    """Edges as inputs of grad, beside tensors, of leaves and of results."""
    x = leaf([1.0, 2.0])
    y = x * x
    z = (y * 3).sum()
    edge_x, edge_y = get_gradient_edge(x), get_gradient_edge(y)
    assert edge_x.node.name() == "AccumulateGrad" and edge_y == GradientEdge(y.grad_fn, 0)
    found = grad(z, [edge_x, y, edge_y, x], retain_graph=True)
    assert [each.tolist() for each in found] == [[6.0, 12.0], [3.0, 3.0], [3.0, 3.0], [6.0, 12.0]]
    assert x.grad is None
    (one,) = grad(z, edge_y)
    assert one.tolist() == [3.0, 3.0]


def test_grad_to_node_inplace():
    """The edge stays with the value that it was asked of."""
    x = leaf([1.0, 2.0])
    y = x * x
    before = get_gradient_edge(y)
    y *= 3
    (through,) = grad(y.sum(), before, retain_graph=True)
    (after,) = grad(y.sum(), y)
    assert through.tolist() == [3.0, 3.0]
    assert after.tolist() == [1.0, 1.0]


def test_grad_to_node_materialize():
    x, unused = leaf([1.0, 2.0]), leaf([[1.0, 2.0, 3.0]])
    edge = get_gradient_edge(unused)
    with pytest.raises(_C.EngineError, match="input 1 is not used"):
        grad(x.sum(), [x, edge])
    assert grad(x.sum(), [edge], allow_unused=True) == (None,)
    (zeros,) = grad(x.sum(), edge, materialize_grads=True)
    assert zeros.tolist() == [[0.0, 0.0, 0.0]] and zeros.dtype == tw.float64


def test_edges_as_roots():
    x = leaf([1.0, 2.0])
    y = x * x
    edge = get_gradient_edge(y)
    del y
    backward(edge, tw.asarray([1.0, 10.0], dtype="float64"), retain_graph=True)
    assert x.grad.tolist() == [2.0, 40.0]
    assert [node.name() for node in execution_order(edge)] == ["MultiplyBackward", "AccumulateGrad"]
    with pytest.raises(_C.EngineError, match="pass a gradient"):
        backward(edge)
    with pytest.raises(_C.ShapeError, match="does not fit a root"):
        backward(edge, tw.ones(3, dtype="float64"))
    (got,) = grad([edge, (x * 5).sum()], x, [tw.ones(2, dtype="float64"), None])
    assert got.tolist() == [7.0, 9.0]


def test_a_scalar_edge_starts_with_one():
    x = leaf(3.0)
    edge = get_gradient_edge(x * x)
    backward(edge, inputs=get_gradient_edge(x))
    assert x.grad.item() == 6


def test_backward_to_node():
    """Edges as inputs of backward: a leaf's adds up, an operator's node runs and adds up nothing."""
    x, w = leaf([1.0]), leaf([5.0])
    y = x * w
    ran = []
    y.grad_fn.register_hook(lambda inputs, outputs: ran.append(outputs[0].item()))
    (y * 2).sum().backward(retain_graph=True, inputs=[get_gradient_edge(x)])
    assert x.grad.item() == 10 and w.grad is None and ran == [2.0]
    (y * 2).sum().backward(inputs=get_gradient_edge(y))
    assert x.grad.item() == 10 and w.grad is None and y.is_leaf is False and ran == [2.0, 2.0]


def test_gradient_edge_output():
    """An edge names one output of several."""
    x = leaf([3.0, 1.0, 2.0])
    second = tw.unstack(x * 2)[1]
    edge = get_gradient_edge(second)
    (got,) = grad(edge, x, tw.asarray(1.0, dtype="float64"))
    assert got.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(_C.IndexError, match="has 1 outputs"):
        grad(GradientEdge(edge.node, 7), x)
    with pytest.raises(_C.IndexError, match="none with the number -1"):
        grad(GradientEdge(edge.node, -1), x)


def test_gradient_edge_graph_ownership():
    x = leaf([2.0])
    edge = get_gradient_edge(x * x * x)
    gc.collect()
    (got,) = grad(edge, x, tw.ones(1, dtype="float64"))
    assert got.tolist() == [12.0]


def test_edges_of_what_has_none_raise():
    with pytest.raises(_C.EngineError, match="requires_grad_"):
        get_gradient_edge(tw.ones(2))
    with pytest.raises(_C.DTypeError, match="expected a Tensor, got int"):
        get_gradient_edge(3)
    x = leaf([1.0])
    with pytest.raises(_C.DTypeError, match="tensors or gradient edges, got int"):
        grad([3], x)
    with pytest.raises(_C.DTypeError, match="expected a node"):
        grad(x.sum(), [(1, 2)])


def test_multi_grad_all_hooks():
    x, y, unreached = leaf([1.0]), leaf([2.0]), leaf([3.0])
    z = x * y
    seen = []
    handle = register_multi_grad_hook([x, z, unreached, y], lambda grads: seen.append(grads))
    (z * 5).sum().backward(retain_graph=True)
    assert len(seen) == 1
    assert [None if each is None else each.item() for each in seen[0]] == [10.0, 5.0, None, 5.0]
    (z * 5).sum().backward(retain_graph=True)
    assert len(seen) == 2
    grad((z * 7).sum(), x, retain_graph=True)  # y is not reached
    assert [None if each is None else each.item() for each in seen[2]] == [14.0, 7.0, None, None]
    handle.remove()
    (z * 5).sum().backward()
    assert len(seen) == 3


def test_multi_grad_any_hooks():
    x, y = leaf([1.0]), leaf([2.0])
    z = x * y
    seen = []
    with register_multi_grad_hook((x, z, y), lambda grad: seen.append(grad.item()), mode="any"):
        (z * 5).sum().backward()
        (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [5.0, 3.0]


def test_multi_grad_hooks_count_each_backward_by_itself():
    """A nested backward, and one that a hook ends with an error, leave nothing for the others."""
    x, y = leaf([1.0]), leaf([2.0])
    seen = []
    register_multi_grad_hook([x, y], lambda grads: seen.append([each.item() for each in grads]))
    nested = (x * y * 10).sum()
    once = x.register_hook(lambda grad: (once.remove(), nested.backward())[0])
    (x * y).sum().backward()
    assert seen == [[20.0, 10.0], [2.0, 1.0]]

    def fail(grad):
        raise RuntimeError("no")

    failing = (y * 1).register_hook(fail)
    z = x * 2
    broken = z.register_hook(fail)
    with pytest.raises(RuntimeError):
        (z + y).sum().backward(retain_graph=True)
    broken.remove()
    failing.remove()
    (z + y).sum().backward()
    assert seen[2:] == [[2.0, 1.0]]


def test_multi_grad_hooks_invalid_mode():
    x = leaf([1.0])
    with pytest.raises(_C.ValueError, match="'all' or 'any'"):
        register_multi_grad_hook([x], print, mode="none")
    with pytest.raises(_C.ValueError, match="there is no tensor"):
        register_multi_grad_hook([], print)
    with pytest.raises(_C.DTypeError, match="callable"):
        register_multi_grad_hook([x], 3)
    with pytest.raises(_C.EngineError, match="requires_grad_"):
        register_multi_grad_hook([x, tw.ones(1)], print)


def test_the_state_of_a_backward_goes_with_it():
    assert _C.backward_state() is None
    x = leaf([1.0])
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append((_C.backward_state(), _C.backward_reaches(y.grad_fn))))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen[0] == seen[1] == ({}, True) and seen[0][0] is not seen[1][0]
    assert _C.backward_reaches(y.grad_fn) is False


def test_hooks_fire_once_for_functions_of_several_outputs():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            return first + 2 * second

    x = leaf([1.0])
    a, b = Twice.apply(x)
    seen = []
    register_multi_grad_hook([a, b], lambda grads: seen.append([each and each.item() for each in grads]))
    (a + b).sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0]] and x.grad.item() == 3

# test_autograd_order.py: which node backward runs when, and in which order contributions are added. The rows
# of the feature table: roots, priority, sequence_nr, predicted order, dependency pass, input buffers.
from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import execution_order


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def names(*roots) -> list[str]:
    return [node.name() for node in execution_order(*roots)]


def ran(root, **options) -> list[str]:
    """The names of the nodes that a backward runs, in order, as post-hooks see them."""
    seen: list[str] = []
    for node in execution_order(root):
        node.register_hook(lambda inputs, outputs, node=node: seen.append(node.name()))
    root.backward(**options)
    return seen


def test_sequence_nr_counts_per_thread_from_zero():
    x = leaf([1.0])
    found = []

    def record():
        with tw.no_grad():
            x + x
        tw.ones(2) + 1  # no input requires a gradient
        found.extend((x + x).grad_fn._sequence_nr() for _ in range(3))

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert found == [0, 1, 2]


def test_sequence_nr_of_accumulation_is_the_largest():
    x = leaf([1.0])
    accumulation = (x * 2).grad_fn.next_functions[0][0]
    assert accumulation.name() == "AccumulateGrad"
    assert accumulation._sequence_nr() == 2**64 - 1


def test_set_sequence_nr_changes_the_order():
    tensors = {name: leaf([1.0]) * 2 for name in "abc"}
    root = tw.concat(list(tensors.values())).sum()
    seen = []
    for name, each in tensors.items():
        each.grad_fn.register_prehook(lambda grads, name=name: seen.append(name))
    root.backward(retain_graph=True)
    tensors["b"].grad_fn._set_sequence_nr(root.grad_fn._sequence_nr())
    root.backward()
    assert seen == ["c", "b", "a", "b", "c", "a"]


def test_next_functions_name_the_producers():
    x, y = leaf([1.0]), tw.ones(1, dtype="float64")
    product = x * y
    (first, number), second = product.grad_fn.next_functions
    assert (first.name(), number, second) == ("AccumulateGrad", 0, (None, 0))
    assert (product + x).grad_fn.next_functions[0][0] is product.grad_fn


def test_leaf_has_one_accumulation_node():
    x = leaf([1.0])
    one, two = (x * 2).grad_fn, (x * 3).grad_fn
    assert one.next_functions[0][0] is two.next_functions[0][0]


def test_execution_order_of_one_path():
    x = leaf([1.0])
    assert names(tw.sin(tw.exp(x)).sum()) == ["SumBackward", "SinBackward", "ExpBackward", "AccumulateGrad"]


def test_execution_order_of_several_leaves_and_roots():
    a, b = leaf([1.0]), leaf([2.0])
    y = a * b
    z = y + a
    assert names(z) == ["AddBackward", "MultiplyBackward", "AccumulateGrad", "AccumulateGrad"]
    assert names(y, z)[0] == "GraphRoot"


def test_execution_order_is_what_backward_does():
    a, b = leaf([1.0]), leaf([2.0])
    root = (tw.tanh(a * b) + tw.exp(a)).sum()
    assert ran(root, retain_graph=True) == names(root)


def test_execution_order_to_some_inputs():
    """Only what lies on a way to an input runs; one that is no leaf gets its gradient without its node."""
    a, b = leaf([1.0]), leaf([2.0])
    y = tw.exp(a)
    root = (y * tw.sin(b)).sum()

    def names_to(inputs):
        return [node.name() for node in execution_order(root, inputs=inputs)]

    assert names_to(a) == ["SumBackward", "MultiplyBackward", "ExpBackward", "AccumulateGrad"]
    assert names_to([b]) == ["SumBackward", "MultiplyBackward", "SinBackward", "AccumulateGrad"]
    assert names_to(y) == ["SumBackward", "MultiplyBackward"]
    edge = tw.autograd.graph.get_gradient_edge(y)
    assert names_to(edge) == ["SumBackward", "MultiplyBackward", "ExpBackward"]
    for inputs in (a, [b], y):
        assert ran(root, inputs=inputs, retain_graph=True) == names_to(inputs)
    with pytest.raises(tw.ValueError, match="execution_order: inputs is empty"):
        execution_order(root, inputs=[])
    with pytest.raises(tw.EngineError, match="execution_order: input 0 does not require a gradient"):
        execution_order(root, inputs=tw.ones(1))


def random_graph(seed: int):
    """A graph of 26 operators over 4 leaves, recorded by one thread."""
    rng = random.Random(seed)
    leaves = [leaf([0.5 + 0.1 * i]) for i in range(4)]
    pool = list(leaves)
    for _ in range(26):
        x, y = rng.choice(pool), rng.choice(pool)
        function = rng.choice([lambda x, y: x + y, lambda x, y: x * y, lambda x, y: tw.tanh(x) - y])
        pool.append(function(x, y))
    root = pool[-1]
    for each in pool[4:-1]:
        root = root + each * 0.5
    return leaves, root.sum()


@pytest.mark.parametrize("seed", range(30))
def test_order_is_descending_and_accumulation_follows_its_last_producer(seed):
    leaves, root = random_graph(seed)
    order = execution_order(root)
    numbers = [node._sequence_nr() for node in order if node.name() != "AccumulateGrad"]
    assert numbers == sorted(numbers, reverse=True)
    place = {id(node): i for i, node in enumerate(order)}
    for i, node in enumerate(order):
        if node.name() != "AccumulateGrad":
            continue
        last = max(
            place[id(each)] for each in order if any(after is node for after, _ in each.next_functions)
        )
        between = order[last + 1 : i]
        assert all(each.name() == "AccumulateGrad" for each in between)


def test_contributions_are_added_in_descending_order_of_their_users():
    x = leaf([1.0])
    y = x * 1
    total = y * 1.0
    total = total + y * 1e20
    total = total + y * -1e20
    total.sum().backward()
    assert x.grad.item() == 1.0  # (-1e20 + 1e20) + 1; forward order would give 0


def test_ties_are_first_in_first_out():
    leaves = [leaf([float(i)]) for i in range(5)]
    seen = []
    for i, each in enumerate(leaves):
        each.register_hook(lambda grad, i=i: seen.append(i))
    tw.concat(leaves).sum().backward()
    assert seen == [0, 1, 2, 3, 4]


def test_duplicate_root_counts_twice():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    tw.autograd.backward([y, y])
    assert x.grad.tolist() == [4, 8]


def test_dependent_roots():
    x = leaf([2.0])
    y = x * x
    z = y * y
    tw.autograd.backward([y, z], [tw.ones(1, dtype="float64")] * 2)
    assert x.grad.tolist() == [4 + 4 * 8]


def test_unused_output_of_several():
    x = leaf(np.arange(6.0).reshape(2, 3))
    first, _ = tw.unstack(x)
    first.sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_reentrant_backward_runs_at_once():
    x = leaf([1.0])
    seen = []

    def nested(grad):
        inner = leaf([2.0])
        with tw.enable_grad():
            (inner * inner).sum().backward()
        seen.append(inner.grad.item())

    y = x * 3
    y.register_hook(nested)
    y.sum().backward()
    assert seen == [4.0] and x.grad.item() == 3


def test_deep_reentrant_backward():
    x = leaf([1.0])
    depth = 0

    def nested(grad):
        nonlocal depth
        depth += 1
        if depth < 200:
            y.backward(tw.ones(1, dtype="float64"), retain_graph=True)

    y = x * 3
    y.register_hook(nested)
    y.backward(tw.ones(1, dtype="float64"), retain_graph=True)
    assert depth == 200 and x.grad.item() == 600


def nested_function(depth: int, modes: set):
    class Nested(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            modes.add((tw.is_grad_enabled(), tw.is_inference_mode_enabled()))
            if depth == 0:
                return g
            with tw.enable_grad():
                q = leaf([1.0])
                y = nested_function(depth - 1, modes).apply(q)
            y.backward()
            return g + q.grad

    return Nested


def test_deep_reentrant_backward_of_functions():
    modes = set()
    threads = threading.active_count()
    for depth in (300, 1000):  # Python's own limit of recursion is 1000 frames
        x = leaf([1.0])
        nested_function(depth, modes).apply(x).backward()
        assert x.grad.item() == depth + 1
    assert modes == {(False, False)}
    assert threading.active_count() == threads


def test_deep_reentrant_backward_goes_on_in_the_same_engine_and_mode():
    with tw.Engine():
        x = leaf([1.0])
        inner = []

        def nested(grad):
            inner.append(True)
            if len(inner) < 150:
                with tw.no_grad():
                    tw.autograd.grad(y, x, retain_graph=True)
            else:
                inner.append((tw.ones(1, dtype="float64") + x.detach()).item() == 2)  # of this engine
            assert not tw.is_grad_enabled()

        y = x * 3
        y.register_hook(nested)
        y.backward()
    assert len(inner) == 151 and all(inner)


def test_deep_reentrant_backward_keeps_hooks_of_saved_tensors_and_anomaly_mode():
    packed, modes = [], []

    def nested(grad):
        modes.append(tw.autograd.is_anomaly_enabled())
        if len(modes) < 100:
            y.backward(retain_graph=True)
            return
        with tw.enable_grad():
            leaf([2.0]) * leaf([3.0])

    y = leaf([1.0]) * 3
    y.register_hook(nested)
    pack = tw.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x)
    with tw.autograd.detect_anomaly(), pack:
        y.backward(retain_graph=True)
    assert modes == [True] * 100 and len(packed) == 2


def test_errors_of_a_deep_reentrant_backward_pass_through():
    count = 0

    def nested(grad):
        nonlocal count
        count += 1
        if count == 130:
            raise KeyError("deep")
        y.backward(retain_graph=True)

    y = leaf([1.0]) * 3
    y.register_hook(nested)
    with pytest.raises(KeyError, match="deep"):
        y.backward(retain_graph=True)
    assert count == 130


def test_concurrent_backward_adds_exactly():
    x = leaf([3.0])
    shared = (x * x).sum()

    def work():
        for _ in range(50):
            shared.backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.item() == 4 * 50 * 6


def gradients(seed: int, **options) -> bytes:
    engine = tw.Engine(**options)
    with engine:
        leaves, root = random_graph(seed)
        root.backward()
        found = b"".join(each.grad.numpy().tobytes() for each in leaves if each.grad is not None)
    engine.close()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_gradients_have_the_same_bits_for_all_workers_and_modes(seed):
    expected = gradients(seed, mode="sync")
    for options in ({"num_threads": 1}, {"num_threads": 2}, {"num_threads": 8}, {"mode": "caller"}):
        assert gradients(seed, **options) == expected


def placed(devices: int) -> bytes:
    """The gradient of a graph whose operators are spread over posed devices."""
    copied = _C.op("to_device")  # Tensor.to makes no copy, and so no node, where the tensor is there already
    engine = tw.Engine(cpu_devices=devices)
    with engine:
        x = tw.asarray(np.linspace(0.1, 2.0, 64), dtype="float32").requires_grad_()
        total = tw.zeros(64, dtype="float32")
        for i in range(8):
            there = copied(x, device=f"cpu:{i % devices}")
            total = total + copied(tw.sin(there * (i + 1)) * tw.exp(there), device="cpu:0")
        total.sum().backward()
        found = x.grad.numpy().tobytes()
    engine.close()
    return found


def test_gradients_have_the_same_bits_for_all_placements():
    assert placed(4) == placed(1) == placed(2)

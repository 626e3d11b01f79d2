# test_autograd_rows.py: which tests show each feature of backward, and those that fit nowhere else.
from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest
import thalweg as tw
from processes import run
from thalweg import _C
from thalweg.autograd import Function, grad

# Feature: the test functions that show it, in tests/python/test_autograd_*.py.
SHOWN_BY = {
    "roots": "duplicate_root_counts_twice dependent_roots implicit_gradient_only_for_one_real_element",
    "cpu work runs on the caller": "backward_runs_on_the_calling_thread",
    "priority": "reentrant_backward_runs_at_once set_sequence_nr_changes_the_order "
    "ties_are_first_in_first_out",
    "sequence_nr": "sequence_nr_counts_per_thread_from_zero sequence_nr_of_accumulation_is_the_largest",
    "predicted order": "execution_order_of_several_leaves_and_roots execution_order_is_what_backward_does "
    "execution_order_to_some_inputs",
    "queue_callback": "callback_adds_callback reentrant_with_callbacks",
    "dependency pass": "unused_output_of_several grad_unreachable_discovery",
    "input buffers": "contributions_are_added_in_descending_order_of_their_users backward_copy",
    "output checks": "invalid_gradients gradients_are_summed_and_cast_to_the_inputs",
    "cross-device hand-off": "gradients_have_the_same_bits_for_all_placements",
    "final sync": "backward_returns_before_the_values_are_there",
    "reentrant backward": "deep_reentrant_backward reentrant_backward_runs_at_once",
    "concurrent backward": "concurrent_backward_adds_exactly",
    "inputs=": "backward_with_inputs grad_of_non_leaves_and_of_a_leaf_and_its_descendant grad_unused_inputs",
    "gradient edges": "grad_to_node grad_to_node_inplace backward_to_node gradient_edge_graph_ownership",
    "retain_graph": "backward_twice_without_and_with_saved_values "
    "part_of_a_graph_that_was_not_visited_stays_usable",
    "create_graph": "create_graph_and_higher_derivatives hessian_vector create_graph_makes_no_cycle",
    "hooks: order": "hook_ordering retained_gradient_is_what_the_tensor_hooks_made_of_it",
    "hooks: when": "hooks_fire_for_inputs_of_grad_but_node_hooks_only_if_it_runs",
    "post-accumulate hook": "post_accumulate_hooks_see_the_new_gradient "
    "post_accumulate_hook_on_non_leaf_and_with_a_result",
    "multi-tensor hooks": "multi_grad_all_hooks multi_grad_any_hooks multi_grad_hooks_invalid_mode",
    "retain_grad": "retain_grad_keeps_and_adds retain_grad_follows_in_place_forms",
    "anomaly mode": "anomaly_detect_nan anomaly_mode_no_check_nan nested_anomaly_names_both_nodes",
    "values instead of version counters": "in_place_never_changes_what_was_saved",
    "in-place forms": "in_place_records_and_hooks_stay_with_the_old_node setitem_into_a_constant_records "
    "in_place_on_a_leaf_raises_unless_recording_is_off",
    "no_grad, enable_grad, set_grad_enabled": "modes_nest_and_restore modes_in_generator_functions "
    "modes_in_coroutines set_grad_enabled_wraps_without_changing_the_callers_mode",
    "inference mode": "inference_mode",
    "detach": "detach",
    "leaf and AccumulateGrad": "leaf_has_one_accumulation_node requires_grad_only_for_floats "
    "the_accumulation_of_a_leaf_has_it_as_its_variable",
    "first gradient": "first_gradient_is_not_the_users_tensor",
    "later gradients": "accumulation_keeps_the_same_object grad_assignment",
    "errors": "errors_of_backward_pass_through hook_errors_pass_through_and_leave_nothing_behind "
    "a_failed_gradient_poisons_its_leaf_only_and_recovers",
    "thread-local state": "hooks_see_the_grad_mode_of_the_backward modes_are_of_a_thread",
    "custom Function": "function_and_its_second_derivatives mark_dirty function_returns_input "
    "return_duplicate once_differentiable",
    "undefined gradients": "materialize_grads none_stays_undefined",
    "checkpoint": "checkpointing_without_reentrant nested_checkpoints checkpoint_detects_non_determinism",
    "saved-tensor hooks": "unpack_hooks_exec_count disable_saved_tensors_hooks "
    "setting_default_saved_variable_hooks_twice_should_use_inner",
    "memory, cycles, depth": "free_deep_graph cycles_through_hooks_are_collected "
    "cycles_through_the_context_are_collected",
    "fork": "backward_in_a_forked_child",
}


def test_every_feature_has_its_tests():
    names = set()
    for path in Path(__file__).parent.glob("test_autograd_*.py"):
        tree = ast.parse(path.read_text())
        names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    missing = {
        feature: name
        for feature, tests in SHOWN_BY.items()
        for name in tests.split()
        if f"test_{name}" not in names
    }
    assert missing == {}


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def test_backward_runs_on_the_calling_thread():
    x = leaf([1.0])
    seen = []

    class Where(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(threading.get_ident())
            return g

    y = Where.apply(x)
    y.register_hook(lambda grad: seen.append(threading.get_ident()))
    idents = []

    def other():
        idents.append(threading.get_ident())
        y.sum().backward()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == idents * 2 and idents[0] != threading.get_ident()


def test_grad_unreachable_discovery():
    """Nothing runs where no input can be reached."""
    x, y = leaf([1.0]), leaf([2.0])
    ran = []
    z = y * 3
    z.grad_fn.register_hook(lambda inputs, outputs: ran.append("z"))
    assert grad((z * 2).sum(), x, allow_unused=True) == (None,)
    (got,) = grad((z * 2 + x * 5).sum(), x)
    assert got.item() == 5 and ran == []


def test_backward_copy():
    """One gradient that goes to three places is added to in none of them."""
    x, y = leaf([1.0]), leaf([1.0])
    a = x * 1
    a.retain_grad()
    b = (a + y) + a
    b.retain_grad()
    given = tw.asarray([1.0], dtype="float64")
    b.backward(given)
    assert (given.item(), b.grad.item(), y.grad.item(), a.grad.item()) == (1, 1, 1, 2)
    y.grad *= 7
    assert (given.item(), b.grad.item()) == (1, 1)


def test_invalid_gradients():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, make):
            ctx.make = make
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return ctx.make(g), None

    x = leaf([[1.0, 2.0, 3.0]])
    for make in (lambda g: tw.ones((2, 2), dtype="float64"), lambda g: g[0], lambda g: g[:, :2]):
        with pytest.raises(
            _C.ShapeError, match="WrongBackward: gradient 0 has shape .* which does not sum to"
        ):
            Wrong.apply(x, make).sum().backward()
    assert x.grad is None
    Wrong.apply(x, lambda g: tw.ones((4, 5, 1, 3), dtype="float64")).sum().backward()
    assert x.grad.tolist() == [[20.0, 20.0, 20.0]]


def test_backward_returns_before_the_values_are_there(test_engine):
    number = _C.testing.new_gate()
    x = leaf([3.0])
    held = _C.op("test_gate")(tw.ones(1, dtype="float64"), gate=number)
    (x * held).sum().backward()
    assert not x.grad.is_ready()
    _C.testing.open_gate(number)
    assert x.grad.item() == 1


def test_return_duplicate():
    """A Function that returns one tensor twice gives one tensor, as in PyTorch, and loses no gradient."""

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, first, second):
            return 2 * (first + second)

    x = leaf([1.0])
    first, second = Twice.apply(x)
    assert first is second
    (first + second).sum().backward()
    assert x.grad.item() == 4


def test_backward_in_a_forked_child():
    run(
        """
        x = tw.asarray([3.0]).requires_grad_()
        y = (x * x).sum()
        y.backward(retain_graph=True)
        child = os.fork()
        if child == 0:
            y.backward()
            os._exit(0 if x.grad.item() == 12 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert x.grad.item() == 6
        """
    )

# test_autograd_checkpoint.py: values that are computed again in backward. The row of the feature table
# "Checkpoint".
from __future__ import annotations

import gc
import threading
import weakref

import pytest
import thalweg as tw
from thalweg import _C, nn
from thalweg.autograd import Function, checkpoint, checkpoint_sequential, grad


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


class Counted:
    """A function that counts its calls, and how far each comes."""

    def __init__(self):
        self.begun = self.ended = 0

    def __call__(self, x, scale=2.0):
        self.begun += 1
        y = tw.sin(x) * tw.exp(x)
        z = y * 0.1 + tw.tanh(y * scale)
        self.ended += 1
        return z


def test_checkpointing_without_reentrant():
    """The same gradients, bit for bit, by one more call of the function."""
    x, plain = leaf([0.5, 1.5]), leaf([0.5, 1.5])
    function = Counted()
    y = checkpoint(function, x, scale=3.0)
    assert function.begun == 1
    expected = Counted()(plain, scale=3.0)
    assert y.tolist() == expected.tolist()
    y.sum().backward()
    expected.sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()
    assert function.begun == 2


def test_the_function_stops_as_soon_as_all_is_there():
    x = leaf([0.5])
    function = Counted()
    checkpoint(function, x).sum().backward()
    assert (function.begun, function.ended) == (2, 1)
    function = Counted()
    checkpoint(function, x, early_stop=False).sum().backward()
    assert (function.begun, function.ended) == (2, 2)


def test_nothing_is_kept_between_forward_and_backward():
    size = 200_000

    def function(x):
        return tw.exp(tw.sin(tw.exp(tw.sin(x)))).sum()

    def grown(run):
        x = leaf([0.5] * size)
        tw.synchronize()
        before = tw.memory_stats()["live_bytes"]
        y = run(x)
        tw.synchronize()
        return tw.memory_stats()["live_bytes"] - before, y

    plain, _y = grown(function)
    kept, _z = grown(lambda x: checkpoint(function, x))
    assert plain >= 2 * 8 * size
    assert kept < 8 * size


def test_access_saved_tensor_twice_without_recomputation_works():
    count = []

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[0].tolist() == ctx.saved_tensors[0].tolist()
            return 2 * ctx.saved_tensors[0] * g

    def function(x):
        count.append(1)
        return Twice.apply(tw.exp(x))

    x = leaf([0.0])
    checkpoint(function, x).sum().backward()
    assert x.grad.item() == 2 and len(count) == 2


def test_retain_graph_computes_again_in_each_backward():
    x = leaf([0.5])
    function = Counted()
    y = checkpoint(function, x).sum()
    y.backward(retain_graph=True)
    first = x.grad.item()
    y.backward()
    assert x.grad.item() == 2 * first and function.begun == 3
    with pytest.raises(_C.EngineError, match="freed by an earlier backward"):
        y.backward()


def test_higher_derivatives_and_grad_with_inputs():
    x, w = leaf([0.5]), leaf([2.0])
    y = checkpoint(lambda x: tw.sin(x) * w * x, x).sum()
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first.sum(), x, retain_graph=True)
    expected = 2 * (2 * tw.cos(x.detach()) - x.detach() * tw.sin(x.detach()))
    assert abs(second.item() - expected.item()) < 1e-12
    y.backward(inputs=[w])
    assert x.grad is None and abs(w.grad.item() - 0.5 * float(tw.sin(x).item())) < 1e-12


def test_checkpoints_in_the_derivative_of_a_checkpoint():
    """A function may take gradients itself."""

    def function(x):
        y = tw.exp(x) * x
        (slope,) = grad(y.sum(), x, create_graph=True)
        return slope * x

    x, plain = leaf([0.5]), leaf([0.5])
    checkpoint(function, x).sum().backward()
    function(plain).sum().backward()
    assert x.grad.item() == plain.grad.item()


def test_nested_checkpoints():
    calls = {"outer": 0, "inner": 0}

    def inner(x):
        calls["inner"] += 1
        return tw.sin(tw.exp(x))

    def outer(x):
        calls["outer"] += 1
        y = checkpoint(inner, tw.exp(x) * 0.1)
        return tw.tanh(checkpoint(inner, y * y))

    def plain(x):
        y = tw.sin(tw.exp(tw.exp(x) * 0.1))
        return tw.tanh(tw.sin(tw.exp(y * y)))

    x, other = leaf([0.5, 1.0]), leaf([0.5, 1.0])
    y = checkpoint(outer, x)
    y.sum().backward()
    plain(other).sum().backward()
    assert x.grad.tolist() == other.grad.tolist()
    assert calls["outer"] >= 2 and calls["inner"] > 4


def test_parameters_that_the_function_reads_get_gradients():
    tw.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = tw.randn(5, 4)
    model(x).square().sum().backward()
    expected = [p.grad.tolist() for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    checkpoint(model, x).square().sum().backward()
    assert [p.grad.tolist() for p in model.parameters()] == expected


def test_random_numbers_are_drawn_again():
    x = tw.ones(1000, dtype="float64").requires_grad_()

    def function(x):
        return tw.sin(x) * (tw.rand(1000, dtype="float64") > 0.5)

    tw.manual_seed(5)
    y = checkpoint(function, x)
    after = tw.default_generator().get_state()
    mask = (y != 0).tolist()
    tw.rand(3)
    between = tw.default_generator().get_state()
    y.sum().backward()
    assert (x.grad != 0).tolist() == mask
    assert tw.default_generator().get_state() == between != after


def test_random_numbers_go_on_where_they_are_not_to_be_preserved():
    x = tw.ones(1000, dtype="float64").requires_grad_()

    def function(x):
        return tw.exp(tw.sin(x)) * tw.rand(1000, dtype="float64")

    tw.manual_seed(5)
    y = checkpoint(function, x, preserve_rng_state=False, early_stop=False)
    before = tw.default_generator().counter
    y.sum().backward()
    assert tw.default_generator().counter > before


def test_checkpoint_detects_non_determinism():
    shape = [(3,), (4,)]

    def other_shape(x):
        weight = tw.ones(shape[0], dtype="float64")
        return (tw.exp(x) * weight.sum()).sum() + (tw.sin(x[0]) * weight).sum()

    x = leaf([1.0, 2.0])
    y = checkpoint(other_shape, x)
    shape.reverse()
    with pytest.raises(_C.EngineError, match=r"tensor \d+ was float64 of shape \(3,\) on cpu.*now .*\(4,\)"):
        y.backward()

    count = [3, 1]

    def fewer(x):
        for _ in range(count[0]):
            x = tw.exp(tw.sin(x))
        return x

    y = checkpoint(fewer, x).sum()
    count.reverse()
    with pytest.raises(_C.EngineError, match="saved 2 tensors, not 6"):
        y.backward()
    y = checkpoint(fewer, x, early_stop=False).sum()
    count.reverse()
    with pytest.raises(_C.EngineError, match="saved 6 tensors, not 2"):
        y.backward()


def test_without_the_check_only_what_is_used_must_fit():
    dtype = ["float64", "float32"]

    def function(x):
        return (tw.exp(x) * tw.ones(2, dtype=dtype[0])).sum()

    x = leaf([1.0, 2.0])
    y = checkpoint(function, x, determinism_check="none")
    dtype.reverse()
    with pytest.raises(_C.DTypeError, match="unpack returned float32"):
        y.backward()


def test_checkpoint_valid_reset_on_error():
    """An error in the function, the first or the second time, leaves no hook behind."""
    fails = [False, True]

    def function(x):
        if fails[0]:
            raise RuntimeError("again")
        return tw.exp(x)

    x = leaf([0.0])
    y = checkpoint(function, x)
    fails.reverse()
    with pytest.raises(RuntimeError, match="again"):
        y.sum().backward()
    assert _C.saved_tensors_hooks() is None and tw.is_grad_enabled() and x.grad is None
    with pytest.raises(RuntimeError, match="again"):
        checkpoint(function, x)
    assert _C.saved_tensors_hooks() is None
    fails.reverse()
    checkpoint(function, x).sum().backward()
    assert x.grad.item() == 1


def test_arguments_are_those_of_the_call():
    """In-place forms afterwards, or in the function, change nothing that backward computes."""

    def function(x, pair):
        x *= pair[0]
        return tw.exp(x) * pair[1]["y"]

    x, a, b = leaf([0.5]), leaf([2.0]), leaf([3.0])
    arg, plain = x * 1, x * 1
    y = checkpoint(function, arg, (a, {"y": b}))
    arg += 100
    expected = grad(tw.exp(plain * a) * b, [x, a, b], tw.ones(1, dtype="float64"))
    found = grad(y, [x, a, b])
    assert [each.item() for each in found] == [each.item() for each in expected]


def test_exceptions_that_the_function_catches_do_not_hide_the_stop():
    calls = []

    def function(x):
        calls.append(1)
        try:
            return tw.exp(tw.sin(x))
        except Exception:
            return x

    x = leaf([0.0])
    checkpoint(function, x).sum().backward()
    assert x.grad.item() == 1 and len(calls) == 2


def test_checkpoint_without_gradients_only_calls():
    function = Counted()
    x = leaf([0.5])
    with tw.no_grad():
        assert not checkpoint(function, x).requires_grad
    assert not checkpoint(function, tw.ones(2)).requires_grad
    assert function.begun == 2


def test_wrong_arguments():
    x = leaf([1.0])
    with pytest.raises(_C.DTypeError, match="expected a callable, got int"):
        checkpoint(3, x)
    with pytest.raises(_C.ValueError, match="leave use_reentrant out"):
        checkpoint(tw.exp, x, use_reentrant=True)
    assert checkpoint(tw.exp, x, use_reentrant=False).item() == tw.exp(x).item()
    with pytest.raises(_C.ValueError, match="'default' or 'none'"):
        checkpoint(tw.exp, x, determinism_check="some")


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_checkpoint_sequential(segments):
    functions = [Counted() for _ in range(5)]
    x, plain = leaf([0.1, 0.2]), leaf([0.1, 0.2])
    checkpoint_sequential(functions, segments, x).sum().backward()
    value = plain
    for function in [Counted() for _ in range(5)]:
        value = function(value)
    value.sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()
    assert [each.begun for each in functions[-1:]] == [1]
    assert sum(each.begun for each in functions) == 5 + 5 // segments * (segments - 1)
    with pytest.raises(_C.ValueError, match="6 segments of 5 functions"):
        checkpoint_sequential(functions, 6, x)


def test_checkpoint_sequential_of_a_module():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    x = tw.ones((2, 3)).requires_grad_()
    checkpoint_sequential(model, 2, x).sum().backward()
    found = x.grad.tolist()
    x.grad = None
    model(x).sum().backward()
    assert x.grad.tolist() == found


def test_names_where_pytorch_has_them():
    from thalweg.utils.checkpoint import checkpoint as same

    assert same is checkpoint is tw.utils.checkpoint.checkpoint
    assert tw.utils.checkpoint.checkpoint_sequential is checkpoint_sequential


def test_checkpoints_in_several_threads():
    """Each backward computes for itself, also of a graph that threads share."""
    x = leaf([0.5, 1.0])
    y = checkpoint(Counted(), x).sum()
    (expected,) = grad(y, x, retain_graph=True)
    found = []

    def run():
        (each,) = grad(y, x, retain_graph=True)
        found.append(each.tolist())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected.tolist()] * 4


def test_what_was_computed_again_goes_with_the_backward():
    class Token:
        pass

    token = Token()
    x = leaf([0.5])
    y = checkpoint(lambda x, token: tw.exp(tw.sin(x)), x, token)
    gone = weakref.ref(token)
    del token
    assert gone() is not None
    y.sum().backward()
    del y
    gc.collect()
    assert gone() is None

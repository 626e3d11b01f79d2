# test_autograd_function.py: functions with derivatives of the user's own. The rows of the feature table:
# custom Function, undefined grads and zeros, unneeded grads, cycles.
from __future__ import annotations

import gc
import weakref

import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import Function, grad, gradcheck, gradgradcheck, once_differentiable


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


class Scaled(Function):
    """x * y * factor."""

    needed = None

    @staticmethod
    def forward(ctx, x, factor, y):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        Scaled.needed = ctx.needs_input_grad
        return g * y * ctx.factor, None, g * x * ctx.factor


def test_function_and_its_second_derivatives():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = Scaled.apply(x, 5, y)
    assert z.grad_fn.name() == "ScaledBackward" and not z.is_leaf
    assert [each[0] and each[0].name() for each in z.grad_fn.next_functions] == [
        "AccumulateGrad", None, "AccumulateGrad",
    ]  # fmt: skip
    z.sum().backward()
    assert x.grad.tolist() == [15, 20] and y.grad.tolist() == [5, 10]
    assert gradcheck(lambda x, y: Scaled.apply(x, 5, y), [x, y])
    assert gradgradcheck(lambda x, y: Scaled.apply(x, 5, y), [x, y])


def test_needs_input_grad_is_that_of_each_backward():
    x, y = leaf([1.0]), leaf([2.0])
    z = Scaled.apply(x, 5, y)
    grad(z, x, retain_graph=True)
    assert Scaled.needed == (True, False, False)
    z.backward()
    assert Scaled.needed == (True, False, True)
    Scaled.apply(x, 5, tw.ones(1, dtype="float64")).backward()
    assert Scaled.needed == (True, False, False)


def test_function_without_a_gradient_to_record():
    assert not Scaled.apply(tw.ones(2), 5, tw.ones(2)).requires_grad
    with tw.no_grad():
        assert not Scaled.apply(leaf([1.0]), 5, leaf([1.0])).requires_grad


@pytest.mark.parametrize("other", [3, "x", [1.0]], ids=str)
def test_only_tensors_are_saved(other):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, other)
            return x * 2

    with pytest.raises(tw.DTypeError, match="^save_for_backward: argument 1 is (int|str|list), not a Tensor"):
        Wrong.apply(leaf([1.0]))
    for function in (_C.alias, lambda x: _C.reinterpret(x, tw.int32)):
        with pytest.raises(tw.DTypeError, match="expected a Tensor, not (int|str|list)"):
            function(other)


def test_saved_tensors_after_free():
    x, y = leaf([1.0]), leaf([2.0])
    z = Scaled.apply(x, 5, y)
    z.backward(retain_graph=True)
    z.backward()
    with pytest.raises(_C.EngineError, match=r"ScaledBackward: .*retain_graph=True"):
        z.backward()


class Exponential(Function):
    @staticmethod
    def forward(x):
        return tw.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output, None)

    @staticmethod
    def backward(ctx, g):
        result, nothing = ctx.saved_tensors
        assert nothing is None
        return g * result


def test_setup_context_and_saved_outputs():
    x = leaf([0.5, 1.0])
    assert gradcheck(Exponential.apply, x)
    assert gradgradcheck(Exponential.apply, x)


def test_saved_outputs_make_no_cycle():
    class Marked(Exponential):
        pass

    x = leaf([0.5])
    y = Marked.apply(x)
    reference = weakref.ref(y)
    del y
    assert reference() is None


def test_in_place_forms_afterwards_do_not_change_what_was_saved():
    x, y = leaf([2.0]) * 1, leaf([3.0])
    z = Scaled.apply(x, 1, y)
    x += 100
    z.backward()
    assert y.grad.item() == 2


def test_several_outputs_some_not_differentiable():
    seen = []

    class Parts(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Parts.materialize)
            low, high, places = x * 2, x * 3, tw.argsort(x)
            ctx.mark_non_differentiable(high)
            return low, high, places, "text"

        @staticmethod
        def backward(ctx, g, marked, integers, text):
            seen.append((marked, integers, text))
            return g * 2

    x = leaf([1.0, 2.0])
    low, high, places, text = Parts.apply(x)
    assert low.requires_grad and not high.requires_grad and not places.requires_grad and text == "text"
    low.sum().backward()
    assert x.grad.tolist() == [2, 2]
    marked, integers, nothing = seen.pop()
    assert marked.tolist() == [0, 0] and marked.dtype == "float64"
    assert integers.tolist() == [0, 0] and integers.dtype == "int64"
    assert nothing is None
    Parts.materialize = False
    Parts.apply(x)[0].sum().backward()
    assert seen == [(None, None, None)]


def test_zeros_are_made_in_the_engine_of_the_gradient():
    pair, seen = make_pair(True)
    with tw.Engine():
        x = leaf([1.0, 2.0])
    pair.apply(x)[0].sum().backward()
    assert (seen[0] + x.detach()).tolist() == [1, 2]


def test_what_saved_nothing_may_run_backward_again():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors == ()
            return g * ctx.factor

    x = leaf([1.0])
    y = Twice.apply(x)
    y.backward()
    y.backward()
    assert x.grad.item() == 4


def test_a_complex_gradient_of_a_real_input_gives_its_real_part():
    class Turned(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * (2 + 3j)

    x = leaf([1.0])
    Turned.apply(x).backward()
    assert x.grad.item() == 2 and x.grad.dtype == "float64"


@pytest.mark.parametrize("method", ["save_for_backward", "mark_dirty", "mark_non_differentiable"])
def test_the_context_takes_tensors_only(method):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            getattr(ctx, method)(x, 3)
            return x

    with pytest.raises(
        _C.DTypeError, match=rf"^{method}: argument \d is int, not a Tensor; keep other values"
    ):
        Wrong.apply(leaf([1.0]))


def make_pair(materialize):
    seen = []

    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first

    return Pair, seen


def test_materialize_grads():
    x = leaf([1.0, 2.0])
    pair, seen = make_pair(True)
    pair.apply(x)[0].sum().backward()
    assert seen[0].tolist() == [0, 0] and seen[0].dtype == "float64"
    pair, seen = make_pair(False)
    pair.apply(x)[0].sum().backward()
    assert seen == [None]


def returning(value):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return value(g) if callable(value) else value

    return Returns


def test_backward_must_return_a_gradient_for_each_input():
    x = leaf([1.0])
    with pytest.raises(_C.EngineError, match="returned 1 gradients for 2 inputs"):
        returning(lambda g: g).apply(x, x).backward()
    with pytest.raises(_C.EngineError, match="returned 3 gradients for 2 inputs"):
        returning(lambda g: (g, g, g)).apply(x, x).backward()
    returning(lambda g: (g, g, None)).apply(x, x).backward()
    assert x.grad.item() == 2
    with pytest.raises(_C.DTypeError, match="returned int"):
        returning(lambda g: (g, 3)).apply(x, x).backward()
    with pytest.raises(_C.ShapeError, match=r"ReturnsBackward: gradient 0 has shape \(3,\)"):
        returning(lambda g: (tw.ones(3, dtype="float64"), None)).apply(leaf([1.0, 2.0]), x).sum().backward()


def test_none_stays_undefined():
    x = leaf([1.0])
    returning(lambda g: (None, None)).apply(x * 2, x * 3).backward()
    assert x.grad is None


def test_gradients_are_summed_and_cast_to_the_inputs():
    x = leaf([1.0])
    returning(lambda g: (tw.ones(5, dtype="float32"), None)).apply(x, tw.ones(1)).backward()
    assert x.grad.dtype == "float64" and x.grad.tolist() == [5]


def test_function_returns_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf([1.0])
    y = Same.apply(x)
    assert y is not x and not y.is_leaf and x.is_leaf
    y.backward()
    assert x.grad.item() == 7


def test_mark_dirty():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf([3.0])
    y = x * 1
    z = Doubled.apply(y)
    assert z is y and y.item() == 6 and y.grad_fn.name() == "DoubledBackward"
    y.backward()
    assert x.grad.item() == 2
    with pytest.raises(_C.EngineError, match="a leaf"):
        Doubled.apply(leaf([1.0]))


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not tw.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf([3.0])
    (first,) = grad(Square.apply(x), x, create_graph=True)
    assert first.item() == 6
    with pytest.raises(_C.EngineError, match="once_differentiable"):
        first.backward()


def test_errors_of_backward_pass_through():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(leaf([1.0])).backward()


def test_cycles_through_the_context_are_collected():
    class Token:
        pass

    class Cyclic(Function):
        @staticmethod
        def forward(ctx, x, token):
            ctx.token = token
            ctx.holder = token.holder
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g, None

    token = Token()
    token.holder = []
    y = Cyclic.apply(leaf([1.0]), token)
    token.holder.append(tw.exp(y))
    reference = weakref.ref(token)
    del token, y
    gc.collect()
    assert reference() is None

# test_autograd_callbacks.py: what runs at the end of a backward.
from __future__ import annotations

import threading

import pytest
import thalweg as tw
from thalweg.autograd import Function, grad, queue_callback


def leaf(*values):
    return tw.asarray([float(each) for each in values]).requires_grad_()


def test_callbacks_run_after_all_nodes_in_order():
    x, ran = leaf(1, 2), []

    def hook(gradient):
        ran.append("hook")
        queue_callback(lambda: ran.append(("first", x.grad.tolist())))
        queue_callback(lambda: ran.append("second"))

    y = x * 3
    y.register_hook(hook)
    (y * y).sum().backward()
    assert ran == ["hook", ("first", [18.0, 36.0]), "second"]


def test_callback_adds_callback():
    x, ran = leaf(1), []

    def callback():
        ran.append(len(ran))
        if len(ran) < 3:
            queue_callback(callback)

    x.register_hook(lambda gradient: queue_callback(callback))
    x.sum().backward()
    assert ran == [0, 1, 2]


@pytest.mark.parametrize("depths", [(0,), (1,), (0, 1)])
def test_reentrant_with_callbacks(depths):
    ran = []

    class Nested(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            if 0 in depths:
                queue_callback(lambda: ran.append("outer"))
            with tw.autograd.enable_grad():
                inner = leaf(2)
                product = inner * inner
                loss = product.sum()
            if 1 in depths:
                product.register_hook(lambda _: queue_callback(lambda: ran.append("inner")))
            loss.backward()
            ran.append("nested over")
            return gradient * inner.grad

    x = leaf(1)
    Nested.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0]
    expected = ["nested over"]
    if 1 in depths:
        expected.insert(0, "inner")
    if 0 in depths:
        expected.append("outer")
    assert ran == expected


def test_callbacks_of_grad():
    x, ran = leaf(1), []
    y = x * 2
    y.register_hook(lambda gradient: queue_callback(lambda: ran.append("end")))
    assert grad(y.sum(), x)[0].tolist() == [2.0]
    assert ran == ["end"]


def test_a_backward_that_raises_drops_its_callbacks():
    x, ran = leaf(1), []
    y = x * 2

    def hook(gradient):
        queue_callback(lambda: ran.append("end"))
        raise KeyError("no")

    handle = y.register_hook(hook)
    loss = y.sum()
    with pytest.raises(KeyError):
        loss.backward(retain_graph=True)
    handle.remove()
    loss.backward()
    assert ran == []


def test_the_error_of_a_callback_passes_through():
    x = leaf(1)
    x.register_hook(lambda gradient: queue_callback(lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()
    assert x.grad.tolist() == [1.0]
    with pytest.raises(tw.EngineError, match="no backward runs on this thread"):
        queue_callback(lambda: None)


def test_callbacks_belong_to_a_thread():
    x, errors = leaf(1), []

    def elsewhere():
        try:
            queue_callback(lambda: None)
        except tw.EngineError as error:
            errors.append(str(error))

    def hook(gradient):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    x.register_hook(hook)
    x.sum().backward()
    assert len(errors) == 1


def test_what_is_no_callback():
    with pytest.raises(tw.DTypeError, match="queue_callback: expected a function, got int"):
        queue_callback(3)
    with pytest.raises(tw.EngineError, match="queue_callback: no backward runs on this thread"):
        queue_callback(print)

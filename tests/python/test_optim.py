# test_optim.py: optimisers, schedules and clipping, beside torch's where it is there.
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import thalweg as tw
from thalweg import optim

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.05, "momentum": 0.9, "dampening": 0.1},
    "SGD nesterov": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.1},
    "Adam decay": {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    "AdamW": {"lr": 0.05, "weight_decay": 0.2},
}


def leaf(*values):
    return tw.nn.Parameter(tw.asarray(values))


@needs_torch
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_are_torchs(kind):
    start = np.random.default_rng(7).standard_normal((4, 3))
    goal = np.random.default_rng(8).standard_normal((4, 3))
    ours = tw.nn.Parameter(tw.asarray(start))
    theirs = torch.tensor(start, requires_grad=True)
    name = kind.split()[0]
    a = getattr(optim, name)([ours], **OPTIMIZERS[kind])
    b = getattr(torch.optim, name)([theirs], **OPTIMIZERS[kind])
    for _ in range(20):
        for optimizer, weight, target in ((a, ours, tw.asarray(goal)), (b, theirs, torch.tensor(goal))):
            optimizer.zero_grad()
            (((weight - target) ** 2).sum() + weight.sum()).backward()
            optimizer.step()
    assert np.allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_a_parameter_without_gradient_stays():
    used, unused = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([used, unused], lr=1.0)
    (used * 3).sum().backward()
    optimizer.step()
    assert (used.item(), unused.item()) == (-2.0, 1.0)
    assert used.is_leaf
    assert used.requires_grad


def test_groups_have_options_of_their_own():
    fast, slow = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([{"params": [fast], "lr": 1.0}, {"params": [slow]}], lr=0.25)
    (fast + slow).sum().backward()
    optimizer.step()
    assert (fast.item(), slow.item()) == (0.0, 0.75)


@pytest.mark.parametrize("kind", ["SGD momentum", "AdamW"])
def test_state_can_be_saved_and_taken_up_again(kind):
    def run(weight, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            optimizer.step()

    make = getattr(optim, kind.split()[0])
    whole = leaf(1.0, -2.0)
    run(whole, make([whole], **OPTIMIZERS[kind]), 6)
    part = leaf(1.0, -2.0)
    first = make([part], **OPTIMIZERS[kind])
    run(part, first, 3)
    again = tw.nn.Parameter(part.detach())
    second = make([again], lr=7.0)
    second.load_state_dict(first.state_dict())
    run(again, second, 3)
    assert again.tolist() == whole.tolist()
    with pytest.raises(ValueError, match=r"groups of \[1\] parameters, here \[2\]"):
        make([leaf(1.0), leaf(2.0)]).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.SGD([]), "there is no parameter"),
        (lambda: optim.SGD([leaf(1.0) * 2]), "no leaf"),
        (lambda: optim.SGD([leaf(1.0)], lr=-1), "lr is -1"),
        (lambda: optim.SGD([leaf(1.0)], nesterov=True), "nesterov needs a momentum"),
        (lambda: optim.Adam([leaf(1.0)], betas=(1.0, 0.9)), "betas"),
        (lambda: optim.SGD([{"params": [leaf(1.0)], "speed": 1}]), "no option is called 'speed'"),
        (lambda: optim.SGD([{"params": [leaf(1.0)], "lr": -2}]), "lr is -2"),
        (lambda: optim.SGD([{"lr": 1.0}]), "needs the key 'params', it has"),
        (lambda: optim.SGD([leaf(1.0)], lr=float("nan")), "lr is nan"),
        (lambda: optim.Adam([leaf(1.0)], betas=0.9), "betas is 0.9; it must be a pair"),
        (lambda: optim.StepLR(optim.SGD([leaf(1.0)]), 0), "step_size is 0"),
        (lambda: optim.CosineAnnealingLR(optim.SGD([leaf(1.0)]), 2.5), "T_max is 2.5"),
    ],
)
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.SGD(leaf(1.0, 2.0)), "SGD: params must be several tensors, not one Tensor"),
        (lambda: optim.SGD(3), "SGD: params must be tensors or dicts, not int"),
        (lambda: optim.SGD([{"params": [leaf(1.0)]}, leaf(1.0)]), "beside dicts, params has a"),
        (lambda: optim.SGD([leaf(1.0)], lr="a"), "SGD: lr must be a number, not str"),
        (lambda: optim.AdamW([leaf(1.0)], betas=(0.9, "b")), r"AdamW: betas\[1\] must be a number, not str"),
        (lambda: optim.SGD([leaf(1.0)]).step(3), "step: closure must be a function, not int"),
        (lambda: optim.StepLR(leaf(1.0), 2), "StepLR: optimizer must be an Optimizer, not"),
        (
            lambda: optim.StepLR(optim.SGD([leaf(1.0)]), 2).load_state_dict({}),
            "state of StepLR must be",
        ),
        (
            lambda: optim.clip_grad_norm_([leaf(1.0)], "a"),
            "max_norm must be a number, not str",
        ),
        (lambda: optim.clip_grad_value_([leaf(1.0)], None), "clip_value must be a number, not NoneType"),
        (lambda: optim.clip_grad_norm_([3], 1.0), "clip_grad_norm_: a parameter must be a Tensor, not int"),
    ],
)
def test_what_has_another_type_is_refused(make, text):
    with pytest.raises(TypeError, match=text):
        make()


def test_a_group_may_be_one_tensor():
    weight = leaf(1.0, 2.0)
    (weight * 2).sum().backward()
    optim.SGD([{"params": weight}], lr=1.0).step()
    assert weight.tolist() == [-1.0, 0.0]


def test_a_parameter_may_be_given_once_only():
    weight = leaf(1.0)
    with pytest.raises(ValueError, match="given twice"):
        optim.SGD([weight, weight])
    with pytest.raises(TypeError, match="must be a Tensor, not str"):
        optim.SGD(["weight"])


@needs_torch
def test_schedules_are_torchs():
    ours, theirs = optim.SGD([leaf(1.0)], lr=0.5), torch.optim.SGD([torch.ones(1)], lr=0.5)
    for mine, other in (
        (optim.StepLR(ours, 3, 0.5), torch.optim.lr_scheduler.StepLR(theirs, 3, 0.5)),
        (optim.CosineAnnealingLR(ours, 8, 0.01), torch.optim.lr_scheduler.CosineAnnealingLR(theirs, 8, 0.01)),
    ):
        for _ in range(8):
            theirs.step()
            mine.step()
            other.step()
            assert np.allclose(mine.get_last_lr(), other.get_last_lr())
        ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 0.5


def test_clipping():
    a, b = leaf(3.0), leaf(4.0)
    (a * 3 + b * 4).sum().backward()
    norm = optim.clip_grad_norm_([a, b], 2.5)
    assert norm.item() == 5.0
    assert np.allclose([a.grad.item(), b.grad.item()], [1.5, 2.0], rtol=1e-5)
    optim.clip_grad_norm_([a, b], 100.0)  # short enough already
    assert np.allclose([a.grad.item(), b.grad.item()], [1.5, 2.0], rtol=1e-5)
    optim.clip_grad_value_([a, b], 1.75)
    assert np.allclose([a.grad.item(), b.grad.item()], [1.5, 1.75], rtol=1e-5)
    with pytest.raises(ValueError, match="max_norm"):
        optim.clip_grad_norm_([a], float("nan"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("count", [4, 40000])
def test_clipping_of_half_precision_does_not_overflow(dtype, count):
    weight = tw.nn.Parameter(tw.ones(count, dtype=dtype))
    weight.grad = tw.full(count, 300.0, dtype=dtype)
    norm = optim.clip_grad_norm_([weight], 1.0)
    assert norm.dtype == "float32"
    assert norm.item() == pytest.approx(300 * count**0.5, rel=1e-2 if dtype == "bfloat16" else 1e-5)
    assert weight.grad.dtype == dtype
    assert np.allclose(weight.grad.astype("float32").numpy(), count**-0.5, rtol=1e-2)


def test_clipping_over_dtypes():
    half, single = (tw.nn.Parameter(tw.ones(2, dtype=dtype)) for dtype in ("float16", "complex64"))
    half.grad, single.grad = tw.asarray([300.0, 0.0], dtype="float16"), tw.asarray([0.0, 240 + 320j])
    single.grad = single.grad.astype("complex64")
    assert optim.clip_grad_norm_([half, single], 50.0).item() == 500.0
    assert np.allclose(half.grad.astype("float32").numpy(), [30, 0], rtol=1e-3)
    assert np.allclose(single.grad.numpy(), [0, 24 + 32j], rtol=1e-5)


def test_clipping_over_devices():
    with tw.Engine(cpu_devices=2):
        here, there = leaf(1.0), tw.nn.Parameter(tw.asarray([1.0], device="cpu:1"))
        (here * 3).sum().backward()
        (there * 4).sum().backward()
        norm = optim.clip_grad_norm_([there, here], 2.5)
        assert norm.item() == 5.0
        assert str(norm.device) == str(there.grad.device) == "cpu:1"
        assert str(here.grad.device) == "cpu:0"
        assert np.allclose([here.grad.item(), there.grad.item()], [1.5, 2.0], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_adam_of_half_precision_neither_overflows_nor_divides_by_zero(kind, dtype):
    weight = tw.nn.Parameter(tw.ones(4, dtype=dtype))
    optimizer = getattr(optim, kind)([weight], lr=0.125, weight_decay=0)
    weight.grad = tw.asarray([300.0, -60000.0, 0.0, 1e-6]).astype(dtype)
    optimizer.step()
    assert weight.dtype == dtype
    assert weight.astype("float32").tolist() == pytest.approx([0.875, 1.125, 1.0, 0.875], rel=1e-2)


@pytest.mark.parametrize("kind", ["SGD momentum", "Adam"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_have_a_state_of_their_own(kind, again):
    def step(optimizer):
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = tw.asarray([1.0, -3.0])
        optimizer.step()
        return [each.tolist() for each in optimizer.param_groups[0]["params"]]

    weights = [leaf(1.0, -2.0), leaf(3.0, 4.0)]
    original = getattr(optim, kind.split()[0])(weights, **OPTIMIZERS[kind])
    step(original)
    step(original)
    other = again(original)
    assert list(other.state_dict()["state"]) == [0, 1]
    assert not any(a is b for a, b in zip(other.param_groups[0]["params"], weights, strict=True))
    before = [each.tolist() for each in weights]
    moved = step(other)
    assert [each.tolist() for each in weights] == before
    assert step(original) == moved
    assert step(original) == step(other)


def test_a_model_and_its_optimizer_are_copied_together():
    model = tw.nn.Linear(2, 1)
    pair = {"model": model, "optimizer": optim.SGD(model.parameters(), lr=0.5, momentum=0.9)}
    model(tw.ones((1, 2))).sum().backward()
    pair["optimizer"].step()
    other = copy.deepcopy(pair)
    assert other["optimizer"].param_groups[0]["params"][0] is other["model"].weight
    assert list(other["optimizer"].state) == list(other["model"].parameters())


def test_state_is_not_taken_for_that_of_a_new_tensor():
    optimizer = optim.SGD([leaf(1.0), leaf(2.0)], lr=1.0, momentum=0.9)
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = tw.asarray([1.0])
    optimizer.step()
    del parameter, optimizer.param_groups[0]["params"][0]
    fresh = [leaf(0.0) for _ in range(100)]
    assert not any(each in optimizer.state for each in fresh)
    assert list(optimizer.state_dict()["state"]) == [0]


def load(state):
    weights = [leaf(1.0), leaf(2.0)]
    optimizer = optim.SGD(weights, lr=0.25, momentum=0.5)
    for weight in weights:
        weight.grad = tw.asarray([1.0])
    optimizer.step()
    before = optimizer.state_dict()
    try:
        optimizer.load_state_dict(state(before) if callable(state) else state)
    finally:
        after = optimizer.state_dict()
        assert after["param_groups"] == before["param_groups"]
        assert all(after["state"][i]["momentum"].item() == 1.0 for i in range(2))


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        ({}, TypeError, r"the keys 'state' and 'param_groups', not a mapping with the keys \[\]"),
        ([], TypeError, "the keys 'state' and 'param_groups', not list"),
        (lambda s: {**s, "state": {5: {}}}, ValueError, "state of parameter 5, which no group has"),
        (lambda s: {**s, "state": {0: 3}}, TypeError, "state of parameter 0 must be a mapping, not int"),
        (lambda s: {**s, "param_groups": [3]}, TypeError, "every group must be a mapping"),
        (
            lambda s: optim.Adam([leaf(1.0), leaf(2.0)]).state_dict(),
            ValueError,
            "SGD has no option 'betas'",
        ),
        (
            lambda s: {**s, "param_groups": [{**s["param_groups"][0], "lr": -1}]},
            ValueError,
            "lr is -1",
        ),
    ],
)
def test_a_state_that_is_none_changes_nothing(state, error, text):
    with pytest.raises(error, match=text):
        load(state)


def test_state_comes_to_the_device_of_the_parameter():
    with tw.Engine(cpu_devices=2):
        here, there = leaf(1.0), tw.nn.Parameter(tw.asarray([1.0], device="cpu:1"))
        here.grad = tw.asarray([2.0])
        first, second = (optim.SGD([each], lr=0.5, momentum=0.5) for each in (here, there))
        first.step()
        second.load_state_dict(first.state_dict())
        there.grad = tw.asarray([4.0], device="cpu:1")
        second.step()
        assert there.item() == 1.0 - 0.5 * (0.5 * 2.0 + 4.0)


def test_a_closure_computes_the_loss():
    weight = leaf(2.0)
    optimizer = optim.SGD([weight], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    with tw.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert weight.item() == 1.0
    assert optimizer.step() is None


def test_leaves_that_require_no_gradient_are_taken():
    plain = tw.ones(1)
    optimizer = optim.SGD([plain], lr=1.0)
    optimizer.step()
    assert plain.item() == 1.0
    plain.grad = tw.asarray([3.0])
    optimizer.step()
    assert plain.item() == -2.0


def test_a_step_waits_for_nothing():
    weight = leaf(*[1.0] * 100)
    optimizer = optim.Adam([weight], lr=0.1)
    before = tw.sync_count()
    for _ in range(5):
        optimizer.zero_grad()
        (weight**2).sum().backward()
        optim.clip_grad_norm_([weight], 1.0)
        optimizer.step()
    assert tw.sync_count() == before

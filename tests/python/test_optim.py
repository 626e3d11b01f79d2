# test_optim.py: optimisers, schedules and clipping, beside torch's where it is there.
from __future__ import annotations

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
    ],
)
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


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

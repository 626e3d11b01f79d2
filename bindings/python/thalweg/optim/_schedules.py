# _schedules.py: learning rates that change with the number of steps.
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from thalweg import _C
from thalweg.optim._optimizers import Optimizer


class _Schedule:
    """Sets lr of every group to a factor times what it was when the schedule was made."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise _C.DTypeError(
                f"{type(self).__name__}: optimizer must be an Optimizer, not {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_step = 0

    def step(self) -> None:
        """One more step is done: sets the next learning rate."""
        self.last_step += 1
        for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = self._lr(base)

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, object]:
        """The number of steps and the first learning rates."""
        return {"last_step": self.last_step, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes over what state_dict returned; the next step sets the learning rate. Raises DTypeError for
        what is no such state."""
        if not (isinstance(state, Mapping) and {"last_step", "base_lrs"} <= set(state)):
            raise _C.DTypeError(
                f"load_state_dict: state of {type(self).__name__} must be what state_dict() returns, a "
                "mapping with the keys 'last_step' and 'base_lrs'"
            )
        self.last_step, self.base_lrs = int(state["last_step"]), list(state["base_lrs"])

    def _lr(self, base: float) -> float:
        raise NotImplementedError


def _steps(name: str, option: str, value: int) -> None:
    if not isinstance(value, int) or value < 1:
        raise _C.ValueError(f"{name}: {option} is {value!r}; it must be an int of at least 1")


class StepLR(_Schedule):
    """lr times gamma after every step_size steps. Raises ValueError for a step_size below 1. PyTorch's
    optim.lr_scheduler.StepLR.

    >>> optimizer = tw.optim.SGD([tw.nn.Parameter(tw.ones(1))], lr=1.0)
    >>> schedule = tw.optim.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4): schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        _steps("StepLR", "step_size", step_size)
        super().__init__(optimizer)
        self.step_size, self.gamma = step_size, gamma

    def _lr(self, base: float) -> float:
        return base * self.gamma ** (self.last_step // self.step_size)


class CosineAnnealingLR(_Schedule):
    """lr from its first value to eta_min along half a cosine of T_max steps, and eta_min after that.
    Raises ValueError for a T_max below 1. Loshchilov and Hutter, SGDR (ICLR 2017), without restarts.

    >>> optimizer = tw.optim.SGD([tw.nn.Parameter(tw.ones(1))], lr=1.0)
    >>> schedule = tw.optim.CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule.step()
    >>> round(schedule.get_last_lr()[0], 6)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:  # noqa: N803
        _steps("CosineAnnealingLR", "T_max", T_max)
        super().__init__(optimizer)
        self.T_max, self.eta_min = T_max, eta_min

    def _lr(self, base: float) -> float:
        share = min(self.last_step, self.T_max) / self.T_max
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * share)) / 2

# thalweg.optim: optimisers, schedules of the learning rate, and clipping.
"""Optimisers change their parameters in place, under no_grad; nothing waits, so that a step overlaps with
what comes next. Read a value, or call thalweg.synchronize, to wait."""

from thalweg.optim._clipping import clip_grad_norm_, clip_grad_value_
from thalweg.optim._optimizers import SGD, Adam, AdamW, Optimizer
from thalweg.optim._schedules import CosineAnnealingLR, StepLR

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "Optimizer",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]

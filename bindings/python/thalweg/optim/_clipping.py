# _clipping.py: gradients brought to a largest size.
from __future__ import annotations

from collections.abc import Iterable

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor


def _gradients(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in given if parameter.grad is not None]


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float) -> Tensor:
    """Scales the gradients so that the root of the sum of all their squares is at most max_norm. Returns what
    it was, a 0-d tensor. Never waits. Raises ValueError for a negative max_norm. Pascanu et al., On the
    difficulty of training recurrent neural networks (ICML 2013).

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> (weight * 4).sum().backward()
    >>> tw.optim.clip_grad_norm_([weight], 1.0).item()
    4.0
    >>> round(weight.grad.item(), 4)
    1.0
    """
    if not max_norm >= 0:
        raise _C.ValueError(f"clip_grad_norm_: max_norm is {max_norm!r}; it must be at least 0")
    gradients = _gradients(parameters)
    with tw.no_grad():
        if not gradients:
            return tw.asarray(0.0)
        squares = [tw.sum(tw.square(tw.abs(gradient))) for gradient in gradients]
        norm = tw.sqrt(tw.sum(tw.stack(squares)))
        scale = tw.minimum(max_norm / (norm + 1e-6), 1.0)
        for gradient in gradients:
            gradient *= scale
        return norm


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Brings every element of the gradients into [-clip_value, clip_value]. Never waits.
    Raises ValueError for a negative clip_value. PyTorch's nn.utils.clip_grad_value_.

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> (weight * -4).sum().backward()
    >>> tw.optim.clip_grad_value_([weight], 1.0)
    >>> weight.grad.item()
    -1.0
    """
    if not clip_value >= 0:
        raise _C.ValueError(f"clip_grad_value_: clip_value is {clip_value!r}; it must be at least 0")
    with tw.no_grad():
        for gradient in _gradients(parameters):
            gradient[...] = tw.clip(gradient, -clip_value, clip_value)

# _clipping.py: gradients brought to a largest size.
from __future__ import annotations

from collections.abc import Iterable

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor


def _gradients(name: str, parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for parameter in given:
        if not isinstance(parameter, Tensor):
            raise _C.DTypeError(f"{name}: a parameter must be a Tensor, not {type(parameter).__name__}")
    return [parameter.grad for parameter in given if parameter.grad is not None]


def _limit(name: str, option: str, value: float) -> None:
    if isinstance(value, (str, Tensor)) or not hasattr(type(value), "__float__"):
        raise _C.DTypeError(f"{name}: {option} must be a number, not {type(value).__name__}")
    if not value >= 0:
        raise _C.ValueError(f"{name}: {option} is {value!r}; it must be at least 0")


def _sum_of_squares(gradient: Tensor) -> Tensor:
    if gradient.dtype.kind == "complex floating":
        gradient = tw.abs(gradient)
    elif gradient.dtype in ("float16", "bfloat16"):
        # Squares leave the range of float16 from 256 on.
        gradient = tw.astype(gradient, "float32")
    return tw.sum(tw.square(gradient))


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float) -> Tensor:
    """Scales the gradients so that the root of the sum of all their squares is at most max_norm. Returns what
    it was, a 0-d tensor on the device of the first gradient, of float32 where all are of float16 or bfloat16.
    Gradients may be on several devices. Never waits. Raises ValueError for a negative max_norm and DTypeError
    for one that is no number. Pascanu et al., On the difficulty of training recurrent neural networks (ICML
    2013).

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> (weight * 4).sum().backward()
    >>> tw.optim.clip_grad_norm_([weight], 1.0).item()
    4.0
    >>> round(weight.grad.item(), 4)
    1.0
    """
    _limit("clip_grad_norm_", "max_norm", max_norm)
    gradients = _gradients("clip_grad_norm_", parameters)
    with tw.no_grad():
        if not gradients:
            return tw.asarray(0.0)
        device = gradients[0].device
        squares = [_sum_of_squares(gradient).to(device) for gradient in gradients]
        norm = tw.sqrt(tw.sum(tw.stack(squares)))
        scale = tw.minimum(max_norm / (norm + 1e-6), 1.0)
        for gradient in gradients:
            gradient *= scale.to(gradient.device)
        return norm


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Brings every element of the gradients into [-clip_value, clip_value]. Never waits.
    Raises ValueError for a negative clip_value and DTypeError for one that is no number. PyTorch's
    nn.utils.clip_grad_value_.

    >>> weight = tw.nn.Parameter(tw.asarray([1.0]))
    >>> (weight * -4).sum().backward()
    >>> tw.optim.clip_grad_value_([weight], 1.0)
    >>> weight.grad.item()
    -1.0
    """
    _limit("clip_grad_value_", "clip_value", clip_value)
    with tw.no_grad():
        for gradient in _gradients("clip_grad_value_", parameters):
            gradient[...] = tw.clip(gradient, -clip_value, clip_value)

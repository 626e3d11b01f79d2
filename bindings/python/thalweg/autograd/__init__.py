# autograd: automatic differentiation.
"""Gradients by backward over the operators that were recorded. Semantics follow PyTorch's torch.autograd;
values are immutable, so that no saved value is ever stale.

Functions of the package compose operators, and are differentiable where those are. What reads values on the
way (numpy(), item(), shapes that depend on values) ends the graph there.
"""

from __future__ import annotations

from thalweg.autograd import graph
from thalweg.autograd._anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from thalweg.autograd._backward import backward, execution_order, grad
from thalweg.autograd._callbacks import queue_callback
from thalweg.autograd._checkpoint import checkpoint, checkpoint_sequential
from thalweg.autograd._function import Function, once_differentiable
from thalweg.autograd._function import FunctionContext as FunctionContext
from thalweg.autograd._functional import hessian, jacobian, jvp, vjp
from thalweg.autograd._gradcheck import GradcheckError, gradcheck, gradgradcheck
from thalweg.autograd._modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "enable_grad",
    "execution_order",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "hessian",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "jacobian",
    "jvp",
    "no_grad",
    "once_differentiable",
    "queue_callback",
    "set_detect_anomaly",
    "set_grad_enabled",
    "vjp",
]

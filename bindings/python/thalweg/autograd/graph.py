# graph.py: the recorded graph itself: its edges, hooks on several tensors, saved values.
"""The graph that backward walks: where gradients go, hooks on several tensors, and what becomes of
saved values."""

from __future__ import annotations

from thalweg.autograd._edges import GradientEdge, get_gradient_edge, register_multi_grad_hook
from thalweg.autograd._saved import disable_saved_tensors_hooks, saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
]

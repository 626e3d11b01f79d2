# graph.py: the recorded graph itself: its edges, hooks on several tensors.
"""The graph that backward walks: where gradients go, and hooks on several tensors."""

from __future__ import annotations

from thalweg.autograd._edges import GradientEdge, get_gradient_edge, register_multi_grad_hook

__all__ = [
    "GradientEdge",
    "get_gradient_edge",
    "register_multi_grad_hook",
]

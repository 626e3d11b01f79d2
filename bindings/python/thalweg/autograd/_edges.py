# _edges.py: where gradients go, and hooks on several tensors.
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from thalweg import _C
from thalweg._typing import Any, Tensor


class GradientEdge(NamedTuple):
    """Output `output_nr` of the operator that `node` records, or the accumulation of a leaf (0): where the
    gradient of a tensor goes. backward and grad take it in the place of the tensor, which need not live.

    PyTorch's torch.autograd.graph.GradientEdge.

    >>> x = tw.asarray(3.0).requires_grad_()
    >>> edge = tw.autograd.graph.get_gradient_edge(x * x)
    >>> edge.node.name(), edge.output_nr
    ('MultiplyBackward', 0)
    """

    node: _C.Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of the tensor goes. It keeps the graph behind it alive, and stays what it is when an
    in-place form rebinds the tensor.

    Raises EngineError if the tensor does not require a gradient and DTypeError for what is no tensor.
    PyTorch's torch.autograd.graph.get_gradient_edge.

    >>> x = tw.asarray(3.0).requires_grad_()
    >>> edge = tw.autograd.graph.get_gradient_edge(x * x)
    >>> tw.autograd.grad(edge, x)
    (tensor(6.),)
    """
    return GradientEdge(*_C.gradient_edge(tensor))


class _Handles:
    """Removes several hooks as one."""

    def __init__(self, handles: list[_C.RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *args: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> _Handles:
    """Calls fn once in each backward that brings a gradient to one of the tensors, and gives it these: with
    "all" the list of their gradients when the last of them is complete, None for tensors that this backward
    does not reach; with "any" the first gradient that is complete. What fn returns is ignored. A nested
    backward counts by itself. Where a custom function returns None for what leads to one of the tensors, its
    gradient never comes, and "all" does not call fn. Returns a handle with remove().

    Raises ValueError for no tensors and for another mode, EngineError for a tensor that requires no gradient,
    and DTypeError for what cannot be called. PyTorch's torch.autograd.graph.register_multi_grad_hook.

    >>> x, y = tw.asarray(2.0).requires_grad_(), tw.asarray(3.0).requires_grad_()
    >>> handle = tw.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * y).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise _C.ValueError(f"register_multi_grad_hook: mode is {mode!r}; it is 'all' or 'any'")
    if not callable(fn):
        raise _C.DTypeError("register_multi_grad_hook: expected a callable")
    tensors = list(tensors)
    if not tensors:
        raise _C.ValueError("register_multi_grad_hook: there is no tensor")
    edges = [get_gradient_edge(each) for each in tensors]
    key = object()  # what this hook's state has in a backward
    hook: Callable[..., Any] = fn

    def all_of(place: int) -> Callable[[Tensor], None]:
        def seen(gradient: Tensor) -> None:
            state = _C.backward_state()
            if key not in state:
                reached = [_C.backward_reaches(node) for node, _ in edges]
                state[key] = (sum(reached), [None] * len(edges))
            missing, gradients = state[key]
            gradients[place] = gradient
            state[key] = (missing - 1, gradients)
            if missing == 1:
                hook(gradients)

        return seen

    def any_of(gradient: Tensor) -> None:
        state = _C.backward_state()
        if key not in state:
            state[key] = True
            hook(gradient)

    return _Handles(
        [each.register_hook(all_of(i) if mode == "all" else any_of) for i, each in enumerate(tensors)]
    )

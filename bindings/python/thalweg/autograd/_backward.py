# _backward.py: gradients by backward.
from __future__ import annotations

from collections.abc import Sequence

from thalweg import _C
from thalweg._typing import Any, Tensor
from thalweg.autograd._anomaly import noting_places
from thalweg.autograd._callbacks import running_callbacks
from thalweg.autograd._edges import GradientEdge
from thalweg.autograd._nesting import nesting

Place = Tensor | GradientEdge


def _listed(tensors: Any) -> list[Any]:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, (Tensor, GradientEdge)) else list(tensors)


def _gradients(name: str, gradients: Any, roots: list[Tensor]) -> list[Any]:
    listed = [None] * len(roots) if gradients is None else _listed(gradients)
    if len(listed) != len(roots):
        raise _C.ValueError(f"{name}: {len(listed)} gradients for {len(roots)} roots; one for each is needed")
    return listed


@nesting
def backward(
    tensors: Place | Sequence[Place],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Place | Sequence[Place] | None = None,
) -> None:
    """Adds the gradients of the tensors into `.grad` of the leaves that they depend on, or of `inputs` only.

    grad_tensors: what each tensor's own gradient is; None stands for 1, of a tensor of one real element.
    retain_graph (default: create_graph) keeps what was saved for another backward; create_graph records the
    derivatives for higher ones. Returns when the operators are issued: gradients are ordinary tensors that
    may still be on their way. Contributions are added in an order that depends on the graph only. A
    GradientEdge may stand for a tensor; there is no tensor to keep a gradient at an edge of an operator.

    Raises EngineError for a tensor that requires no gradient, for one of several elements without a gradient
    and for a graph whose saved values an earlier backward let go; ShapeError for a gradient of another shape;
    and ValueError for no inputs. Calls from within backward may nest to any depth. PyTorch's
    torch.autograd.backward.

    >>> x = tw.asarray([1.0, 2.0]).requires_grad_()
    >>> tw.autograd.backward([x * 2, x * x], [tw.ones(2), tw.ones(2)])
    >>> x.grad
    tensor([4., 6.])
    """
    roots = _listed(tensors)
    if inputs is not None and len(_listed(inputs)) == 0:
        raise _C.ValueError("backward: inputs is empty; leave it out to reach all leaves")
    running_callbacks(noting_places(_C.backward))(
        roots,
        _gradients("backward", grad_tensors, roots),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        _listed(inputs),
    )


@nesting
def grad(
    outputs: Place | Sequence[Place],
    inputs: Place | Sequence[Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, added up, with respect to each input; `.grad` stays as it is.

    allow_unused: None for inputs that the outputs do not depend on, instead of an error; materialize_grads:
    zeros for them. The other arguments are those of backward. Only nodes on a way to an input run. A
    GradientEdge may stand for a tensor.

    Raises EngineError as backward, and for an input that is not used or requires no gradient; ValueError for
    no inputs. PyTorch's torch.autograd.grad.

    >>> x = tw.asarray(3.0).requires_grad_()
    >>> (slope,) = tw.autograd.grad(x**3, x, create_graph=True)
    >>> tw.autograd.grad(slope, x)
    (tensor(18.),)
    """
    roots, wanted = _listed(outputs), _listed(inputs)
    if not wanted:
        raise _C.ValueError("grad: there is no input")
    if materialize_grads and allow_unused is False:
        raise _C.ValueError(
            "grad: materialize_grads gives zeros for unused inputs, so allow_unused cannot be False"
        )
    found = running_callbacks(noting_places(_C.grad))(
        roots,
        wanted,
        _gradients("grad", grad_outputs, roots),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
    )
    if materialize_grads:
        return tuple(_zeros(each) if got is None else got for got, each in zip(found, wanted, strict=True))
    if not allow_unused and None in [each if each is None else 0 for each in found]:
        unused = next(i for i, each in enumerate(found) if each is None)
        raise _C.EngineError(
            f"grad: input {unused} is not used by the outputs; pass allow_unused=True for None, or "
            "materialize_grads=True for zeros"
        )
    return tuple(found)


def _zeros(like: Place) -> Tensor:
    from thalweg._creation import zeros, zeros_like

    if isinstance(like, GradientEdge):
        shape, dtype, device = _C.edge_meta(like)
        return zeros(shape, dtype=dtype, device=device)
    return zeros_like(like)


def execution_order(*roots: Place, inputs: Place | Sequence[Place] | None = None) -> list[_C.Node]:
    """The nodes that backward from the roots, or to `inputs` only, would run, in order: gradient accumulation
    first, then the larger number in the order of recording (`_sequence_nr()`), then what was ready first.
    Several roots start under a GraphRoot. The order does not depend on devices, threads or timing.

    Raises EngineError for a root or an input that requires no gradient; ValueError for no inputs. The order
    of PyTorch's torch.autograd.backward, on one device.

    >>> x = tw.ones(2).requires_grad_()
    >>> [node.name() for node in tw.autograd.execution_order((x * 2).sum())]
    ['SumBackward', 'MultiplyBackward', 'AccumulateGrad']
    """
    if inputs is not None and len(_listed(inputs)) == 0:
        raise _C.ValueError("execution_order: inputs is empty; leave it out to reach all leaves")
    return _C.execution_order(roots, _listed(inputs))


def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Place | Sequence[Place] | None = None,
) -> None:
    """Adds the gradients of this tensor into the leaves that it depends on; see autograd.backward.

    Raises as that does. PyTorch's Tensor.backward.

    >>> x = tw.asarray([1.0, 2.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs)

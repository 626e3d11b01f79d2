# _functional.py: derivatives of functions: jacobian, hessian, vjp and jvp.
"""Each takes a function of tensors and the point at which to differentiate it. The point need not require a
gradient. With create_graph the result can be differentiated again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor
from thalweg.autograd._backward import grad


def _leaves(inputs: Tensor | Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if create_graph:
        return [x if x.requires_grad else x.detach().requires_grad_() for x in given]
    return [x.detach().requires_grad_() for x in given]


def _one(name: str, result: Any) -> Tensor:
    if isinstance(result, Tensor):
        return result
    raise _C.DTypeError(f"{name}: the function must return one Tensor, not {type(result).__name__}")


def _like(results: list[Tensor], inputs: Tensor | Sequence[Tensor]) -> Any:
    return results[0] if isinstance(inputs, Tensor) else tuple(results)


def _gradients(output: Tensor, by: list[Tensor], seed: Tensor | None, create_graph: bool) -> list[Tensor]:
    if not output.requires_grad:
        return [tw.zeros_like(x) for x in by]
    found = grad(
        output,
        by,
        seed,
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        materialize_grads=True,
    )
    return list(found)


def vjp(
    function: Callable[..., Tensor],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | None = None,
    *,
    create_graph: bool = False,
) -> tuple[Tensor, Any]:
    """function(*inputs), and the products of v and its Jacobians: one tensor for each input.

    v: of the shape of the output; 1 for an output of one element. Raises ShapeError for another shape and
    DTypeError where the function returns something else than a tensor. PyTorch's torch.func.vjp.

    >>> x = tw.asarray([1.0, 2.0])
    >>> output, product = tw.autograd.vjp(tw.square, x, tw.asarray([1.0, 10.0]))
    >>> product.tolist()
    [2.0, 40.0]
    """
    with tw.enable_grad():
        leaves = _leaves(inputs, create_graph)
        output = _one("vjp", function(*leaves))
        results = _gradients(output, leaves, v, create_graph)
    return (output if create_graph else output.detach()), _like(results, inputs)


def jvp(
    function: Callable[..., Tensor],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor],
    *,
    create_graph: bool = False,
) -> tuple[Tensor, Tensor]:
    """function(*inputs), and the product of its Jacobians and v: of the shape of the output.

    v: one tensor for each input, of its shape. By two backward passes: the product of w and the Jacobian is
    linear in w, and its derivative by w along v is what is asked for. Raises ShapeError for directions of
    another shape and ValueError for another number of them. PyTorch's torch.func.jvp.

    >>> x = tw.asarray([1.0, 2.0])
    >>> output, product = tw.autograd.jvp(tw.square, x, tw.asarray([1.0, 10.0]))
    >>> product.tolist()
    [2.0, 40.0]
    """
    directions = [v] if isinstance(v, Tensor) else list(v)
    with tw.enable_grad():
        leaves = _leaves(inputs, create_graph)
        if len(directions) != len(leaves):
            raise _C.ValueError(
                f"jvp: {len(leaves)} inputs and {len(directions)} directions; give one for each"
            )
        for number, (x, direction) in enumerate(zip(leaves, directions, strict=True)):
            if x.shape != direction.shape:
                raise _C.ShapeError(
                    f"jvp: direction {number} has shape {direction.shape}, its input {x.shape}"
                )
        output = _one("jvp", function(*leaves))
        weight = tw.zeros_like(output.detach()).requires_grad_()
        products = _gradients(output, leaves, weight, create_graph=True)
        total = tw.zeros_like(output.detach())
        for product, direction in zip(products, directions, strict=True):
            if product.requires_grad:
                (part,) = grad(
                    product,
                    [weight],
                    direction,
                    retain_graph=True,
                    create_graph=create_graph,
                    allow_unused=True,
                    materialize_grads=True,
                )
                total = total + part
    return (output if create_graph else output.detach()), total


def jacobian(
    function: Callable[..., Tensor], inputs: Tensor | Sequence[Tensor], *, create_graph: bool = False
) -> Any:
    """The derivatives of every element of the output by every element of the inputs: for each input a tensor
    of shape output.shape + input.shape. Raises DTypeError where the function returns something else than a
    tensor. PyTorch's torch.func.jacrev.

    >>> tw.autograd.jacobian(tw.square, tw.asarray([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with tw.enable_grad():
        leaves = _leaves(inputs, create_graph)
        output = _one("jacobian", function(*leaves))
        rows: list[list[Tensor]] = [[] for _ in leaves]
        basis = tw.reshape(tw.eye(output.size, dtype=output.dtype), (output.size, *output.shape))
        for number in range(output.size):
            for row, gradient in zip(
                rows, _gradients(output, leaves, basis[number], create_graph), strict=True
            ):
                row.append(gradient)
        results = [
            tw.reshape(tw.stack(row), (*output.shape, *x.shape))
            if row
            else tw.zeros((*output.shape, *x.shape), dtype=x.dtype)
            for row, x in zip(rows, leaves, strict=True)
        ]
    return _like(results, inputs)


def hessian(function: Callable[[Tensor], Tensor], x: Tensor, *, create_graph: bool = False) -> Tensor:
    """The second derivatives of a function to one element: of shape x.shape + x.shape.
    Raises ShapeError where the function returns more. PyTorch's torch.func.hessian.

    >>> tw.autograd.hessian(lambda x: tw.sum(x**3), tw.asarray([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def gradient(point: Tensor) -> Tensor:
        output = _one("hessian", function(point))
        if output.size != 1:
            raise _C.ShapeError(
                f"hessian: the function must return one element, not the shape {output.shape}"
            )
        return _gradients(output, [point], None if output.ndim == 0 else tw.ones_like(output), True)[0]

    result: Tensor = jacobian(gradient, x, create_graph=create_graph)
    return result


__all__ = ["hessian", "jacobian", "jvp", "vjp"]

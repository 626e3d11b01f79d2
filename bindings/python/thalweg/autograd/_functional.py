# _functional.py: derivatives of functions: jacobian, hessian, vjp and jvp.
"""Each takes a function of tensors and the point at which to differentiate it. The point need not require a
gradient, and all record under no_grad and in inference_mode too. With create_graph the result can be
differentiated again.

Complex numbers: the Jacobian J is the derivative itself, and the three agree. jvp is J v; vjp is the
adjoint, conj(J).T v, as the gradients of backward are. A function to complex numbers must be holomorphic
where J by complex ones is asked for; a real function of z has the J whose product's real part, Re(J v), is
its change. jvp and vjp are right for all functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import Tensor
from thalweg.autograd._backward import grad


@contextlib.contextmanager
def _recording() -> Iterator[None]:
    with tw.inference_mode(False), tw.enable_grad():
        yield


def _tensors(name: str, what: str, given: Any) -> list[Tensor]:
    if not isinstance(given, (Tensor, list, tuple)):
        raise _C.DTypeError(
            f"{name}: {what} must be a Tensor or several, not {type(given).__name__}; use asarray first"
        )
    listed = [given] if isinstance(given, Tensor) else list(given)
    for number, each in enumerate(listed):
        if not isinstance(each, Tensor):
            raise _C.DTypeError(f"{name}: {what} {number} must be a Tensor, not {type(each).__name__}")
    return listed


def _leaves(name: str, inputs: Tensor | Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    given = _tensors(name, "input", inputs)
    if create_graph:
        return [x if x.requires_grad else x.detach().requires_grad_() for x in given]
    return [x.detach().requires_grad_() for x in given]


def _one(name: str, result: Any) -> Tensor:
    if not isinstance(result, Tensor):
        raise _C.DTypeError(f"{name}: the function must return one Tensor, not {type(result).__name__}")
    if not result.dtype.kind.endswith("floating"):
        raise _C.DTypeError(f"{name}: the function returned {result.dtype}, which has no derivative")
    return result


def _like(results: list[Tensor], inputs: Tensor | Sequence[Tensor]) -> Any:
    return results[0] if isinstance(inputs, Tensor) else tuple(results)


def _is_complex(x: Tensor) -> bool:
    return x.dtype.kind == "complex floating"


def _check_direction(name: str, what: str, v: Tensor, x: Tensor, x_is: str) -> None:
    if v.shape != x.shape:
        raise _C.ShapeError(f"{name}: {what} has shape {v.shape}, its {x_is} {x.shape}")
    if _is_complex(v) and not _is_complex(x):
        raise _C.DTypeError(f"{name}: {what} is {v.dtype}, its {x_is} {x.dtype}; take its real part")
    if v.device != x.device:
        raise _C.DeviceError(
            f"{name}: {what} is on {v.device}, its {x_is} on {x.device}; bring it there with .to(device)"
        )


def _gradients(output: Tensor, by: list[Tensor], seed: Tensor, create_graph: bool) -> list[Tensor]:
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


def _row(output: Tensor, by: list[Tensor], unit: Tensor, create_graph: bool) -> list[Tensor]:
    """The derivatives of the element of output at which unit is 1, by each tensor."""
    # By a complex tensor backward gives the conjugate, and by a real one the real part.
    found = _gradients(output, by, unit, create_graph)
    if not _is_complex(output):
        return [tw.conj(each) if _is_complex(each) else each for each in found]
    turned = found
    if not all(_is_complex(x) for x in by):
        turned = _gradients(output, by, unit * 1j, create_graph)
    return [
        tw.conj(real) if _is_complex(real) else _complex(real) + _complex(imag) * 1j
        for real, imag in zip(found, turned, strict=True)
    ]


def _none(x: Tensor, output: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The derivatives of an output without elements."""
    zeros = tw.zeros_like(x)
    return tw.broadcast_to(_complex(zeros) if _is_complex(output) and not _is_complex(x) else zeros, shape)


def _complex(x: Tensor) -> Tensor:
    return tw.astype(x, "complex128" if x.dtype == "float64" else "complex64")


def vjp(
    function: Callable[..., Tensor],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | None = None,
    *,
    create_graph: bool = False,
) -> tuple[Tensor, Any]:
    """function(*inputs), and the products of v and its Jacobians, conj(J).T v: one tensor for each input.

    v: of the shape of the output; 1 for an output of one element. Raises ShapeError for another shape, and
    DTypeError for inputs that are no tensors, a complex v for a real output and a function that returns
    something else than a floating or complex tensor. PyTorch's torch.func.vjp.

    >>> x = tw.asarray([1.0, 2.0])
    >>> output, product = tw.autograd.vjp(tw.square, x, tw.asarray([1.0, 10.0]))
    >>> product.tolist()
    [2.0, 40.0]
    """
    with _recording():
        leaves = _leaves("vjp", inputs, create_graph)
        output = _one("vjp", function(*leaves))
        if v is not None:
            (v,) = _tensors("vjp", "v", [v])
            _check_direction("vjp", "v", v, output, "output")
        elif output.size != 1:
            raise _C.ShapeError(f"vjp: the output has shape {output.shape}; give v, of that shape")
        else:
            v = tw.ones_like(output.detach())
        results = _gradients(output, leaves, tw.astype(v, output.dtype, copy=False), create_graph)
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
    another shape, ValueError for another number of them, and DTypeError for those that are no tensors or
    complex for a real input and for a function as vjp does. PyTorch's torch.func.jvp.

    >>> x = tw.asarray([1.0, 2.0])
    >>> output, product = tw.autograd.jvp(tw.square, x, tw.asarray([1.0, 10.0]))
    >>> product.tolist()
    [2.0, 40.0]
    """
    with _recording():
        leaves = _leaves("jvp", inputs, create_graph)
        directions = _tensors("jvp", "direction", v)
        if len(directions) != len(leaves):
            raise _C.ValueError(
                f"jvp: {len(leaves)} inputs and {len(directions)} directions; give one for each"
            )
        for number, (x, direction) in enumerate(zip(leaves, directions, strict=True)):
            _check_direction("jvp", f"direction {number}", direction, x, "input")
        directions = [tw.astype(d, x.dtype, copy=False) for d, x in zip(directions, leaves, strict=True)]
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
    of shape output.shape + input.shape, complex where one of the two is.

    By complex numbers it is d output / d z of a holomorphic function, and what is not holomorphic gives
    something else without a word (use jvp); of a real output the conjugate of the gradient. Raises DTypeError
    for inputs that are no tensors and where the function returns something else than one floating or complex
    tensor. PyTorch's torch.func.jacrev; of complex numbers jax.jacrev(holomorphic=True).

    >>> tw.autograd.jacobian(tw.square, tw.asarray([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with _recording():
        leaves = _leaves("jacobian", inputs, create_graph)
        output = _one("jacobian", function(*leaves))
        rows: list[list[Tensor]] = [[] for _ in leaves]
        for number in range(output.size):
            unit = tw.zeros_like(tw.reshape(output.detach(), -1))
            unit[number] = 1
            found = _row(output, leaves, tw.reshape(unit, output.shape), create_graph)
            for row, derivative in zip(rows, found, strict=True):
                row.append(derivative)
        shapes = [(*output.shape, *x.shape) for x in leaves]
        results = [
            tw.reshape(tw.stack(row), shape) if row else _none(x, output, shape)
            for row, x, shape in zip(rows, leaves, shapes, strict=True)
        ]
    return _like(results, inputs)


def hessian(function: Callable[[Tensor], Tensor], x: Tensor, *, create_graph: bool = False) -> Tensor:
    """The second derivatives of a function to one element: of shape x.shape + x.shape.

    Of complex numbers the function must be holomorphic. Raises ShapeError where the function returns more,
    and DTypeError for an x that is no tensor, for a function as jacobian does and for a real function of
    complex numbers. PyTorch's torch.func.hessian.

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
        if _is_complex(point) and not _is_complex(output):
            raise _C.DTypeError(
                f"hessian: the function returned {output.dtype} for {point.dtype}; the second derivatives of "
                "a real function of complex numbers are no such matrix; pass real and imaginary parts"
            )
        return _row(output, [point], tw.ones_like(output.detach()), True)[0]

    if not isinstance(x, Tensor):
        raise _C.DTypeError(f"hessian: x must be a Tensor, not {type(x).__name__}; use asarray first")
    result: Tensor = jacobian(gradient, x, create_graph=create_graph)
    return result


__all__ = ["hessian", "jacobian", "jvp", "vjp"]

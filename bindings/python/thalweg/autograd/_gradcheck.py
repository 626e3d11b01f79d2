# _gradcheck.py: derivatives compared with finite differences.
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from thalweg import _C
from thalweg._engines import elsewhere, entered
from thalweg._typing import Any, Tensor
from thalweg.autograd._backward import grad

if TYPE_CHECKING:
    import numpy


class GradcheckError(_C.Error, RuntimeError):
    """A derivative that finite differences do not confirm. A RuntimeError.

    >>> class Wrong(tw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 3
    >>> tw.autograd.gradcheck(Wrong.apply, tw.ones(1, dtype="float64").requires_grad_())
    Traceback (most recent call last):
        ...
    thalweg.autograd._gradcheck.GradcheckError: gradcheck: of output 0, element 0...
    """


def _tuple(what: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, Tensor):
        return (values,)
    if not isinstance(values, (tuple, list)):
        raise _C.DTypeError(f"gradcheck: {what} must be a Tensor or several, not {type(values).__name__}")
    return tuple(values)


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    """The results that have derivatives."""
    results = _tuple("what the function returns", function(*inputs))
    return [each for each in results if isinstance(each, Tensor) and _is_inexact(each)]


def _beside(tensors: Sequence[Any]) -> Callable[..., Any] | None:
    """What calls a function in the engine of the tensors, if that is not the current one."""
    found = map(elsewhere, tensors) if entered else ()
    return next((there for there in found if there), None)


def _is_inexact(x: Tensor) -> bool:
    return x.dtype.kind in ("real floating", "complex floating")


def _differences(
    function: Callable[..., Any], inputs: list[Any], which: int, eps: float
) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
    """For each output, how it moves with the real and the imaginary part of each element of one input: two
    arrays of shape (elements of the input, elements of the output)."""
    import numpy as np

    from thalweg._creation import asarray

    base = inputs[which].detach().numpy()

    def values(shifted: Any) -> list[Any]:
        moved = asarray(shifted, device=inputs[which].device)
        if inputs[which].requires_grad:
            moved.requires_grad_()
        results = _outputs(function, [*inputs[:which], moved, *inputs[which + 1 :]])
        return [each.detach().numpy().reshape(-1) for each in results]

    def slope(at: int, step: complex) -> list[Any]:
        ends = []
        for sign in (1, -1):
            shifted = np.array(base, order="C")  # so that reshape is a view
            shifted.reshape(-1)[at] += sign * step
            ends.append(values(shifted))
        return [(high - low) / (2 * eps) for high, low in zip(*ends, strict=True)]

    sizes = [each.size for each in values(base)]
    steps = [eps, eps * 1j] if np.iscomplexobj(base) else [eps]
    found = [[np.zeros((base.size, size), dtype=complex) for _ in range(2)] for size in sizes]
    for part, step in enumerate(steps):
        for at in range(base.size):
            for output, moved in enumerate(slope(at, step)):
                found[output][part][at] = moved
    return [(real, imag) for real, imag in found]


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """True if the gradients of func(*inputs) with respect to the inputs that require them agree with finite
    differences of step eps, element by element, within atol + rtol * size.

    Inputs should be float64 or complex128. An output that requires no gradient counts as one of derivative 0,
    so that what leaves the record on the way is found. Of complex numbers the gradient is that of PyTorch: a
    real function moves by the real part of conj(gradient) times the step. Raises GradcheckError, or returns
    False without raise_exception, where they do not agree; ValueError if no input requires a gradient and
    DTypeError for inputs or results that are no tensors.

    PyTorch's torch.autograd.gradcheck.

    >>> x = tw.asarray([0.5, 1.5], dtype="float64").requires_grad_()
    >>> tw.autograd.gradcheck(lambda x: tw.sin(x) * x, x)
    True
    """
    import numpy as np

    from thalweg._creation import asarray

    listed = list(_tuple("inputs", inputs))
    if there := _beside(listed):
        options: dict[str, Any] = {"eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception}
        return bool(there(gradcheck, func, listed, **options))
    checked = [i for i, each in enumerate(listed) if isinstance(each, Tensor) and each.requires_grad]
    if not checked:
        raise _C.ValueError("gradcheck: no input requires a gradient; call requires_grad_() on one")
    outputs = _outputs(func, listed)
    coarse = [i for i in checked if listed[i].dtype not in ("float64", "complex128")]
    hint = (
        f"; input {coarse[0]} is {listed[coarse[0]].dtype}, too coarse for it: use float64" if coarse else ""
    )
    for which in checked:
        differences = _differences(func, listed, which, eps)
        for number, output in enumerate(outputs):
            real, imag = differences[number]
            if not output.requires_grad:
                if np.allclose(real, 0, atol=atol) and np.allclose(imag, 0, atol=atol):
                    continue
                if not raise_exception:
                    return False
                raise GradcheckError(
                    f"gradcheck: output {number} requires no gradient, but finite differences with respect "
                    f"to input {which} give {real + 1j * imag if imag.any() else real}; "
                    "it left the record on the way, by detach, no_grad or NumPy" + hint
                )
            units = (1, 1j) if output.dtype.kind == "complex floating" else (1,)
            for element in range(output.size):
                for unit in units:
                    start = np.zeros(output.shape, dtype=output.detach().numpy().dtype)
                    start.reshape(-1)[element] = unit
                    (got,) = grad(
                        output,
                        listed[which],
                        asarray(start, device=output.device),
                        retain_graph=True,
                        materialize_grads=True,
                    )
                    assert got is not None
                    analytic = got.detach().numpy().reshape(-1)
                    expected = np.real(np.conj(unit) * real[:, element]) + 0j
                    expected += 1j * np.real(np.conj(unit) * imag[:, element])
                    if np.allclose(analytic, expected, rtol=rtol, atol=atol, equal_nan=True):
                        continue
                    if not raise_exception:
                        return False
                    raise GradcheckError(
                        f"gradcheck: of output {number}, element {element}, with respect to input {which}: "
                        f"the derivative is {analytic}, finite differences give {expected}" + hint
                    )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """gradcheck of the gradients of func: its second derivatives, and those by the gradients of the outputs
    (grad_outputs, random without).

    Raises as gradcheck, and ValueError if no output requires a gradient. PyTorch's
    torch.autograd.gradgradcheck.

    >>> x = tw.asarray([0.5, 1.5], dtype="float64").requires_grad_()
    >>> tw.autograd.gradgradcheck(lambda x: tw.sin(x) * x, x)
    True
    """
    import numpy as np

    from thalweg._creation import asarray

    listed = list(_tuple("inputs", inputs))
    if there := _beside(listed):
        options: dict[str, Any] = {"eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception}
        return bool(there(gradgradcheck, func, listed, grad_outputs, **options))
    outputs = [each for each in _outputs(func, listed) if each.requires_grad]
    if not outputs:
        raise _C.ValueError(
            "gradgradcheck: no output requires a gradient; have an input require one, and see gradcheck"
        )
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        starts = []
        for each in outputs:
            values = rng.standard_normal(each.shape)
            if each.dtype.kind == "complex floating":
                values = values + 1j * rng.standard_normal(each.shape)
            start = asarray(np.asarray(values), dtype=each.dtype, device=each.device)
            starts.append(start.requires_grad_())
    else:
        starts = list(_tuple("grad_outputs", grad_outputs))
    wanted = [i for i, each in enumerate(listed) if isinstance(each, Tensor) and each.requires_grad]

    def gradients(*arguments: Any) -> tuple[Any, ...]:
        given = arguments[: len(listed)]
        results = [each for each in _outputs(func, given) if each.requires_grad]
        found = grad(
            results,
            [given[i] for i in wanted],
            arguments[len(listed) :],
            create_graph=True,
            allow_unused=True,
        )
        return tuple(each for each in found if each is not None)

    return gradcheck(
        gradients, [*listed, *starts], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )

# _function.py: functions with a derivative of the user's own.
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from thalweg import _C
from thalweg._engines import elsewhere, entered
from thalweg._typing import Any, Tensor
from thalweg.autograd._modes import no_grad
from thalweg.autograd._saved import Packed


def _is_among(x: Any, others: Sequence[Any]) -> bool:
    return any(x is other for other in others)


def _only_tensors(name: str, values: Sequence[Any], none: bool = False) -> None:
    for i, each in enumerate(values):
        if not isinstance(each, Tensor) and not (none and each is None):
            raise _C.DTypeError(
                f"{name}: argument {i} is {type(each).__name__}, not a Tensor; keep other values as "
                "attributes of ctx"
            )


class _Saved:
    """One value of save_for_backward; `output` says which output it is, if it is one."""

    def __init__(self, value: Tensor | None, output: int | None, recorded: bool) -> None:
        self._output = output
        self._edge: tuple[_C.Node, int] | None = None
        self._value: Tensor | Packed | None = None
        if value is None:
            return
        if recorded and _C.saved_tensors_hooks() is not None:
            self._value = Packed(value)
            if value.requires_grad:
                self._edge = _C.gradient_edge(value)
        elif output is not None:
            self._value = value.detach()  # with its graph that would be a cycle
        else:
            self._value = _C.alias(value)

    def get(self, name: str, node: _C.Node | None) -> Tensor | None:
        """The value, as a result of `node` if it is an output."""
        value = self._value
        if isinstance(value, Packed):
            value = value.get(name)
            if self._edge is not None:
                return _C.output_of(*self._edge, value)
        if value is None or self._output is None or node is None:
            return value
        return _C.output_of(node, self._output, value)


class FunctionContext:
    """What forward leaves for backward. Attributes of any name may be set on it."""

    def __init__(self, function: type[Function]) -> None:
        self._function = function
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: list[_Saved] | None = []
        self._plain: list[Tensor] = []
        self._dirty: list[Tensor] = []
        self._materialize = True
        self._node: _C.Node | None = None
        self._metas: list[tuple[tuple[int, ...], Any, Any] | None] = []
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps inputs, outputs or other tensors (or None) for `saved_tensors`. In-place forms of them
        afterwards change nothing there. Raises DTypeError for other values."""
        _only_tensors("save_for_backward", tensors, none=True)
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What save_for_backward was given. Raises EngineError after a backward that did not retain it."""
        if self._saved is None:
            raise self._freed()
        return tuple(each.get(self._function.__name__ + "Backward", self._node) for each in self._saved)

    def _freed(self) -> _C.EngineError:
        return _C.EngineError(
            f"{self._function.__name__}Backward: what it had saved was freed by an earlier backward; pass "
            "retain_graph=True to it"
        )

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Outputs that require no gradient: backward gets zeros for them. Raises DTypeError for what is no
        tensor."""
        _only_tensors("mark_non_differentiable", outputs)
        self._plain.extend(outputs)

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Inputs that forward changed in place, and returns. Raises DTypeError for what is no tensor."""
        _only_tensors("mark_dirty", inputs)
        self._dirty.extend(inputs)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for outputs that have no gradient, among them
        integers and those marked as not differentiable."""
        self._materialize = value

    def _keep(self, outputs: Sequence[Any], recorded: bool) -> None:
        places = {id(each): i for i, each in enumerate(outputs) if isinstance(each, Tensor)}
        self._saved = []
        for each in self._to_save:
            is_output = each is not None and self._passes(each) and not each.requires_grad
            self._saved.append(_Saved(each, places.get(id(each)) if is_output else None, recorded))
        self._to_save = ()

    def _attach(
        self, args: tuple[Any, ...], inputs: list[Tensor | None], outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The outputs, those that pass a gradient as results of a node behind the inputs."""
        self._keep(outputs, recorded=True)
        for each in self._dirty:
            if each.requires_grad and each.is_leaf:
                raise _C.EngineError(
                    f"{self._function.__name__}: a leaf that requires a gradient cannot be changed in place"
                )
        passing = [each if self._passes(each) else None for each in outputs]
        self._metas = [
            (each.shape, each.dtype, each.device) if isinstance(each, Tensor) else None for each in outputs
        ]
        # What is an argument too stays what it is, unless forward has changed it.
        fresh = [not _is_among(each, args) or _is_among(each, self._dirty) for each in outputs]
        attached = _C.attach_function(self._function.__name__, self, inputs, passing, fresh)
        return tuple(
            new if new is not None else old.detach() if isinstance(old, Tensor) and not free else old
            for new, old, free in zip(attached, outputs, fresh, strict=True)
        )

    def _passes(self, output: Any) -> bool:
        return (
            isinstance(output, Tensor)
            and output.dtype.kind.endswith("floating")
            and not _is_among(output, self._plain)
        )

    def _run_backward(
        self, node: _C.Node, gradients: tuple[Tensor | None, ...], needed: tuple[bool, ...], keep: bool
    ) -> tuple[Tensor | None, ...]:
        from thalweg._creation import zeros

        given: list[Tensor | None] = list(gradients)
        some = next((each for each in gradients if each is not None), None)
        make = (elsewhere(some) if entered else None) or _call
        for i, each in enumerate(given):
            meta = self._metas[i]
            if each is None and self._materialize and meta is not None:
                given[i] = make(zeros, meta[0], dtype=meta[1], device=meta[2])
        self.needs_input_grad = needed
        self._node = node
        try:
            found = self._function.backward(self, *given)
        finally:
            self._node = None
        if not keep and self._saved:  # what saved nothing may run again
            self._saved = None
        return self._checked(found, len(needed), needed)

    def _checked(self, found: Any, count: int, needed: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        name = self._function.__name__
        results = found if isinstance(found, tuple) else (found,)
        extra = results[count:]
        if len(results) < count or any(each is not None for each in extra):
            raise _C.EngineError(
                f"{name}Backward: backward returned {len(results)} gradients for {count} inputs of forward; "
                "return one for each, None where there is none"
            )
        for each in results[:count]:
            if each is not None and not isinstance(each, Tensor):
                raise _C.DTypeError(
                    f"{name}Backward: backward returned {type(each).__name__}, not a Tensor or None"
                )
        return tuple(each if wanted else None for each, wanted in zip(results[:count], needed, strict=True))


def _call(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    return function(*args, **options)


class Function:
    """A function whose derivative is Python code: a subclass defines the static methods forward(ctx, *args),
    or forward(*args) and setup_context(ctx, inputs, output), and backward(ctx, *grads), which returns a
    gradient, or None, for each argument of forward. `apply` calls it.

    ctx.save_for_backward keeps tensors, ctx.needs_input_grad says in backward which gradients are wanted.
    What backward returns is summed and cast to what the argument looks like; of complex numbers for a real
    argument the real part counts. Outputs that have no gradient give zeros, those that are no tensors None.
    What forward does is not recorded; what backward does is with create_graph=True, for higher derivatives.
    Both run on the calling thread and may read values. Raises what they raise, and EngineError where backward
    returns another number of gradients.

    PyTorch's torch.autograd.Function.

    >>> class Cube(tw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = tw.asarray(2.0).requires_grad_()
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """Computes the results. Subclasses define it."""
        raise NotImplementedError("a Function must define forward")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context is not defined")

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor | None) -> Any:
        """Computes the gradients of forward's arguments. Subclasses define it."""
        raise NotImplementedError(f"{ctx._function.__name__} defines no backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward, and records it if an argument requires a gradient."""
        ctx = FunctionContext(cls)
        recorded = _C.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in args)
        ctx.needs_input_grad = tuple(
            recorded and isinstance(each, Tensor) and each.requires_grad for each in args
        )
        # Before forward, which may change them in place.
        inputs = [_C.alias(each) if isinstance(each, Tensor) else None for each in args]
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        outputs = result if isinstance(result, tuple) else (result,)
        if not recorded:
            ctx._keep(outputs, recorded=False)
            return result
        attached = ctx._attach(args, inputs, outputs)
        return attached if isinstance(result, tuple) else attached[0]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a Function's backward that is not differentiable itself: it runs without recording, and a
    second derivative through it raises EngineError.

    PyTorch's torch.autograd.function.once_differentiable.

    >>> class Twice(tw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @tw.autograd.once_differentiable
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = tw.asarray(1.0).requires_grad_()
    >>> Twice.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    @functools.wraps(backward)
    def guarded(ctx: FunctionContext, *grads: Tensor | None) -> Any:
        recorded = _C.is_grad_enabled()
        with no_grad():
            found = backward(ctx, *grads)
        if not recorded:
            return found
        results = found if isinstance(found, tuple) else (found,)
        name = ctx._function.__name__
        kept = tuple(
            _Refuse.apply(each.detach(), name, *_sources(ctx, grads, each))
            if isinstance(each, Tensor)
            else each
            for each in results
        )
        return kept if isinstance(found, tuple) else kept[0]

    return guarded


def _sources(ctx: FunctionContext, grads: Sequence[Tensor | None], like: Tensor) -> list[Tensor]:
    """Tensors at what the results of backward depend on: the inputs of forward and the gradients given."""
    edges = ctx._node.next_functions if ctx._node is not None else ()
    inputs = [_C.output_of(node, output, like) for node, output in edges if node is not None]
    return [*inputs, *(each for each in grads if isinstance(each, Tensor) and each.requires_grad)]


class _Refuse(Function):
    """The identity, without a second derivative. It stands behind `sources`, so that who asks for their
    second derivative gets here."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, *sources: Tensor) -> Tensor:
        ctx.name = name
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        raise _C.EngineError(f"{ctx.name}: its backward is marked once_differentiable")

# _modes.py: guards that set what a thread records.
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType

from thalweg import _C
from thalweg._typing import Any


class _Guard:
    """Sets a mode of this thread in a `with` block, or while a decorated function runs. Generators and
    coroutines set it each time that they go on, and leave the caller's mode alone while they pause."""

    def __init__(self) -> None:
        self._before: list[Any] = []

    def _set(self) -> Any:
        raise NotImplementedError

    def _restore(self, before: Any) -> None:
        _C.set_grad_mode(before)

    def _clone(self) -> _Guard:
        return type(self)()

    def __enter__(self) -> None:
        self._before.append(self._set())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._generator(function)
        if inspect.iscoroutinefunction(function):
            return self._coroutine(function)
        if inspect.isasyncgenfunction(function):
            return self._async_generator(function)

        @functools.wraps(function)
        def guarded(*args: Any, **keywords: Any) -> Any:
            with self._clone():
                return function(*args, **keywords)

        return guarded

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def guarded(*args: Any, **keywords: Any) -> Any:
            return (yield from _Resumed(function(*args, **keywords), self._clone))

        return guarded

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def guarded(*args: Any, **keywords: Any) -> Any:
            return await _Resumed(function(*args, **keywords), self._clone)

        return guarded

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def guarded(*args: Any, **keywords: Any) -> Any:
            inner = function(*args, **keywords)
            step = inner.__anext__()
            try:
                while True:
                    try:
                        value = await _Resumed(step, self._clone)
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step = inner.athrow(error)
                    else:
                        step = inner.asend(sent)
            finally:
                await _Resumed(inner.aclose(), self._clone)

        return guarded


class _Resumed:
    """A generator, coroutine or awaitable whose every step runs in a guard of its own."""

    def __init__(self, inner: Any, guard: Callable[[], _Guard]) -> None:
        self._inner = inner if hasattr(inner, "send") else inner.__await__()
        self._guard = guard

    def __iter__(self) -> _Resumed:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        with self._guard():
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._guard():
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._guard():
            self._inner.close()


class no_grad(_Guard):  # noqa: N801 - PyTorch's name
    """Records nothing in a `with` block or a decorated function: results require no gradient. In-place forms
    leave a leaf the leaf that it is, as optimisers need; of a tensor that an operator made they make a
    constant. Applies to this thread only.

    PyTorch's torch.no_grad.

    >>> x = tw.ones(3).requires_grad_()
    >>> with tw.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def _set(self) -> bool:
        return _C.set_grad_mode(False)


class enable_grad(_Guard):  # noqa: N801 - PyTorch's name
    """Records again within no_grad. Has no effect in inference_mode.

    PyTorch's torch.enable_grad.

    >>> x = tw.ones(3).requires_grad_()
    >>> with tw.no_grad(), tw.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def _set(self) -> bool:
        return _C.set_grad_mode(True)


class set_grad_enabled(_Guard):  # noqa: N801 - PyTorch's name
    """Sets whether operators are recorded: from the call on, or for a `with` block or a decorated function.
    Raises TypeError without a mode.

    PyTorch's torch.set_grad_enabled.

    >>> x = tw.ones(3).requires_grad_()
    >>> with tw.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = bool(mode)
        self._at_call: bool | None = _C.set_grad_mode(self._mode)

    def _set(self) -> bool:
        # The first block ends what the call began.
        at_call, self._at_call = self._at_call, None
        before = _C.set_grad_mode(self._mode)
        return before if at_call is None else at_call

    def _clone(self) -> _Guard:
        clone = set_grad_enabled.__new__(set_grad_enabled)
        _Guard.__init__(clone)
        clone._mode, clone._at_call = self._mode, None
        return clone

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._at_call is not None:
            _C.set_grad_mode(self._at_call)
            self._at_call = None
        return super().__call__(function)


class inference_mode(_Guard):  # noqa: N801 - PyTorch's name
    """As no_grad, and enable_grad does not undo it. Values are immutable here, so that tensors made in it are
    ordinary ones: they may be used and saved afterwards.

    PyTorch's torch.inference_mode.

    >>> x = tw.ones(3).requires_grad_()
    >>> with tw.inference_mode(), tw.enable_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode

    def __new__(cls, mode: Any = True) -> Any:
        guard = super().__new__(cls)
        if callable(mode):  # as a decorator without arguments
            cls.__init__(guard)
            return guard(mode)
        return guard

    def _set(self) -> bool:
        return _C.set_inference_mode(self._mode)

    def _restore(self, before: Any) -> None:
        _C.set_inference_mode(before)

    def _clone(self) -> _Guard:
        return inference_mode(self._mode)


def is_grad_enabled() -> bool:
    """True if operators on tensors that require gradients are recorded in this thread.

    PyTorch's torch.is_grad_enabled.

    >>> tw.is_grad_enabled()
    True
    """
    return _C.is_grad_enabled()


def is_inference_mode_enabled() -> bool:
    """True in inference_mode. PyTorch's torch.is_inference_mode_enabled.

    >>> tw.is_inference_mode_enabled()
    False
    """
    return _C.is_inference_mode()

# _saved.py: what becomes of the values that operators save for their derivatives.
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from thalweg import _C
from thalweg._typing import Any, Tensor
from thalweg.autograd._modes import no_grad

_thread = threading.local()


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """In this block, and this thread, pack_hook(tensor) is called for each value that a recorded operator or
    Function saves, as soon as it was issued. What it returns is kept instead of the tensor, until a backward
    needs it: unpack_hook of that must return a tensor of the same shape, dtype and device. Nothing that
    pack_hook does is recorded. Of nested blocks the innermost has the say.

    The tensor is a handle of pack_hook's own: in-place forms of it change nothing else. Backward unpacks what
    a node saved before the node runs, each time that it runs. Errors of pack_hook are raised where the
    operator was called, those of unpack_hook by backward. DTypeError where something else than a tensor is
    unpacked or where its dtype differs, ShapeError or DeviceError for those; raises EngineError within
    disable_saved_tensors_hooks. PyTorch's torch.autograd.graph.saved_tensors_hooks.

    >>> x = tw.asarray([1.0, 2.0]).requires_grad_()
    >>> def pack(tensor): return tensor.astype("float16")
    >>> def unpack(half): return half.astype("float32")
    >>> with tw.autograd.graph.saved_tensors_hooks(pack, unpack):
    ...     y = tw.exp(x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2.7188, 7.3906])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise _C.DTypeError(f"saved_tensors_hooks: expected callables, got {type(hook).__name__}")
        self._hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _refuse_if_disabled()
        _C.push_saved_tensors_hooks(*self._hooks)

    def __exit__(self, *error: Any) -> None:
        _C.pop_saved_tensors_hooks()


def _refuse_if_disabled() -> None:
    message = getattr(_thread, "message", None)
    if message is not None:
        raise _C.EngineError(message)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """In a `with` block or a decorated function, and this thread, saved_tensors_hooks raises EngineError with
    the message; so does entering this one within saved_tensors_hooks. For code that hooks would break.

    PyTorch's torch.autograd.graph.disable_saved_tensors_hooks.

    >>> with tw.autograd.graph.disable_saved_tensors_hooks("no hooks in here"):
    ...     with tw.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
    thalweg.EngineError: no hooks in here
    """
    if _C.saved_tensors_hooks() is not None:
        raise _C.EngineError(error_message)
    before = getattr(_thread, "message", None)
    _thread.message = str(error_message)
    try:
        yield
    finally:
        _thread.message = before


class Packed:
    """A value that the thread's hooks have packed, if it has any."""

    def __init__(self, value: Tensor) -> None:
        value = value.detach()
        hooks = _C.saved_tensors_hooks()
        if hooks is None:
            self._kept, self._unpack = value, None
            return
        pack, self._unpack = hooks
        self._meta = (value.shape, value.dtype, value.device)
        with no_grad():
            self._kept = pack(value)

    def get(self, name: str) -> Tensor:
        """The value, without its graph. Raises, in the name of a node, for what is not as it was."""
        if self._unpack is None:
            return self._kept
        value = self._unpack(self._kept)
        if not isinstance(value, Tensor):
            raise _C.DTypeError(f"{name}: unpack returned {type(value).__name__}, not a Tensor")
        found = (value.shape, value.dtype, value.device)
        wanted = self._meta
        errors = ((_C.ShapeError, "shape"), (_C.DTypeError, "dtype"), (_C.DeviceError, "device"))
        for (error, what), new, old in zip(errors, found, wanted, strict=True):
            if new != old:
                raise error(f"{name}: unpack returned the {what} {new} for a saved tensor of {what} {old}")
        return value.detach()

# _anomaly.py: where a gradient went wrong.
from __future__ import annotations

from collections.abc import Callable

from thalweg import _C
from thalweg._typing import Any
from thalweg.autograd._modes import _Guard


class _AnomalyGuard(_Guard):
    def __init__(self, mode: bool, check_nan: bool) -> None:
        super().__init__()
        self._mode = (bool(mode), bool(check_nan))

    def _set(self) -> Any:
        return _C.set_anomaly_mode(*self._mode)

    def _restore(self, before: Any) -> None:
        _C.set_anomaly_mode(*before)


class detect_anomaly(_AnomalyGuard):  # noqa: N801 - PyTorch's name
    """Has backward, in a `with` block or a decorated function and in this thread, find where things go wrong.

    With check_nan, a gradient with NaN fails with ValueError, which names the operator's backward function
    and the line of the program that called the operator. Nothing waits for the check: the error is raised
    where the gradient, or what was computed from it, is read. An exception of a hook or custom function in
    backward gets a note (Python 3.11 and later show it) with the same. Only backward need be in the block:
    lines are recorded always. Raises nothing itself.

    PyTorch's torch.autograd.detect_anomaly.

    >>> x = tw.asarray([0.0, 4.0]).requires_grad_()
    >>> with tw.autograd.detect_anomaly():
    ...     (tw.sqrt(x) * 0).sum().backward()
    >>> x.grad.tolist()
    Traceback (most recent call last):
    thalweg.ValueError: ...SqrtBackward gave NaN as the gradient of its input 0...
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)

    def _clone(self) -> _Guard:
        return detect_anomaly(self._mode[1])


class set_detect_anomaly(_AnomalyGuard):  # noqa: N801 - PyTorch's name
    """Turns detect_anomaly on or off: from the call on, or for a `with` block or a decorated function. Raises
    TypeError without a mode.

    PyTorch's torch.autograd.set_detect_anomaly.

    >>> with tw.autograd.set_detect_anomaly(True):
    ...     tw.autograd.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        self._at_call: Any = _C.set_anomaly_mode(*self._mode)

    def _set(self) -> Any:
        # The first block ends what the call began.
        at_call, self._at_call = self._at_call, None
        before = _C.set_anomaly_mode(*self._mode)
        return before if at_call is None else at_call

    def _clone(self) -> _Guard:
        clone = set_detect_anomaly.__new__(set_detect_anomaly)
        _AnomalyGuard.__init__(clone, *self._mode)
        clone._at_call = None
        return clone

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._at_call is not None:
            _C.set_anomaly_mode(*self._at_call)
            self._at_call = None
        return super().__call__(function)


def is_anomaly_enabled() -> bool:
    """True in detect_anomaly. PyTorch's torch.is_anomaly_enabled.

    >>> tw.autograd.is_anomaly_enabled()
    False
    """
    return _C.anomaly_mode()[0]


def noting_places(function: Callable[..., Any]) -> Callable[..., Any]:
    """A backward whose exceptions say at which node, in anomaly mode; elsewhere the function itself,
    because nested ones count against Python's limit of recursion."""
    if not _C.anomaly_mode()[0]:
        return function

    def noting(*args: Any) -> Any:
        _C.take_failed_node()  # of a backward that C++ began
        try:
            return function(*args)
        except BaseException as error:
            failed = _C.take_failed_node()
            if failed is not None:
                name, place = failed
                _note(error, f"in {name}, recorded {'at ' + place if place else 'at an unknown place'}")
            raise

    return noting


def _note(error: BaseException, text: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:
        error.__notes__ = [*getattr(error, "__notes__", ()), text]

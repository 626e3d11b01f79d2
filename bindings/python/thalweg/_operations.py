# _operations.py: how functions of the package find their operation and its documentation.
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thalweg import _C

Function = TypeVar("Function", bound=Callable[..., object])


def documented(operation: _C.Operation, note: str = "") -> Callable[[Function], Function]:
    """Gives a function the documentation of the operation it issues; a new operation is documented in its
    Op only."""

    def set_doc(function: Function) -> Function:
        function.__doc__ = (operation.__doc__ or "") + (f"\n\n{note}" if note else "")
        return function

    return set_doc

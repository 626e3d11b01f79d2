# _repr.py: how tensors print.
"""Text in the style of NumPy and PyTorch. Long tensors show their edges only, and only the edges are read."""

from __future__ import annotations

import contextlib
import math
import operator
import sys
from collections.abc import Callable, Iterator

from thalweg import _C
from thalweg._typing import Any, Tensor

_options: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}


def get_printoptions() -> dict[str, Any]:
    """The options of set_printoptions.

    >>> tw.get_printoptions()["precision"]
    4
    """
    return dict(_options)


def set_printoptions(
    *,
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print: digits after the point, the number of elements from which only `edgeitems`
    at both ends of each axis show, characters a line, and scientific notation (None: where the range of
    the values asks for it).

    Raises DTypeError for options that are not integers (sci_mode: a bool or None) and ValueError for others
    than precision from 0 to 100, edgeitems from 1 and threshold and linewidth from 0. NumPy's
    set_printoptions, with the defaults of PyTorch's.

    >>> tw.set_printoptions(precision=2)
    >>> tw.asarray(2 / 3)
    tensor(0.67)
    >>> tw.set_printoptions(precision=4)  # the default
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    checked = {name: _option(name, value) for name, value in given.items() if value is not None}
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise _C.DTypeError(
            f"set_printoptions: sci_mode must be a bool or None, not {type(sci_mode).__name__}"
        )
    _options.update(checked)
    _options["sci_mode"] = sci_mode


def _option(name: str, value: Any) -> int:
    if isinstance(value, (bool, _C.Tensor)) or not hasattr(value, "__index__"):
        raise _C.DTypeError(f"set_printoptions: {name} must be an int, not {type(value).__name__}")
    least = 1 if name == "edgeitems" else 0
    most = 100 if name == "precision" else sys.maxsize
    if not least <= operator.index(value) <= most:
        raise _C.ValueError(f"set_printoptions: {name} is {value}; it must be from {least} to {most}")
    return operator.index(value)


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """As set_printoptions, for a block. Raises TypeError for an option that it does not have.

    >>> with tw.printoptions(precision=2, sci_mode=True):
    ...     print(tw.asarray([1.0, 1234.5]))
    tensor([1.00e+00, 1.23e+03])
    """
    saved = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        _options.update(saved)


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        for each in values:
            yield from _leaves(each)
    else:
        yield values


def _wants_exponent(sizes: list[float]) -> bool:
    if _options["sci_mode"] is not None:
        return bool(_options["sci_mode"])
    return max(sizes) >= 1e8 or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1e3


class _FloatFormat:
    """One format for all values that show, as in PyTorch: whole numbers as "1.", else `precision` digits."""

    def __init__(self, values: list[float]) -> None:
        finite = [value for value in values if math.isfinite(value)]
        sizes = [abs(value) for value in finite if value != 0]
        digits = _options["precision"]
        whole = all(value == int(value) for value in finite)
        if not sizes or whole and not _options["sci_mode"] and max(sizes) < 1e8:
            self._spec, self._suffix = ".0f", "."
        elif _wants_exponent(sizes):
            self._spec, self._suffix = f".{digits}e", ""
        else:
            self._spec, self._suffix = f".{digits}f", ""

    def __call__(self, value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        return format(value, self._spec) + self._suffix


class _ComplexFormat:
    """Both parts with formats of their own: "1.+2.j"."""

    def __init__(self, values: list[complex]) -> None:
        self._real = _FloatFormat([value.real for value in values])
        self._imag = _FloatFormat([value.imag for value in values])

    def __call__(self, value: complex) -> str:
        imag = self._imag(value.imag)
        return self._real(value.real) + ("" if imag.startswith("-") else "+") + imag + "j"


def _format_of(kind: str, leaves: list[Any]) -> Callable[[Any], str]:
    if kind == "complex floating":
        return _ComplexFormat(leaves)
    return _FloatFormat(leaves) if kind == "real floating" else str


def _lines(
    values: Any, shape: tuple[int, ...], cut: int | None, form: Callable[[Any], str], indent: int
) -> str:
    if not shape:
        return form(values)
    parts = [_lines(each, shape[1:], cut, form, indent + 1) for each in values]
    if cut is not None and shape[0] > 2 * cut:
        parts.insert(cut, "...")
    if len(shape) == 1:
        return "[" + _wrap(parts, indent + 1) + "]"
    separator = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _wrap(parts: list[str], indent: int) -> str:
    """The parts joined by ", ", on as many lines of `linewidth` as they need."""
    lines, line = [], ""
    for i, part in enumerate(parts):
        piece = part + ("," if i + 1 < len(parts) else "")
        if line and indent + len(line) + 1 + len(piece) > _options["linewidth"]:
            lines.append(line)
            line = piece
        else:
            line = f"{line} {piece}" if line else piece
    lines.append(line)
    return ("\n" + " " * indent).join(lines)


def _body(self: Tensor) -> str:
    cut = _options["edgeitems"] if self.size > _options["threshold"] else None
    values = self._edge_items(-1 if cut is None else cut)
    leaves = list(_leaves(values))
    form = _format_of(self.dtype.kind, leaves)
    width = max((len(form(leaf)) for leaf in leaves), default=0) if self.ndim else 0
    return _lines(values, self.shape, cut, lambda value: form(value).rjust(width), len("tensor("))


def tensor_repr(self: Tensor) -> str:
    """tensor(values, dtype=…, device=…). Waits; a failed tensor prints its failure instead of raising it."""
    suffix = ""
    try:
        body = _body(self) if self.size else "[]"
        if self.size == 0:
            self.wait()
            suffix = f", shape={self.shape}"
    except Exception:
        failure = self.failure()
        if failure is None:
            raise
        body = f"<failed: {failure[0].__name__}: {failure[1]}>"
        suffix = f", shape={self.shape}"
    if self.dtype not in ("float32", "complex64", "int64", "bool"):
        suffix += f", dtype={self.dtype}"
    if self.device != "cpu:0":
        suffix += f", device='{self.device}'"
    if self.grad_fn is not None:
        suffix += f", grad_fn=<{self.grad_fn.name()}>"
    elif self.requires_grad:
        suffix += ", requires_grad=True"
    return f"tensor({body}{suffix})"


def tensor_format(self: Tensor, spec: str) -> str:
    """format(): a tensor of one element as its number, others without a format only."""
    if not spec:
        return tensor_repr(self)
    return format(self.item(), spec)


__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

# _einsum.py: products of tensors that subscripts name.
"""einsum and kron."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Any

from thalweg import _C
from thalweg._C import op
from thalweg._inspection import result_type
from thalweg._operations import require_tensor
from thalweg._typing import Tensor

_astype = op("astype")
_diagonal = op("diagonal")
_matmul = op("matmul")
_multiply = op("multiply")
_permute_dims = op("permute_dims")
_reshape = op("reshape")
_squeeze = op("squeeze")
_sum = op("sum")

# A letter, or an axis of the ellipsis as a number counted from its end: -1 is the last one.
Label = str | int
# A tensor and the labels of its axes, each one once.
Term = tuple[Tensor, list[Label]]


def einsum(subscripts: str, /, *operands: Tensor) -> Tensor:
    """The sums of products of the operands over the labels that the output does not have.

    subscripts: the labels (letters) of the axes of each operand, separated by commas, and after "->" those of
    the result; without it those that occur once, in alphabetical order, behind the ellipsis. "..." stands for
    all other axes, which broadcast; an output without it sums over them. A label that one operand has twice
    names its diagonal. Sizes of a label are equal or 1.

    Operands are promoted to a common dtype and contracted in pairs by matmul, from left to right, or in the
    order that opt_einsum plans where it is installed (the last bits of floating results depend on the order).
    bool computes any-of-and.

    Raises ValueError for subscripts that cannot be read or do not fit the number of operands and ShapeError
    where axes or sizes do not fit. NumPy's einsum.
    """
    tensors = [require_tensor("einsum", each) for each in operands]
    inputs, output = _parse(subscripts, tensors)
    sizes = _sizes_of(subscripts, inputs, tensors)
    dtype = result_type(*tensors)
    cast = [x if x.dtype == dtype else _astype(x, dtype=dtype) for x in tensors]
    terms = [_prepared(x, labels, sizes) for x, labels in zip(cast, inputs, strict=True)]
    for positions in _plan(terms, output):
        chosen = [terms[i] for i in positions]
        rest = [term for i, term in enumerate(terms) if i not in positions]
        result = chosen[0]
        for i, term in enumerate(chosen[1:], 2):
            needed = {*output, *(label for _, labels in (*rest, *chosen[i:]) for label in labels)}
            result = _contracted(result, term, needed)
        terms = [*rest, result]
    x, labels = _summed(terms[0], output)
    return _permute_dims(x, axes=[labels.index(label) for label in output])


def _parse(subscripts: Any, tensors: Sequence[Tensor]) -> tuple[list[list[Label]], list[Label]]:
    """The labels of each operand and of the result."""
    if not isinstance(subscripts, str):
        raise _C.DTypeError(f"einsum: subscripts must be a str, not {type(subscripts).__name__}")
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(tensors) or not tensors:
        raise _C.ValueError(
            f"einsum: subscripts {subscripts!r} are for {len(texts)} operands, {len(tensors)} were given"
        )
    inputs = []
    for text, x in zip(texts, tensors, strict=True):
        named = len(_letters(subscripts, text))
        if named > x.ndim or (named < x.ndim and "..." not in text):
            raise _C.ShapeError(
                f"einsum: subscripts {text!r} of {subscripts!r} do not fit the {x.ndim} dimensions of shape "
                f"{x.shape}"
            )
        inputs.append(_labels(subscripts, text, x.ndim - named))
    seen = [label for labels in inputs for label in labels]
    around = max((-label for label in seen if isinstance(label, int)), default=0)
    if arrow:
        output = _labels(subscripts, right, around)
    else:
        letters = sorted(label for label in seen if isinstance(label, str))
        output = [*range(-around, 0), *(label for label in letters if letters.count(label) == 1)]
    for label in output:
        if label not in seen or output.count(label) > 1:
            what = "twice in" if label in seen else "in no operand but in"
            raise _C.ValueError(f"einsum: label {label!r} is {what} the output of {subscripts!r}")
    return inputs, output


def _letters(subscripts: str, text: str) -> str:
    """The labels in the subscripts of one operand, without the ellipsis."""
    letters = text.replace("...", "", 1)
    wrong = [c for c in letters if not (c.isascii() and c.isalpha())]
    if wrong:
        raise _C.ValueError(
            f"einsum: {wrong[0]!r} in subscripts {subscripts!r} is no label; labels are letters, and '...' "
            "stands for other axes"
        )
    return letters


def _labels(subscripts: str, text: str, around: int) -> list[Label]:
    _letters(subscripts, text)
    before, ellipsis, behind = text.partition("...")
    return [*before, *(range(-around, 0) if ellipsis else ()), *behind]


def _sizes_of(
    subscripts: str, inputs: Sequence[Sequence[Label]], tensors: Sequence[Tensor]
) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for labels, x in zip(inputs, tensors, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            if size != sizes.setdefault(label, size) and 1 not in (size, sizes[label]):
                what = f"label {label!r}" if isinstance(label, str) else f"axis {label} of '...'"
                raise _C.ShapeError(
                    f"einsum: {what} of {subscripts!r} has sizes {sizes[label]} and {size}; they must be "
                    "equal or one of them 1"
                )
            if sizes[label] == 1:
                sizes[label] = size
        for label in labels:
            if len({size for each, size in zip(labels, x.shape, strict=True) if each == label}) > 1:
                raise _C.ShapeError(
                    f"einsum: label {label!r} of {subscripts!r} names axes of shape {x.shape} that differ in "
                    "size"
                )
    return sizes


def _prepared(x: Tensor, labels: list[Label], sizes: dict[Label, int]) -> Term:
    """An operand as a term: diagonals for repeated labels, and without the axes that only broadcast."""
    labels = [*labels]
    for label in [each for i, each in enumerate(labels) if each in labels[:i]]:
        first = labels.index(label)
        second = labels.index(label, first + 1)
        x = _diagonal(x, axis1=first, axis2=second)
        labels = [each for i, each in enumerate(labels) if i not in (first, second)] + [label]
    wide = [i for i, label in enumerate(labels) if x.shape[i] != sizes[label]]
    if wide:
        x = _squeeze(x, axis=wide)
    return x, [label for i, label in enumerate(labels) if i not in wide]


def _summed(term: Term, needed: Collection[Label]) -> Term:
    """A term without the labels that nothing needs."""
    x, labels = term
    axes = [i for i, label in enumerate(labels) if label not in needed]
    if not axes:
        return term
    return _sum(x, axis=axes, dtype=x.dtype), [label for label in labels if label in needed]


def _contracted(first: Term, second: Term, needed: Collection[Label]) -> Term:
    """The product of two terms, summed over the labels that nothing else needs."""
    a, in_a = _summed(first, {*needed, *second[1]})
    b, in_b = _summed(second, {*needed, *first[1]})
    batch = [label for label in in_a if label in in_b and label in needed]
    inner = [label for label in in_a if label in in_b and label not in needed]
    rows = [label for label in in_a if label not in in_b]
    columns = [label for label in in_b if label not in in_a]
    size = {**dict(zip(in_a, a.shape, strict=True)), **dict(zip(in_b, b.shape, strict=True))}
    labels = [*batch, *rows, *columns]
    a = _permute_dims(a, axes=[in_a.index(label) for label in (*batch, *rows, *inner)])
    if not inner or not (rows or columns):
        # Nothing to multiply as matrices. Each of the two has axes of size 1 for what only the other has.
        b = _permute_dims(b, axes=[in_b.index(label) for label in (*batch, *columns, *inner)])
        a = _reshape(a, shape=[size[each] if each in in_a else 1 for each in (*labels, *inner)])
        b = _reshape(b, shape=[size[each] if each in in_b else 1 for each in (*labels, *inner)])
        return _summed((_multiply(a, b), [*labels, *inner]), labels)
    b = _permute_dims(b, axes=[in_b.index(label) for label in (*batch, *inner, *columns)])
    height, width, depth = (math.prod(size[each] for each in group) for group in (rows, columns, inner))
    outer = [size[label] for label in batch]
    product = _matmul(_reshape(a, shape=(*outer, height, depth)), _reshape(b, shape=(*outer, depth, width)))
    return _reshape(product, shape=[size[label] for label in labels]), labels


def _plan(terms: Sequence[Term], output: Sequence[Label]) -> list[tuple[int, ...]]:
    """Which terms to contract, step by step, as positions among the terms left; a result goes to the end."""
    if len(terms) == 1:
        return []
    planner = _planner() if len(terms) > 2 else None
    if planner is None:
        count = len(terms)
        return [(0, 1), *((count - 1 - i, 0) for i in range(1, count - 1))]
    symbols: dict[Label, str] = {}
    for label in [*(label for _, labels in terms for label in labels), *output]:
        symbols.setdefault(label, planner.get_symbol(len(symbols)))
    texts = ["".join(symbols[label] for label in labels) for _, labels in terms]
    subscripts = f"{','.join(texts)}->{''.join(symbols[label] for label in output)}"
    path, _ = planner.contract_path(subscripts, *(x.shape for x, _ in terms), shapes=True)
    return [tuple(step) for step in path]


@functools.cache
def _planner() -> Any:
    """opt_einsum where it is installed. Looked for once: a failed import costs more than a contraction."""
    try:
        import opt_einsum
    except ImportError:
        return None
    return opt_einsum


def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The Kronecker product: x2 times each element of x1, side by side as the elements of x1 are.

    The result has the promoted dtype and along each axis the product of the sizes; the one with fewer axes
    counts as having axes of size 1 in front. NumPy's kron.
    """
    x1, x2 = require_tensor("kron", x1), require_tensor("kron", x2)
    rank = max(x1.ndim, x2.ndim)
    first = (1,) * (rank - x1.ndim) + x1.shape
    second = (1,) * (rank - x2.ndim) + x2.shape
    left = _reshape(x1, shape=[size for n in first for size in (n, 1)])
    right = _reshape(x2, shape=[size for n in second for size in (1, n)])
    return _reshape(_multiply(left, right), shape=[n * m for n, m in zip(first, second, strict=True)])


__all__ = ["einsum", "kron"]

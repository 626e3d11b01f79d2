# _einsum.py: products of tensors that subscripts name.
"""einsum and kron."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Any

from thalweg import _C
from thalweg._C import op
from thalweg._operations import halves_in_float32, require_tensor
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


@halves_in_float32
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

    >>> a, b = tw.reshape(tw.arange(6), (2, 3)), tw.asarray([1, 0, -1])
    >>> tw.einsum("ij,j->i", a, b)
    tensor([-2, -2])
    >>> tw.einsum("ij->ji", a).shape
    (3, 2)
    """
    tensors = [require_tensor("einsum", each) for each in operands]
    if not isinstance(subscripts, str):
        raise _C.DTypeError(f"einsum: subscripts must be a str, not {type(subscripts).__name__}")
    inputs, output, sizes = _parse(subscripts, *(x.shape for x in tensors))
    dtype = functools.reduce(_C.promote, (x.dtype for x in tensors))
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


def _parse(
    subscripts: str, *shapes: tuple[int, ...]
) -> tuple[list[list[Label]], list[Label], dict[Label, int]]:
    """The labels of each operand and of the result, and the sizes of labels."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(shapes) or not shapes:
        raise _C.ValueError(
            f"einsum: subscripts {subscripts!r} are for {len(texts)} operands, {len(shapes)} were given"
        )
    inputs = []
    for text, shape in zip(texts, shapes, strict=True):
        rank, named = len(shape), len(_letters(subscripts, text))
        if named > rank or (named < rank and "..." not in text):
            raise _C.ShapeError(
                f"einsum: subscripts {text!r} of {subscripts!r} do not fit the {rank} dimensions of shape "
                f"{shape}"
            )
        inputs.append(_labels(subscripts, text, rank - named))
    output = _output_of(subscripts, right if arrow else None, [label for each in inputs for label in each])
    return inputs, output, _sizes_of(subscripts, inputs, shapes)


def _output_of(subscripts: str, text: str | None, seen: list[Label]) -> list[Label]:
    """The labels of the result: those in its text, or else those that the operands have once."""
    around = max((-label for label in seen if isinstance(label, int)), default=0)
    if text is None:
        letters = sorted(label for label in seen if isinstance(label, str))
        return [*range(-around, 0), *(label for label in letters if letters.count(label) == 1)]
    output = _labels(subscripts, text, around)
    for label in output:
        if label not in seen or output.count(label) > 1:
            what = "twice in" if label in seen else "in no operand but in"
            raise _C.ValueError(f"einsum: label {label!r} is {what} the output of {subscripts!r}")
    return output


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
    subscripts: str, inputs: list[list[Label]], shapes: Sequence[tuple[int, ...]]
) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        own: dict[Label, int] = {}
        for label, size in zip(labels, shape, strict=True):
            if own.setdefault(label, size) != size:
                raise _C.ShapeError(
                    f"einsum: label {label!r} of {subscripts!r} names axes of shape {shape} that differ in "
                    "size"
                )
            known = sizes.setdefault(label, size)
            if size != known and 1 not in (size, known):
                what = f"label {label!r}" if isinstance(label, str) else f"axis {label} of '...'"
                raise _C.ShapeError(
                    f"einsum: {what} of {subscripts!r} has sizes {known} and {size}; they must be equal or "
                    "one of them 1"
                )
            if known == 1:
                sizes[label] = size
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
    a = _ordered(a, in_a, [*batch, *rows, *inner])
    if not inner or not (rows or columns):
        # Nothing to multiply as matrices. Each of the two has axes of size 1 for what only the other has.
        b = _ordered(b, in_b, [*batch, *columns, *inner])
        a = _shaped(a, [size[each] if each in in_a else 1 for each in (*labels, *inner)])
        b = _shaped(b, [size[each] if each in in_b else 1 for each in (*labels, *inner)])
        return _summed((_multiply(a, b), [*labels, *inner]), labels)
    b = _ordered(b, in_b, [*batch, *inner, *columns])
    height, width, depth = (math.prod(size[each] for each in group) for group in (rows, columns, inner))
    outer = [size[label] for label in batch]
    product = _matmul(_shaped(a, [*outer, height, depth]), _shaped(b, [*outer, depth, width]))
    return _shaped(product, [size[label] for label in labels]), labels


def _ordered(x: Tensor, labels: list[Label], wanted: list[Label]) -> Tensor:
    return x if labels == wanted else _permute_dims(x, axes=[labels.index(label) for label in wanted])


def _shaped(x: Tensor, shape: list[int]) -> Tensor:
    return x if x.shape == tuple(shape) else _reshape(x, shape=shape)


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

    >>> tw.kron(tw.eye(2, dtype="int64"), tw.asarray([[1, 2]]))
    tensor([[1, 2, 0, 0],
            [0, 0, 1, 2]])
    """
    x1, x2 = require_tensor("kron", x1), require_tensor("kron", x2)
    rank = max(x1.ndim, x2.ndim)
    first = (1,) * (rank - x1.ndim) + x1.shape
    second = (1,) * (rank - x2.ndim) + x2.shape
    left = _reshape(x1, shape=[size for n in first for size in (n, 1)])
    right = _reshape(x2, shape=[size for n in second for size in (1, n)])
    return _reshape(_multiply(left, right), shape=[n * m for n, m in zip(first, second, strict=True)])


__all__ = ["einsum", "kron"]

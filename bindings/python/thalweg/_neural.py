# _neural.py: lookup, dropout and attention of neural networks, composed of other operators.
"""Functions that layers of neural networks are made of. Nothing waits."""

from __future__ import annotations

import math
import operator

from thalweg import _C
from thalweg._C import op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import finfo
from thalweg._manipulation import broadcast_shapes
from thalweg._operations import (
    as_floating,
    halves_in_float32,
    is_index,
    number_of,
    require_broadcast,
    require_tensor,
)
from thalweg._random import uniform
from thalweg._typing import DTypeLike, Operand, Tensor

_arange = op("arange")
_astype = op("astype")
_equal = op("equal")
_exp = op("exp")
_expand_dims = op("expand_dims")
_mask_assign = op("mask_assign")
_matmul = op("matmul")
_max = op("max")
_maximum = op("maximum")
_permute_dims = op("permute_dims")
_softmax = op("softmax")
_sum = op("sum")
_take = op("take")
_where = op("where")


def masked_fill(x: Tensor, mask: Tensor, value: Operand, /) -> Tensor:
    """x with value where mask is true. The result has the shape and dtype of x; x stays as it is.

    mask: bool. mask and value (a number or a tensor) broadcast to the shape of x, value is cast to its dtype.
    Raises DTypeError for another mask, ShapeError for shapes that do not broadcast and OverflowError for an
    integer that the dtype cannot hold. PyTorch's masked_fill.

    >>> x = tw.asarray([1.0, -2.0, 3.0])
    >>> tw.masked_fill(x, x < 0, 0)
    tensor([1., 0., 3.])
    """
    x, mask = require_tensor("masked_fill", x), require_tensor("masked_fill", mask)
    if mask.dtype != "bool":
        raise _C.DTypeError(f"masked_fill: mask must be bool, not {mask.dtype}; compare it with a number")
    require_broadcast("masked_fill", "mask", mask, x.shape)
    if isinstance(value, Tensor):
        require_broadcast("masked_fill", "value", value, x.shape)
    return _mask_assign(x, value, mask)


def embedding(indices: Tensor, weight: Tensor, /) -> Tensor:
    """The rows of weight that indices name. The result has shape indices.shape + weight.shape[1:].

    weight: at least 1 dimension, of any dtype, which is that of the result. Negative indices count from the
    end. Raises DTypeError for indices that are no integers and ShapeError for a 0-d weight; an index out of
    range fails the result with IndexError. Bengio et al., A neural probabilistic language model (JMLR 3,
    2003).

    >>> weight = tw.asarray([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    >>> tw.embedding(tw.asarray([2, 0]), weight)
    tensor([[2.0000, 2.5000],
            [0.0000, 0.5000]])
    """
    indices = require_tensor("embedding", indices)
    if "integer" not in indices.dtype.kind:
        raise _C.DTypeError(f"embedding: indices must have an integer dtype, not {indices.dtype}")
    if require_tensor("embedding", weight).ndim == 0:
        raise _C.ShapeError("embedding: weight needs an axis of rows, its shape is ()")
    return _take(weight, indices, axis=0)


def one_hot(x: Tensor, /, num_classes: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """1 at the position that each element of x names along a new last axis of size num_classes, else 0.

    dtype: int64 by default. A number below 0 or not below num_classes gives zeros. Raises DTypeError for an x
    that holds no integers and ValueError for a negative num_classes. The 1-of-K scheme of Bishop, Pattern
    recognition and machine learning (2006), section 2.2.

    >>> tw.one_hot(tw.asarray([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    x = require_tensor("one_hot", x)
    if "integer" not in x.dtype.kind:
        raise _C.DTypeError(f"one_hot: x must have an integer dtype, not {x.dtype}")
    if not is_index(num_classes):
        raise _C.DTypeError(f"one_hot: num_classes must be an int, not {type(num_classes).__name__}")
    count = operator.index(num_classes)
    if count < 0:
        raise _C.ValueError(f"one_hot: num_classes is {count}; it must not be negative")
    if entered and (there := elsewhere(x)):
        return there(one_hot, x, count, dtype=dtype)
    classes = _arange(start=0, stop=count, step=1, dtype="int64", device=x.device)
    return _astype(_equal(_expand_dims(x, axis=x.ndim), classes), dtype="int64" if dtype is None else dtype)


def dropout(
    x: Tensor, /, p: float = 0.5, *, training: bool = True, generator: _C.Generator | None = None
) -> Tensor:
    """x with each element set to 0 with probability p and the others divided by 1 - p; x where training is
    False.

    The result has the shape of x and its dtype (bool and integers: float64). Takes x.size numbers of the
    generator, none where nothing can be dropped. Raises ValueError for a p that is not from 0 to 1 and
    DTypeError for complex dtypes. Srivastava et al., Dropout (JMLR 15, 2014).

    >>> tw.dropout(tw.ones(6), 0.5, generator=tw.Generator(7))
    tensor([2., 0., 2., 2., 0., 2.])
    """
    x = as_floating("dropout", x)
    p = _probability("dropout", "p", p)
    if not training or p == 0:
        return x[...]
    if entered and (there := elsewhere(x)):
        return there(dropout, x, p, generator=generator)
    kept = uniform(x.shape, dtype="float32", device=x.device, generator=generator) >= p
    return _where(kept, x / (1 - p) if p < 1 else x, 0)


def _probability(name: str, what: str, p: float) -> float:
    p = number_of(name, what, p)
    if not 0 <= p <= 1:
        raise _C.ValueError(f"{name}: {what} is {p:g}; it must be from 0 to 1")
    return p


@halves_in_float32
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /,
    attn_mask: Tensor | None = None,
    *,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    generator: _C.Generator | None = None,
) -> Tensor:
    """softmax(query @ key.mT * scale + mask) @ value.

    query: (..., L, E), key: (..., S, E), value: (..., S, V); axes in front of the last two broadcast. The
    result has shape (..., L, V) and the promoted dtype; bool and integers are computed as float64.

    attn_mask: broadcasts to (..., L, S); bool, true for what takes part, or floating, added to the products.
    is_causal: query i sees keys 0 ... i only, of those that attn_mask leaves. scale: 1 / sqrt(E) by default.
    dropout_p: the share of weights to drop, with numbers of the generator. A query that sees no key gives 0.

    Raises ShapeError for shapes that do not fit, ValueError for a dropout_p that is not from 0 to 1 and
    DTypeError for complex dtypes and integer masks. Vaswani et al., Attention is all you need (NeurIPS 2017).

    >>> q = k = tw.zeros((3, 2))  # equal scores: each query takes the mean of the keys it sees
    >>> v = tw.asarray([[0.0], [2.0], [4.0]])
    >>> tw.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensor([[0.],
            [1.],
            [2.]])
    """
    name = "scaled_dot_product_attention"
    query, key, value = (as_floating(name, each) for each in (query, key, value))
    shape = _attention_shape(name, query, key, value)
    dropout_p = _probability(name, "dropout_p", dropout_p)
    if scale is None:
        scale = 1 / math.sqrt(max(query.shape[-1], 1))
    scale = number_of(name, "scale", scale)
    scores = _matmul(query * scale, _transposed(key))
    if attn_mask is not None:
        scores = _masked(name, scores, attn_mask, shape)
    if is_causal:
        scores = _causal(scores, shape)
    if scores.size == 0:
        return _matmul(scores, value)
    # Without a mask each query sees its first key at least.
    weights = _softmax(scores, axis=-1) if attn_mask is None else _weights(scores)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, generator=generator)
    return _matmul(weights, value)


def _causal(scores: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The scores, and -inf where a key comes after the query."""
    if entered and (there := elsewhere(scores)):
        return there(_causal, scores, shape)
    rows = _arange(start=0, stop=shape[-2], step=1, device=scores.device)
    columns = _arange(start=0, stop=shape[-1], step=1, device=scores.device)
    return _where(_expand_dims(rows, axis=1) >= columns, scores, -math.inf)


def _weights(scores: Tensor) -> Tensor:
    """softmax along the last axis, and zeros where all scores are -inf."""
    # The shift changes no weight, so that no gradient passes it.
    largest = _max(scores.detach(), axis=-1, keepdims=True)
    powers = _exp(scores - _maximum(largest, finfo(scores.dtype).min))
    sums = _sum(powers, axis=-1, keepdims=True)
    return powers / _where(sums == 0, 1, sums)


def _attention_shape(name: str, query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    """The shape of the scores."""
    for what, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 2:
            raise _C.ShapeError(f"{name}: {what} needs at least 2 dimensions, its shape is {x.shape}")
        if x.device != query.device:  # here, because dropout draws before the value takes part
            raise _C.DeviceError(
                f"{name}: {what} is on {x.device} and query on {query.device}; move one with to"
            )
    if query.shape[-1] != key.shape[-1]:
        raise _C.ShapeError(f"{name}: query {query.shape} and key {key.shape} differ in size at axis -1")
    if key.shape[-2] != value.shape[-2]:
        raise _C.ShapeError(f"{name}: key {key.shape} and value {value.shape} differ in size at axis -2")
    try:
        batch = broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except _C.ShapeError:
        raise _C.ShapeError(
            f"{name}: query {query.shape}, key {key.shape} and value {value.shape} do not broadcast before "
            "their last two axes"
        ) from None
    return (*batch, query.shape[-2], key.shape[-2])


def _transposed(x: Tensor) -> Tensor:
    return _permute_dims(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _masked(name: str, scores: Tensor, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    mask = require_tensor(name, mask)
    require_broadcast(name, "attn_mask", mask, shape)
    if mask.dtype == "bool":
        return _where(mask, scores, -math.inf)
    if mask.dtype.kind != "real floating":
        raise _C.DTypeError(f"{name}: attn_mask must be bool or floating, not {mask.dtype}")
    return scores + mask


__all__ = ["dropout", "embedding", "masked_fill", "one_hot", "scaled_dot_product_attention"]

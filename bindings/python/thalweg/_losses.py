# _losses.py: how far predictions are from their targets, composed of other operators.
"""Loss functions. reduction: "mean", "sum" or "none" (the loss of each element or example). Floating dtypes
keep their dtype (float16 and bfloat16 are computed in float32 and rounded once), bool and integer inputs are
computed as float64, complex dtypes raise DTypeError. Nothing waits."""

from __future__ import annotations

from typing import Literal

from thalweg import _C
from thalweg._activations import log_softmax, softplus
from thalweg._C import op
from thalweg._operations import (
    as_floating,
    halves_in_float32,
    is_index,
    number_of,
    require_broadcast,
    require_real,
    require_tensor,
)
from thalweg._typing import Tensor

_astype = op("astype")
_broadcast_to = op("broadcast_to")
_expand_dims = op("expand_dims")
_logical_and = op("logical_and")
_mean = op("mean")
_reshape = op("reshape")
_square = op("square")
_squeeze = op("squeeze")
_sum = op("sum")
_take_along_axis = op("take_along_axis")
_where = op("where")

Reduction = Literal["mean", "sum", "none"]


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise _C.ValueError(f"{name}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return _mean(loss) if reduction == "mean" else _sum(loss)


def _check_same_shape(name: str, x: Tensor, target: Tensor) -> None:
    # Broadcasting here hides a mistake more often than it is meant: (n,) with (n, 1) would give (n, n).
    if x.shape != target.shape:
        raise _C.ShapeError(f"{name}: input has shape {x.shape} and target {target.shape}; make them equal")


@halves_in_float32
def mse_loss(input: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """The squares of input - target, and their mean or sum; the mean of none is nan.

    The dtypes are promoted. Raises ShapeError where the shapes differ, ValueError for another reduction and
    DTypeError for complex dtypes. Bishop, Pattern recognition and machine learning (2006), section 3.1.1.

    >>> tw.mse_loss(tw.asarray([1.0, 2.0]), tw.asarray([1.0, 5.0]))
    tensor(4.5000)
    """
    _check_reduction("mse_loss", reduction)
    input, target = as_floating("mse_loss", input), require_real("mse_loss", target)
    _check_same_shape("mse_loss", input, target)
    return _reduced(_square(input - target), reduction)


@halves_in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    /,
    weight: Tensor | None = None,
    *,
    pos_weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """-(pos_weight * target * log(p) + (1 - target) * log(1 - p)) of p = sigmoid(input), without overflow.

    target: probabilities of the shape of input; bool and integers are taken in the dtype of input. weight
    multiplies the loss of each element and pos_weight the part of the positive ones; both broadcast to the
    shape of input. An infinite input gives nan or inf. Raises ShapeError for shapes that do not fit,
    ValueError for another reduction and DTypeError for complex dtypes. Bishop, Pattern recognition and
    machine learning (2006), section 4.3.2.

    >>> logits, labels = tw.asarray([0.0, 1000.0]), tw.asarray([1, 1])
    >>> tw.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    tensor([0.6931, 0.0000])
    """
    name = "binary_cross_entropy_with_logits"
    _check_reduction(name, reduction)
    input, target = as_floating(name, input), require_real(name, target)
    _check_same_shape(name, input, target)
    if target.dtype.kind != "real floating":
        target = _astype(target, dtype=input.dtype)
    # softplus(-input) is -log(p), and softplus(input) -log(1 - p).
    positive = target * softplus(-input)
    if pos_weight is not None:
        positive = positive * _check_weight(name, "pos_weight", pos_weight, input)
    loss = positive + (1 - target) * softplus(input)
    if weight is not None:
        loss = loss * _check_weight(name, "weight", weight, input)
    return _reduced(loss, reduction)


def _check_weight(name: str, what: str, weight: Tensor, input: Tensor) -> Tensor:
    weight = require_real(name, weight)
    require_broadcast(name, what, weight, input.shape)
    return weight


@halves_in_float32
def cross_entropy(
    input: Tensor,
    target: Tensor,
    /,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """The cross entropy of softmax(input) and the target.

    input: logits of shape (C,), (N, C) or (N, C, d1, ...), with the classes along axis 1 (of (C,): 0).
    target: the number of a class, an integer tensor of that shape without the classes; or probabilities, a
    floating tensor of the shape of input. The loss has the shape of input without the classes.

    Classes equal to ignore_index have the loss 0 and do not count in the mean, which is nan for no example;
    the mean for probabilities is over all examples. A probability of 0 gives 0 whatever the logit.
    weight, of shape (C,), multiplies the part of each class in the loss; in the mean an example of a class
    then counts as much as its weight.
    label_smoothing, from 0 to 1, is the share of the target that is spread evenly over the classes.

    Raises ShapeError for shapes that do not fit, ValueError for other arguments out of range and DTypeError
    for a bool or complex target. A class below 0 or not below C fails the loss with IndexError. Bishop,
    Pattern recognition and machine learning (2006), section 4.3.4; Szegedy et al., Rethinking the inception
    architecture for computer vision (CVPR 2016) for label_smoothing.

    >>> logits = tw.asarray([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> tw.cross_entropy(logits, tw.asarray([0, 2]), reduction="none")
    tensor([0.2395, 1.0986])
    """
    name = "cross_entropy"
    _check_reduction(name, reduction)
    smoothing = number_of(name, "label_smoothing", label_smoothing)
    if not 0 <= smoothing <= 1:
        raise _C.ValueError(f"{name}: label_smoothing is {smoothing:g}; it must be from 0 to 1")
    if not is_index(ignore_index):
        raise _C.DTypeError(f"{name}: ignore_index must be an int, not {type(ignore_index).__name__}")
    input, target = as_floating(name, input), require_tensor(name, target)
    if input.ndim == 0:
        raise _C.ShapeError(f"{name}: input needs an axis of classes, its shape is ()")
    axis = min(1, input.ndim - 1)
    if input.shape[axis] == 0:
        raise _C.ShapeError(f"{name}: input of shape {input.shape} has no class along axis {axis}")
    if weight is not None:
        weight = _class_weight(name, weight, input, axis)
    log_probabilities = log_softmax(input, axis=axis)
    expected = input.shape[:axis] + input.shape[axis + 1 :]
    if target.dtype.kind == "real floating":
        if target.shape == expected:
            raise _C.DTypeError(
                f"{name}: target has the shape of classes, {expected}, and dtype {target.dtype}; "
                "give classes as integers, or probabilities in the shape of input"
            )
        _check_same_shape(name, input, target)
        return _of_probabilities(log_probabilities, target, weight, axis, smoothing, reduction)
    if "integer" not in target.dtype.kind:
        raise _C.DTypeError(f"{name}: target must have an integer or real floating dtype, not {target.dtype}")
    if target.shape != expected:
        raise _C.ShapeError(
            f"{name}: target has shape {target.shape}; input of shape {input.shape} needs {expected}"
        )
    return _of_classes(log_probabilities, target, weight, axis, ignore_index, smoothing, reduction)


def _class_weight(name: str, weight: Tensor, input: Tensor, axis: int) -> Tensor:
    """The weights in the dtype and the shape of the input."""
    weight = require_real(name, weight)
    classes = input.shape[axis]
    if weight.shape != (classes,):
        raise _C.ShapeError(f"{name}: weight has shape {weight.shape}; {classes} classes need ({classes},)")
    along = tuple(classes if i == axis else 1 for i in range(input.ndim))
    weight = _reshape(_astype(weight, dtype=input.dtype), shape=along)
    return _broadcast_to(weight, shape=input.shape)


def _of_probabilities(
    log_probabilities: Tensor,
    target: Tensor,
    weight: Tensor | None,
    axis: int,
    smoothing: float,
    reduction: str,
) -> Tensor:
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / target.shape[axis]
    terms = _where(target == 0, 0, target * log_probabilities)
    if weight is not None:
        terms = terms * weight
    return _reduced(-_sum(terms, axis=axis), reduction)


def _of_classes(
    log_probabilities: Tensor,
    target: Tensor,
    weight: Tensor | None,
    axis: int,
    ignore_index: int,
    smoothing: float,
    reduction: str,
) -> Tensor:
    classes = _astype(target, dtype="int64")
    counts = classes != ignore_index
    # take_along_axis counts negative positions from the end: here they must fail.
    number = log_probabilities.shape[axis]
    place = _where(_logical_and(counts, classes < 0), number, _where(counts, classes, 0))

    def chosen(x: Tensor, place: Tensor) -> Tensor:
        return _squeeze(_take_along_axis(x, _expand_dims(place, axis=axis), axis=axis), axis=axis)

    parts = log_probabilities if weight is None else log_probabilities * weight
    loss = -chosen(parts, place)
    if smoothing > 0:
        loss = (1 - smoothing) * loss - smoothing * _mean(parts, axis=axis)
    loss = _where(counts, loss, 0)
    if reduction == "mean":
        count = _sum(counts)
        if weight is not None:
            # In range, so that a class out of range fails once.
            count = _sum(_where(counts, chosen(weight, _where(place < number, place, 0)), 0))
        return _sum(loss) / _astype(count, dtype=loss.dtype)
    return _reduced(loss, reduction)


__all__ = ["binary_cross_entropy_with_logits", "cross_entropy", "mse_loss"]

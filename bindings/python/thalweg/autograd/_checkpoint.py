# _checkpoint.py: values that are computed again in backward, instead of kept.
"""The form without re-entrance: saved-tensor hooks leave a place holder for each value that the function's
operators save. The first that backward asks for has the function run again, until all are there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Literal

from thalweg import _C
from thalweg._typing import Any, Tensor
from thalweg.autograd._modes import enable_grad
from thalweg.autograd._saved import Packed, saved_tensors_hooks

_Meta = tuple[tuple[int, ...], Any, Any]


class _AllThere(BaseException):
    """Ends a function that has computed all that is needed. No Exception, which the function might catch."""


class _Place:
    """Stands for one saved value. The node that saved it has the only reference."""

    def __init__(self, frame: _Frame, number: int) -> None:
        self.frame = frame
        self.number = number


class _Argument:
    """A tensor as it was when the function was called."""

    def __init__(self, tensor: Tensor) -> None:
        self._packed = Packed(tensor)
        self._requires_grad, self._is_leaf = tensor.requires_grad, tensor.is_leaf

    def get(self) -> Tensor:
        """A tensor like it, with no way into the graph of the first."""
        value = self._packed.get("checkpoint")
        if not self._requires_grad:
            return value.detach()
        leaf = value.detach().requires_grad_()
        return leaf if self._is_leaf else _C.output_of(_C.gradient_edge(leaf)[0], 0, value)


def _mapped(tree: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """The tree of tuples, lists and dicts with function(x) for each x of that kind."""
    if isinstance(tree, kind):
        return function(tree)
    if type(tree) in (tuple, list):
        return type(tree)(_mapped(each, kind, function) for each in tree)
    if type(tree) is dict:
        return {key: _mapped(each, kind, function) for key, each in tree.items()}
    return tree


def _text(meta: _Meta) -> str:
    shape, dtype, device = meta
    return f"{dtype.name} of shape {shape} on {device}"


class _Frame:
    """One call of a checkpointed function."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        preserve_rng_state: bool,
        checks: bool,
        early_stop: bool,
    ) -> None:
        self._function = function
        self._args = _mapped(args, Tensor, _Argument)
        self._random = _C.default_generator().get_state() if preserve_rng_state else None
        self._checks = checks
        self._early_stop = early_stop
        self._places: list[weakref.ref[_Place]] = []
        self._metas: list[_Meta] = []
        self.is_complete = False

    def pack(self, value: Tensor) -> _Place:
        place = _Place(self, len(self._places))
        self._places.append(weakref.ref(place))
        self._metas.append((value.shape, value.dtype, value.device))
        return place

    @staticmethod
    def unpack(place: _Place) -> Tensor:
        frame = place.frame
        state = _C.backward_state()
        if state is None:  # saved_tensors, read outside of backward
            return frame._recompute()[place]
        frames = state.setdefault(_Frame, weakref.WeakKeyDictionary())
        if place not in frames.get(frame, ()):
            frames[frame] = frame._recompute()
        return frames[frame][place]

    def _recompute(self) -> MutableMapping[_Place, Tensor]:
        """The values of the places that are still needed."""
        found: MutableMapping[_Place, Tensor] = weakref.WeakKeyDictionary()
        differing: list[str] = []
        count = 0

        def pack(value: Tensor) -> Tensor:
            nonlocal count
            number, count = count, count + 1
            if number < len(self._places):
                place = self._places[number]()
                if place is not None:
                    found[place] = value
                meta = (value.shape, value.dtype, value.device)
                if meta != self._metas[number]:
                    before = self._metas[number]
                    differing.append(f"saved tensor {number} was {_text(before)}, now {_text(meta)}")
            if self._early_stop and count == len(self._places):
                raise _AllThere
            return value

        args, keywords = _mapped(self._args, _Argument, _Argument.get)
        generator = _C.default_generator()
        random = generator.get_state()
        if self._random is not None:
            generator.set_state(self._random)
        try:
            with enable_grad(), saved_tensors_hooks(pack, lambda value: value):
                self._function(*args, **keywords)
        except _AllThere:
            pass
        finally:
            if self._random is not None:
                generator.set_state(random)
        if differing and self._checks:
            raise _C.EngineError(
                f"checkpoint: the function did something else when it ran again: {'; '.join(differing)}"
            )
        if count < len(self._places) or (count > len(self._places) and self.is_complete):
            raise _C.EngineError(
                f"checkpoint: the function did something else when it ran again: its operators saved {count} "
                f"tensors, not {len(self._places)}"
            )
        return found


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    determinism_check: Literal["default", "none"] = "default",
    early_stop: bool = True,
    **keywords: Any,
) -> Any:
    """function(*args, **keywords), whose operators keep nothing for backward: backward calls the function
    again and takes the values from there. Saves memory for time. Gradients have the same bits.

    The function must do the same each time: backward raises EngineError where it saves other shapes, dtypes
    or numbers of tensors than before. preserve_rng_state: the default generator draws the same numbers again.
    determinism_check "none" leaves shapes and dtypes unchecked. early_stop: the function ends as soon as it
    has computed what is needed. Tensors in args and keywords, in tuples, lists and dicts too, are kept as
    they were at the call; others that the function reads must not have changed. Checkpoints nest, and work
    with grad, inputs=, create_graph and retain_graph.

    Raises ValueError for another determinism_check and for use_reentrant=True, a form that does not exist
    here, and DTypeError for what cannot be called. PyTorch's torch.utils.checkpoint.checkpoint; Chen et al.
    (Training Deep Nets with Sublinear Memory Cost, 2016).

    >>> x = tw.asarray([1.0, 2.0]).requires_grad_()
    >>> y = tw.autograd.checkpoint(lambda x: tw.exp(x) * x, x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 5.4366, 22.1672])
    """
    if not callable(function):
        raise _C.DTypeError(f"checkpoint: expected a callable, got {type(function).__name__}")
    if keywords.pop("use_reentrant", False):
        raise _C.ValueError("checkpoint: only the form without re-entrance exists; leave use_reentrant out")
    if determinism_check not in ("default", "none"):
        raise _C.ValueError(
            f"checkpoint: determinism_check is {determinism_check!r}; it is 'default' or 'none'"
        )
    if not _C.is_grad_enabled():
        return function(*args, **keywords)
    frame = _Frame(function, (args, keywords), preserve_rng_state, determinism_check == "default", early_stop)
    with saved_tensors_hooks(frame.pack, _Frame.unpack):
        result = function(*args, **keywords)
    frame.is_complete = True
    return result


def checkpoint_sequential(
    functions: Iterable[Callable[[Any], Any]],
    segments: int,
    input: Any,
    *,
    preserve_rng_state: bool = True,
    determinism_check: Literal["default", "none"] = "default",
    early_stop: bool = True,
) -> Any:
    """The functions (a Sequential, or any callables) one after the other, in `segments` parts of which each
    but the last is a checkpoint. The other arguments are those of checkpoint.

    Raises ValueError unless there are from 1 to as many segments as functions, and otherwise as checkpoint.
    PyTorch's torch.utils.checkpoint.checkpoint_sequential.

    >>> x = tw.asarray([1.0, 2.0]).requires_grad_()
    >>> y = tw.autograd.checkpoint_sequential([tw.exp, tw.sin, tw.square], 2, x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([-2.0361,  5.9226])
    """
    listed = list(functions)
    if not 1 <= segments <= len(listed):
        raise _C.ValueError(
            f"checkpoint_sequential: {segments} segments of {len(listed)} functions; take from 1 to as many "
            "as there are functions"
        )
    size = len(listed) // segments
    for number in range(segments - 1):
        input = checkpoint(
            _chain(listed[number * size : (number + 1) * size]),
            input,
            preserve_rng_state=preserve_rng_state,
            determinism_check=determinism_check,
            early_stop=early_stop,
        )
    return _chain(listed[(segments - 1) * size :])(input)


def _chain(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run

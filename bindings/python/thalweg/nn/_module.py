# _module.py: Module, the tree of parameters, buffers and modules, and its containers.
"""Layers keep their tensors as attributes. What Parameter made and any other leaf that requires a gradient is
a parameter, a tensor given to register_buffer is state without gradient, a Module is a child; everything else
is an ordinary attribute."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import thalweg as tw
from thalweg import _C
from thalweg._typing import DeviceLike, DTypeLike, Tensor

# What Parameter made, by id: tensors have one class, and one that requires no gradient looks like any other.
_made: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()


def Parameter(data: Tensor, /, requires_grad: bool = True) -> Tensor:  # noqa: N802
    """A leaf with the value of data that a Module registers as a parameter, with requires_grad=False as a
    frozen one. Raises DTypeError for what is no tensor, and to require a gradient for a dtype that is neither
    floating nor complex. PyTorch's nn.Parameter, as a function: tensors have one class.

    >>> weight = tw.nn.Parameter(tw.ones(3))
    >>> weight.requires_grad, weight.is_leaf
    (True, True)
    """
    if not isinstance(data, Tensor):
        raise _C.DTypeError(f"Parameter: data must be a Tensor, not {type(data).__name__}; use asarray first")
    parameter = data.detach().requires_grad_(requires_grad)
    _made[id(parameter)] = parameter
    return parameter


def _is_parameter(value: object) -> bool:
    if not isinstance(value, Tensor):
        return False
    return (value.requires_grad and value.is_leaf) or _made.get(id(value)) is value


def _brought(value: Tensor, target: DeviceLike | DTypeLike, dtype: tw.DType | None) -> Tensor:
    """value itself if it is there already, else a new leaf."""
    plain = value.detach()
    if dtype is None:
        moved = plain.to(target)
        if moved.device == value.device:
            return value
    elif plain.dtype.kind != "real floating" or plain.dtype == dtype:
        return value
    else:
        moved = plain.astype(dtype)
    if _is_parameter(value):
        return Parameter(moved, value.requires_grad)
    return moved.requires_grad_(value.requires_grad)


class Module:
    """The base of layers and models: write __init__ and forward, and call the module. Raises
    NotImplementedError where a class has no forward. PyTorch's nn.Module.

    >>> class Twice(tw.nn.Module):
    ...     def __init__(self):
    ...         self.scale = tw.nn.Parameter(tw.asarray(2.0))
    ...     def forward(self, x):
    ...         return x * self.scale
    >>> Twice()(tw.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    training: bool
    _parameters: dict[str, Tensor]
    _buffers: dict[str, Tensor]
    _modules: dict[str, Module]
    _not_persistent: set[str]

    def __new__(cls, *_arguments: Any, **_options: Any) -> Module:
        # Here, so that a subclass need not call super().__init__ before it sets its first attribute.
        self = super().__new__(cls)
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_not_persistent", set())
        object.__setattr__(self, "training", True)
        return self

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the module computes. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)

    # --- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = (self._parameters, self._buffers, self._modules)
        if name in self._buffers and isinstance(value, Tensor):
            self._buffers[name] = value
            return
        if _is_parameter(value) or (name in self._parameters and isinstance(value, Tensor)):
            place = self._parameters
        elif isinstance(value, Module):
            place = self._modules
        else:
            for kind in kinds:
                kind.pop(name, None)
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)
        for kind in kinds:
            if kind is not place:
                kind.pop(name, None)
        place[name] = value

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def register_buffer(self, name: str, value: Tensor, *, persistent: bool = True) -> None:
        """A tensor that is state and gets no gradient, such as running statistics. persistent: it is part of
        the state_dict."""
        if not isinstance(value, Tensor):
            raise _C.DTypeError(f"register_buffer: {name} must be a Tensor, not {type(value).__name__}")
        if not isinstance(name, str) or not name or "." in name:
            raise _C.ValueError(f"register_buffer: {name!r} is no name; it may hold no dot")
        if name not in self._buffers and hasattr(self, name):
            raise _C.ValueError(f"register_buffer: there is an attribute {name!r}")
        self._buffers[name] = value
        if not persistent:
            self._not_persistent.add(name)

    # --- the tree

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module, named prefix, and all below it, each once and in order of their definition."""
        seen: set[int] = set()
        todo = [(prefix, self)]
        while todo:
            name, module = todo.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            below = [(f"{name}.{key}" if name else key, child) for key, child in module._modules.items()]
            todo.extend(reversed(below))

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return iter(self._modules.values())

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The parameters of this module and of those below it, each once, with dotted names."""
        return self._named("_parameters", prefix)

    def parameters(self) -> Iterator[Tensor]:
        """The parameters of this module and of those below it, each once."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and of those below it, each once, with dotted names."""
        return self._named("_buffers", prefix)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers of this module and of those below it, each once."""
        return (buffer for _, buffer in self.named_buffers())

    def _named(self, kind: str, prefix: str) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix):
            for name, value in getattr(module, kind).items():
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def apply(self, function: Callable[[Module], object]) -> Module:
        """Calls function with every module of the tree, the innermost first, and returns this module."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    # --- state

    def train(self, mode: bool = True) -> Module:
        """Training (dropout drops, batch normalisation uses the batch) or, with False, evaluation."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self) -> Module:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Whether the parameters take gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self) -> None:
        """Sets the gradient of every parameter to None."""
        for parameter in self.parameters():
            parameter.grad = None

    def to(self, target: DeviceLike | DTypeLike) -> Module:
        """Brings parameters and buffers to a device, or the floating ones of them to a floating dtype.

        What is not there yet becomes a new leaf without gradient: make optimisers afterwards. What two
        modules share they share afterwards too."""
        dtype = None
        with contextlib.suppress(TypeError, ValueError):
            dtype = tw.dtype(target)
        places = [
            (kind, name, value)
            for module in self.modules()
            for kind in (module._parameters, module._buffers)
            for name, value in kind.items()
        ]
        moved: dict[int, Tensor] = {}
        for _, _, value in places:
            if id(value) not in moved:
                moved[id(value)] = _brought(value, target, dtype)
        for kind, name, value in places:
            kind[name] = moved[id(value)]
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by their dotted names, without gradients. Values never change:
        what is returned stays as it is while training goes on."""
        state = {}
        for path, module in self.named_modules():
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if name not in module._not_persistent:
                    state[f"{path}.{name}" if path else name] = value.detach()
        return state

    def load_state_dict(
        self, state: Mapping[str, Tensor], *, strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Puts the values of state into the parameters and buffers of their names, cast to their dtypes and
        brought to their devices. Returns the names that state lacks and those that it has too many.

        Raises, before anything is changed, ValueError that lists every name missing from state or unknown
        here (strict only) and every shape that does not fit, and DTypeError for a state that is no mapping
        and for values that are no tensors or complex where the module is real."""
        who = f"load_state_dict: {type(self).__name__}"
        if not isinstance(state, Mapping):
            raise _C.DTypeError(
                f"{who}: state must map names to tensors, as state_dict() does, not be a "
                f"{type(state).__name__}"
            )
        own = {}
        for path, module in self.named_modules():
            for kind in (module._parameters, module._buffers):
                for name, value in kind.items():
                    if name not in module._not_persistent:
                        own[f"{path}.{name}" if path else name] = value
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        faults = []
        if strict and missing:
            faults.append(f"missing: {', '.join(missing)}")
        if strict and unexpected:
            faults.append(f"unexpected: {', '.join(map(str, unexpected))}")
        given = {name: _tensor_of(who, name, state[name]) for name in own if name in state}
        for name, value in given.items():
            if value.shape != own[name].shape:
                faults.append(f"{name} has shape {value.shape}, here {own[name].shape}")
        if faults:
            raise _C.ValueError(f"{who}: {'; '.join(faults)}")
        for name, value in given.items():
            if value.dtype.kind == "complex floating" and own[name].dtype.kind != "complex floating":
                raise _C.DTypeError(f"{who}: {name} is {value.dtype}, here {own[name].dtype}")
        _assign(
            [
                (own[name], value.to(own[name].device).astype(own[name].dtype, copy=False))
                for name, value in given.items()
            ]
        )
        return missing, unexpected

    # --- text

    def extra_repr(self) -> str:
        """What repr shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        if not self._modules:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"{type(self).__name__}({self.extra_repr()}"]
        for name, module in self._modules.items():
            text = repr(module).replace("\n", "\n  ")
            lines.append(f"  ({name}): {text}")
        return "\n".join([*lines, ")"])


class Sequential(Module):
    """Modules that are called one after the other. Raises DTypeError for what is no Module. PyTorch's
    nn.Sequential.

    >>> model = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.ReLU(), tw.nn.Linear(8, 2))
    >>> model(tw.ones((3, 4))).shape
    (3, 2)
    """

    def __init__(self, *modules: Module) -> None:
        for index, module in enumerate(modules):
            _add(self, index, module)

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int) -> Module:
        return list(self._modules.values())[index]


class ModuleList(Module):
    """A list of modules whose parameters are found. Raises DTypeError for what is no Module. PyTorch's
    nn.ModuleList.

    >>> layers = tw.nn.ModuleList(tw.nn.Linear(4, 4) for _ in range(3))
    >>> len(layers), sum(1 for _ in layers.parameters())
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end and returns the list."""
        _add(self, len(self), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int) -> Module:
        return list(self._modules.values())[index]


def _add(container: Module, index: int, module: Module) -> None:
    if not isinstance(module, Module):
        raise _C.DTypeError(
            f"{type(container).__name__}: element {index} must be a Module, not {type(module).__name__}"
        )
    container._modules[str(index)] = module


def _tensor_of(who: str, name: str, value: Any) -> Tensor:
    try:
        return tw.asarray(value).detach()
    except Exception as error:
        raise _C.DTypeError(f"{who}: {name} cannot be taken as a tensor: {error}") from error


def _assign(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Puts each second value into the first tensor; where one fails (another engine's does), into none."""
    before: list[tuple[Tensor, Tensor]] = []
    with tw.no_grad():
        try:
            for target, value in pairs:
                before.append((target, target.detach()))
                target[...] = value
        except BaseException:
            for target, value in before:
                target[...] = value
            raise

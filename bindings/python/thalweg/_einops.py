# _einops.py: teaches einops about tensors, whichever of the two is imported first.
"""The backend of einops.

einops asks the subclasses of its AbstractBackend whether a tensor is theirs, and has no other place to
register one. Everybody would pay if thalweg imported einops, so that the class is made when somebody else
does: a finder in front of `sys.meta_path` waits for its module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from thalweg import _creation, _einsum, _manipulation
from thalweg._typing import Any, Tensor

_MODULE = "einops._backends"

# einops knows its subclasses by weak references only.
_backends: list[type] = []


def register(module: ModuleType) -> None:
    """Makes the backend, if the module has what it is made of."""
    base: Any = getattr(module, "AbstractBackend", None)
    if base is None:
        return

    class ThalwegBackend(base):  # type: ignore[misc]
        """Views where einops allows them; what a tensor's methods do as einops expects is inherited."""

        framework_name = "thalweg"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return _creation.from_numpy(x)

        def to_numpy(self, x: Tensor) -> Any:
            return x.numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            return _creation.arange(start, stop)

        def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
            return _manipulation.stack(tensors)

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return _manipulation.expand_dims(x, axis=new_position)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
            for position in pos2len:
                x = self.add_axis(x, position)
            return _manipulation.broadcast_to(
                x, tuple(pos2len.get(i, size) for i, size in enumerate(x.shape))
            )

        def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
            return _manipulation.tile(x, repeats)

        def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
            return _manipulation.concat(tensors, axis=axis)

        def is_float_type(self, x: Tensor) -> bool:
            return "floating" in x.dtype.kind

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return _einsum.einsum(pattern, *x)

    _backends.append(ThalwegBackend)


class _Loader:
    """Loads as another loader does, then registers the backend."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        register(module)


class _Finder:
    """Lets the other finders find the module. It stays in place afterwards: to take it out of the list could
    make an import in another thread miss the next finder."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        others = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        spec = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def watch() -> None:
    """Registers the backend now or when einops is imported; called once, when the package is imported."""
    if _MODULE in sys.modules:
        register(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]

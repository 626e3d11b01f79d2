# _safetensors.py: weights in files of the safetensors format.
from __future__ import annotations

import os
from collections.abc import Mapping

from thalweg import _C
from thalweg._typing import Any, DeviceLike, Tensor

_contiguous = _C.op("contiguous")


def _library(name: str) -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            f"{name}: needs the packages safetensors and numpy: pip install safetensors numpy"
        ) from error
    return safetensors


def save_safetensors(
    tensors: Mapping[str, Tensor], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors by their names, such as a module's state_dict(), to a file of the safetensors format,
    which other libraries read and which runs no code when it is read.

    Waits for the tensors. Gradients are not written; complex128 has no place in the format. Raises DTypeError
    for values that are no tensors and dtypes that the format lacks, what a failed tensor raises, ImportError
    without the packages safetensors and numpy, and OSError where the file cannot be written.
    safetensors's save_file.

    >>> import tempfile
    >>> model = tw.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tw.nn.save_safetensors(model.state_dict(), f"{folder}/model.safetensors")
    ...     model.load_state_dict(tw.nn.load_safetensors(f"{folder}/model.safetensors"))
    ([], [])
    """
    library = _library("save_safetensors")
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise _C.DTypeError(f"save_safetensors: {name!r} is {type(tensor).__name__}, not a Tensor")
        if tensor.dtype is _C.complex128:
            raise _C.DTypeError(
                f"save_safetensors: {name!r} is complex128, which the format does not have; cast it to "
                "complex64 or save its real and imaginary parts"
            )
        # The package writes the bytes as they lie, whatever the strides.
        arrays[name] = _contiguous(tensor.detach()).numpy()
    library.numpy.save_file(arrays, path, dict(metadata) if metadata else None)


def load_safetensors(path: str | os.PathLike[str], device: DeviceLike | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by their names, on `device` (default: the engine's first).

    Raises ValueError for a file that is not of the format, OSError where there is none, DTypeError for dtypes
    that are not there here and ImportError without the packages safetensors and numpy.
    safetensors's load_file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     tw.nn.save_safetensors({"x": tw.arange(3)}, file.name)
    ...     tw.nn.load_safetensors(file.name)
    {'x': tensor([0, 1, 2])}
    """
    from thalweg._creation import asarray

    library = _library("load_safetensors")
    try:
        arrays = library.numpy.load_file(path)
    except library.SafetensorError as error:
        raise _C.ValueError(
            f"load_safetensors: {os.fspath(path)!r} is not a safetensors file: {error}"
        ) from None
    # The arrays lie in the file, which may change: copied.
    return {name: asarray(array, device=device, copy=True) for name, array in arrays.items()}

# thalweg: an asynchronous eager tensor engine.
"""Tensors whose operations return at once and run as nodes of a task graph.

``c = a + b`` checks shapes and dtypes, hands the operation to the engine and returns; reading a value waits
for it. Errors in shapes, dtypes, axes and indices raise where they are made; an error in the computation
raises where the value is read, and names the line that issued it.
"""

# ruff: noqa: F401, F403 - the package's names are those of its modules
from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys

from thalweg import _loader  # isort: skip - first: it makes the extension importable
from thalweg import _C, autograd, fft, linalg, nn, optim, utils
from thalweg._activations import *
from thalweg._activations import __all__ as _activations_all
from thalweg._C import (
    ArgumentError,
    DeviceError,
    DTypeError,
    Engine,
    EngineError,
    Error,
    IndexError,
    KernelError,
    OutOfMemoryError,
    ShapeError,
    SyncError,
    Tensor,
    ValueError,
    dtype,
)
from thalweg._C import bool as bool
from thalweg._control import *
from thalweg._control import __all__ as _control_all
from thalweg._convolution import *
from thalweg._convolution import __all__ as _convolution_all
from thalweg._creation import *
from thalweg._creation import __all__ as _creation_all
from thalweg._dtypes import *
from thalweg._dtypes import __all__ as _dtypes_all
from thalweg._einops import watch as _watch_einops
from thalweg._einsum import *
from thalweg._einsum import __all__ as _einsum_all
from thalweg._elementwise import *
from thalweg._elementwise import __all__ as _elementwise_all
from thalweg._inspection import *
from thalweg._inspection import __all__ as _inspection_all
from thalweg._interchange import *
from thalweg._interchange import __all__ as _interchange_all
from thalweg._linear_algebra import *
from thalweg._linear_algebra import __all__ as _linear_algebra_all
from thalweg._logic import *
from thalweg._logic import __all__ as _logic_all
from thalweg._losses import *
from thalweg._losses import __all__ as _losses_all
from thalweg._manipulation import *
from thalweg._manipulation import __all__ as _manipulation_all
from thalweg._methods import add_methods as _add_methods
from thalweg._neural import *
from thalweg._neural import __all__ as _neural_all
from thalweg._normalization import *
from thalweg._normalization import __all__ as _normalization_all
from thalweg._other_names import missing as _missing
from thalweg._padding import *
from thalweg._padding import __all__ as _padding_all
from thalweg._pooling import *
from thalweg._pooling import __all__ as _pooling_all
from thalweg._random import *
from thalweg._random import __all__ as _random_all
from thalweg._reductions import *
from thalweg._reductions import __all__ as _reductions_all
from thalweg._repr import *
from thalweg._repr import __all__ as _repr_all
from thalweg._sampling import *
from thalweg._sampling import __all__ as _sampling_all
from thalweg._sets import *
from thalweg._sets import __all__ as _sets_all
from thalweg._sorting import *
from thalweg._sorting import __all__ as _sorting_all
from thalweg.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__version__: str = _C.__version__

_C._set_package_directory(_os.path.dirname(__file__) + _os.sep)
_add_methods()
_watch_einops()
_atexit.register(_C._at_exit)
_os.register_at_fork(before=_C._before_fork, after_in_child=_C._after_fork_in_child)

# Error classes that share a name with one of Python's are left out: `from thalweg import *` must not
# replace those.
__all__ = [
    "DTypeError",
    "DeviceError",
    "Engine",
    "EngineError",
    "Error",
    "KernelError",
    "OutOfMemoryError",
    "ShapeError",
    "SyncError",
    "Tensor",
    "autograd",
    "dtype",
    "enable_grad",
    "fft",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "linalg",
    "nn",
    "no_grad",
    "optim",
    "set_grad_enabled",
    "utils",
    *_activations_all,
    *_control_all,
    *_convolution_all,
    *_creation_all,
    *_dtypes_all,
    *_einsum_all,
    *_elementwise_all,
    *_inspection_all,
    *_interchange_all,
    *_linear_algebra_all,
    *_logic_all,
    *_losses_all,
    *_manipulation_all,
    *_neural_all,
    *_normalization_all,
    *_padding_all,
    *_pooling_all,
    *_random_all,
    *_reductions_all,
    *_repr_all,
    *_sampling_all,
    *_sets_all,
    *_sorting_all,
]


def __getattr__(name: str) -> object:
    raise _missing(_sys.modules[__name__], name)

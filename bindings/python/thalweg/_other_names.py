# _other_names.py: what NumPy and PyTorch call things that have another name here.
"""Hints for names that the package does not have."""

from __future__ import annotations

import difflib
from types import ModuleType

#: NumPy's and PyTorch's functions, and what to write instead.
_INSTEAD = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "array": "asarray",
    "bitwise_not": "bitwise_invert",
    "bmm": "matmul",
    "cat": "concat",
    "clamp": "clip",
    "clone": "asarray(x, copy=True)",
    "concatenate": "concat",
    "cuda": 'x.to("cuda")',
    "dot": "matmul, vecdot or tensordot",
    "double": "float64",
    "float": "float32",
    "float_power": "pow",
    "gather": "take_along_axis",
    "half": "float16",
    "hstack": "concat(..., axis=1)",
    "int": "int32",
    "invert": "bitwise_invert",
    "is_tensor": "isinstance with Tensor",
    "left_shift": "bitwise_left_shift",
    "long": "int64",
    "median": "sort, and the element in the middle",
    "mm": "matmul",
    "mod": "remainder",
    "multinomial": "choice",
    "mul": "multiply",
    "ndarray": "Tensor",
    "neg": "negative",
    "norm": "linalg.vector_norm or linalg.matrix_norm",
    "power": "pow",
    "randperm": "permutation",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "scatter": "put_along_axis",
    "seed": "manual_seed",
    "sub": "subtract",
    "swapaxes": "permute_dims or moveaxis",
    "true_divide": "divide",
    "unique": "unique_values, unique_counts, unique_inverse or unique_all",
    "unsqueeze": "expand_dims",
    "vstack": "concat(..., axis=0)",
}

#: Attributes of NumPy's and PyTorch's arrays, and what to write instead.
_INSTEAD_OF_ATTRIBUTE = {
    "bool": "x.astype(tw.bool)",
    "clone": "tw.asarray(x, copy=True)",
    "contiguous": "x: kernels take any strides",
    "copy": "tw.asarray(x, copy=True)",
    "cpu": 'x.to("cpu:0")',
    "cuda": 'x.to("cuda:0")',
    "dim": "x.ndim",
    "double": "x.astype(tw.float64)",
    "expand": "x.broadcast_to(shape)",
    "float": "x.astype(tw.float32)",
    "half": "x.astype(tw.float16)",
    "int": "x.astype(tw.int32)",
    "long": "x.astype(tw.int64)",
    "nelement": "x.size",
    "numel": "x.size",
    "ravel": "x.flatten()",
    "t": "x.T",
    "type": "x.dtype or x.astype(dtype)",
    "unsqueeze": "x.expand_dims(axis)",
    "view": "x.reshape(shape)",
}


def missing_in_tensor(name: str) -> AttributeError:
    """The error for an attribute that tensors lack, with what to write instead: a method, or a function."""
    import thalweg

    text = f"'Tensor' object has no attribute {name!r}"
    instead = _INSTEAD_OF_ATTRIBUTE.get(name, "")
    if not instead:
        function = name if name in thalweg.__all__ else _INSTEAD.get(name, "")
        if function.isidentifier():
            in_tensor = hasattr(thalweg.Tensor, function)
            instead = f"x.{function}(...)" if in_tensor else f"tw.{function}(x, ...)"
    return AttributeError(f"{text}; write {instead}" if instead else text)


def missing(module: ModuleType, name: str) -> AttributeError:
    """The error for a name that a module of the package lacks, with what to write instead where that is
    known."""
    text = f"module {module.__name__!r} has no attribute {name!r}"
    instead = _INSTEAD.get(name, "")
    if not instead or not hasattr(module, instead) and instead.isidentifier():
        instead = " or ".join(difflib.get_close_matches(name, module.__all__, cutoff=0.8))
    return AttributeError(f"{text}; write {instead}" if instead else text)

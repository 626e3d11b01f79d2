# test_docstrings.py: every public name says what it raises and where it is defined, and shows an example
# that runs and prints what stands there.
from __future__ import annotations

import doctest
import inspect
import io
import re

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES
from thalweg import _C

NAMESPACES = [tw, tw.autograd, tw.autograd.graph, tw.fft, tw.linalg, tw.nn, tw.optim]
CLASSES = [tw.Tensor, tw.Generator, tw.DType, tw.Device, tw.Engine, tw.__array_namespace_info__]
ERRORS = [name for name in vars(_C) if name.endswith("Error")]


def public() -> dict[str, object]:
    """Public functions, classes, methods and attributes, by the name that a program uses."""
    found: dict[str, object] = {}
    for namespace in NAMESPACES:
        for name in namespace.__all__:
            each = getattr(namespace, name)
            if inspect.isroutine(each) or inspect.isclass(each):
                found[f"{namespace.__name__}.{name}".removeprefix("thalweg.")] = each
    for name in ERRORS:
        found.setdefault("linalg.LinAlgError" if name == "LinAlgError" else name, getattr(_C, name))
    for owner in CLASSES:
        for name, each in vars(owner).items():
            if not name.startswith("_"):
                found[f"{owner.__name__}.{name}"] = each
    return found


PUBLIC = public()


def doc_of(name: str) -> str:
    return PUBLIC[name].__doc__ or ""


# Names that one text documents, such as sum and Tensor.sum, are run once.
EXAMPLES = {doc_of(name): name for name in reversed(PUBLIC)}

# What is this package's own, and so follows no standard and no paper.
OWN_MODULES = ("thalweg._control", "thalweg._repr")
OWN_CLASSES = ("Engine.", "Device.", "Generator.")
OWN = {
    "Engine",
    "Tensor.failure",
    "Tensor.has_failed",
    "Tensor.is_ready",
    "Tensor.name_",
    "Tensor.on_ready",
    "Tensor.recover",
    "Tensor.wait",
}
SECTIONS = (
    *("array object", "creation functions", "data type functions", "data types", "design topics"),
    *("elementwise functions", "indexing functions", "inspection", "linear algebra functions"),
    *("manipulation functions", "searching functions", "set functions", "sorting functions"),
    *("statistical functions", "utility functions", "FFT extension", "linear algebra extension"),
)
SOURCE = re.compile(
    rf"[Aa]rray API standard, ({'|'.join(SECTIONS)})"
    r"|(NumPy|PyTorch|safetensors)'s [\w.]+[,.;:)]"  # one of their functions
    r"|\(([^()]*\D)?(19|20)\d\d\)"  # authors, title (place, year)
)

# Functions of one tensor that take every dtype and shape: test_what_takes_every_tensor calls them.
TAKES_EVERY_TENSOR = {
    *("abs", "square", "reciprocal", "round", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("real", "imag", "angle", "logical_not", "isnan", "isinf", "isfinite"),
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
# What has nothing to refuse: it takes no argument that could be wrong, or reads metadata.
CANNOT_RAISE = {
    *("devices", "dump_graph", "empty_cache", "engine", "flush", "get_num_threads", "stats", "sync_count"),
    *("get_printoptions", "set_printoptions", "default_generator", "kron"),
    *("no_grad", "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled"),
    *("autograd.no_grad", "autograd.enable_grad", "autograd.inference_mode", "autograd.is_grad_enabled"),
    *("autograd.graph.GradientEdge", "autograd.is_anomaly_enabled", "autograd.is_inference_mode_enabled"),
    *("Tensor.is_leaf", "Tensor.grad_fn", "Tensor.retains_grad"),
    "Tensor.detach",
    *("__array_namespace_info__", "__array_namespace_info__.capabilities"),
    *("__array_namespace_info__.default_device", "__array_namespace_info__.devices"),
    *("DType.itemsize", "DType.kind", "DType.name", "Device.index", "Device.type"),
    *("Engine.close", "Engine.closed", "Engine.devices", "Engine.drain", "Engine.dump_graph"),
    *("Engine.empty_cache", "Engine.flush", "Engine.get_num_threads", "Engine.mode", "Engine.name"),
    *("Engine.set_name", "Engine.stats", "Generator.counter", "Generator.get_state", "Generator.seed"),
    *("Tensor.T", "Tensor.device", "Tensor.dtype", "Tensor.failure", "Tensor.flatten", "Tensor.has_failed"),
    *("Tensor.is_ready", "Tensor.itemsize", "Tensor.nbytes", "Tensor.ndim", "Tensor.recover"),
    *("Tensor.shape", "Tensor.size", "Tensor.strides"),
}
RAISES = re.compile(r"\braises?\b|\bfails .*with \w+Error", re.IGNORECASE | re.DOTALL)


def is_error(name: str) -> bool:
    return inspect.isclass(PUBLIC[name]) and issubclass(PUBLIC[name], Exception)


@pytest.fixture(autouse=True)
def _default_generator_as_before():
    state = tw.default_generator().get_state()
    yield
    tw.default_generator().set_state(state)


@pytest.mark.parametrize("name", EXAMPLES.values())
def test_examples_print_what_stands_there(name):
    parsed = doctest.DocTestParser().get_doctest(doc_of(name), {"tw": tw, "np": np}, name, None, 0)
    out = io.StringIO()
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed, out=out.write)
    assert result.failed == 0, out.getvalue()


def test_every_public_name_has_an_example():
    parser = doctest.DocTestParser()
    without = [name for name in PUBLIC if not parser.get_examples(doc_of(name))]
    assert not without, f"no example: {', '.join(without)}"


def test_every_public_name_says_what_it_raises():
    quiet = TAKES_EVERY_TENSOR | CANNOT_RAISE
    silent = [
        name
        for name in PUBLIC
        if not RAISES.search(doc_of(name))
        and not is_error(name)
        and name.removeprefix("Tensor.") not in TAKES_EVERY_TENSOR
        and name not in CANNOT_RAISE
    ]
    assert not silent, f"no word about errors: {', '.join(silent)}"
    assert not quiet - set(PUBLIC), "names that are gone"


def test_every_public_name_says_where_it_is_defined():
    unsourced = [
        name
        for name, each in PUBLIC.items()
        if not SOURCE.search(" ".join(doc_of(name).split()))
        and getattr(each, "__module__", None) not in OWN_MODULES
        and not name.startswith(OWN_CLASSES)
        and name not in OWN
        and not is_error(name)
    ]
    assert not unsourced, f"no source: {', '.join(unsourced)}"
    assert not OWN - set(PUBLIC), "names that are gone"


@pytest.mark.parametrize("name", sorted(TAKES_EVERY_TENSOR))
def test_what_takes_every_tensor(name):
    for dtype in DTYPES:
        for shape in ((), (0,), (2, 0, 3), (2, 3)):
            result = PUBLIC[name](tw.ones(shape, dtype=dtype))
            for part in result if isinstance(result, tuple) else (result,):
                part.wait()

# test_stubs.py: the committed stub of the extension says what the extension has, and every function is
# documented.
from __future__ import annotations

import ast
import inspect
import re
import types
from pathlib import Path

import pytest
import thalweg as tw
from thalweg import _C

STUB = Path(tw.__file__).with_name("_C.pyi")
TREE = ast.parse(STUB.read_text())

# What every object or pybind11 class has.
INHERITED = set(dir(object)) - {"__hash__", "__eq__", "__reduce__", "__repr__"}
MACHINERY = {
    "_pybind11_conduit_v1_",
    "__buffer__",  # from Python 3.12 on
    "__module__",
    "__weaklistoffset__",
    "__vectorcalloffset__",
    "__annotations__",
    "__repr__",
    "__reduce__",
}


def stub_names(body) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}


def test_the_stub_names_what_the_module_has():
    names = {name for name in vars(_C) if not name.startswith("__")} | {"__version__"}
    assert stub_names(TREE.body) == names


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.endswith("Error")])
def test_the_stub_names_the_members_of_classes(name):
    members = set(vars(getattr(_C, name)))
    if isinstance(getattr(_C, name), types.ModuleType):
        members = {member for member in members if not member.startswith("__")}
    ignored = INHERITED | MACHINERY | {"__doc__", "__getstate__"}
    if name in ("Engine", "Generator", "Device"):
        ignored -= {"__init__"}
    assert stub_names(CLASSES[name].body) - ignored == members - ignored


@pytest.mark.parametrize("name", [name for name in CLASSES if name.endswith("Error")])
def test_the_stub_names_the_bases_of_errors(name):
    expected = [base.attr if isinstance(base, ast.Attribute) else base.id for base in CLASSES[name].bases]
    assert [base.__name__ for base in getattr(_C, name).__bases__] == expected


def stub_parameters(node: ast.FunctionDef) -> list[str]:
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name != "self"]


def parameters_of(function) -> list[str] | None:
    """Parameter names from the signature, or from the first line that pybind11 writes into the docstring."""
    try:
        return [
            name
            for name, each in inspect.signature(function).parameters.items()
            if name != "self" and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        ]
    except (TypeError, ValueError):
        pass
    first = (function.__doc__ or "").split("\n")[0]
    match = re.match(r"\w+\((.*)\)(?: ->|$)", first)
    if match is None:
        return None
    names = re.findall(r"(?:^|, )(\w+):", match.group(1))
    return [name for name in names if name != "self"]


METHODS = [
    pytest.param(getattr(_C, class_name), node, id=f"{class_name}.{node.name}")
    for class_name, class_node in CLASSES.items()
    for node in class_node.body
    if isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.name.startswith("__")
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_of_functions(name):
    assert parameters_of(getattr(_C, name)) == stub_parameters(FUNCTIONS[name])


@pytest.mark.parametrize(("owner", "node"), METHODS)
def test_signatures_of_methods(owner, node):
    found = parameters_of(getattr(owner, node.name))
    expected = stub_parameters(node)
    if node.name in tw._methods._UNARY:
        found = []
    assert found == expected


NAMESPACES = [tw, tw.autograd, tw.fft, tw.linalg]


def public_functions():
    return [
        pytest.param(getattr(namespace, name), name, id=f"{namespace.__name__}.{name}")
        for namespace in NAMESPACES
        for name in namespace.__all__
        if inspect.isfunction(getattr(namespace, name))
    ]


@pytest.mark.parametrize(("function", "name"), public_functions())
def test_public_functions_have_real_signatures_and_documentation(function, name):
    signature = inspect.signature(function)
    generic = {each.kind for each in signature.parameters.values()} & {inspect.Parameter.VAR_KEYWORD}
    assert not generic or name in ("printoptions", "checkpoint")
    assert function.__doc__
    assert signature.return_annotation is not inspect.Signature.empty


def test_public_methods_are_documented():
    undocumented = [
        name for name, each in vars(tw.Tensor).items() if not name.startswith("_") and not each.__doc__
    ]
    assert undocumented == []


def test_every_operation_is_documented_and_reachable():
    internal = {
        *("slice", "index", "slice_assign", "index_assign", "index_add", "contiguous", "to_device"),
        "check_nan",
        *("mask_assign", "mask_scatter", "mask_select"),
        *(f"{name}_gradient" for name in ("relu", "tanh", "sigmoid", "silu", "gelu")),
    }
    for name in _C.op_names():
        assert _C.op(name).__doc__, name
        assert name in internal or any(hasattr(namespace, name) for namespace in NAMESPACES), name


def test_all_names_exist_and_are_sorted_by_family():
    assert len(tw.__all__) == len(set(tw.__all__))
    for name in tw.__all__:
        assert hasattr(tw, name)

# test_other_names.py: hints for names of NumPy and PyTorch, and for calls in their style.
from __future__ import annotations

import pytest
import thalweg as tw
from thalweg import _other_names


@pytest.mark.parametrize(
    ("name", "instead"),
    [("concatenate", "concat"), ("array", "asarray"), ("unsqueeze", "expand_dims"), ("sofmax", "softmax"),
     ("norm", "linalg.vector_norm or linalg.matrix_norm")],
)  # fmt: skip
def test_a_missing_name_says_what_to_write(name, instead):
    with pytest.raises(AttributeError) as caught:
        getattr(tw, name)
    assert str(caught.value) == f"module 'thalweg' has no attribute {name!r}; write {instead}"


def test_a_name_like_no_other_gets_no_hint():
    with pytest.raises(AttributeError, match="^module 'thalweg' has no attribute 'qqqqqq'$"):
        tw.qqqqqq  # noqa: B018
    assert not hasattr(tw, "concatenate")


def test_hints_name_what_there_is_and_no_name_that_there_is():
    for name, instead in _other_names._INSTEAD.items():
        assert not hasattr(tw, name), name
        for each in instead.replace(" or ", ", ").split(", "):
            head = each.split("(")[0].removeprefix("x.")
            if head.isidentifier() and head != "to":
                assert hasattr(tw, head), instead


@pytest.mark.parametrize(
    ("name", "instead"),
    [("numel", "x.size"), ("cpu", 'x.to("cpu:0")'), ("softmax", "tw.softmax(x, ...)"),
     ("amax", "x.max(...)"), ("gather", "tw.take_along_axis(x, ...)")],
)  # fmt: skip
def test_a_missing_attribute_of_a_tensor_says_what_to_write(name, instead):
    with pytest.raises(AttributeError) as caught:
        getattr(tw.ones(1), name)
    assert str(caught.value) == f"'Tensor' object has no attribute {name!r}; write {instead}"


def test_an_attribute_like_no_other_gets_no_hint():
    for name in ("qqqqqq", "__array_interface__"):
        assert not hasattr(tw.ones(1), name)
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'qqqqqq'$"):
        tw.ones(1).qqqqqq  # noqa: B018


def test_hints_for_attributes_are_about_what_tensors_lack():
    x = tw.ones((1, 1))
    names = {"x": x, "tw": tw, "shape": (1, 1), "axis": 0, "dtype": tw.int8}
    for name, instead in _other_names._INSTEAD_OF_ATTRIBUTE.items():
        assert not hasattr(tw.Tensor, name), name
        for each in instead.split(":")[0].split(" or "):
            if "cuda" not in each:
                eval(each.split('"')[0] + '"cpu:0")' if '"' in each else each, names)


def test_dir_of_a_module_lists_its_functions_only():
    for module in (tw.linalg, tw.fft):
        assert {name for name in dir(module) if not name.startswith("_")} == set(module.__all__)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: tw.ones(2, 3), r"not int; the sizes of several axes go in one tuple, as \(2, 3\)"),
        (lambda: tw.concat(tw.ones(1), tw.ones(1)), r"go in one list: concat\(\[a, b\]\)"),
        (lambda: tw.stack(tw.ones(1), tw.ones(1)), r"go in one list: stack\(\[a, b\]\)"),
        (lambda: tw.normal(0, 1, (2,)), r"shape comes first: normal\(shape, mean, std\)"),
        (lambda: tw.uniform(0, 1, (2,)), r"shape comes first: uniform\(shape, low, high\)"),
    ],
)
def test_calls_in_another_librarys_style(call, hint):
    with pytest.raises(tw.DTypeError, match=hint):
        call()


def test_a_dtype_for_a_device():
    with pytest.raises(tw.DeviceError, match="astype changes the dtype"):
        tw.ones(1).to(tw.float64)


@pytest.mark.parametrize(
    "call", [lambda: tw.zeros(2**70), lambda: tw.reshape(tw.ones(1), 2**70), lambda: tw.eye(2**70)]
)
def test_an_integer_of_more_than_64_bits(call):
    with pytest.raises(OverflowError, match=f"integer {2**70} does not fit in 64 bits"):
        call()

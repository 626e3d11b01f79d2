# test_repr.py: how tensors print.
from __future__ import annotations

import math

import pytest
import thalweg as tw

EXAMPLES = [
    (tw.asarray(3), "tensor(3)"),
    (tw.asarray(3.0), "tensor(3.)"),
    (tw.asarray(True), "tensor(True)"),
    (tw.asarray([1, 2, 30]), "tensor([ 1,  2, 30])"),
    (tw.asarray([1.0, -2.0]), "tensor([ 1., -2.])"),
    (tw.asarray([0.5, 2.25]), "tensor([0.5000, 2.2500])"),
    (tw.asarray([0.0, 0.0]), "tensor([0., 0.])"),
    (tw.asarray([True, False]), "tensor([ True, False])"),
    (tw.asarray([math.nan, math.inf, 1.5]), "tensor([   nan,    inf, 1.5000])"),
    (tw.asarray([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
    (tw.asarray([1, 2], dtype="int8"), "tensor([1, 2], dtype=int8)"),
    (tw.asarray([1.0], dtype="float64"), "tensor([1.], dtype=float64)"),
    (tw.asarray([1 + 2j, -3.5j]), "tensor([ 1.+2.0000j, -0.-3.5000j])"),
    (tw.asarray([1 + 2j, 3 - 4j], dtype="complex128"), "tensor([1.+2.j, 3.-4.j], dtype=complex128)"),
    (tw.asarray(complex(math.nan, -math.inf)), "tensor(nan-infj)"),
    (tw.arange(6).reshape(2, 3), "tensor([[0, 1, 2],\n        [3, 4, 5]])"),
    (tw.zeros((0, 3)), "tensor([], shape=(0, 3))"),
    (tw.zeros(0, dtype="int8"), "tensor([], shape=(0,), dtype=int8)"),
    (tw.ones((2, 1, 2)), "tensor([[[1., 1.]],\n\n        [[1., 1.]]])"),
]


@pytest.mark.parametrize(("tensor", "text"), EXAMPLES, ids=[each[1].replace("\n", " ") for each in EXAMPLES])
def test_examples(tensor, text):
    assert repr(tensor) == text
    assert str(tensor) == text
    assert f"{tensor}" == text


def test_long_tensors_show_their_edges():
    assert repr(tw.arange(2000)) == "tensor([   0,    1,    2, ..., 1997, 1998, 1999])"
    lines = repr(tw.zeros((100, 100))).split("\n")
    assert lines[0] == "tensor([[0., 0., 0., ..., 0., 0., 0.],"
    assert lines[3] == "        ...,"
    assert len(lines) == 7


def test_only_the_edges_are_read():
    tensor = tw.broadcast_to(tw.zeros(1), (10**6, 10**6, 10**3))
    assert "..." in repr(tensor)
    issued = tw.stats()["issued"]
    repr(tensor)
    assert tw.stats()["issued"] == issued


def test_lines_wrap():
    lines = repr(tw.arange(100)).split("\n")
    assert all(len(line) <= 90 for line in lines)
    assert len(lines) > 3
    assert lines[1].startswith(" " * 8)


def test_devices_show_where_not_the_first():
    with tw.Engine(cpu_devices=2):
        assert repr(tw.ones(1, device="cpu:1")) == "tensor([1.], device='cpu:1')"


def test_options():
    before = tw.get_printoptions()
    with tw.printoptions(precision=2, threshold=3, edgeitems=1):
        assert repr(tw.asarray([0.125, 0.25, 0.5, 0.75])) == "tensor([0.12, ..., 0.75])"
    with tw.printoptions(sci_mode=True):
        assert repr(tw.asarray([1.5])) == "tensor([1.5000e+00])"
    assert tw.get_printoptions() == before
    tw.set_printoptions(precision=1)
    try:
        assert repr(tw.asarray(0.25)) == "tensor(0.2)"
    finally:
        tw.set_printoptions(**before)


def test_format():
    assert f"{tw.asarray(3.14159):.2f}" == "3.14"
    assert f"{tw.asarray([[7]]):03d}" == "007"
    with pytest.raises(ValueError):
        f"{tw.ones(2):.2f}"  # noqa: B018


def test_pending_tensors_wait():
    tensor = tw.ones((200, 200))
    for _ in range(20):
        tensor = tensor @ tw.eye(200)
    assert repr(tensor).startswith("tensor([[1., 1., 1., ..., 1., 1., 1.],")


@pytest.mark.parametrize(
    ("option", "error", "text"),
    [
        ({"edgeitems": 0}, tw.ValueError, "edgeitems is 0; it must be from 1 to "),
        ({"edgeitems": 2**64}, tw.ValueError, "edgeitems is 18446744073709551616; it must be from 1 to "),
        ({"edgeitems": 1.5}, tw.DTypeError, "edgeitems must be an int, not float"),
        ({"precision": -1}, tw.ValueError, "precision is -1; it must be from 0 to 100"),
        ({"precision": 2**31}, tw.ValueError, "precision is 2147483648; it must be from 0 to 100"),
        ({"precision": "x"}, tw.DTypeError, "precision must be an int, not str"),
        ({"threshold": "x"}, tw.DTypeError, "threshold must be an int, not str"),
        ({"linewidth": tw.ones(2)}, tw.DTypeError, "linewidth must be an int, not thalweg.Tensor"),
        ({"sci_mode": 1}, tw.DTypeError, "sci_mode must be a bool or None, not int"),
    ],
    ids=str,
)
def test_bad_printoptions_change_nothing(option, error, text):
    before = tw.get_printoptions()
    with pytest.raises(error, match=f"^set_printoptions: {text.replace('thalweg.', '.*')}"):
        tw.set_printoptions(**{"precision": 2, **option})
    assert tw.get_printoptions() == before

# test_einsum.py: einsum and kron against NumPy.
from __future__ import annotations

import string
import sys
import types

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, check, layouts
from thalweg import _einsum

ROUNDING = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}
SIZES = {"a": 2, "b": 3, "i": 4, "j": 5, "k": 3, "l": 2, "m": 6, "A": 2, "Z": 1}

CASES = [
    "ij,jk->ik", "ij,jk", "ij,kj->ki", "bij,bjk->bik", "bij,bkj->bik", "i,i->", "i,i", "i,j->ij",
    "i,j->ji", "ij->ji", "ij->", "ij->i", "ij->j", "ji", "ii->i", "ii", "ii->", "iij->ij", "iij->ji",
    "ijij->ij", "ijij", "iii->i", "i->i", "ij,ij->ij", "ij,ij->i", "ij,ij->", "ij,i->ij", "ij,i->i",
    "i,ij->j", "ij,k->ijk", "ij,kl->", "ij,kl->ik", "bij,kj->bik", "ab,bij,jk->aik", "ij,jk,kl->il",
    "ij,jk,kl,lm->im", "ij,ij,ij->ij", "i,i,i->", "i,j,k->kji", "bij,bj,b->i", "ij,jk,ik->",
    "iZ,Zk->ik", "ab,ij->iabj", "baij,bajk->ikab", " i j , j k -> i k ", ",->", "ij,->ij", "->",
    "Aij,jA->iA", "ba,ab,ab->", "ijk,jil->kl",
]  # fmt: skip


def operands(subscripts: str, dtype: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for text in subscripts.replace(" ", "").split("->")[0].split(","):
        values = rng.integers(-3, 4, [SIZES[label] for label in text])
        if dtype in FLOATS + COMPLEX:
            values = values + rng.random(values.shape)
        if dtype in COMPLEX:
            values = values + 1j * rng.random(values.shape)
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def tolerance(dtype: str) -> dict[str, float]:
    return {"rtol": 100 * ROUNDING[dtype], "atol": 1000 * ROUNDING[dtype]} if dtype in ROUNDING else {}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("subscripts", CASES)
def test_against_numpy(subscripts, dtype):
    arrays = operands(subscripts, dtype)
    expected = np.einsum(subscripts, *arrays)
    result = tw.einsum(subscripts, *map(tw.asarray, arrays))
    check(result, np.asarray(expected, dtype), **tolerance(dtype))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...", [(2, 3)]),
        ("...->...", [()]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk", [(2, 3, 4), (5, 1, 4, 5)]),
        ("...ij,jk", [(2, 1, 3, 4), (4, 5)]),
        ("i...,i...", [(2, 3), (2, 1)]),
        ("i...j,...k->k...ij", [(2, 7, 3), (7, 5)]),
        ("...i->i...", [(2, 3, 4)]),
        ("...,...->...", [(2, 1), (3,)]),
        ("i...i->...", [(3, 2, 3)]),
        ("b...a", [(2, 3, 4)]),
        ("ij,jk->ik", [(3, 1), (4, 5)]),
        ("ij,ij->ij", [(1, 4), (3, 1)]),
        ("ij,ij->", [(1, 4), (3, 1)]),
        ("ij,jk->ik", [(3, 0), (0, 5)]),
        ("ij,jk->ik", [(0, 3), (3, 5)]),
        ("ij->i", [(3, 0)]),
    ],
)
def test_ellipsis_broadcasting_and_axes_of_no_element(subscripts, shapes):
    rng = np.random.default_rng(1)
    arrays = [rng.random(shape) for shape in shapes]
    expected = np.einsum(subscripts, *arrays)
    check(tw.einsum(subscripts, *map(tw.asarray, arrays)), expected, rtol=1e-13)


def test_an_output_without_ellipsis_sums_over_it():
    x = np.random.default_rng(1).random((2, 3, 4))
    check(tw.einsum("...i->i", tw.asarray(x)), x.sum(axis=(0, 1)), rtol=1e-14)


def test_layouts():
    array = np.random.default_rng(1).random((4, 6))
    for _, tensor, source in layouts(array):
        check(tw.einsum("...ij,...kj->...ik", tensor, tensor), source @ source.swapaxes(-1, -2), rtol=1e-13)


def test_dtypes_are_promoted():
    x, y = tw.ones((2, 2), dtype="int8"), tw.ones((2, 2), dtype="float32")
    assert tw.einsum("ij,jk", x, y).dtype == "float32"
    assert tw.einsum("ij,jk,kl", x, x.astype("int32"), x).dtype == "int32"
    assert tw.einsum("ij->", x).dtype == "int8"


def test_the_result_is_a_tensor_of_its_own():
    x = tw.ones((2, 3))
    y = tw.einsum("ij->ij", x)
    y += 1
    assert x.tolist() == [[1] * 3] * 2


def test_nan_and_infinity():
    x = tw.asarray([[np.nan, 1.0], [2.0, np.inf]])
    expected = np.array([[np.nan, np.nan], [np.nan, np.inf]], "float32")
    check(tw.einsum("ij,jk->ik", x, x), expected)
    check(tw.einsum("ij->i", x), np.array([np.nan, np.inf], "float32"))


def planner(calls: list):
    """A stand-in for opt_einsum that plans from right to left and remembers what it was asked."""

    def contract_path(subscripts, *shapes, **options):
        calls.append((subscripts, shapes, options))
        count = len(shapes)
        return [(count - 2 - i, count - 1 - i) for i in range(count - 1)], None

    return types.SimpleNamespace(contract_path=contract_path, get_symbol=lambda i: string.ascii_letters[i])


def test_the_order_is_that_of_opt_einsum_where_it_is_installed(monkeypatch):
    calls = []
    monkeypatch.setitem(sys.modules, "opt_einsum", planner(calls))
    _einsum._planner.cache_clear()
    try:
        for subscripts in CASES:
            arrays = operands(subscripts, "float64")
            expected = np.einsum(subscripts, *arrays)
            check(tw.einsum(subscripts, *map(tw.asarray, arrays)), expected, **tolerance("float64"))
        calls.clear()
        tw.einsum("...ij,jk,kk->i...k", tw.ones((7, 2, 3)), tw.ones((3, 4)), tw.ones((4, 4)))
        assert calls == [("abc,cd,d->bad", ((7, 2, 3), (3, 4), (4,)), {"shapes": True})]
    finally:
        _einsum._planner.cache_clear()


def test_with_opt_einsum():
    pytest.importorskip("opt_einsum", reason="opt_einsum is not installed: a stand-in was tested")
    for subscripts in CASES:
        arrays = operands(subscripts, "float64")
        check(tw.einsum(subscripts, *map(tw.asarray, arrays)), np.einsum(subscripts, *arrays), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kron(dtype):
    pairs = [
        ((2,), (3,)),
        ((2, 3), (4, 5)),
        ((2,), (3, 4)),
        ((2, 3, 1), (4,)),
        ((), (3,)),
        ((), ()),
        ((0, 2), (3, 3)),
    ]
    for first, second in pairs:
        rng = np.random.default_rng(1)
        a, b = (np.asarray(rng.integers(0, 5, shape)).astype(dtype) for shape in (first, second))
        check(tw.kron(tw.asarray(a), tw.asarray(b)), np.kron(a, b))


X = tw.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.einsum("ij,jk", X), tw.ValueError, "are for 2 operands, 1 were given"),
        (lambda: tw.einsum("ij"), tw.ValueError, "are for 1 operands, 0 were given"),
        (lambda: tw.einsum(X, "ij"), tw.DTypeError, "^einsum: "),
        (lambda: tw.einsum("ij", [[1, 2]]), tw.DTypeError, "expected a Tensor, not list"),
        (
            lambda: tw.einsum("ijk", X),
            tw.ShapeError,
            r"'ijk' .* do not fit the 2 dimensions of shape \(2, 3\)",
        ),
        (lambda: tw.einsum("i", X), tw.ShapeError, "'i' of 'i' do not fit the 2 dimensions"),
        (lambda: tw.einsum("ijk...", X), tw.ShapeError, "do not fit"),
        (lambda: tw.einsum("i1", X), tw.ValueError, "'1' in subscripts 'i1' is no label"),
        (lambda: tw.einsum("i..", X), tw.ValueError, "'.' in subscripts"),
        (lambda: tw.einsum("......", X), tw.ValueError, "'.' in subscripts"),
        (lambda: tw.einsum("ij->i->j", X), tw.ValueError, "'-' in subscripts"),
        (lambda: tw.einsum("ij->ik", X), tw.ValueError, "label 'k' is in no operand but in the output"),
        (lambda: tw.einsum("ij->ii", X), tw.ValueError, "label 'i' is twice in the output"),
        (lambda: tw.einsum("ij,jk", X, X), tw.ShapeError, "label 'j' of 'ij,jk' has sizes 3 and 2"),
        (lambda: tw.einsum("ii", X), tw.ShapeError, r"label 'i' of 'ii' names axes of shape \(2, 3\)"),
        (lambda: tw.einsum("ii", X[:1]), tw.ShapeError, "names axes of shape .* differ in size"),
        (lambda: tw.einsum("...,...", X, X[:, :2]), tw.ShapeError, "axis -1 of '...' .* sizes 3 and 2"),
        (lambda: tw.kron(X, 2), tw.DTypeError, "^kron: expected a Tensor, not int"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def program() -> list[bytes]:
    generator = tw.Generator(3)
    x, y, z = (tw.randn(*shape, generator=generator) for shape in [(30, 41), (41, 50), (50, 30)])
    results = [tw.einsum("ij,jk,ki->ik", x, y, z), tw.einsum("ij,jk,kl->", x, y, z), tw.kron(x, y)]
    return [result.numpy().tobytes() for result in results]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

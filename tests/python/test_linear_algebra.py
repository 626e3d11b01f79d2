# test_linear_algebra.py: matmul against NumPy.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, check, layouts

TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}
PAIRS = [
    ((3,), (3,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((6, 1, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((1, 1), (1, 1)),
    ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((2, 0, 3), (3, 0)), ((65, 33), (33, 17)),
]  # fmt: skip


def operands(dtype, left, right):
    rng = np.random.default_rng(0)
    if dtype in COMPLEX:
        parts = [rng.standard_normal((2, *shape)) for shape in (left, right)]
        return tuple((real + 1j * imag).astype(dtype) for real, imag in parts)
    if dtype in FLOATS:
        return rng.standard_normal(left).astype(dtype), rng.standard_normal(right).astype(dtype)
    return rng.integers(0, 5, left).astype(dtype), rng.integers(0, 5, right).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_matmul(dtype, left, right):
    a, b = operands(dtype, left, right)
    tolerance = TOLERANCES.get(dtype, 0)
    check(tw.asarray(a) @ tw.asarray(b), a @ b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["int32", *FLOATS, *COMPLEX])
def test_matmul_of_every_layout(dtype):
    a, b = operands(dtype, (5, 7), (7, 3))
    tolerance = TOLERANCES.get(dtype, 0)
    for _, left, left_array in layouts(a):
        for _, right, right_array in layouts(b):
            if left_array.shape[-1] == right_array.shape[-2]:
                check(tw.matmul(left, right), left_array @ right_array, rtol=tolerance, atol=tolerance)


def test_mixed_dtypes():
    a, b = np.ones((2, 2), "float32"), np.ones((2, 2), "float64")
    check(tw.asarray(a) @ tw.asarray(b), a @ b)
    check(tw.asarray(a.astype("int8")) @ tw.asarray(a), a @ a)
    check(tw.asarray(a.astype("complex64")) @ tw.asarray(a), a.astype("complex64") @ a)
    check(tw.asarray(a) @ tw.asarray(a.astype("complex128")), a @ a.astype("complex128"))


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (5, 6)), ((3,), (4,)), ((), (3,)), ((2, 3, 4), (3, 4, 5))], ids=str
)
def test_mismatch(left, right):
    with pytest.raises(ValueError, match="matmul: shapes"):
        tw.ones(left) @ tw.ones(right)


def test_matrix_transpose():
    tensor = tw.arange(24).reshape(2, 3, 4)
    check(tw.matrix_transpose(tensor), np.swapaxes(np.arange(24).reshape(2, 3, 4), 1, 2))


def test_operator_with_arrays():
    a = np.ones((2, 2))
    check(a @ tw.asarray(a), a @ a)
    check(tw.asarray(a) @ a, a @ a)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
def test_tensordot(dtype):
    a = np.arange(24).astype(dtype).reshape(2, 3, 4)
    b = np.arange(60).astype(dtype).reshape(4, 3, 5)
    for axes in (1, ([1], [1]), ([1, 2], [1, 0]), ((-2, -1), (1, 0)), 0):
        check(tw.tensordot(tw.asarray(a), tw.asarray(b), axes=axes), np.tensordot(a, b, axes=axes))
    square = a[:, :2, :2]
    check(tw.tensordot(tw.asarray(square), tw.asarray(square)), np.tensordot(square, square))
    empty = np.zeros((2, 0), dtype)
    check(tw.tensordot(tw.asarray(empty), tw.asarray(empty.T), axes=1), np.tensordot(empty, empty.T, axes=1))


def test_tensordot_errors():
    a, b = tw.ones((2, 3)), tw.ones((3, 4))
    with pytest.raises(ValueError, match="^tensordot: axis 0 of shape"):
        tw.tensordot(a, b)
    with pytest.raises(ValueError, match="^tensordot: axes is 3"):
        tw.tensordot(a, b, axes=3)
    with pytest.raises(ValueError, match="do not pair"):
        tw.tensordot(a, b, axes=([0, 1], [0]))
    with pytest.raises(ValueError, match="do not pair"):
        tw.tensordot(a, a, axes=([0, 0], [0, 0]))
    with pytest.raises(IndexError, match="^tensordot: axis 2"):
        tw.tensordot(a, b, axes=([2], [0]))
    with pytest.raises(TypeError, match="^tensordot: expected a Tensor"):
        tw.tensordot(a, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64"])
def test_vecdot(dtype):
    a = np.arange(24).astype(dtype).reshape(2, 3, 4)
    b = np.arange(12).astype(dtype).reshape(3, 4)
    for first, second, axis in ((a, b, -1), (a, b, -2), (b, b, -1), (b, b, 0), (a[..., :1], b[:, :1], -1)):
        moved = np.moveaxis(first, axis, -1) * np.moveaxis(second, axis, -1)
        check(
            tw.vecdot(tw.asarray(first), tw.asarray(second), axis=axis), np.sum(moved, axis=-1, dtype=dtype)
        )
    check(tw.vecdot(tw.ones(3), tw.asarray([1, 2, 3], dtype="int16")), np.float32(6))


def test_vecdot_errors():
    a, b = tw.ones((2, 3)), tw.ones((4, 2, 3))
    with pytest.raises(ValueError, match="^vecdot: shapes"):
        tw.vecdot(a, tw.ones((2, 1)))
    with pytest.raises(ValueError, match="^vecdot: axis 0 must be negative"):
        tw.vecdot(a, b, axis=0)
    with pytest.raises(IndexError, match="^vecdot: axis -3"):
        tw.vecdot(a, b, axis=-3)
    with pytest.raises(ValueError, match="^multiply: "):
        tw.vecdot(a, tw.ones((4, 3)))

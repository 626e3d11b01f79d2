# test_linalg_functions.py: norms, ranks, powers and products of the linear algebra extension, against NumPy.
from __future__ import annotations

import math

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, INTEGERS, NUMERIC, check, layouts
from thalweg import linalg

INEXACT = FLOATS + COMPLEX
TOLERANCES = {"float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
INF = math.inf


def matrices(dtype, shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    if dtype not in INEXACT:
        return rng.integers(0, 5, shape).astype(dtype)
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def close(tensor, expected, dtype):
    tolerance = TOLERANCES.get(dtype, 0)
    check(tensor, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (4, 3), (2, 3, 5), (2, 0, 3, 4)], ids=str)
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_matrix_norm(dtype, shape, ord):
    for _, tensor, array in layouts(matrices(dtype, shape)):
        for keepdims in (False, True):
            found = linalg.matrix_norm(tensor, ord=ord, keepdims=keepdims)
            expected = np.linalg.matrix_norm(array, ord=ord, keepdims=keepdims)
            close(found, expected.astype(array.real.dtype), dtype)
    check(linalg.matrix_norm(tw.asarray(array)), linalg.matrix_norm(tw.asarray(array), ord=None).numpy())


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, 2, INF])
def test_norm_of_an_empty_matrix_is_zero(ord):
    for shape in ((0, 3), (3, 0), (0, 0)):
        check(linalg.matrix_norm(tw.ones((2, *shape)), ord=ord), np.zeros(2, "float32"))


@pytest.mark.parametrize("ord", [-1, -2, -INF])
def test_the_smallest_of_none_is_refused(ord):
    with pytest.raises(tw.ShapeError, match="^matrix_norm: .* has no smallest element"):
        linalg.matrix_norm(tw.ones((0, 0)), ord=ord)
    check(linalg.matrix_norm(tw.ones((0, 2, 2)), ord=ord), np.zeros(0, "float32"))
    with pytest.raises(tw.ShapeError, match="^vector_norm: .* has no smallest element"):
        linalg.vector_norm(tw.ones((2, 0)), axis=1, ord=-INF)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("ord", [2, 1, 0, -1, -2, 3, 0.5, -1.5, 7, INF, -INF])
def test_vector_norm(dtype, ord):
    for _, tensor, array in layouts(matrices(dtype, (3, 4, 5))):
        for axis in (None, 0, -1, (0, 2), (-2, 0)):
            for keepdims in (False, True):
                # NumPy's function takes one axis, or all.
                axes = range(array.ndim) if axis is None else np.atleast_1d(axis)
                axes = tuple(int(each) % array.ndim for each in axes)
                moved = np.moveaxis(array, axes, range(len(axes)))
                flat = moved.reshape(-1, *moved.shape[len(axes) :])
                expected = np.linalg.vector_norm(
                    flat.astype(np.result_type(dtype, "float64")), axis=0, ord=ord
                )
                if keepdims:
                    expected = np.expand_dims(expected, tuple(sorted(axes)))
                found = linalg.vector_norm(tensor, axis=axis, keepdims=keepdims, ord=ord)
                close(found, expected.astype(array.real.dtype), dtype)


def test_vector_norm_of_few():
    check(linalg.vector_norm(tw.asarray(-3.0)), np.float32(3))
    check(linalg.vector_norm(tw.asarray([3.0, 4.0])), np.float32(5))
    for ord in (2, 1, 0, 3, INF):
        check(linalg.vector_norm(tw.ones((2, 0)), axis=1, ord=ord), np.zeros(2, "float32"))
    check(linalg.vector_norm(tw.asarray([0.0, 1.0]), ord=-1), np.float32(0))
    check(linalg.vector_norm(tw.asarray([1.0, math.nan]), ord=INF), np.float32(math.nan))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 3), (0, 0), (0, 2, 2), (1, 1)], ids=str)
def test_matrix_power(dtype, shape):
    for _, tensor, array in layouts(
        matrices(dtype, shape) / max(1, shape[-1]) + np.eye(shape[-1], dtype=dtype)
    ):
        if array.shape[-1] != array.shape[-2]:
            continue
        for n in (0, 1, 2, 3, 5, 8, -1, -3):
            expected = np.linalg.matrix_power(array, n)
            scale = max(1.0, np.abs(expected).max(initial=0))
            tolerance = 100 * TOLERANCES[dtype]
            check(
                linalg.matrix_power(tensor, n), expected.astype(dtype), rtol=tolerance, atol=tolerance * scale
            )


def of_rank(rank, rows, columns, dtype):
    return matrices(dtype, (rows, rank), 1) @ matrices(dtype, (rank, columns), 2)


@pytest.mark.parametrize("dtype", INEXACT)
def test_matrix_rank(dtype):
    stack = np.stack([of_rank(rank, 6, 4, dtype) for rank in range(5)])
    check(linalg.matrix_rank(tw.asarray(stack)), np.arange(5))
    check(linalg.matrix_rank(tw.asarray(stack[3])), np.int64(3))
    for shape in ((0, 3), (3, 0), (0, 0)):
        check(linalg.matrix_rank(tw.ones(shape, dtype=dtype)), np.int64(0))
    check(linalg.matrix_rank(tw.ones((0, 3, 3), dtype=dtype)), np.zeros(0, "int64"))
    values = tw.asarray(np.stack([np.diag([1, 0.1, 0.01])] * 3).astype(dtype))
    check(linalg.matrix_rank(values, rtol=0.05), np.full(3, 2))
    rtol = tw.asarray([0.5, 0.05, 0.001], dtype=linalg.svdvals(values).dtype)
    check(linalg.matrix_rank(values, rtol=rtol), np.asarray([1, 2, 3]))
    check(linalg.matrix_rank(values, rtol=tw.asarray(0.5)), np.full(3, 1))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0), (2, 0, 0)], ids=str)
def test_pinv(dtype, shape):
    for _, tensor, array in layouts(matrices(dtype, shape)):
        close(linalg.pinv(tensor), np.linalg.pinv(array).astype(dtype), dtype)


@pytest.mark.parametrize("dtype", INEXACT)
def test_pinv_leaves_small_singular_values_out(dtype):
    stack = np.stack([of_rank(rank, 6, 4, dtype) for rank in range(5)])
    inverse = linalg.pinv(tw.asarray(stack))
    tolerance = 50 * TOLERANCES[dtype]
    check(inverse, np.linalg.pinv(stack, rtol=100 * np.finfo(dtype).eps), rtol=tolerance, atol=tolerance)
    x = tw.asarray(np.diag([1, 0.1, 0.01]).astype(dtype))
    close(linalg.pinv(x, rtol=0.05), np.diag([1, 10, 0]).astype(dtype), dtype)
    rtol = tw.asarray([0.5, 0.001], dtype="float64")
    expected = np.stack([np.diag([1, 0, 0]), np.diag([1, 10, 100])]).astype(dtype)
    check(linalg.pinv(tw.stack([x, x]), rtol=rtol), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", NUMERIC + COMPLEX)
def test_cross(dtype):
    a, b = matrices(dtype, (4, 3), 1), matrices(dtype, (2, 4, 3), 2)
    for _, left, left_array in layouts(a):
        for _, right, right_array in layouts(b):
            if left_array.shape[-1] == right_array.shape[-1] == 3 and left_array.ndim == 2:
                close(linalg.cross(left, right), np.cross(left_array, right_array).astype(dtype), dtype)
    first, second = (np.ascontiguousarray(x) for x in (a[:3].T.reshape(3, 3), b[0, :3]))
    close(
        linalg.cross(tw.asarray(first), tw.asarray(second), axis=-2), np.cross(first, second, axis=0), dtype
    )
    close(linalg.cross(tw.asarray(first), tw.asarray(second), axis=0), np.cross(first, second, axis=0), dtype)
    assert linalg.cross(tw.ones((0, 3), dtype=dtype), tw.ones(3, dtype=dtype)).shape == (0, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outer(dtype):
    a, b = matrices(dtype, (4,), 1), matrices(dtype, (3,), 2)
    close(linalg.outer(tw.asarray(a), tw.asarray(b)), np.outer(a, b), dtype)
    close(linalg.outer(tw.asarray(a)[::-2], tw.asarray(b)), np.outer(a[::-2], b), dtype)
    assert linalg.outer(tw.asarray(a)[:0], tw.asarray(b)).shape == (0, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 3, 5), (0, 3), (2, 0, 0)], ids=str)
def test_diagonal_and_trace(dtype, shape):
    for _, tensor, array in layouts(matrices(dtype, shape)):
        for offset in (0, 1, -1, 2, -3, 7, -7):
            expected = np.diagonal(array, offset=offset, axis1=-2, axis2=-1)
            check(linalg.diagonal(tensor, offset=offset), expected)
            close(linalg.trace(tensor, offset=offset), tw.sum(tw.asarray(expected), axis=-1).numpy(), dtype)


def test_trace_dtypes():
    for dtype in INTEGERS:
        wide = "uint64" if dtype.startswith("u") else "int64"
        assert linalg.trace(tw.ones((2, 2), dtype=dtype)).dtype == wide
    for dtype in INEXACT:
        assert linalg.trace(tw.ones((2, 2), dtype=dtype)).dtype == dtype
    check(linalg.trace(tw.asarray([[100, 0], [0, 100]], dtype="int8"), dtype="float32"), np.float32(200))


def test_aliases_are_the_functions_of_the_main_namespace():
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(linalg, name) is getattr(tw, name)


def test_the_namespace_has_what_the_standard_lists():
    names = {
        *("cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul"),
        *("matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet"),
        *("solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"),
    }
    assert set(linalg.__all__) == names | {"LinAlgError"}
    assert tw.linalg is linalg
    assert tw.ones(1).__array_namespace__().linalg is linalg

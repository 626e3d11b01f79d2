# test_linalg.py: solving, inverting and decomposing matrices, against their definitions and NumPy.
#
# Bounds count units of eps * n * norm: what backward stable algorithms promise up to a small factor.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, FLOATS, check, layouts
from thalweg import linalg

INEXACT = FLOATS + COMPLEX
SQUARES = [
    (0, 0), (1, 1), (2, 2), (5, 5), (33, 33), (3, 0, 0), (0, 4, 4), (2, 3, 4, 4), (40, 8, 8), (100, 100),
]  # fmt: skip
RECTANGLES = [
    (0, 0), (3, 0), (0, 3), (1, 1), (1, 5), (5, 1), (6, 4), (4, 6), (70, 17), (17, 70), (2, 5, 3), (0, 3, 2),
    (2, 0, 3), (2, 3, 0), (3, 2, 3, 5), (40, 8, 8),
]  # fmt: skip


def real_name(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def complex_name(dtype):
    return {"float32": "complex64", "float64": "complex128"}.get(dtype, dtype)


def matrices(dtype, shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def hermitian(dtype, shape):
    a = matrices(dtype, shape)
    return (a + adjoint(a)) / 2


def positive(dtype, shape):
    a = matrices(dtype, shape)
    return a @ adjoint(a) + np.eye(shape[-1], dtype=dtype)


def wide(a):
    """In the widest dtype, so that a check adds no error of its own."""
    return a.astype("complex128" if a.dtype.kind == "c" else "float64")


def norms(a):
    return np.sqrt(np.sum(np.abs(wide(a)) ** 2, axis=(-2, -1), keepdims=True))


def assert_near(actual, expected, dtype, n, size, factor=10):
    """Each difference is at most factor * eps * n * size; size has one number for each matrix."""
    bound = factor * np.finfo(dtype).eps * max(n, 1) * size
    assert (np.abs(actual - expected) <= bound).all(), f"{actual - expected} exceeds {bound}"


def assert_orthonormal_columns(q, dtype):
    q = wide(q)
    identity = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    assert_near(adjoint(q) @ q, identity, dtype, q.shape[-2], 1.0)


def assert_meta(tensor, shape, dtype):
    assert tensor.shape == tuple(shape)
    assert tensor.dtype == dtype


def square_layouts(array):
    return [(tensor, values) for _, tensor, values in layouts(array) if values.shape[-1] == values.shape[-2]]


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_inv(dtype, shape):
    for tensor, a in square_layouts(matrices(dtype, shape)):
        inverse = linalg.inv(tensor)
        assert_meta(inverse, a.shape, dtype)
        x = wide(inverse.numpy())
        identity = np.broadcast_to(np.eye(shape[-1]), a.shape)
        assert_near(wide(a) @ x, identity, dtype, shape[-1], norms(a) * norms(x))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
@pytest.mark.parametrize("columns", [None, 0, 1, 3, 40])
def test_solve(dtype, shape, columns):
    n = shape[-1]
    b = matrices(dtype, (n,) if columns is None else (*shape[:-2], n, columns), 1)
    for tensor, a in square_layouts(matrices(dtype, shape)):
        for _, right, b_array in layouts(b) if columns not in (None, 0) else [("", tw.asarray(b), b)]:
            if b_array.ndim >= 2 and b_array.shape[-2] != n:
                continue
            solution = linalg.solve(tensor, right)
            column = b_array[:, None] if columns is None else b_array
            batch = np.broadcast_shapes(a.shape[:-2], column.shape[:-2])
            assert_meta(solution, (*batch, n) if columns is None else (*batch, *b_array.shape[-2:]), dtype)
            x = wide(solution.numpy())
            x = x[..., None] if columns is None else x
            assert_near(wide(a) @ x, column, dtype, n, norms(a) * norms(x))


def test_solve_broadcasts_and_promotes():
    a, b = matrices("float32", (3, 1, 4, 4)), matrices("complex128", (2, 4, 5))
    check(linalg.solve(tw.asarray(a), tw.asarray(b)), np.linalg.solve(a, b), rtol=1e-10, atol=1e-10)
    for dtypes, result in ((("float32", "float64"), "float64"), (("float64", "complex64"), "complex128")):
        left, right = (tw.asarray(matrices(dtype, (3, 3))) for dtype in dtypes)
        assert linalg.solve(left, right).dtype == result
    one = matrices("float64", (4, 4))
    many = matrices("float64", (5, 4, 2))
    check(linalg.solve(tw.asarray(one), tw.asarray(many)), np.linalg.solve(one, many), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, shape, upper):
    for tensor, a in square_layouts(positive(dtype, shape)):
        factor = linalg.cholesky(tensor, upper=upper)
        assert_meta(factor, a.shape, dtype)
        f = wide(factor.numpy())
        np.testing.assert_array_equal(f, np.triu(f) if upper else np.tril(f))
        product = adjoint(f) @ f if upper else f @ adjoint(f)
        assert_near(product, a, dtype, shape[-1], norms(a))


@pytest.mark.parametrize("dtype", INEXACT)
def test_only_one_triangle_counts(dtype):
    a = positive(dtype, (2, 6, 6))
    nans = np.full_like(a, np.nan)
    lower = tw.asarray(np.tril(a) + np.triu(nans, 1))
    upper = tw.asarray(np.triu(a) + np.tril(nans, -1))
    check(linalg.cholesky(lower), linalg.cholesky(tw.asarray(a)).numpy())
    check(linalg.cholesky(upper, upper=True), linalg.cholesky(tw.asarray(a), upper=True).numpy())
    check(linalg.eigvalsh(lower), linalg.eigvalsh(tw.asarray(a)).numpy())
    for found, expected in zip(linalg.eigh(lower), linalg.eigh(tw.asarray(a)), strict=True):
        check(found, expected.numpy())


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_det_and_slogdet(dtype, shape):
    n = shape[-1]
    for tensor, a in square_layouts(matrices(dtype, shape)):
        expected = np.linalg.slogdet(wide(a))
        found = linalg.slogdet(tensor)
        assert_meta(found.sign, a.shape[:-2], dtype)
        assert_meta(found.logabsdet, a.shape[:-2], real_name(dtype))
        condition = np.linalg.cond(wide(a)) if a.size else np.ones(a.shape[:-2])
        assert_near(found.sign.numpy(), expected.sign, dtype, n, condition)
        assert_near(found.logabsdet.numpy(), expected.logabsdet, dtype, n, condition)
        determinant = linalg.det(tensor)
        assert_meta(determinant, a.shape[:-2], dtype)
        exact = expected.sign * np.exp(expected.logabsdet)
        finite = np.abs(exact) < np.finfo(dtype).max
        difference = np.where(finite, determinant.numpy() - exact, 0)
        assert_near(difference, 0, dtype, n, condition * np.abs(exact), factor=20)


def test_det_of_what_is_known():
    check(linalg.det(tw.ones((0, 0))), np.float32(1))
    check(linalg.det(tw.ones((2, 0, 0))), np.ones(2, "float32"))
    singular = tw.asarray([[1.0, 2.0], [2.0, 4.0]], dtype="float64")
    check(linalg.det(singular), np.float64(0))
    sign, logarithm = linalg.slogdet(singular)
    check(sign, np.float64(0))
    check(logarithm, np.float64(-np.inf))
    zero = linalg.slogdet(tw.zeros((2, 2), dtype="complex64"))
    check(zero.sign, np.complex64(0))
    check(zero.logabsdet, np.float32(-np.inf))
    swap = np.eye(3)[[1, 0, 2]]
    check(linalg.det(tw.asarray(swap)), np.float64(-1))
    # Neither overflows nor underflows on the way.
    check(linalg.det(tw.asarray(np.diag([1e200, 1e200, 1e-200, 1e-200]))), np.float64(1), rtol=1e-14)
    check(linalg.det(tw.asarray(np.diag([1e200, 1e200]))), np.float64(np.inf))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(dtype, shape, mode):
    rows = shape[-2]
    for _, tensor, a in layouts(matrices(dtype, shape)):
        q, r = linalg.qr(tensor, mode=mode)
        inner = rows if mode == "complete" else min(a.shape[-2:])
        inner = a.shape[-2] if mode == "complete" else inner
        assert_meta(q, (*a.shape[:-1], inner), dtype)
        assert_meta(r, (*a.shape[:-2], inner, a.shape[-1]), dtype)
        q, r = wide(q.numpy()), wide(r.numpy())
        assert_orthonormal_columns(q, dtype)
        np.testing.assert_array_equal(r, np.triu(r))
        np.testing.assert_array_equal(np.diagonal(r, axis1=-2, axis2=-1).imag, 0)
        assert_near(q @ r, a, dtype, max(shape[-2:]), norms(a))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype, shape, full):
    for _, tensor, a in layouts(matrices(dtype, shape)):
        rows, columns = a.shape[-2:]
        small = min(rows, columns)
        result = linalg.svd(tensor, full_matrices=full)
        assert_meta(result.U, (*a.shape[:-1], rows if full else small), dtype)
        assert_meta(result.S, (*a.shape[:-2], small), real_name(dtype))
        assert_meta(result.Vh, (*a.shape[:-2], columns if full else small, columns), dtype)
        u, s, vh = (wide(each.numpy()) for each in result)
        assert_orthonormal_columns(u, dtype)
        assert_orthonormal_columns(adjoint(vh), dtype)
        assert (s[..., :-1] >= s[..., 1:]).all()
        assert (s >= 0).all()
        assert_near(
            (u[..., :small] * s[..., None, :]) @ vh[..., :small, :], a, dtype, rows + columns, norms(a)
        )
        values = linalg.svdvals(tensor)
        assert_meta(values, (*a.shape[:-2], small), real_name(dtype))
        exact = np.linalg.svd(wide(a), compute_uv=False)
        for found in (s, values.numpy()):
            assert_near(found, exact, dtype, rows + columns, norms(a)[..., 0])


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigh(dtype, shape):
    for tensor, a in square_layouts(hermitian(dtype, shape)):
        if not np.array_equal(a, adjoint(a)):
            continue  # reversed rows of a Hermitian matrix
        result = linalg.eigh(tensor)
        assert_meta(result.eigenvalues, a.shape[:-1], real_name(dtype))
        assert_meta(result.eigenvectors, a.shape, dtype)
        w, v = (wide(each.numpy()) for each in result)
        assert (w[..., :-1] <= w[..., 1:]).all()
        assert_orthonormal_columns(v, dtype)
        assert_near(wide(a) @ v, v * w[..., None, :], dtype, shape[-1], norms(a))
        values = linalg.eigvalsh(tensor)
        assert_meta(values, a.shape[:-1], real_name(dtype))
        for found in (w, values.numpy()):
            assert_near(found, np.linalg.eigvalsh(wide(a)), dtype, shape[-1], norms(a)[..., 0])


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eig(dtype, shape):
    for tensor, a in square_layouts(matrices(dtype, shape)):
        result = linalg.eig(tensor)
        assert_meta(result.eigenvalues, a.shape[:-1], complex_name(dtype))
        assert_meta(result.eigenvectors, a.shape, complex_name(dtype))
        w, v = (wide(each.numpy()) for each in result)
        assert_near(np.linalg.norm(v, axis=-2), 1, dtype, shape[-1], 1)
        assert_near(wide(a) @ v, v * w[..., None, :], dtype, shape[-1], norms(a))
        values = linalg.eigvals(tensor)
        assert_meta(values, a.shape[:-1], complex_name(dtype))
        # Each is close to one of eig: these matrices are far from having no basis of eigenvectors.
        distance = np.abs(values.numpy()[..., :, None] - w[..., None, :])
        if a.size:
            assert_near(distance.min(axis=-1), 0, dtype, shape[-1], norms(a)[..., 0], factor=1000)


def test_eig_of_a_rotation():
    result = linalg.eig(tw.asarray([[0.0, -1.0], [1.0, 0.0]], dtype="float64"))
    values = result.eigenvalues.numpy()
    np.testing.assert_allclose(sorted(values, key=lambda z: z.imag), [-1j, 1j], atol=1e-15)


def test_results_are_named_tuples():
    x = tw.eye(2)
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")


def test_inputs_stay_as_they_are():
    """Where a result is written over a dead input, a live one keeps its values."""
    a = matrices("float64", (5, 5))
    b = matrices("float64", (5,))
    x, y = tw.asarray(a), tw.asarray(b)
    linalg.inv(x).wait()
    linalg.solve(x, y).wait()
    linalg.cholesky(x @ x.T).wait()
    check(x, a)
    check(y, b)
    check(linalg.inv(x * 2), np.linalg.inv(a * 2), rtol=1e-10, atol=1e-12)
    check(linalg.solve(x, y * 2), np.linalg.solve(a, b * 2), rtol=1e-10, atol=1e-12)
    check(linalg.inv((x * 2).T), np.linalg.inv(a.T * 2), rtol=1e-10, atol=1e-12)


def every_result(device=None):
    """Bytes of every decomposition, of stacks that several threads share."""
    found = []
    for dtype in INEXACT:
        for shape in ((64, 20, 20), (150, 150)):
            x = tw.asarray(matrices(dtype, shape), device=device)
            symmetric = tw.asarray(positive(dtype, shape), device=device)
            found += [linalg.inv(x), linalg.det(x), *linalg.slogdet(x), linalg.solve(x, x[..., :3])]
            found += [*linalg.qr(x), *linalg.svd(x), linalg.svdvals(x), *linalg.eig(x), linalg.eigvals(x)]
            found += [*linalg.eigh(symmetric), linalg.eigvalsh(symmetric), linalg.cholesky(symmetric)]
    return [np.asarray(each).tobytes() for each in found]


def test_threads_modes_and_devices_give_the_same_bits():
    with tw.Engine(mode="sync", num_threads=1, cpu_devices=1):
        reference = every_result()
    for options in ({"num_threads": 1}, {"num_threads": 2}, {"num_threads": 2, "mode": "caller"}):
        with tw.Engine(**options) as engine:
            assert every_result() == reference
        engine.close()
    with tw.Engine(cpu_devices=2) as engine:
        assert every_result("cpu:1") == reference
    engine.close()


def test_nothing_waits():
    x = tw.asarray(positive("float64", (3, 4, 4)))
    before = tw.sync_count()
    linalg.inv(x), linalg.det(x), linalg.slogdet(x), linalg.solve(x, x), linalg.cholesky(x), linalg.qr(x)
    linalg.svd(x), linalg.svdvals(x), linalg.eigh(x), linalg.eigvalsh(x), linalg.eig(x), linalg.eigvals(x)
    linalg.matrix_rank(x), linalg.pinv(x), linalg.matrix_norm(x, ord=2), linalg.vector_norm(x, ord=3)
    linalg.matrix_power(x, -3), linalg.trace(x), linalg.diagonal(x), linalg.cross(x[..., :3], x[..., 1:])
    assert tw.sync_count() == before

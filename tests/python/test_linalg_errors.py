# test_linalg_errors.py: what linear algebra refuses in the call, and what fails when a value is read.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, FLOATS, check
from thalweg import linalg

SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
ANY = ["qr", "svd", "svdvals", "pinv", "matrix_rank", "matrix_norm"]
BOTH = SQUARE + ANY


def call(name, *args, **options):
    return getattr(linalg, name)(*args, **options)


def read(result):
    """Every value of a result; a failed one raises."""
    return [each.numpy() for each in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", [*SQUARE, "solve", "matrix_power"])
def test_matrices_must_be_square(name):
    more = {"solve": (tw.ones(3),), "matrix_power": (2,)}.get(name, ())
    with pytest.raises(tw.ShapeError, match=rf"^{name}: the last two axes of shape \(2, 3\) differ"):
        call(name, tw.ones((2, 3)), *more)


@pytest.mark.parametrize("name", [*BOTH, "solve", "matrix_power", "diagonal", "trace"])
def test_matrices_have_two_dimensions(name):
    more = {"solve": (tw.ones(3),), "matrix_power": (2,)}.get(name, ())
    for x in (tw.ones(3), tw.ones(())):
        with pytest.raises(
            tw.ShapeError, match=f"^{name}: needs at least 2 dimensions, shape .* has {x.ndim}"
        ):
            call(name, x, *more)


@pytest.mark.parametrize("name", [*BOTH, "matrix_power", "vector_norm"])
@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_dtypes_must_be_floating(name, dtype):
    x = tw.ones((2, 2), dtype=dtype)
    with pytest.raises(
        tw.DTypeError, match=rf'^{name}: needs .* not {dtype}; cast with astype\(x, "float64"\)'
    ):
        call(name, x, *((2,) if name == "matrix_power" else ()))


def test_solve_refuses():
    x = tw.ones((3, 3))
    with pytest.raises(tw.DTypeError, match=r'^solve: .* not int64; cast with astype\(x2, "float64"\)'):
        linalg.solve(x, tw.arange(3))
    with pytest.raises(tw.DTypeError, match=r'^solve: .* not int64; cast with astype\(x1, "float64"\)'):
        linalg.solve(x.astype("int64"), tw.ones(3))
    with pytest.raises(
        tw.ShapeError, match=r"^solve: shapes \(3, 3\) and \(4,\) do not match: .* axis -1 of x2"
    ):
        linalg.solve(x, tw.ones(4))
    with pytest.raises(tw.ShapeError, match=r"^solve: .* have 3 rows, axis -2 of x2 has size 2"):
        linalg.solve(x, tw.ones((2, 3)))
    with pytest.raises(tw.ShapeError, match="^solve: .* x2 needs at least 1 dimension"):
        linalg.solve(x, tw.ones(()))
    with pytest.raises(tw.ShapeError, match="^solve: .* do not broadcast"):
        linalg.solve(tw.ones((2, 3, 3)), tw.ones((4, 3, 1)))


@pytest.mark.parametrize("name", [*BOTH, "diagonal", "trace", "vector_norm"])
def test_inputs_must_be_tensors(name):
    with pytest.raises(tw.DTypeError, match=f"^{name}: expected a Tensor, not list"):
        call(name, [[1.0]])


def test_bad_options():
    x = tw.ones((2, 2))
    with pytest.raises(tw.ValueError, match="^qr: mode must be 'reduced' or 'complete', not 'raw'"):
        linalg.qr(x, mode="raw")
    for ord in (3, "no", True, 0, float("nan")):
        with pytest.raises(tw.ValueError, match="^matrix_norm: ord must be"):
            linalg.matrix_norm(x, ord=ord)
    for ord in ("fro", True, float("nan"), None, 1j):
        with pytest.raises(tw.ValueError, match="^vector_norm: ord must be a real number"):
            linalg.vector_norm(x, ord=ord)
    with pytest.raises(tw.IndexError, match="axis 2"):
        linalg.vector_norm(x, axis=2)
    with pytest.raises(tw.DTypeError, match="^matrix_power: n must be an int, not float"):
        linalg.matrix_power(x, 2.0)
    for name in ("pinv", "matrix_rank"):
        with pytest.raises(tw.DTypeError, match=f"^{name}: rtol must be a number or a Tensor, not str"):
            call(name, x, rtol="small")
        with pytest.raises(tw.DTypeError, match=f"^{name}: rtol must have a real floating dtype, not int64"):
            call(name, x, rtol=tw.arange(2))


def test_cross_and_outer_refuse():
    with pytest.raises(
        tw.ShapeError, match=r"^cross: shapes \(2,\) and \(3,\) must have size 3 along axis -1"
    ):
        linalg.cross(tw.ones(2), tw.ones(3))
    with pytest.raises(tw.ShapeError, match="^cross: "):
        linalg.cross(tw.ones((1, 3)), tw.ones((3, 1)), axis=-2)
    with pytest.raises(tw.IndexError, match="^cross: axis -2 is out of bounds"):
        linalg.cross(tw.ones(3), tw.ones((3, 3)), axis=-2)
    with pytest.raises(tw.ValueError, match="^cross: axis 0 must be negative"):
        linalg.cross(tw.ones(3), tw.ones((3, 3)), axis=0)
    with pytest.raises(tw.ShapeError, match=r"^outer: x1 and x2 must have 1 dimension, shape \(2, 2\) has 2"):
        linalg.outer(tw.ones(2), tw.ones((2, 2)))


def test_the_error_class():
    assert issubclass(linalg.LinAlgError, tw.Error)
    assert issubclass(linalg.LinAlgError, ValueError)
    assert linalg.LinAlgError.__module__ == "thalweg.linalg"
    assert linalg.LinAlgError.__doc__


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", ["inv", "solve", "matrix_power"])
def test_singular_matrices(name, dtype):
    stack = np.stack([np.eye(3)] * 6).reshape(2, 3, 3, 3).astype(dtype)
    stack[1, 1, 2, 2] = 0
    more = {"inv": (), "solve": (tw.ones(3, dtype=dtype),), "matrix_power": (-2,)}[name]
    op = "inv" if name == "matrix_power" else name
    text = rf"{op}: the matrix at batch index \(1, 1\) is singular: pivot 3 of its LU factorization is 0"
    with pytest.raises(linalg.LinAlgError, match=text):
        read(call(name, tw.asarray(stack), *more))
    with pytest.raises(linalg.LinAlgError, match=f"{op}: the matrix is singular"):
        read(call(name, tw.zeros((2, 2)), *({"solve": (tw.ones(2),)}.get(name, more))))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("upper", [False, True])
def test_not_positive_definite(dtype, upper):
    stack = np.stack([np.eye(3)] * 40).astype(dtype)
    stack[7, 1, 1] = stack[30, 0, 0] = -1
    with pytest.raises(
        linalg.LinAlgError,
        match=r"cholesky: the matrix at batch index \(7,\) is not positive definite: its .* minor of order 2",
    ):
        read(linalg.cholesky(tw.asarray(stack), upper=upper))
    stack[7, 1, 1] = np.nan
    with pytest.raises(linalg.LinAlgError, match=r"batch index \(7,\) is not positive definite"):
        read(linalg.cholesky(tw.asarray(stack), upper=upper))


@pytest.mark.skipif(tw.engine().mode == "sync", reason="raises in the call")
def test_a_failure_is_a_value():
    """It does not raise in the call, spreads to what depends on it, and spares all else."""
    x = tw.zeros((2, 2))
    result = linalg.inv(x)
    other = linalg.det(x)
    sum_of_it = result.sum() + 1
    for failed in (result, sum_of_it):
        with pytest.raises(
            linalg.LinAlgError, match="inv failed on cpu:0 at .*test_linalg_errors.py"
        ) as caught:
            failed.item() if failed.ndim == 0 else failed.numpy()
        assert caught.value.op == "inv"
    check(other, np.float32(0))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_non_finite_values_end(dtype, bad, n):
    """They give an error where an iteration would not end, and non-finite values elsewhere."""
    a = np.broadcast_to(np.eye(n, dtype=dtype) * 2, (3, n, n)).copy()
    a[1, n - 1, 0] = bad
    x = tw.asarray(a)
    for name in ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank"):
        with pytest.raises(linalg.LinAlgError, match=r"batch index \(1,\) contains nan or infinity"):
            read(call(name, x))
    finite = np.linalg.inv(a[0])
    for name in ("inv", "det", "slogdet", "qr"):
        try:
            values = read(call(name, x))
        except linalg.LinAlgError:
            assert name == "inv"  # an infinity may leave a pivot of 0
            continue
        if name == "inv":
            np.testing.assert_allclose(values[0][0], finite)
            np.testing.assert_allclose(values[0][2], finite)
        assert all(np.isfinite(each[0]).all() for each in values)
    with (
        pytest.raises(linalg.LinAlgError, match="not positive definite") if n > 1 or bad != np.inf else _any()
    ):
        read(linalg.cholesky(x))


class _any:
    """Stands in for pytest.raises where both an error and a value will do."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is linalg.LinAlgError

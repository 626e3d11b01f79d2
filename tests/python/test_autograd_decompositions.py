# test_autograd_decompositions.py: derivatives of matrix decompositions and cumulative products, where they
# have corners: undefined gradients of some outputs, zeros, phases that a function may not depend on.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import gradcheck, gradgradcheck


def leaf(array) -> tw.Tensor:
    return tw.asarray(np.asarray(array)).requires_grad_()


def matrices(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    real = rng.standard_normal(shape)
    return real if kind == "real" else real + 1j * rng.standard_normal(shape)


def check(function, *arrays) -> None:
    leaves = [leaf(each) for each in arrays]
    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


KINDS = pytest.mark.parametrize("kind", ["real", "complex"])


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3)])
def test_qr_of_tall_and_wide_matrices(kind, shape):
    array = matrices(kind, *shape)
    check(tw.linalg.qr, array)
    check(lambda x: tw.linalg.qr(x)[0], array)  # the gradient of R is undefined
    check(lambda x: tw.linalg.qr(x)[1], array)
    if shape[-2] <= shape[-1]:
        check(lambda x: tw.linalg.qr(x, mode="complete"), array)


def test_complete_qr_of_tall_matrices_has_no_derivative():
    q, r = tw.linalg.qr(leaf(matrices("real", 3, 2)), mode="complete")
    for each in (q, r):
        with pytest.raises(_C.EngineError, match="qr: mode 'complete' has no derivative for .* 3 rows and 2"):
            each.sum().backward(retain_graph=True)


def test_qr_of_matrices_without_full_rank_fails_when_read():
    x = leaf([[1.0, 2.0], [2.0, 4.0]])
    q, r = tw.linalg.qr(tw.zeros((2, 2), dtype="float64") * x)
    (q.sum() + r.sum()).backward()
    with pytest.raises(_C.LinAlgError, match="solve"):
        x.grad.numpy()


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(kind, shape, full):
    array = matrices(kind, *shape)
    count = min(shape[-2:])
    weights = tw.asarray(np.arange(1.0, count + 1))

    def parts(x):
        u, s, vh = tw.linalg.svd(x, full_matrices=full)
        return u[..., :count], s, vh[..., :count, :]

    check(lambda x: parts(x)[1], array)
    check(lambda x: tw.abs(parts(x)[0]), array)
    check(lambda x: tw.abs(parts(x)[2]), array)

    def rotated(x):  # the phases of both vectors cancel
        u, _, vh = parts(x)
        return (u * weights) @ vh

    check(rotated, array)
    check(lambda x: tw.linalg.svdvals(x), array)


def test_further_columns_of_a_full_svd_pass_no_gradient():
    x = leaf(matrices("real", 3, 1))
    tw.linalg.svd(x)[0][:, 1:].sum().backward()
    assert x.grad.tolist() == [[0], [0], [0]]


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_eig(kind, shape):
    array = matrices(kind, *shape)
    weights = tw.asarray(np.arange(1.0, shape[-1] + 1))
    check(lambda x: tw.linalg.eig(x)[0], array)
    check(lambda x: tw.abs(tw.linalg.eig(x)[1]), array)
    check(tw.linalg.eigvals, array)

    def projected(x):
        vectors = tw.linalg.eig(x)[1]
        return (vectors * weights) @ tw.conj(vectors).mT

    check(projected, array)


def test_eigvals_give_each_eigenvalue_its_own_gradient():
    """Of many eigenvalues, whose order the routines may choose."""
    array = matrices("real", 90, 90)
    x = leaf(array)
    values = tw.linalg.eigvals(x)
    weights = np.cos(np.arange(90.0))
    tw.sum(tw.real(values) * tw.asarray(weights)).backward()
    step = 1e-6 * matrices("real", 90, 90, seed=1)

    def total(matrix):
        moved = np.linalg.eigvals(matrix)
        nearest = np.argmin(np.abs(moved[None, :] - values.detach().numpy()[:, None]), axis=1)
        return np.sum(moved[nearest].real * weights)

    expected = (total(array + step) - total(array - step)) / 2
    assert np.sum(x.grad.numpy() * step) == pytest.approx(expected, rel=1e-5)


def test_equal_eigenvalues_share_their_gradients():
    x = leaf(np.eye(3))
    tw.real(tw.linalg.eigvals(x))[0].backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3) / 3)


def test_vectors_of_equal_eigenvalues_have_no_finite_derivative():
    x = leaf(np.eye(2))
    tw.real(tw.linalg.eig(x)[1]).sum().backward()
    assert not np.isfinite(x.grad.numpy()).all()


@KINDS
@pytest.mark.parametrize("zeros", [(), (0,), (2,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_cumulative_prod_with_zeros(kind, zeros):
    array = matrices(kind, 5)
    array[list(zeros)] = 0
    check(tw.cumulative_prod, array)
    check(lambda x: tw.cumulative_prod(x, include_initial=True), array)


def test_cumulative_prod_along_axes_and_in_other_dtypes():
    check(lambda x: tw.cumulative_prod(x, axis=1), matrices("real", 2, 3, 2))
    check(lambda x: tw.cumulative_prod(x, axis=-3, include_initial=True), matrices("real", 7, 1, 2))
    x = tw.asarray([2.0, 3.0, 0.0, 5.0], dtype="float32").requires_grad_()
    tw.cumulative_prod(x, dtype="float64").sum().backward()
    assert x.grad.dtype == "float32" and x.grad.tolist() == [1 + 3, 2, 6 + 30, 0]


def test_cumulative_prod_of_many_elements():
    x = leaf(np.random.default_rng(0).uniform(0.9, 1.1, 1000))
    y = tw.cumulative_prod(x)
    weights = np.random.default_rng(1).standard_normal(1000)
    (y * tw.asarray(weights)).sum().backward()
    sums = np.cumsum((weights * y.detach().numpy())[::-1])[::-1]
    np.testing.assert_allclose(x.grad.numpy(), sums / x.detach().numpy(), rtol=1e-10, atol=1e-10)

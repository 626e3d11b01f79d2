# test_autograd_functional.py: jacobian, hessian, vjp and jvp: their values, that they agree, and gradcheck's
# own verdicts.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C
from thalweg.autograd import Function, GradcheckError, gradcheck, gradgradcheck, hessian, jacobian, jvp, vjp

RNG = np.random.default_rng(3)
REAL = RNG.standard_normal(3)
COMPLEX = RNG.standard_normal(3) + 1j * RNG.standard_normal(3)
MATRIX = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))


def tensor(values, **options) -> tw.Tensor:
    return tw.asarray(np.asarray(values), **options)


# --- complex numbers: the Jacobian is the derivative


HOLOMORPHIC = {
    "square": (lambda z: z * z, lambda z: np.diag(2 * z)),
    "exp": (tw.exp, lambda z: np.diag(np.exp(z))),
    "matrix": (lambda z: tensor(MATRIX) @ z, lambda z: MATRIX),
    "constant": (lambda z: tw.ones(2, dtype="complex128"), lambda z: np.zeros((2, 3))),
    "none": (lambda z: z[:0], lambda z: np.zeros((0, 3))),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_jacobian_of_a_holomorphic_function_is_its_derivative(name):
    function, derivative = HOLOMORPHIC[name]
    expected = derivative(COMPLEX)
    found = jacobian(function, tensor(COMPLEX))
    assert found.dtype == "complex128"
    assert found.shape == expected.shape
    assert np.allclose(found.numpy(), expected)
    along = RNG.standard_normal(3) + 1j * RNG.standard_normal(3)
    assert np.allclose(jvp(function, tensor(COMPLEX), tensor(along))[1].numpy(), expected @ along)
    against = RNG.standard_normal(expected.shape[0]) + 1j * RNG.standard_normal(expected.shape[0])
    product = vjp(function, tensor(COMPLEX), tensor(against))[1].numpy()
    assert np.allclose(product, expected.conj().T @ against)


def test_jacobian_of_a_complex_function_of_real_numbers():
    function = lambda x: tensor(MATRIX) @ tw.astype(x * x, "complex128")  # noqa: E731
    expected = MATRIX * (2 * REAL)
    found = jacobian(function, tensor(REAL))
    assert np.allclose(found.numpy(), expected)
    along = RNG.standard_normal(3)
    assert np.allclose(jvp(function, tensor(REAL), tensor(along))[1].numpy(), expected @ along)
    against = RNG.standard_normal(2) + 1j * RNG.standard_normal(2)
    # The input is real: so is its gradient.
    product = vjp(function, tensor(REAL), tensor(against))[1].numpy()
    assert np.allclose(product, (expected.conj().T @ against).real)


def test_jacobian_of_a_real_function_of_complex_numbers():
    function = lambda z: tw.square(tw.abs(z))  # noqa: E731
    found = jacobian(function, tensor(COMPLEX)).numpy()
    assert np.allclose(found, np.diag(2 * COMPLEX.conj()))
    along = RNG.standard_normal(3) + 1j * RNG.standard_normal(3)
    moved = jvp(function, tensor(COMPLEX), tensor(along))[1].numpy()
    assert np.allclose(moved, (found @ along).real)


def test_jvp_of_what_is_not_holomorphic():
    along = tensor([1 + 2j, 3j, 4.0 + 0j])
    assert np.allclose(jvp(tw.conj, tensor(COMPLEX), along)[1].numpy(), along.numpy().conj())


def test_jacobian_by_real_and_complex_inputs_together():
    z, x = tensor(COMPLEX), tensor(REAL)
    by_z, by_x = jacobian(lambda z, x: z * z * x, (z, x))
    assert np.allclose(by_z.numpy(), np.diag(2 * COMPLEX * REAL))
    assert np.allclose(by_x.numpy(), np.diag(COMPLEX**2))


def test_hessian_of_a_holomorphic_function():
    found = hessian(lambda z: tw.sum(z**3), tensor(COMPLEX))
    assert np.allclose(found.numpy(), np.diag(6 * COMPLEX))
    mixed = hessian(lambda x: tw.sum(tw.astype(x**3, "complex128") * 1j), tensor(REAL))
    assert np.allclose(mixed.numpy(), np.diag(6j * REAL))
    with pytest.raises(_C.DTypeError, match="hessian: the function returned float64 for complex128"):
        hessian(lambda z: tw.sum(tw.square(tw.abs(z))), tensor(COMPLEX))


def test_the_three_agree_on_real_numbers():
    function = lambda x: tw.stack([tw.sum(x * x), tw.prod(x)])  # noqa: E731
    x, along, against = tensor(REAL), tensor([1.0, 2.0, -1.0]), tensor([0.5, -3.0])
    found = jacobian(function, x).numpy()
    assert np.allclose(found, [2 * REAL, np.prod(REAL) / REAL])
    assert np.allclose(jvp(function, x, along)[1].numpy(), found @ along.numpy())
    assert np.allclose(vjp(function, x, against)[1].numpy(), found.T @ against.numpy())


# --- modes, devices, engines


@pytest.mark.parametrize("mode", [tw.inference_mode, tw.no_grad])
def test_modes_without_recording_do_not_matter(mode):
    x = tensor([1.0, 2.0])
    with mode():
        assert jacobian(tw.square, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert hessian(lambda x: tw.sum(x**3), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
        assert vjp(tw.square, x, tensor([1.0, 10.0]))[1].tolist() == [2.0, 40.0]
        output, product = jvp(tw.square, x, tensor([1.0, 10.0]))
        assert product.tolist() == [2.0, 40.0]
        assert not output.requires_grad
        assert not tw.is_grad_enabled()
    assert tw.is_grad_enabled()
    assert not tw.is_inference_mode_enabled()


def test_on_another_device():
    with tw.Engine(cpu_devices=2):
        x = tensor([1.0, 2.0], device="cpu:1")
        results = [
            jacobian(tw.square, x),
            hessian(lambda x: tw.sum(x**3), x),
            jacobian(lambda x: x[:0], x),
            vjp(tw.square, x, tw.ones_like(x))[1],
            jvp(tw.square, x, tw.ones_like(x))[1],
        ]
        assert [str(each.device) for each in results] == ["cpu:1"] * 5
        assert results[0].tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert results[1].tolist() == [[6.0, 0.0], [0.0, 12.0]]
        assert results[2].shape == (0, 2)
        with pytest.raises(_C.DeviceError, match=r"vjp: v is on cpu:0, its output on cpu:1"):
            vjp(tw.square, x, tensor([1.0, 2.0]))


def test_in_another_engine():
    with tw.Engine():
        x = tensor([1.0, 2.0])
        z = tensor([1.0, 2.0]).requires_grad_()
    assert jacobian(tw.square, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert jacobian(lambda x: x[:0], x).shape == (0, 2)
    assert hessian(lambda x: tw.sum(x**3), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert jvp(tw.square, x, tw.ones_like(x))[1].tolist() == [2.0, 4.0]
    assert vjp(tw.square, x, tw.ones_like(x))[1].tolist() == [2.0, 4.0]
    assert gradcheck(lambda x: x * x, z)
    assert gradgradcheck(lambda x: x * x, z)
    (unused,) = tw.autograd.grad(z.sum(), x.requires_grad_(), materialize_grads=True)
    assert (unused + x.detach()).tolist() == [1.0, 2.0]


# --- what cannot be


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: jacobian(tw.square, x.numpy()), TypeError, "jacobian: input must be a Tensor or several"),
        (lambda x: jacobian(tw.add, (x, 1.0)), TypeError, "jacobian: input 1 must be a Tensor, not float"),
        (lambda x: hessian(tw.sum, x.numpy()), TypeError, "hessian: x must be a Tensor, not ndarray"),
        (lambda x: jacobian(tw.argmax, x), TypeError, "the function returned int64, which has no derivative"),
        (lambda x: jacobian(lambda x: None, x), TypeError, "must return one Tensor, not NoneType"),
        (lambda x: jvp(tw.square, x, [1.0, 2.0]), TypeError, "jvp: direction 0 must be a Tensor, not float"),
        (lambda x: jvp(tw.square, x, (x, x)), ValueError, "jvp: 1 inputs and 2 directions"),
        (lambda x: jvp(tw.square, x, tw.ones(3)), ValueError, r"jvp: direction 0 has shape \(3,\)"),
        (lambda x: jvp(tw.square, x, x * 1j), TypeError, "direction 0 is complex128, its input float64"),
        (lambda x: vjp(tw.square, x, [1.0, 2.0]), TypeError, "vjp: v 0 must be a Tensor, not list"),
        (lambda x: vjp(tw.square, x, tw.ones(3)), ValueError, r"vjp: v has shape \(3,\), its output \(2,\)"),
        (lambda x: vjp(tw.square, x), ValueError, r"vjp: the output has shape \(2,\); give v"),
        (lambda x: vjp(lambda x: tw.ones(2), x, tw.ones(7)), ValueError, r"vjp: v has shape \(7,\)"),
        (lambda x: vjp(tw.square, x, x * 1j), TypeError, "vjp: v is complex128, its output float64"),
    ],
)
def test_what_cannot_be_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(tensor([1.0, 2.0]))


def test_dtypes_of_directions():
    x = tensor([1.0, 2.0])
    assert jvp(tw.square, x, tw.ones(2, dtype="float32"))[1].dtype == "float64"
    assert jvp(tw.square, x * 1j, x)[1].tolist() == [2j, 8j]
    assert vjp(lambda x: tw.sum(x * (1 + 1j)), x * 1j)[1].tolist() == [1 - 1j, 1 - 1j]


# --- derivatives that end


def once(numpy: bool) -> type[Function]:
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if numpy:
            return tw.asarray(3 * x.detach().numpy() ** 2 * g.detach().numpy())
        return 3 * x**2 * g

    Cube.backward = staticmethod(backward if numpy else tw.autograd.once_differentiable(backward))
    return Cube


def test_second_derivatives_of_once_differentiable_raise():
    x = tensor([1.0, 2.0])
    cube = once(numpy=False).apply
    assert jacobian(cube, x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    calls = [
        lambda: hessian(lambda x: tw.sum(cube(x)), x),
        lambda: jacobian(lambda x: vjp(cube, x, tw.ones_like(x), create_graph=True)[1], x),
        lambda: jvp(cube, x, tw.ones_like(x)),
        lambda: gradgradcheck(cube, x.detach().requires_grad_()),
    ]
    for call in calls:
        with pytest.raises(_C.EngineError, match="Cube: its backward is marked once_differentiable"):
            call()
    leaf = x.detach().requires_grad_()
    (first,) = tw.autograd.grad(cube(leaf * 2).sum(), leaf, create_graph=True)
    with pytest.raises(_C.EngineError, match="once_differentiable"):
        tw.autograd.grad(first.sum(), leaf)


def test_gradcheck_finds_what_left_the_record():
    x = tensor([1.0, 2.0]).requires_grad_()

    def unrecorded(x):
        with tw.no_grad():
            return x * 2

    for function in (
        lambda x: x.detach() * 2,
        lambda x: (x * 2, (x * 3).detach()),
        lambda x: tw.asarray(x.detach().numpy() * 2),
        unrecorded,
    ):
        with pytest.raises(GradcheckError, match=r"gradcheck: output \d requires no gradient"):
            gradcheck(function, x)
        assert not gradcheck(function, x, raise_exception=False)
    with tw.no_grad(), pytest.raises(GradcheckError, match="requires no gradient"):
        gradcheck(lambda x: x * 2, x)
    assert gradcheck(lambda x: (x * 2, tw.floor(x.detach() + 0.5), tw.ones(2)), x)


def test_gradgradcheck_finds_a_backward_through_numpy():
    x = tensor([1.0, 2.0]).requires_grad_()
    cube = once(numpy=True).apply
    assert gradcheck(cube, x)
    with pytest.raises(GradcheckError, match="output 0 requires no gradient"):
        gradgradcheck(cube, x)
    with pytest.raises(ValueError, match="gradgradcheck: no output requires a gradient"):
        gradgradcheck(lambda x: x.detach() * 2, x)


def test_gradcheck_says_what_is_wrong_with_its_arguments():
    single = tw.asarray([0.3, 0.7]).requires_grad_()
    with pytest.raises(GradcheckError, match="input 0 is float32, too coarse for it: use float64"):
        gradcheck(lambda x: x * x, single)
    with pytest.raises(TypeError, match="gradcheck: what the function returns must be .* not NoneType"):
        gradcheck(lambda x: None, tensor([1.0]).requires_grad_())
    with pytest.raises(TypeError, match="gradcheck: inputs must be a Tensor or several, not ndarray"):
        gradcheck(tw.square, np.ones(2))

# test_autograd_derivatives.py: first and second derivatives of the operators against finite differences, in
# several layouts and with broadcasting, float64 and complex128.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import layouts
from thalweg import _C
from thalweg.autograd import gradcheck, gradgradcheck


def values(*shape: int, low: float = 0.3, high: float = 0.9, seed: int = 0) -> np.ndarray:
    """Numbers that no function below has a kink at, and that all have as arguments."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def leaf(array) -> tw.Tensor:
    return tw.asarray(np.asarray(array)).requires_grad_()


def check(function, *arrays, second: bool = True) -> None:
    leaves = [leaf(each) for each in arrays]
    assert gradcheck(function, leaves)
    if second:
        assert gradgradcheck(function, leaves)


UNARY = [
    *("negative", "positive", "abs", "conj", "square", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p"),
    *("log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh"),
    *("erf", "erfc", "sigmoid", "silu", "gelu", "relu", "softplus", "sign", "floor", "round"),
]


@pytest.mark.parametrize("name", [each for each in UNARY if hasattr(tw, each)])
def test_functions_of_one_tensor(name):
    check(getattr(tw, name), values(2, 3))


def test_acosh():
    check(tw.acosh, values(3, low=1.2, high=2))


COMPLEX_UNARY = [
    *("negative", "abs", "conj", "square", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p", "log2"),
    *(
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
    ),
    *("real", "imag", "sign"),
]


@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_functions_of_one_complex_tensor(name):
    check(getattr(tw, name), values(3) + 1j * values(3, seed=1))
    check(getattr(tw, name), -values(3) + 1j * values(3, seed=1))


BINARY = [
    *("add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "atan2", "hypot", "logaddexp"),
    *("copysign", "remainder"),
]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,))])
def test_functions_of_two_tensors(name, shapes):
    check(getattr(tw, name), values(*shapes[0]), values(*shapes[1], seed=1))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow"])
def test_functions_of_two_complex_tensors(name):
    one = values(2, 3) + 1j * values(2, 3, seed=1)
    check(getattr(tw, name), one, values(3, seed=2) + 1j * values(3, seed=3))
    check(getattr(tw, name), one, values(3, seed=2))  # real beside complex
    check(getattr(tw, name), values(3, seed=2), one)


@pytest.mark.parametrize("name", ["exp", "tanh", "square"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (2, 0, 3)])
def test_layouts_and_shapes(name, shape):
    for layout, tensor, array in layouts(values(*shape)):
        x = tensor.detach().requires_grad_()
        getattr(tw, name)(x).sum().backward()
        plain = leaf(np.ascontiguousarray(array))
        getattr(tw, name)(plain).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), plain.grad.numpy(), err_msg=layout)


def test_where_and_clip():
    condition = tw.asarray([True, False, True])
    check(lambda x, y: tw.where(condition, x, y), values(2, 3), values(3, seed=1))
    check(lambda x, low, high: tw.clip(x, low, high), values(5), values(5, low=0.4, high=0.5), np.array(0.7))


def test_ties_share_the_gradient():
    x, y = leaf([1.0, 2.0, 3.0]), leaf([1.0, 3.0, 2.0])
    tw.maximum(x, y).sum().backward()
    assert x.grad.tolist() == [0.5, 0, 1] and y.grad.tolist() == [0.5, 1, 0]
    z = leaf([2.0, 5.0, 5.0])
    z.max().backward()
    assert z.grad.tolist() == [0, 0.5, 0.5]


def test_kinks_of_powers_and_roots():
    base, exponent = leaf([0.0, 0.0, 2.0]), leaf([0.0, 2.0, 0.0])
    tw.pow(base, exponent).sum().backward()
    assert base.grad.tolist() == [0, 0, 0]
    assert exponent.grad.tolist() == [0, 0, np.log(2.0)]
    x = leaf([-1.0, 0.0, 1.0])
    tw.relu(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 1]
    y = leaf([0.0, -2.0])
    tw.abs(y).sum().backward()
    assert y.grad.tolist() == [0, -1]


def test_angles_at_the_origin_pass_no_gradient():
    y, x = leaf([0.0, -0.0, 1e-200, 3.0]), leaf([0.0, -0.0, 1e-200, 4.0])
    tw.atan2(y, x).sum().backward()
    assert y.grad.tolist() == [0, 0, 0, 4 / 25] and x.grad.tolist() == [0, 0, 0, -3 / 25]


def test_logaddexp_of_large_and_infinite_numbers():
    x, y = leaf([np.inf, 1e200, -800.0, 1.0]), leaf([0.0, 1e200, -800.0, -np.inf])
    tw.logaddexp(x, y).sum().backward()
    assert x.grad.tolist() == [1, 0.5, 0.5, 1] and y.grad.tolist() == [0, 0.5, 0.5, 0]
    z = leaf([np.inf, -np.inf, 800.0])
    tw.softplus(z).sum().backward()
    assert z.grad.tolist() == [1, 0, 1]


@pytest.mark.parametrize("ord", [2, 1, 3, 1.5, 0.5, -1, np.inf, -np.inf])
def test_norms_at_zero_pass_no_gradient(ord):
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    norms = tw.linalg.vector_norm(x, axis=1, ord=ord)
    norms.sum().backward()
    assert x.grad[0].tolist() == [0, 0] and np.isfinite(x.grad[1].numpy()).all()
    with tw.no_grad():
        assert tw.linalg.vector_norm(x, axis=1, ord=ord).tolist() == norms.tolist()
    if ord == 2:
        y = leaf(np.zeros((2, 2)))
        tw.linalg.matrix_norm(y).backward()
        assert y.grad.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("ord", [2, 3, 1.5, 0.5, -1, -2.5])
def test_vector_norms(ord):
    check(lambda x: tw.linalg.vector_norm(x, axis=1, ord=ord), values(2, 3))
    x = leaf([0.0, 0.5, 2.0])
    tw.linalg.vector_norm(x, ord=ord).backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad[0].item() == 0


REDUCTIONS = ["sum", "mean", "prod", "max", "min", "var", "std"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    if axis == () and name in ("var", "std"):
        pytest.skip("0 / 0")
    array = np.random.default_rng(0).permutation(12).reshape(2, 3, 2) / 7 + 0.3
    check(lambda x: getattr(tw, name)(x, axis=axis, keepdims=keepdims), array)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_with_zeros(zeros):
    array = values(4)
    array[:zeros] = 0
    check(tw.prod, array)


def test_reductions_of_complex_numbers():
    array = values(2, 3) + 1j * values(2, 3, seed=1)
    for name in ("sum", "mean", "prod"):
        check(getattr(tw, name), array)


def test_reductions_that_cast():
    x = tw.asarray([1.0, 2.0], dtype="float32").requires_grad_()
    tw.sum(x, dtype="float64").backward()
    assert x.grad.dtype == "float32" and x.grad.tolist() == [1, 1]


MATMUL = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3, 2)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 2)),
    ((2, 3), (2, 3, 2)),
]


@pytest.mark.parametrize("shapes", MATMUL)
def test_matmul(shapes):
    check(tw.matmul, values(*shapes[0]), values(*shapes[1], seed=1))


def test_matmul_of_complex_numbers():
    check(
        tw.matmul,
        values(2, 2, 3) + 1j * values(2, 2, 3, seed=1),
        values(3, 2, seed=2) + 1j * values(3, 2, seed=3),
    )


VIEWS = {
    "reshape": lambda x: tw.reshape(x, (3, 8)),
    "reshape of a transposed one": lambda x: tw.reshape(tw.permute_dims(x, (2, 0, 1)), (3, 8)),
    "permute_dims": lambda x: tw.permute_dims(x, (2, 0, 1)),
    "permute_dims, negative": lambda x: tw.permute_dims(x, (-1, 0, -2)),
    "broadcast_to": lambda x: tw.broadcast_to(x, (2, 2, 3, 4)),
    "expand_dims": lambda x: tw.expand_dims(x, axis=1),
    "squeeze": lambda x: tw.squeeze(tw.expand_dims(x, axis=1), axis=1),
    "flip": lambda x: tw.flip(x, axis=(0, 2)),
    "flip all": tw.flip,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "diagonal": lambda x: tw.linalg.diagonal(x, offset=1),
    "diagonal below": lambda x: tw.linalg.diagonal(x, offset=-1),
    "roll": lambda x: tw.roll(x, (1, -2), axis=(0, 2)),
    "roll all": lambda x: tw.roll(x, 5),
    "astype": lambda x: tw.astype(x, "complex128"),
    "item": lambda x: x[1, 2, 3],
    "slice": lambda x: x[:, 1:, ::2],
    "slice backwards": lambda x: x[::-1, None, ..., 2],
    "mask": lambda x: x[tw.asarray([[True, False, True], [False, True, True]])],
    "tril": tw.tril,
    "unstack": lambda x: tw.unstack(x, axis=1)[1],
    "moveaxis": lambda x: tw.moveaxis(x, 0, 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_copies(name):
    check(VIEWS[name], values(2, 3, 4))


def test_concat_and_stack():
    fixed = tw.asarray(values(2, 1, seed=9))
    check(lambda x, y: tw.concat([x, fixed, y], axis=1), values(2, 3), values(2, 2, seed=1))
    check(lambda x, y: tw.concat([x, y], axis=None), values(2, 3), values(2, seed=1))
    check(lambda x, y: tw.stack([x, y], axis=-1), values(2, 3), values(2, 3, seed=1))


def assigned(x, key, value):
    y = x * 1
    y[key] = value
    return y


@pytest.mark.parametrize(
    "key",
    [
        (0,),
        (slice(None), slice(1, 3)),
        (slice(None, None, -1), 1),
        ([0, 1], [2, 0]),
        "mask",
    ],
    ids=str,
)
def test_setitem(key):
    if key == "mask":
        key = tw.asarray([[True, False, True], [False, True, True]])
    elif isinstance(key[0], list):
        key = tuple(tw.asarray(each) for each in key)
    shape = (tw.zeros((2, 3))[key]).shape
    check(lambda x, value: assigned(x, key, value), values(2, 3), values(*shape, seed=1))
    check(lambda x, value: assigned(x, key, value), values(2, 3), values(seed=1))


def test_sort_and_scan_and_softmax():
    array = np.random.default_rng(0).permutation(12).reshape(3, 4) / 7
    check(lambda x: tw.sort(x, axis=0), array)
    check(lambda x: tw.sort(x, axis=-1, descending=True), array)
    check(lambda x: tw.cumulative_sum(x, axis=0), array)
    check(lambda x: tw.cumulative_sum(x, axis=1, include_initial=True), array)
    for function in (tw.softmax, tw.log_softmax):
        check(lambda x, function=function: function(x, axis=0), array)


def test_norms():
    check(lambda x, w, b: tw.layer_norm(x, (4,), w, b), values(3, 4), values(4, seed=1), values(4, seed=2))
    check(lambda x: tw.layer_norm(x, (3, 4)), values(2, 3, 4))
    check(lambda x, w: tw.rms_norm(x, (4,), w), values(3, 4), values(4, seed=1))


def test_composed_functions():
    check(lambda x: tw.linalg.vector_norm(x), values(5))
    check(lambda x, y: tw.einsum("ij,kj->ik", x, y), values(2, 3), values(4, 3, seed=1))
    check(lambda x, y: tw.tensordot(x, y, axes=1), values(2, 3), values(3, 2, seed=1))
    check(lambda x, y: tw.linalg.cross(x, y), values(2, 3), values(2, 3, seed=1))


NOT_DIFFERENTIABLE = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isfinite"),
    *("logical_not", "argmax", "argmin", "argsort", "any", "all", "count_nonzero", "signbit"),
}


@pytest.mark.parametrize("name", sorted(NOT_DIFFERENTIABLE))
def test_truth_and_positions_require_no_gradient(name):
    x = leaf([1.0, 2.0])
    function = getattr(tw, name)
    result = function(x, x) if name.startswith(("equal", "not_", "less", "greater")) else function(x)
    assert not result.requires_grad and result.grad_fn is None


def test_integers_end_the_graph():
    assert not leaf([1.0]).astype("int64").requires_grad


def test_reading_with_integer_arrays():
    rows, columns = tw.asarray([0, 1, -1, 0]), tw.asarray([2, 0, 1, 2])
    check(lambda x: x[rows], values(3, 4))
    check(lambda x: x[rows, columns], values(3, 4))
    check(lambda x: x[:, rows, None], values(2, 3, 2))
    check(lambda x: x[rows[:, None], :, columns], values(2, 2, 3))
    check(lambda x: tw.take(x, rows, axis=1), values(2, 3, 2))
    check(lambda x: tw.take(x, tw.asarray([[0, 5], [-1, 0]])), values(2, 3))
    check(lambda x: tw.take_along_axis(x, tw.asarray([[0, 0], [2, 1]]), axis=1), values(2, 3))
    check(lambda x: tw.take_along_axis(x, tw.asarray([[0, 0], [2, 1]]), axis=1), values(1, 3))


def test_reading_half_precision_adds_in_single():
    x = tw.ones(2, dtype="float16").requires_grad_()
    tw.take(x, tw.zeros(4096, dtype="int64")).sum().backward(tw.asarray(0.1, dtype="float16"))
    assert x.grad.dtype == "float16" and abs(x.grad[0].item() - 409.5) < 1


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest):
    array = np.random.default_rng(0).permutation(12).reshape(3, 4) / 7
    check(lambda x: tw.topk(x, 2, axis=0, largest=largest)[0], array)
    assert not tw.topk(leaf(array), 2)[1].requires_grad


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_conv1d(stride, padding, dilation, groups):
    def function(x, w, b):
        return tw.conv1d(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)

    arrays = values(2, 2, 8), values(4, 2 // groups, 2, seed=1), values(4, seed=2)
    check(function, *arrays, second=stride == 2 and groups == 2)


def test_conv2d():
    def function(x, w, b):
        return tw.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2))

    check(function, values(2, 2, 5, 4), values(3, 2, 3, 2, seed=1), values(3, seed=2), second=False)
    check(lambda x, w: tw.conv2d(x, w), values(2, 4, 3), values(1, 2, 2, 2, seed=1))


def test_convolution_of_complex_numbers():
    one = values(1, 2, 4) + 1j * values(1, 2, 4, seed=1)
    check(lambda x, w: tw.conv1d(x, w), one, values(2, 2, 2, seed=2) + 1j * values(2, 2, 2, seed=3))


def complex_values(*shape: int, seed: int = 0) -> np.ndarray:
    return values(*shape, seed=seed) + 1j * values(*shape, seed=seed + 1)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 3, 4, 6])
def test_transforms(norm, n):
    for name in ("fft", "ifft", "irfft", "hfft"):
        function = getattr(tw.fft, name)
        check(lambda x, f=function: f(x, n=n, axis=0, norm=norm), complex_values(4, 2))
    for name in ("rfft", "ihfft", "fft"):
        function = getattr(tw.fft, name)
        check(lambda x, f=function: f(x, n=n, norm=norm), values(2, 5))


def test_transforms_over_several_axes():
    for name in ("fftn", "ifftn", "irfftn"):
        function = getattr(tw.fft, name)
        check(lambda x, f=function: f(x, axes=(0, 2)), complex_values(3, 2, 3))
        check(lambda x, f=function: f(x, s=(4, 2), axes=(1, 0)), complex_values(2, 3))
    check(lambda x: tw.fft.rfftn(x, s=(3, 5), axes=(1, 0)), values(3, 4))
    check(tw.fft.rfftn, values(2, 3))


def symmetric(x):
    return x + tw.conj(x).mT


def definite(x):
    return x @ tw.conj(x).mT + 2 * tw.eye(x.shape[-1], dtype="float64")


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_matrices(kind):
    def make(*shape, seed=0):
        return values(*shape, seed=seed) if kind == "real" else complex_values(*shape, seed=seed)

    square = make(2, 3, 3) + 2 * np.eye(3)
    check(tw.linalg.inv, square)
    check(tw.linalg.det, square)
    check(lambda x: tw.linalg.slogdet(x)[1], square)
    check(tw.linalg.solve, square, make(2, 3, 2, seed=5))
    check(tw.linalg.solve, square[0], make(3, seed=5))
    check(lambda x: tw.linalg.cholesky(definite(x)), make(3, 3))
    check(lambda x: tw.linalg.cholesky(definite(x), upper=True), make(3, 3))
    check(lambda x: tw.linalg.eigvalsh(symmetric(x)), square)
    check(lambda x: tw.linalg.svdvals(x), make(3, 4) + np.eye(3, 4), second=False)


def test_eigenvectors():
    def function(x):
        vectors = tw.linalg.eigh(symmetric(x))[1]
        return vectors * vectors  # whatever their signs

    check(function, values(3, 3) + np.diag([0.0, 2.0, 5.0]))


def test_an_operation_without_derivative_raises_in_backward(test_engine):
    y = _C.op("test_sleep")(leaf([1.0, 2.0]), milliseconds=0)
    with pytest.raises(_C.EngineError, match="test_sleep has no derivative"):
        y.sum().backward()

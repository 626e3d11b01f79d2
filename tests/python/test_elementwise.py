# test_elementwise.py: elementwise functions and operators against NumPy over dtypes, shapes and layouts.
from __future__ import annotations

import math
import operator

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, FLOATS, INTEGERS, NUMERIC, REAL, SHAPES, check, layouts, samples


def by_elements(function):
    """A function of Python's as one of arrays."""
    return lambda x: np.vectorize(function, otypes=["float64"])(x.astype("float64")).astype(x.dtype)


# Function, NumPy's, dtypes, relative tolerance: exact ones 0.
UNARY = [
    ("negative", np.negative, NUMERIC, 0),
    ("positive", np.positive, NUMERIC, 0),
    ("abs", np.abs, REAL, 0),
    ("sign", np.sign, NUMERIC, 0),
    ("square", np.square, NUMERIC, 0),
    ("logical_not", np.logical_not, DTYPES, 0),
    ("bitwise_invert", np.invert, ["bool", *INTEGERS], 0),
    ("isnan", np.isnan, DTYPES, 0),
    ("isinf", np.isinf, DTYPES, 0),
    ("isfinite", np.isfinite, DTYPES, 0),
    ("signbit", np.signbit, FLOATS, 0),
    ("floor", np.floor, FLOATS, 0),
    ("ceil", np.ceil, FLOATS, 0),
    ("trunc", np.trunc, FLOATS, 0),
    ("round", np.round, FLOATS, 0),
    ("reciprocal", np.reciprocal, FLOATS, 0),
    ("sqrt", np.sqrt, FLOATS, 0),
    *[
        (name, getattr(np, name), FLOATS, 1e-6)
        for name in ["exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan"]
    ],
    *[(name, getattr(np, name), FLOATS, 1e-6) for name in ["sinh", "cosh", "tanh"]],
    ("asin", np.arcsin, FLOATS, 1e-6),
    ("acos", np.arccos, FLOATS, 1e-6),
    ("atan", np.arctan, FLOATS, 1e-6),
    ("asinh", np.arcsinh, FLOATS, 1e-6),
    ("acosh", np.arccosh, FLOATS, 1e-6),
    ("atanh", np.arctanh, FLOATS, 1e-6),
    ("erf", by_elements(math.erf), FLOATS, 1e-6),
    ("erfc", by_elements(math.erfc), FLOATS, 1e-6),
]


def floor_divide(x1, x2):
    """With an infinity the quotient itself (array API standard)."""
    return np.where(np.isinf(x1) | np.isinf(x2), np.divide(x1, x2), np.floor_divide(x1, x2)).astype(x1.dtype)


BINARY = [
    ("add", np.add, REAL, 0),
    ("subtract", np.subtract, NUMERIC, 0),
    ("multiply", np.multiply, REAL, 0),
    ("divide", np.divide, NUMERIC, 0),
    ("floor_divide", floor_divide, NUMERIC, 0),
    ("remainder", np.remainder, NUMERIC, 0),
    ("minimum", np.minimum, REAL, 0),
    ("maximum", np.maximum, REAL, 0),
    ("copysign", np.copysign, FLOATS, 0),
    ("nextafter", np.nextafter, FLOATS, 0),
    ("atan2", np.arctan2, FLOATS, 1e-6),
    ("hypot", np.hypot, FLOATS, 1e-6),
    ("logaddexp", np.logaddexp, FLOATS, 1e-6),
    ("logical_and", np.logical_and, DTYPES, 0),
    ("logical_or", np.logical_or, DTYPES, 0),
    ("logical_xor", np.logical_xor, DTYPES, 0),
    ("bitwise_and", np.bitwise_and, ["bool", *INTEGERS], 0),
    ("bitwise_or", np.bitwise_or, ["bool", *INTEGERS], 0),
    ("bitwise_xor", np.bitwise_xor, ["bool", *INTEGERS], 0),
    ("equal", np.equal, DTYPES, 0),
    ("not_equal", np.not_equal, DTYPES, 0),
    ("less", np.less, REAL, 0),
    ("less_equal", np.less_equal, REAL, 0),
    ("greater", np.greater, REAL, 0),
    ("greater_equal", np.greater_equal, REAL, 0),
]


def rows(table):
    return [
        pytest.param(name, reference, dtype, tolerance, id=f"{name}-{dtype}")
        for name, reference, dtypes, tolerance in table
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("name", "reference", "dtype", "rtol"), rows(UNARY))
def test_unary(name, reference, dtype, rtol):
    function = getattr(tw, name)
    for shape in SHAPES:
        for layout, tensor, array in layouts(samples(dtype, shape)):
            expected = reference(array)
            check(function(tensor), expected, rtol=rtol, atol=rtol), layout


@pytest.mark.parametrize(("name", "reference", "dtype", "rtol"), rows(BINARY))
def test_binary(name, reference, dtype, rtol):
    function = getattr(tw, name)
    for shape in SHAPES:
        other = samples(dtype, shape, seed=1)
        for _, tensor, array in layouts(samples(dtype, shape)):
            expected = reference(array, other)
            check(function(tensor, tw.asarray(other)), expected, rtol=rtol, atol=rtol)
            check(function(tw.asarray(other), tensor), reference(other, array), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_pow_and_shifts_of_integers(dtype):
    base = samples(dtype, (50,))
    exponent = np.arange(50).astype(dtype) % 7
    check(tw.asarray(base) ** tw.asarray(exponent), base**exponent)
    check(tw.asarray(base) << tw.asarray(exponent), base << exponent)
    check(tw.asarray(base) >> tw.asarray(exponent), base >> exponent)


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_of_floats(dtype):
    base, exponent = samples(dtype, (100,)), samples(dtype, (100,), seed=1)
    check(tw.pow(tw.asarray(base), tw.asarray(exponent)), np.power(base, exponent), rtol=1e-5)
    check(tw.asarray(base) ** 2, base**2, rtol=1e-6)


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "log"])
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_functions_of_integers_compute_in_float64(name, dtype):
    array = np.abs(samples(dtype, (20,)).astype("int32") % 20).astype(dtype)
    check(getattr(tw, name)(tw.asarray(array)), getattr(np, name)(array.astype("float64")), rtol=1e-12)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_promotion(left, right):
    a, b = samples(left, (20,)), samples(right, (20,), seed=1)
    check(tw.asarray(a) + tw.asarray(b), a + b)
    check(tw.asarray(a) == tw.asarray(b), a == b)
    condition = np.arange(20) % 3 == 0
    check(tw.where(tw.asarray(condition), tw.asarray(a), tw.asarray(b)), np.where(condition, a, b))
    if left in REAL and right in REAL:
        check(tw.asarray(a) < tw.asarray(b), a < b)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((), (2, 2)), ((1,), (0,)), ((5, 1, 3), (2, 1))],
    ids=str,
)
def test_broadcasting(left, right):
    a, b = samples("float64", left), samples("float64", right, seed=1)
    check(tw.asarray(a) * tw.asarray(b), a * b)
    check(tw.asarray(b) - tw.asarray(a), b - a)


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod, operator.iand,
    operator.ior,
    operator.ixor, operator.ilshift, operator.irshift, operator.ipow,
]  # fmt: skip


@pytest.mark.parametrize("function", OPERATORS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
def test_operators_with_numbers(function, dtype):
    array = np.asarray([1, 2, 3, 5], dtype=dtype)
    tensor = tw.asarray(array)
    for number in (2, 2.5, True):
        expected = function(array, number)
        reflected = function(number, array)
        if isinstance(number, float) and dtype == "uint8":
            expected, reflected = expected.astype(expected.dtype), reflected
        check(function(tensor, number), function(array, number), rtol=1e-6, dtype=dtype != "uint8")
        check(function(number, tensor), reflected, rtol=1e-6, dtype=dtype != "uint8")


def test_dtypes_with_numbers():
    assert (tw.asarray([1], dtype="int8") + 1).dtype == tw.int8
    assert (tw.asarray([1], dtype="int8") + 1.0).dtype == tw.float64
    assert (tw.asarray([1.0]) + 1).dtype == tw.float32
    assert (tw.asarray([True]) + 1).dtype == tw.int64
    assert (tw.asarray([True]) + 1.0).dtype == tw.float64
    assert (1.0 - tw.asarray([1.0])).dtype == tw.float32
    assert tw.add(1, 2).dtype == tw.int64
    assert tw.add(1.0, 2).dtype == tw.float32
    assert tw.where(tw.asarray([True]), 1.0, 2.0).dtype == tw.float32
    assert tw.where(tw.asarray([True]), tw.asarray([1], dtype="int8"), 2).dtype == tw.int8
    assert tw.where(0.5, 1, 2).dtype == tw.int64


def test_numbers_out_of_the_dtypes_range():
    tensor = tw.asarray([1], dtype="uint8")
    with pytest.raises(OverflowError, match="300"):
        tensor + 300
    with pytest.raises(OverflowError):
        tensor - (-1)
    assert (tensor < 300).item() is True
    assert (tensor == -1).item() is False
    with pytest.raises(OverflowError, match="add: .*out of bounds for uint8"):
        tensor + 2**70


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**64), 2**70, -(2**70)])
def test_comparisons_with_numbers_no_integer_dtype_holds(dtype, number):
    array = np.asarray([0, 1, 1], dtype)
    if dtype in ("int64", "uint64"):
        array[2] = np.iinfo(dtype).max
    tensor = tw.asarray(array)
    for function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        expected = [
            function(value, float(number) if "float" in dtype else number) for value in array.tolist()
        ]
        assert function(tensor, number).tolist() == expected


def test_large_numbers_beside_floats_are_rounded():
    check(tw.ones(1) + 2**64, np.asarray([2.0**64], "float32"))
    check(2**70 * tw.ones(1, dtype="float64"), np.asarray([2.0**70]))
    with pytest.raises(OverflowError):
        tw.ones(1) + 10**400


def test_operators_with_arrays():
    tensor, array = tw.asarray([1.0, 2.0]), np.asarray([3.0, 4.0])
    for result in (tensor + array, array + tensor, np.float64(1) * tensor, tensor * np.float32(1)):
        assert isinstance(result, tw.Tensor)
    check(array - tensor, np.asarray([2.0, 2.0]))
    assert isinstance(np.exp(tensor), np.ndarray)


def test_operators_with_other_things():
    for thing in ("text", [1, 2], None, object(), {}):
        with pytest.raises(TypeError):
            tw.ones(2) + thing
        with pytest.raises(TypeError):
            thing + tw.ones(2)
        with pytest.raises(TypeError):
            operator.lt(tw.ones(2), thing)
    with pytest.raises(TypeError, match="asarray"):
        tw.add(tw.ones(2), [1, 2])
    with pytest.raises(TypeError):
        pow(tw.ones(2), 2, 3)


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_in_place_forms(function, dtype):
    array = np.asarray([9, 5, 3, 12], dtype=dtype)
    other = np.asarray([2, 3, 1, 2], dtype=dtype)
    tensor = tw.asarray(array)
    same, before = tensor, copy_of(tensor)
    result = function(tensor, tw.asarray(other))
    assert result is same
    check(result, function(array.copy(), other))
    check(function(tw.asarray(array), 2), function(array.copy(), np.asarray(2, dtype)))
    check(before, array)


def copy_of(tensor: tw.Tensor) -> tw.Tensor:
    return tensor[...]


def test_in_place_forms_of_floats():
    tensor = tw.asarray([1.0, 2.0])
    same = tensor
    tensor /= 4
    tensor @= tw.eye(2)
    assert tensor is same
    check(tensor, np.asarray([0.25, 0.5], "float32"))
    tensor += tensor
    check(tensor, np.asarray([0.5, 1.0], "float32"))
    assert tensor.add_(1).sub_(0.5).mul_(2).div_(4) is same
    check(tensor, np.asarray([0.5, 0.75], "float32"))


def test_in_place_forms_leave_views_and_bases_alone():
    base = tw.zeros(4)
    view = base[:2]
    view += 1
    check(base, np.zeros(4, "float32"))
    check(view, np.ones(2, "float32"))
    base += 5
    check(view, np.ones(2, "float32"))


def test_in_place_forms_that_do_not_fit():
    integers = tw.asarray([1, 2])
    with pytest.raises(TypeError, match="in-place"):
        integers += 1.5
    with pytest.raises(TypeError):
        integers /= 2
    small = tw.ones(2)
    with pytest.raises(ValueError, match="in-place"):
        small += tw.ones((3, 2))
    check(integers, np.asarray([1, 2]))
    check(small, np.ones(2, "float32"))
    with pytest.raises(TypeError):
        small += "text"


def test_unary_operators():
    tensor = tw.asarray([-1.5, 2.0])
    check(-tensor, np.asarray([1.5, -2.0], "float32"))
    check(+tensor, np.asarray([-1.5, 2.0], "float32"))
    check(abs(tensor), np.asarray([1.5, 2.0], "float32"))
    check(~tw.asarray([True, False]), np.asarray([False, True]))
    quotient, rest = divmod(tw.asarray([7, -7]), 3)
    check(quotient, np.asarray([2, -3]))
    check(rest, np.asarray([1, 2]))


def test_wrong_dtypes():
    with pytest.raises(TypeError, match="bitwise_and"):
        tw.ones(2) & tw.ones(2)
    with pytest.raises(TypeError, match="negative"):
        -tw.asarray([True])
    with pytest.raises(TypeError):
        tw.asarray([True]) - tw.asarray([True])


def test_integer_division_by_zero():
    array = np.asarray([5, -5, 0])
    check(tw.asarray(array) // 0, array // 0)
    check(tw.asarray(array) % 0, array % 0)
    check(tw.asarray(array) / 0, array / 0)
    low = np.asarray([np.iinfo("int64").min])
    check(tw.asarray(low) // -1, low // -1)
    check(abs(tw.asarray(low)), np.abs(low))


def test_negative_powers_of_integers_fail_when_read():
    result = tw.asarray([2, 3]) ** tw.asarray([1, -1]) if tw.engine().mode != "sync" else None
    if result is not None:
        with pytest.raises(ValueError, match="pow"):
            result.wait()


@pytest.mark.parametrize("dtype", NUMERIC)
def test_clip(dtype):
    array = samples(dtype, (40,))
    tensor = tw.asarray(array)
    check(tw.clip(tensor, 2, 5), np.clip(array, 2, 5))
    check(tw.clip(tensor, 2), np.maximum(array, np.asarray(2, dtype)))
    check(tensor.clip(max=5), np.minimum(array, np.asarray(5, dtype)))
    low, high = np.asarray(1, dtype), np.asarray(9, dtype)
    check(tw.clip(tensor, tw.asarray(low), tw.asarray(high)), np.clip(array, low, high))
    assert tw.clip(tensor) is tensor


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(dtype):
    condition = np.arange(12).reshape(3, 4) % 3 == 0
    a, b = samples(dtype, (3, 4)), samples(dtype, (4,), seed=1)
    check(tw.where(tw.asarray(condition), tw.asarray(a), tw.asarray(b)), np.where(condition, a, b))


def test_chains_are_exact_whatever_order_they_run_in():
    array = samples("float64", (1000,))
    tensor = tw.asarray(array)
    for _ in range(200):
        tensor = tensor * 1.0000001 + 0.5
        array = array * 1.0000001 + 0.5
    check(tensor, array)


def test_zero_size_and_0d():
    for function in (tw.exp, tw.negative, tw.isnan):
        assert function(tw.ones((0, 3))).shape == (0, 3)
        assert function(tw.ones(())).shape == ()
    assert (tw.ones((0, 3)) + tw.ones((1, 3))).shape == (0, 3)


def test_32_dimensions():
    shape = (1, 2) * 5 + (1,) * 22
    array = samples("float32", shape)
    check(tw.asarray(array) + 1, array + np.float32(1))
    check(tw.asarray(array).T * 2, array.T * np.float32(2))


def test_numbers_beside_tensors_of_several_dtypes():
    x, y = np.asarray([0.0, 1.0], "float32"), np.asarray([0.5, 0.5])
    check(tw.clip(tw.asarray(x), 0.1, tw.asarray(y)), np.clip(x, 0.1, y))
    small, wide = np.asarray([1, 2], "int8"), np.asarray([0, 500])
    check(tw.clip(tw.asarray(small), tw.asarray(wide), 2000), np.clip(small, wide, 2000))
    condition = np.asarray([True, False])
    check(tw.where(tw.asarray(condition), tw.asarray(y), 0.1), np.where(condition, y, 0.1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_small_constant_exponents(dtype):
    array = samples(dtype, (300,))
    for _, tensor, expected in layouts(array):
        with np.errstate(all="ignore"):
            check(tensor**2, expected * expected)
            if dtype in FLOATS:
                check(tensor**-1, 1 / expected)
                check(tensor**2.0, expected * expected)
                shape = np.broadcast_shapes(expected.shape, (1, 1, 1))
                squares = tensor ** tw.full((1, 1, 1), 2.0, dtype=dtype)
                check(squares, (expected * expected).reshape(shape))
                check(tensor**3, np.power(expected, np.asarray(3, dtype)), rtol=1e-6)
            check(tensor**1, expected)
            check(tensor**0, np.ones_like(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["sin", "tan", "asin", "atan", "sinh", "asinh", "tanh", "atanh", "sqrt", "expm1", "log1p"]
)
def test_a_zero_keeps_its_sign(name, dtype):
    zeros = np.array([0.0, -0.0] * 20, dtype=dtype)
    result = getattr(tw, name)(tw.asarray(zeros)).numpy()
    assert np.array_equal(result, zeros)
    assert np.array_equal(np.signbit(result), np.signbit(zeros))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_float32_sine_and_cosine_beside_their_zeros(name):
    quarters = np.concatenate([np.arange(300), 63661 - np.arange(300), np.geomspace(1e5, 1e8, 50)])
    arguments = np.float32(quarters * (np.pi / 2))
    arguments = np.concatenate([arguments, -arguments])
    exact = getattr(np, name)(arguments.astype(np.float64))
    result = getattr(tw, name)(tw.asarray(arguments)).numpy()
    assert np.max(np.abs(result - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 2

# test_complex.py: complex dtypes against NumPy: functions, special values, promotion, parts, what is refused.
from __future__ import annotations

import itertools
import operator
import pickle

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, REAL, SHAPES, check, layouts, samples

PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan]
TOLERANCE = {"complex64": 2e-6, "complex128": 1e-13}


def tanh(values):
    """At an infinite real part C gives the zero the sign of sin(2 y), the array API standard that of y."""
    result = np.array(np.tanh(values))
    edge = np.isinf(values.real) & np.isfinite(values.imag)
    result.imag[edge] = np.copysign(0, values.imag[edge])
    return result


# From the C library on both sides: special values agree to the sign of zeros.
FROM_C = [
    ("sqrt", np.sqrt), ("exp", np.exp), ("log", np.log), ("sin", np.sin), ("cos", np.cos), ("tan", np.tan),
    ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("sinh", np.sinh), ("cosh", np.cosh),
    ("tanh", tanh), ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh),
]  # fmt: skip
EXACT = [
    ("negative", np.negative), ("positive", np.positive), ("conj", np.conj), ("round", np.round),
    ("logical_not", np.logical_not), ("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite),
    ("real", np.real), ("imag", np.imag),
]  # fmt: skip
NEAR = [("abs", np.abs), ("square", np.square), ("reciprocal", np.reciprocal), ("angle", np.angle)]
ARITHMETIC = [
    ("add", np.add, 0), ("subtract", np.subtract, 0), ("multiply", np.multiply, 1), ("divide", np.divide, 1),
    ("equal", np.equal, 0), ("not_equal", np.not_equal, 0), ("logical_and", np.logical_and, 0),
    ("logical_or", np.logical_or, 0), ("logical_xor", np.logical_xor, 0),
]  # fmt: skip


def special(dtype: str) -> np.ndarray:
    """Every pair of telling parts."""
    pairs = np.asarray(list(itertools.product(PARTS, PARTS)))
    values = np.empty(len(pairs), dtype)
    values.real, values.imag = pairs.T
    return values


def check_zeros(tensor: tw.Tensor, expected: np.ndarray) -> None:
    for part, wanted in ((tensor.numpy().real, expected.real), (tensor.numpy().imag, expected.imag)):
        zeros = (part == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(part[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("name", "reference"), FROM_C, ids=lambda each: str(each))
def test_special_values_of_functions(name, reference, dtype):
    values = special(dtype)
    result, expected = getattr(tw, name)(tw.asarray(values)), reference(values)
    check(result, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    check_zeros(result, expected)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("name", "reference"), EXACT + NEAR, ids=lambda each: str(each))
def test_special_values_of_arithmetic(name, reference, dtype):
    values = special(dtype)
    result, expected = getattr(tw, name)(tw.asarray(values)), reference(values)
    tolerance = TOLERANCE[dtype] if (name, reference) in NEAR else 0
    check(result, expected, rtol=tolerance, atol=tolerance)
    if expected.dtype != bool:
        check_zeros(result, expected)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("name", "reference", "near"), ARITHMETIC, ids=lambda each: str(each))
def test_special_values_of_two(name, reference, near, dtype):
    left, right = (each.reshape(-1) for each in np.meshgrid(special(dtype), special(dtype)))
    tolerance = near * TOLERANCE[dtype]
    check(
        getattr(tw, name)(tw.asarray(left), tw.asarray(right)),
        reference(left, right),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_values_of_logarithms_to_a_base(dtype):
    values = special(dtype)
    for function, base in ((tw.log2, 2), (tw.log10, 10)):
        natural = np.log(values.astype("complex128"))
        expected = np.empty_like(natural)
        expected.real, expected.imag = natural.real / np.log(base), natural.imag / np.log(base)
        check(function(tw.asarray(values)), expected.astype(dtype), rtol=TOLERANCE[dtype])
    check(tw.log2(tw.asarray([8 + 0j], dtype=dtype)), np.asarray([3], dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_values_of_expm1_and_log1p(dtype):
    # The standard's tables are those of exp(x) - 1 and log(1 + x); NumPy's formulas give NaN for some
    # infinities.
    values = special(dtype)
    raised = values.astype("complex128")
    raised.real += 1  # + 1 would lose the sign of a zero imaginary part
    for function, expected in (
        (tw.expm1, np.exp(values.astype("complex128")) - 1),
        (tw.log1p, np.log(raised)),
    ):
        check(
            function(tw.asarray(values)), expected.astype(dtype), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
        )


@pytest.mark.parametrize("dtype", COMPLEX)
def test_expm1_and_log1p_near_0(dtype):
    values = np.asarray([1e-9 + 1e-9j, -1e-12j, 3e-10, 1e-5 - 1e-5j], dtype)
    squares = values.astype("complex128") ** 2 / 2
    check(tw.expm1(tw.asarray(values)), (values + squares).astype(dtype), rtol=1e-9 + TOLERANCE[dtype])
    check(tw.log1p(tw.asarray(values)), (values - squares).astype(dtype), rtol=1e-9 + TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_sign(dtype):
    # A NaN in either part gives NaN in both (array API standard); NumPy looks at infinities first.
    values = special(dtype)
    expected = np.where(np.isnan(values), complex(np.nan, np.nan), np.sign(values)).astype(dtype)
    check(tw.sign(tw.asarray(values)), expected, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_pow(dtype):
    values = special(dtype)
    values = values[np.isfinite(values)]
    left, right = (each.reshape(-1) for each in np.meshgrid(values, values))
    check(
        tw.pow(tw.asarray(left), tw.asarray(right)),
        np.power(left, right),
        rtol=10 * TOLERANCE[dtype],
        atol=TOLERANCE[dtype],
    )
    check(tw.asarray(values) ** 2, np.square(values), rtol=TOLERANCE[dtype])
    check(tw.asarray([1j], dtype=dtype) ** 3, np.asarray([-1j], dtype))
    check(2 ** tw.asarray([1j], dtype=dtype), np.asarray([2**1j], dtype), rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("name", "reference"), EXACT + NEAR + FROM_C, ids=lambda each: str(each))
def test_layouts(name, reference, dtype):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            tolerance = 0 if (name, reference) in EXACT else TOLERANCE[dtype]
            check(getattr(tw, name)(tensor), reference(array), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("name", "reference", "near"), ARITHMETIC, ids=lambda each: str(each))
def test_layouts_of_two(name, reference, near, dtype):
    tolerance = near * TOLERANCE[dtype]
    for shape in SHAPES:
        other = samples(dtype, shape, seed=1)
        for _, tensor, array in layouts(samples(dtype, shape)):
            check(
                getattr(tw, name)(tensor, tw.asarray(other)),
                reference(array, other),
                rtol=tolerance,
                atol=tolerance,
            )


@pytest.mark.parametrize("dtype", COMPLEX)
def test_parts_are_views(dtype):
    array = samples(dtype, (3, 4))
    tensor = tw.asarray(array)
    before = tw.memory_stats()["live_bytes"]
    for part, wanted in ((tensor.real, array.real), (tensor.imag, array.imag), (tensor.T.imag, array.T.imag)):
        check(part, wanted)
        assert part.strides == wanted.strides
    part = tensor[1:, ::-2].imag
    check(part, array[1:, ::-2].imag)
    check(part + 1, array[1:, ::-2].imag + np.ones((), part.numpy().dtype))
    part += 1
    check(tensor, array)
    assert tw.memory_stats()["live_bytes"] - before < 1000


@pytest.mark.parametrize("dtype", REAL)
def test_parts_of_real_tensors(dtype):
    array = samples(dtype, (3, 4))
    tensor = tw.asarray(array)
    check(tensor.real, array)
    check(tensor.imag, np.zeros_like(array))
    if dtype != "bool":
        check(tensor.conj(), array)
        check(tw.angle(tensor), np.angle(array.astype(dtype if "float" in dtype else "float64")), rtol=1e-6)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_part_given_away_keeps_the_other(dtype):
    tensor = tw.asarray([1 + 2j], dtype=dtype)
    other = tensor[...]
    part = tensor.imag
    del tensor
    part += 5
    check(part, np.asarray([7], part.numpy().dtype))
    check(other, np.asarray([1 + 2j], dtype))


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", COMPLEX)
def test_promotion(left, right):
    assert (tw.ones(1, dtype=left) * tw.ones(1, dtype=right)).dtype == np.promote_types(left, right).name
    assert (tw.ones(1, dtype=right) - tw.ones(1, dtype=left)).dtype == np.promote_types(left, right).name
    assert (
        tw.concat([tw.ones(1, dtype=left), tw.ones(1, dtype=right)]).dtype
        == np.promote_types(left, right).name
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beside_tensors(dtype):
    array = np.asarray([1, 0, 1], dtype)
    tensor = tw.asarray(array)
    for function in (operator.add, operator.mul, operator.sub, operator.truediv, operator.eq):
        check(function(tensor, 2j), function(array, 2j))
        check(function(1 + 2j, tensor), function(1 + 2j, array), rtol=1e-6)
    if dtype in COMPLEX:
        for number in (2, 2.5, True):
            check(tensor + number, array + number)
        check(tensor + 2**70, array + 2.0**70)


def test_numbers_alone():
    assert tw.add(1, 2j).dtype == tw.add(2j, 1.0).dtype == tw.complex64
    assert tw.exp(1j).dtype == tw.complex64
    check(tw.where(tw.asarray([True, False]), 1j, 2), np.asarray([1j, 2], "complex64"))


def test_numbers_from_tensors():
    tensor = tw.asarray(1.5 - 2j)
    assert complex(tensor) == tensor.item() == 1.5 - 2j
    assert type(tensor.item()) is complex
    assert complex(tw.asarray(3)) == 3
    assert bool(tw.asarray(1e-30j)) is True
    assert bool(tw.asarray(complex(0.0, -0.0))) is False
    for convert in (float, int):
        with pytest.raises(TypeError, match=f"{convert.__name__}: .*complex64"):
            convert(tensor)
    with pytest.raises(TypeError):
        [1, 2][tw.asarray(1j)]
    assert f"{tensor:.1f}" == f"{1.5 - 2j:.1f}"


def test_lists_of_numbers():
    nested = [[1, 2j], [True, 0.5 + 1j]]
    for dtype in COMPLEX:
        check(tw.asarray(nested, dtype=dtype), np.asarray(nested, dtype))
    assert tw.asarray(nested).tolist() == [[1 + 0j, 2j], [1 + 0j, 0.5 + 1j]]
    check(tw.asarray([1j, 0], dtype="bool"), np.asarray([True, False]))
    check(tw.asarray([np.complex128(1j), 2]), np.asarray([np.complex128(1j), 2]))
    check(tw.asarray([np.complex64(1j), np.complex64(2)]), np.asarray([1j, 2], "complex64"))
    for dtype in ("float64", "int8"):
        with pytest.raises(TypeError, match=f"asarray: 1j is complex and does not fit {dtype}"):
            tw.asarray([1j], dtype=dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_creation(dtype):
    check(tw.full((2, 2), 1 - 2j, dtype=dtype), np.full((2, 2), 1 - 2j, dtype))
    check(tw.full_like(tw.zeros(2, dtype=dtype), 3), np.full(2, 3, dtype))
    check(tw.eye(2, 3, dtype=dtype), np.eye(2, 3, dtype=dtype))
    for start, stop, endpoint in ((0, 1 + 1j, True), (1j, -1j, False), (-2, 3, True)):
        expected = np.linspace(start, stop, 7, endpoint=endpoint).astype(dtype)
        check(tw.linspace(start, stop, 7, endpoint=endpoint, dtype=dtype), expected, rtol=1e-6, atol=1e-7)
    assert tw.full(2, np.complex128(1j)).dtype == tw.complex128


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)], ids=str)
def test_movement(dtype, shape):
    for _, tensor, array in layouts(samples(dtype, shape)):
        check(tw.roll(tensor, 2), np.roll(array, 2))
        check(tw.flip(tensor), np.flip(array))
        check(tw.stack([tensor, tensor], axis=1), np.stack([array, array], axis=1))
        check(tw.take(tensor, [0, -1, 1], axis=0), np.take(array, [0, -1, 1], axis=0))
        check(tensor[[1, 0, 1]], array[[1, 0, 1]])
        check(tensor[..., ::-1], array[..., ::-1])
        check(tw.reshape(tensor, (-1,)), array.reshape(-1))
        check(pickle.loads(pickle.dumps(tensor)), array)
        changed, expected = tensor[...], array.copy()
        for key in (0, slice(None, None, 2), [1, 0], np.abs(np.nan_to_num(array.real)) > 1):
            changed[key], expected[key] = 2 - 1j, 2 - 1j
            check(changed, expected)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_devices(dtype):
    with tw.Engine(cpu_devices=2):
        array = samples(dtype, (3, 5))
        tensor = tw.asarray(array).T.to("cpu:1")
        assert tensor.device == "cpu:1"
        check((tensor + 1).to("cpu:0"), array.T + np.ones((), dtype))


def test_assignments_take_complex_numbers_into_complex_tensors_only():
    tensor = tw.zeros(3, dtype="complex64")
    tensor[0] = 1j
    tensor[1:] = [2, 3 + 1j]
    check(tensor, np.asarray([1j, 2, 3 + 1j], "complex64"))
    real = tw.zeros(3)
    for value in (1j, [1j, 2, 3], tensor):
        with pytest.raises(TypeError):
            real[:] = value
    with pytest.raises(TypeError, match="in-place"):
        real += 1j
    tensor += 1
    tensor *= 1j
    check(tensor, np.asarray([-1 + 1j, 3j, -1 + 4j], "complex64"))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "name",
    [
        "less", "less_equal", "greater", "greater_equal", "minimum", "maximum", "floor_divide", "remainder",
        "atan2", "hypot", "copysign", "logaddexp", "bitwise_and", "bitwise_or", "bitwise_left_shift",
    ],
)  # fmt: skip
def test_functions_of_two_without_a_complex_meaning(name, dtype):
    x = tw.ones(3, dtype=dtype)
    for arguments in ((x, x), (x, 1), (tw.ones(3, dtype="int8"), x)):
        with pytest.raises(tw.DTypeError, match=f"^{name}: .*complex"):
            getattr(tw, name)(*arguments)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    "name",
    ["floor", "ceil", "trunc", "signbit", "max", "min", "argmax", "argmin", "var", "std", "bitwise_invert"],
)
def test_functions_without_a_complex_meaning(name, dtype):
    with pytest.raises(tw.DTypeError, match=f"^{name}: .*{dtype}"):
        getattr(tw, name)(tw.ones(3, dtype=dtype))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: tw.clip(x, 0, 1), "^clip: .*complex64"),
        (lambda x: x.astype("float32"), "^astype: complex64 does not become float32; take real"),
        (lambda x: x.sum(dtype="float32"), "^sum: .*complex64"),
        (lambda x: tw.arange(3, dtype="complex64"), "^arange: "),
        (lambda x: tw.arange(3j), "^arange: "),
        (lambda x: tw.full(2, 1j, dtype="int8"), "^full: 1j is complex and does not fit int8"),
        (lambda x: tw.linspace(0, 1j, 3, dtype="float32"), "^linspace: 1j is complex"),
        (lambda x: tw.uniform(3, dtype="complex64"), "^uniform: dtype complex64"),
        (lambda x: tw.randint(0, 5, (2,), dtype="complex64"), "^randint: dtype complex64"),
        (lambda x: tw.take(tw.ones(3), x), "^take: .*complex64"),
        (lambda x: x < 1j, "^less: .*complex64"),
        (lambda x: x // 1, "^floor_divide: .*complex64"),
        (lambda x: tw.real([1]), "real: expected a Tensor"),
        (lambda x: tw.imag([1]), "imag: expected a Tensor"),
        (lambda x: tw.conj(tw.asarray([True])), "^conj: not defined for bool"),
    ],
)
def test_what_is_refused_is_named_in_the_call(call, text):
    with pytest.raises(tw.DTypeError, match=text):
        call(tw.ones(3, dtype="complex64"))


def test_reductions_of_special_values():
    for values in ([complex(np.inf, 1), 1j], [complex(-0.0, -0.0)], [complex(np.nan, 0), 1]):
        array = np.asarray(values, "complex128")
        check(tw.asarray(array).sum(), array.sum())
    # NumPy divides by a complex count and loses the imaginary part.
    assert str(tw.asarray([complex(np.inf, 1), 1j]).mean().item()) == "(inf+1j)"


def test_graph_dumps_show_complex_numbers_as_text(tmp_path):
    with tw.record_graph(tmp_path / "graph.json") as recording:
        tw.full(2, 1 - 2j).wait()
    assert recording is None or recording
    assert '"(1-2j)"' in (tmp_path / "graph.json").read_text()

# test_creation.py: functions that make tensors.
from __future__ import annotations

import array
import collections
import math

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, NUMERIC, SHAPES, check, layouts, samples


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_zeros_ones_full_empty(dtype, shape):
    check(tw.zeros(shape, dtype=dtype), np.zeros(shape, dtype))
    check(tw.ones(shape, dtype=dtype), np.ones(shape, dtype))
    check(tw.full(shape, 1, dtype=dtype), np.full(shape, 1, dtype))
    empty = tw.empty(shape, dtype=dtype)
    assert (empty.shape, empty.dtype) == (shape, dtype)
    like = tw.ones(shape, dtype=dtype)
    check(tw.zeros_like(like), np.zeros(shape, dtype))
    check(tw.ones_like(like, dtype="float64"), np.ones(shape, "float64"))
    check(tw.full_like(like, 1), np.full(shape, 1, dtype))
    assert tw.empty_like(like).shape == shape


def test_default_dtypes():
    assert tw.zeros(2).dtype == tw.ones(2).dtype == tw.empty(2).dtype == tw.float32
    assert tw.full(2, 1.5).dtype == tw.float32
    assert tw.full(2, 1).dtype == tw.int64
    assert tw.full(2, True).dtype == tw.bool
    assert tw.arange(3).dtype == tw.int64
    assert tw.arange(3.0).dtype == tw.float32
    assert tw.linspace(0, 1, 3).dtype == tw.eye(2).dtype == tw.float32
    assert tw.asarray(1.5).dtype == tw.asarray([1, 2.5]).dtype == tw.float32
    assert tw.asarray(1).dtype == tw.asarray([True, 2]).dtype == tw.int64
    assert tw.asarray(True).dtype == tw.asarray([[False]]).dtype == tw.bool
    assert tw.asarray(2j).dtype == tw.asarray([1, 2.5, 1j]).dtype == tw.full(2, 1j).dtype == tw.complex64
    assert tw.linspace(0, 1j, 3).dtype == tw.complex64
    assert tw.asarray(2**63).dtype == tw.uint64
    assert tw.asarray([]).dtype == tw.float32


def test_shapes_may_be_ints_and_lists():
    assert tw.zeros(3).shape == (3,)
    assert tw.zeros([2, 3]).shape == (2, 3)
    assert tw.zeros((np.int64(2), tw.asarray(3))).shape == (2, 3)
    assert tw.ones((1,) * 32).shape == (1,) * 32
    assert tw.ones(()).item() == 1.0


def test_arange_above_int64():
    check(tw.arange(2**63, 2**63 + 5), np.arange(2**63, 2**63 + 5, dtype="uint64"))
    check(tw.arange(2**63 + 5, 2**63, -2), np.arange(2**63 + 5, 2**63, -2, dtype="uint64"))
    check(tw.arange(2**63 - 3, 2**63), np.arange(2**63 - 3, 2**63, dtype="int64"))


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (5, 0), (0,), (0.0, 1.0, 0.25), (1, 2, 0.1)], ids=str
)
@pytest.mark.parametrize("dtype", [None, "int32", "float64"])
def test_arange(arguments, dtype):
    expected = np.arange(*arguments, dtype=dtype)
    if dtype is None and expected.dtype == np.float64:
        expected = expected.astype(np.float32)
    if dtype == "int32" and any(isinstance(value, float) for value in arguments):
        pytest.skip("NumPy's own results differ between versions")
    check(tw.arange(*arguments, dtype=dtype), expected, rtol=1e-6)


@pytest.mark.parametrize("arguments", [(0, 1, 5), (2, -3, 7), (0, 1, 1), (0, 1, 0), (5, 5, 3)], ids=str)
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(arguments, endpoint):
    start, stop, count = arguments
    expected = np.linspace(start, stop, count, endpoint=endpoint)
    check(tw.linspace(*arguments, endpoint=endpoint, dtype="float64"), expected, rtol=1e-12)
    check(tw.linspace(*arguments, endpoint=endpoint), expected.astype("float32"), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float32", "float64"])
def test_ranges_between_tensors(dtype):
    value = tw.asarray(np.asarray(3, dtype))
    found, number = tw.arange(value), value.item()
    check(found, np.arange(number, dtype=dtype if "float" in dtype else "int64"))
    check(tw.arange(0, value, 1), np.arange(0, number, 1, dtype=found.dtype.name))
    check(tw.arange(1, 9, value, dtype="float64"), np.arange(1, 9, number, dtype="float64"))
    check(tw.linspace(value, 5, 4), np.linspace(number, 5, 4).astype("float32"), rtol=1e-6)


def test_ranges_between_other_tensors():
    check(tw.arange(tw.asarray(2.0), np.float64(4), 1), np.arange(2.0, 4.0))
    check(tw.linspace(tw.asarray(1 + 2j), 0, 3), np.linspace(1 + 2j, 0, 3).astype("complex64"))
    with pytest.raises(
        tw.ShapeError, match=r"^arange: stop must be a number or a 0-d tensor, not of shape \(2,\)"
    ):
        tw.arange(tw.ones(2))
    with pytest.raises(tw.ShapeError, match=r"^linspace: start must be a number or a 0-d tensor"):
        tw.linspace(tw.ones((1, 1)), 2, 3)
    with pytest.raises(tw.DTypeError, match="^arange: complex numbers have no order"):
        tw.arange(tw.asarray(1j))


@pytest.mark.parametrize("arguments", [(3,), (2, 4), (4, 2), (0,)], ids=str)
@pytest.mark.parametrize("k", [0, 1, -2, 10])
def test_eye(arguments, k):
    check(tw.eye(*arguments, k=k, dtype="int32"), np.eye(*arguments, k=k, dtype="int32"))


@pytest.mark.parametrize("k", [2**62, 2**63, 2**70, -(2**63), -(2**70)])
def test_an_eye_whose_diagonal_is_far_away(k):
    assert tw.eye(2, 3, k=k).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_of_lists(dtype):
    nested = [[0, 1, 1], [1, 0, 1]]
    check(tw.asarray(nested, dtype=dtype), np.asarray(nested, dtype=dtype))
    check(tw.asarray(tuple(map(tuple, nested)), dtype=dtype), np.asarray(nested, dtype=dtype))
    check(tw.asarray(1, dtype=dtype), np.asarray(1, dtype=dtype))


def test_asarray_of_nested_emptiness():
    assert tw.asarray([[], []]).shape == (2, 0)
    assert tw.asarray([[[]]]).shape == (1, 1, 0)


@pytest.mark.parametrize(
    "ragged",
    [[[1, 2], [3]], [[1], [2, 3]], [1, [2]], [[1], 2], [[[1], [2]], [[3], [4, 5]]], [[], [1]]],
    ids=str,
)
def test_asarray_of_ragged_rows(ragged):
    with pytest.raises(tw.ShapeError, match="ragged"):
        tw.asarray(ragged)


def test_ragged_rows_are_named():
    with pytest.raises(tw.ShapeError, match=r"row \[1\]\[2\] has length 3"):
        tw.asarray([[[1, 2]] * 3, [[1, 2], [1, 2], [1, 2, 3]]])


def test_asarray_of_numbers_out_of_range():
    with pytest.raises(OverflowError):
        tw.asarray([300], dtype="uint8")
    with pytest.raises(OverflowError):
        tw.asarray(-1, dtype="uint64")
    with pytest.raises(OverflowError):
        tw.asarray(2**64)
    with pytest.raises(OverflowError):
        tw.asarray([2**63, -1])
    with pytest.raises(OverflowError):
        tw.asarray(1e20, dtype="int64")
    with pytest.raises(ValueError):
        tw.asarray(math.nan, dtype="int64")
    assert tw.asarray([1.9, -1.9], dtype="int8").tolist() == [1, -1]


def test_asarray_of_arrays_copies():
    source = np.arange(6).reshape(2, 3)
    tensor = tw.asarray(source)
    source[:] = 0
    check(tensor, np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_of_arrays_in_any_layout(dtype):
    base = np.arange(60).reshape(3, 4, 5).astype(dtype)
    for view in (base, base.T, base[::-1, ::2], base[1, 2, 3], base[:0], np.broadcast_to(base[0], (2, 4, 5))):
        check(tw.asarray(view), view)
        check(tw.from_numpy(view), view)
    read_only = base.copy()
    read_only.flags.writeable = False
    check(tw.asarray(read_only), base)
    swapped = base.astype(base.dtype.newbyteorder())
    check(tw.asarray(swapped), base)


def test_asarray_of_numpy_scalars():
    for value in (
        np.float64(2.5),
        np.float32(2.5),
        np.int8(3),
        np.bool_(True),
        np.uint64(2**63),
        np.complex64(1j),
    ):
        check(tw.asarray(value), np.asarray(value))
    check(tw.asarray([np.int8(1), np.int8(2)]), np.asarray([1, 2], dtype="int8"))
    check(tw.asarray([np.ones(2), np.zeros(2)]), np.asarray([[1.0, 1.0], [0.0, 0.0]]))


def test_asarray_of_buffers():
    check(tw.asarray(array.array("d", [1, 2, 3])), np.asarray([1.0, 2, 3]))
    check(tw.asarray(b"abc"), np.frombuffer(b"abc", "uint8"))
    check(tw.asarray(memoryview(bytearray(4))[::2]), np.zeros(2, "uint8"))


def test_asarray_of_tensors():
    tensor = tw.asarray([1, 2, 3])
    assert tw.asarray(tensor) is tensor
    assert tw.asarray(tensor, copy=False) is tensor
    assert tw.asarray(tensor, copy=True) is not tensor
    assert tw.tensor(tensor) is not tensor
    check(tw.asarray(tensor, dtype="float64"), np.asarray([1.0, 2, 3]))
    with pytest.raises(ValueError):
        tw.asarray(tensor, dtype="float64", copy=False)


def test_asarray_without_a_copy_aliases():
    source = np.zeros(3)
    tensor = tw.asarray(source, copy=False)
    source[1] = 5
    assert tensor.tolist() == [0, 5, 0]
    with pytest.raises(ValueError):
        tw.asarray([1, 2], copy=False)


def test_asarray_of_other_things():
    for thing in (
        "text",
        object(),
        None,
        {1: 2},
        [None],
        ["a"],
        np.array(["a"]),
        np.array([1j], "clongdouble"),
        np.array([None]),
    ):
        with pytest.raises(TypeError):
            tw.asarray(thing)
    with pytest.raises(ValueError, match=r"^asarray: shapes \(2,\) and \(3,\)"):
        tw.asarray([tw.ones(2), tw.ones(3)])
    with pytest.raises(TypeError):
        tw.asarray(np.zeros(2, dtype="longdouble"))


def test_bad_arguments():
    with pytest.raises(ValueError):
        tw.zeros(-1)
    with pytest.raises(ValueError):
        tw.zeros((2**40, 2**40))
    with pytest.raises(TypeError):
        tw.zeros("3")
    with pytest.raises(TypeError):
        tw.zeros(2.5)
    with pytest.raises(ValueError, match="step"):
        tw.arange(0, 5, 0)
    with pytest.raises(ValueError):
        tw.linspace(0, 1, -1)
    for value in (300, 300.0, -1, -1.0, float("nan"), float("inf"), 2.0**70):
        with pytest.raises(ValueError, match="uint8"):
            tw.full(2, value, dtype="uint8")
    assert tw.full(2, -0.5, dtype="uint8").tolist() == [0, 0]
    with pytest.raises(ValueError, match="int8"):
        tw.arange(120, 130, dtype="int8")
    with pytest.raises(ValueError, match="do not all fit"):
        tw.arange(-1, 2**64 - 1, 2**62)
    with pytest.raises(ValueError, match="cpu:0"):
        tw.zeros(2, device="cpu:9")
    with pytest.raises(ValueError):
        tw.zeros(2, device="tpu")
    with pytest.raises(ValueError):
        tw.zeros(2, device=3)


@pytest.mark.parametrize("dtype", NUMERIC + COMPLEX)
def test_astype_from_every_dtype(dtype):
    source = np.asarray([0, 1, 2, 100], dtype=dtype)
    for target in [*COMPLEX, "bool"] if dtype in COMPLEX else DTYPES:
        check(tw.asarray(source).astype(target), source.astype(target))


def test_asarray_of_mixed_lists():
    check(tw.asarray([1, np.int8(3)]), np.asarray([1, np.int8(3)]))
    check(tw.asarray([np.int8(1), np.int8(3)]), np.asarray([1, 3], "int8"))
    check(tw.asarray([1.5, np.float32(3)]), np.asarray([1.5, np.float32(3)]))
    check(tw.asarray([np.float64(1.5)]), np.asarray([1.5]))
    check(tw.asarray(np.float64(1.5)), np.asarray(1.5))
    check(tw.asarray([[3, 4], np.asarray([1, 2])]), np.asarray([[3, 4], [1, 2]]))
    with pytest.raises(TypeError, match="NoneType"):
        tw.asarray([1, None])


def test_asarray_of_lists_of_tensors():
    before = tw.sync_count()
    x = tw.arange(4)
    result = tw.asarray([[x[0], 5], (x[3], x[1])])
    scaled = tw.asarray([x, x * 2], dtype="float32")
    assert tw.sync_count() == before
    check(result, np.asarray([[0, 5], [3, 1]]))
    check(scaled, np.asarray([[0, 1, 2, 3], [0, 2, 4, 6]], "float32"))


def test_asarray_of_sequences_of_other_types():
    class Rows(list):
        pass

    Point = collections.namedtuple("Point", "x y")
    check(tw.asarray(Rows([1, 2])), np.asarray([1, 2]))
    check(tw.asarray(Point(1, 2)), np.asarray([1, 2]))
    check(tw.asarray([Point(1, 2), Rows([3, 4])]), np.asarray([[1, 2], [3, 4]]))
    check(tw.asarray(range(3, 9, 2)), np.asarray([3, 5, 7]))


def test_asarray_of_large_integers():
    check(tw.asarray([2**63, -1], dtype="float64"), np.asarray([2.0**63, -1]))
    check(tw.asarray(2**70, dtype="float64"), np.asarray(2.0**70))
    check(tw.asarray([0.5, 2**70]), np.asarray([0.5, 2.0**70], "float32"))
    for values in ([2**63, -1], [2**64], 2**70, [-(2**63) - 1]):
        with pytest.raises(OverflowError):
            tw.asarray(values)
    for values in ([2**64], [-(2**70)]):
        with pytest.raises(OverflowError):
            tw.asarray(values, dtype="int64")


@pytest.mark.parametrize("dtype", [">i2", ">i4", ">u8", ">f4", ">f8", ">c8", ">c16"])
def test_arrays_of_the_other_byte_order(dtype):
    array = np.asarray([[1, 2], [3, 40]], dtype)
    native = array.astype(array.dtype.newbyteorder("="))
    check(tw.asarray(array), native)
    check(tw.asarray(array.T), native.T)
    check(tw.zeros((2, 2), dtype=native.dtype) + array, native)
    if native.dtype.kind == "i":
        check(tw.arange(50)[array], np.arange(50)[native])


@pytest.mark.parametrize("source", [[1, 2], 3, np.arange(6)[::2].view(">i8"), np.asarray(["a"])], ids=str)
def test_asarray_that_needs_a_copy_refuses(source):
    with pytest.raises(ValueError, match="copy"):
        tw.asarray(source, copy=False)


@pytest.mark.parametrize(
    "number",
    [
        *(np.float32(1.5), np.float64(1.5), np.int8(3), np.uint64(2**63), np.bool_(True)),
        *(np.complex64(1 + 2j), np.complex128(1 + 2j)),
    ],
    ids=repr,
)
def test_numpy_scalars_keep_their_dtype(number):
    check(tw.full(3, number), np.full(3, number))
    if number.dtype.kind in "iuf" and number < 5:
        check(tw.arange(number), np.arange(number, dtype=number.dtype if number.dtype.kind == "f" else None))
        check(tw.arange(number, dtype="float32"), np.arange(number, dtype="float32"))


def test_full_of_a_tensor():
    value = tw.asarray(1.5, dtype="float64")
    before = tw.sync_count()
    filled = tw.full((2, 3), value + 1)
    alike = tw.full_like(tw.ones(3), value)
    assert tw.sync_count() == before
    check(filled, np.full((2, 3), 2.5))
    check(alike, np.full(3, 1.5, "float32"))
    check(tw.full(2, value, dtype="int8"), np.asarray([1, 1], "int8"))
    with pytest.raises(ValueError, match="0-d"):
        tw.full(2, tw.ones(2))


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 5, 10**12])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tril_and_triu(dtype, k):
    for shape in [(3, 3), (2, 5), (5, 2), (0, 3), (2, 3, 4)]:
        for _, tensor, values in layouts(samples(dtype, shape)):
            check(tw.tril(tensor, k=k), np.tril(values, k=min(k, 99)))
            check(tw.triu(tensor, k=k), np.triu(values, k=min(k, 99)))
    with pytest.raises(ValueError, match="^tril: needs at least 2 dimensions"):
        tw.tril(tw.ones(3))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    arrays = [np.arange(3), np.arange(4.0, dtype="float32"), np.arange(2) > 0]
    for count in range(4):
        found = tw.meshgrid(*map(tw.asarray, arrays[:count]), indexing=indexing)
        assert isinstance(found, tuple)
        for tensor, expected in zip(found, np.meshgrid(*arrays[:count], indexing=indexing), strict=True):
            check(tensor, expected)
    with pytest.raises(ValueError, match="^meshgrid: indexing"):
        tw.meshgrid(tw.arange(3), indexing="yx")
    with pytest.raises(ValueError, match="^meshgrid: arrays must have 1 dimension"):
        tw.meshgrid(tw.ones((2, 2)))

# test_indexing.py: x[key] and x[key] = v against NumPy.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, layouts, samples

BASIC = [
    np.s_[0], np.s_[-1], np.s_[1:3], np.s_[::2], np.s_[::-1], np.s_[3:0:-1], np.s_[5:2], np.s_[-3:-1],
    np.s_[:100],
    np.s_[1, 2], np.s_[1, :, 2], np.s_[..., 0], np.s_[0, ...], np.s_[:, 1:2, ::2], np.s_[None],
    np.s_[:, None, 1],
    np.s_[..., None], np.s_[None, 0, None, ..., None], np.s_[...], np.s_[()], np.s_[:, :, :], np.s_[1, 2, 3],
    np.s_[::7, ::5, ::3], np.s_[:, ::-1, ::-2], np.s_[np.int64(1)], np.s_[np.array(2), 0], np.s_[-4, -5, -6],
]  # fmt: skip

I = np.array  # noqa: E741
ADVANCED = [
    np.s_[I([0, 2, 1])], np.s_[I([[0, 1], [2, 3]])], np.s_[[0, -1]], np.s_[:, I([0, 4])],
    np.s_[..., I([5, 0])],
    np.s_[I([0, 1]), I([1, 2])], np.s_[I([[0], [1]]), I([0, 2])], np.s_[I([0, 1]), :, I([1, 2])],
    np.s_[0, :, I([1, 2])],
    np.s_[:, 0, I([1, 2])], np.s_[I([1, 2]), 0], np.s_[I([1, 2]), 1:3, 0], np.s_[1:3, I([1, 2]), ::2],
    np.s_[None, I([1, 2])],
    np.s_[I([1, 2]), None, I([0, 1])], np.s_[:, None, I([1, 2])], np.s_[I([], dtype=int)], np.s_[[]],
    np.s_[I([-1], dtype="int8")],
    np.s_[I([1, 2]), ..., I([0, 1])], np.s_[I([1], dtype="uint16"), I([1]), I([1])],
]  # fmt: skip


def as_key(key):
    """The key with index arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(as_key(each) for each in key)
    return tw.asarray(key) if isinstance(key, np.ndarray) and key.ndim else key


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_reads(key):
    for _, tensor, array in layouts(samples("int32", (4, 5, 6))):
        if array.shape == (4, 5, 6):
            check(tensor[key], array[key])


@pytest.mark.parametrize("key", ADVANCED, ids=lambda key: repr(key).replace("array", ""))
def test_advanced_reads(key):
    for _, tensor, array in layouts(samples("float64", (4, 5, 6))):
        if array.shape == (4, 5, 6):
            check(tensor[key], array[key])
            check(tensor[as_key(key)], array[key])


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=lambda key: repr(key).replace("array", ""))
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_writes(key, dtype):
    array = samples(dtype, (4, 5, 6))
    selected = array[key]
    values = [7, samples(dtype, selected.shape, seed=1)]
    if selected.ndim:
        values.append(samples(dtype, selected.shape[-1:], seed=2))
    for value in values:
        tensor, expected = tw.asarray(array), array.copy()
        same = tensor
        tensor[key] = tw.asarray(value) if isinstance(value, np.ndarray) else value
        expected[key] = value
        assert tensor is same
        check(tensor, expected)
        again = tw.asarray(array)
        again[as_key(key)] = value
        check(again, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_of_every_dtype(dtype):
    array = samples(dtype, (5,))
    tensor = tw.asarray(array)
    tensor[1:3] = tw.asarray(array[3:])
    array[1:3] = array[3:].copy()
    check(tensor, array)
    tensor[[0, 4]] = True
    array[[0, 4]] = True
    check(tensor, array)


def test_writes_of_lists_and_arrays():
    tensor = tw.zeros((2, 3))
    tensor[0] = [1, 2, 3]
    tensor[1] = np.asarray([4.0, 5.0, 6.0])
    check(tensor, np.asarray([[1, 2, 3], [4, 5, 6]], "float32"))


def test_writes_change_neither_views_nor_copies():
    base = tw.zeros(4)
    view, other = base[:2], base[...]
    base[0] = 5
    check(view, np.zeros(2, "float32"))
    check(other, np.zeros(4, "float32"))
    view[0] = 7
    check(base, np.asarray([5, 0, 0, 0], "float32"))


def test_masks():
    array = np.arange(12).reshape(3, 4)
    tensor = tw.asarray(array)
    for mask in (array > 5, array[:, 0] > 2):
        target, expected = tw.asarray(array), array.copy()
        target[tw.asarray(mask)] = -1
        expected[mask] = -1
        check(target, expected)
        target[mask] = 0
        expected[mask] = 0
        check(target, expected)
    target = tw.asarray(array)
    target[tensor > 5] = tensor * 10
    check(target, np.where(array > 5, array * 10, array))
    check(tensor[tensor > 5], array[array > 5])
    with pytest.raises(ValueError):
        tensor[tensor > 5] = tw.asarray(np.arange(13))
    with pytest.raises(IndexError):
        tensor[tw.asarray([True, False])] = 1
    with pytest.raises(IndexError):
        tensor[True]


def test_static_index_errors_raise_on_the_line():
    tensor = tw.ones((2, 3))
    for key in (
        2,
        -3,
        (0, 3),
        (0, 0, 0),
        (Ellipsis, Ellipsis),
        "a",
        1.5,
        tw.asarray([0.5]),
        [1.5],
        (0, None, 5),
        2**70,
    ):
        with pytest.raises(IndexError, match="getitem"):
            tensor[key]
        with pytest.raises(IndexError, match="setitem"):
            tensor[key] = 1
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        tensor[2]
    with pytest.raises(ValueError):
        tensor[::0]
    with pytest.raises(IndexError):
        tw.asarray(5)[0]
    with pytest.raises(TypeError):
        del tensor[0]


def test_index_arrays_out_of_range_fail_the_result():
    tensor = tw.ones((2, 3))
    with pytest.raises(IndexError):
        tensor[tw.asarray([0, 2])].wait()
    with pytest.raises(IndexError):
        tw.take(tensor, tw.asarray([-4]), axis=1).wait()
    check(tensor, np.ones((2, 3), "float32"))


def test_bad_writes():
    tensor = tw.asarray([1, 2, 3])
    with pytest.raises(ValueError, match="broadcast"):
        tensor[:2] = tw.asarray([1, 2, 3])
    with pytest.raises(TypeError, match="astype"):
        tensor[0] = 1.5
    with pytest.raises(OverflowError):
        tw.asarray([1], dtype="int8")[0] = 1000
    with pytest.raises(TypeError):
        tensor[0] = "text"
    check(tensor, np.asarray([1, 2, 3]))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize(
    "indices", [np.asarray([0, 2, -1]), np.asarray([[1, 0], [2, 2]]), np.asarray(1)], ids=str
)
def test_take(axis, indices):
    for _, tensor, array in layouts(samples("int32", (3, 4))):
        if array.shape == (3, 4):
            check(tw.take(tensor, tw.asarray(indices), axis=axis), np.take(array, indices, axis))
    check(tensor.take([0, 1], 0), np.take(array, [0, 1], 0))


def test_0d_index_tensors_do_not_wait():
    tensor = tw.arange(10)
    before = tw.sync_count()
    element = tensor[tw.asarray(3) + 1]
    assert tw.sync_count() == before
    check(element, np.asarray(4))


def test_a_loop_of_writes():
    tensor, array = tw.zeros(100), np.zeros(100, "float32")
    for i in range(100):
        tensor[i] = i
        array[i] = i
    check(tensor, array)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (4, 3)], ids=str)
def test_values_beside_a_mask(shape):
    array = np.arange(12.0, dtype="float32").reshape(4, 3)
    value = -np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    mask = array % 2 == 0
    tensor = tw.asarray(array)
    tensor[tw.asarray(mask)] = tw.asarray(value)
    check(tensor, np.where(mask, value, array))


@pytest.mark.parametrize("shape", [(4, 1), (1, 3), (13,), (1, 1, 1)], ids=str)
def test_values_that_do_not_go_with_a_mask(shape):
    tensor = tw.zeros((4, 3))
    with pytest.raises(ValueError, match="with a mask the value"):
        tensor[tensor == 0] = tw.ones(shape)
    check(tensor, np.zeros((4, 3), "float32"))


def test_a_failed_mask_assignment_can_be_recovered():
    tensor = tw.asarray([1, 2, 3])
    failed = tw.take(tw.arange(3), tw.asarray([0, 7, 1]))
    tensor[tw.asarray([True, False, True])] = failed
    with pytest.raises(IndexError):
        tensor.tolist()
    assert tensor.recover().tolist() == [1, 2, 3]


def test_a_mask_assignment_reuses_memory():
    tensor = tw.zeros(100_000)
    mask = tw.asarray(np.arange(100_000) % 2 == 0)
    tensor.wait()
    before = tw.stats()["donated"]
    tensor[mask] = 1.0
    check(tensor, (np.arange(100_000) % 2 == 0).astype("float32"))
    assert tw.stats()["donated"] == before + 1


def test_lists_of_numpy_integers_index():
    tensor, array = tw.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4)
    check(tensor[[np.int64(1)]], array[[1]])
    check(tensor[[1, np.int64(2)], 0], array[[1, 2], 0])
    check(tw.take(tensor, [np.int64(0), 2], axis=0), array[[0, 2]])
    with pytest.raises(TypeError, match="stack"):
        tensor[[tw.asarray(1)]]


def test_take_with_a_number():
    for tensor in (tw.arange(3.0), tw.zeros(300, dtype="int8")):
        check(tw.take(tensor, 1), tensor.numpy()[1])
        check(tw.take(tensor, np.int64(-1)), tensor.numpy()[-1])
    check(tw.take(tw.zeros(300, dtype="int8"), 299), np.zeros((), "int8"))
    with pytest.raises(TypeError):
        tw.take(tw.arange(3), 1.0)


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint64"])
def test_assigned_lists_are_read_as_the_tensors_dtype(dtype):
    tensor = tw.zeros(3, dtype=dtype)
    if dtype == "float64":
        tensor[:2] = [0.1, 0.2]
        assert tensor.tolist() == [0.1, 0.2, 0.0]
        tensor[:] = [1, True, 2**70]
        assert tensor.tolist() == [1.0, 1.0, 2.0**70]
        return
    for values in ([2**64, 0], [-(2**63), 1] if dtype == "uint64" else [1, 300]):
        with pytest.raises(OverflowError):
            tensor[:2] = values
    with pytest.raises(TypeError):
        tensor[:2] = [0.5, 1.0]
    tensor[[0, 2]] = [np.int64(5), 6]
    assert tensor.tolist() == [5, 0, 6]

# test_masks.py: x[mask] and x[mask] = v, alone and beside other indices, against NumPy.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, layouts, samples

SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (33, 65), (40_000,)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_mask_over_the_first_axes(dtype):
    for shape in SHAPES:
        for _, tensor, array in layouts(samples(dtype, shape)):
            for rank in range(array.ndim + 1):
                mask = samples("bool", array.shape[:rank], seed=5)
                for _, tensor_mask, array_mask in layouts(mask):
                    if array_mask.ndim == rank:
                        check(tensor[tensor_mask], array[array_mask])
                check(tensor[tw.asarray(mask), ...], array[mask])


def test_masks_of_numpy_and_lists():
    x, array = tw.arange(3), np.arange(3)
    check(x[[True, False, True]], array[[True, False, True]])
    check(x[array > 0], array[array > 0])
    check(x[tw.zeros(3, dtype="bool")], array[:0])


@pytest.mark.parametrize(
    "key",
    [
        lambda a, m: (0, m(a[0, :, 0] > 5)),
        lambda a, m: (m(a[:, 0, 0] > 5), 1),
        lambda a, m: (..., m(a[0, 0] % 2 == 0)),
        lambda a, m: (slice(None), m(a[0] % 3 == 0)),
        lambda a, m: (m(a[:, :, 0] % 2 == 0), slice(1, 3)),
        lambda a, m: (m(a[:, 0, 0] >= 0), slice(None), 2),
        lambda a, m: (m(a[:, 0, 0] >= 0), slice(None), m(a[0, 0] < 2)),
        lambda a, m: (m(a[:, 0, 0] >= 0), [0, 2], None),
        lambda a, m: (None, m(a > 7)),
        lambda a, m: (m(a > 7), None),
        lambda a, m: (slice(None, None, -1), m(a[0, :, 0] > 5), 0),
        lambda a, m: (m(np.asarray(True)), 1),
        lambda a, m: (m(np.asarray(False)), 1),
        lambda a, m: (1, m(np.asarray(True)), slice(1)),
    ],
)
def test_a_mask_beside_other_indices(key):
    array = np.arange(24).reshape(2, 3, 4)
    tensor = tw.asarray(array)
    expected_key, tensor_key = key(array, np.asarray), key(array, lambda mask: tw.asarray(mask))
    check(tensor[tensor_key], array[expected_key])
    changed = array.copy()
    changed[expected_key] = -1
    tensor[tensor_key] = -1
    check(tensor, changed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_for_each_place(dtype):
    for shape in SHAPES:
        array = np.array(samples(dtype, shape))
        for rank in range(array.ndim + 1):
            mask = samples("bool", array.shape[:rank], seed=6)
            rows = samples(dtype, (int(mask.sum()), *array.shape[rank:]), seed=8)
            changed = array.copy()
            changed[mask] = rows
            tensor = tw.asarray(array)
            tensor[tw.asarray(mask)] = tw.asarray(rows)
            check(tensor, changed)


def test_rows_broadcast_and_are_cast():
    array = np.zeros((4, 3), "float32")
    mask = np.asarray([True, False, True, True])
    for value in (np.arange(3), np.arange(3)[:, None], np.arange(3)[None], np.asarray([[5]]), np.float32(2)):
        changed, tensor = array.copy(), tw.asarray(array)
        changed[mask] = value
        tensor[tw.asarray(mask)] = tw.asarray(value)
        check(tensor, changed)


def test_a_number_of_rows_that_does_not_fit():
    x = tw.zeros(4)
    mask = tw.asarray([True, False, True, False])
    with pytest.raises(ValueError, match="^setitem: with a mask the value"):
        x[mask] = tw.ones(5)
    before = tw.sync_count()
    x[mask] = tw.ones(3)
    assert tw.sync_count() == before
    with pytest.raises(ValueError, match="the mask selects 2 places, but the value has 3 rows"):
        x.tolist()
    assert x.recover().tolist() == [0, 0, 0, 0]


def test_masked_writes_reuse_memory_and_leave_views():
    x = tw.zeros(100_000)
    mask = tw.asarray(np.arange(100_000) % 2 == 0)
    x.wait()
    before = tw.stats()["donated"]
    x[mask] = tw.arange(50_000, dtype="float32")
    view = x[:4]
    x[mask] = tw.ones(50_000)
    check(view, np.asarray([0, 0, 1, 0], "float32"))
    check(x[:4], np.asarray([1, 0, 1, 0], "float32"))
    assert tw.stats()["donated"] > before


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 0), (0, 4, 2), (3, 4, 0)])
def test_a_mask_with_an_axis_of_size_0_selects_nothing(shape):
    x = tw.reshape(tw.arange(24), (3, 4, 2))
    mask = tw.zeros(shape, dtype=bool)
    assert x[mask].shape == (0, *x.shape[len(shape) :])
    if len(shape) < 3:
        assert x[mask, ..., 1].shape == (0, *x.shape[len(shape) : -1])
    before = x.tolist()
    x[mask] = 5
    x[mask] = tw.ones((0, *x.shape[len(shape) :]), dtype=x.dtype)
    assert x.tolist() == before
    with pytest.raises(tw.ShapeError, match="^setitem: "):
        x[mask] = tw.ones((7, 7), dtype=x.dtype)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3, 4, 2, 0)])
def test_the_other_axes_of_a_mask_still_have_to_match(shape):
    x = tw.reshape(tw.arange(24), (3, 4, 2))
    with pytest.raises(IndexError):
        x[tw.zeros(shape, dtype=bool)]
    with pytest.raises((IndexError, tw.ShapeError)):
        x[tw.zeros(shape, dtype=bool)] = 5


def test_mask_errors():
    x = tw.ones((2, 3))
    for key in (
        tw.asarray([True, False, True]),
        tw.ones((2, 3, 1), dtype="bool"),
        (0, tw.asarray([True, False])),
        (..., tw.asarray([True, False])),
        (tw.ones((2, 3), dtype="bool"), 0),
    ):
        with pytest.raises(IndexError, match="^getitem: "):
            x[key]
        with pytest.raises(IndexError, match="^setitem: "):
            x[key] = 0


def test_one_wait_for_a_mask(test_engine):
    x = tw.arange(10)
    mask = x > 5
    tw.synchronize()
    with tw.on_sync("allow"):
        assert x[mask].tolist() == [6, 7, 8, 9]

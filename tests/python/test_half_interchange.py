# test_half_interchange.py: float16 and bfloat16 to and from Python, NumPy, ml_dtypes, pickle and DLPack.
from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import thalweg as tw
from halves import VIEWS, check_half, half, pair, rounded, value_of, views

# --- interchange


@half
def test_numbers_and_text(dtype):
    x = tw.asarray([[1.5, -2.0], [math.inf, 0.1]], dtype=dtype)
    tenth = float(rounded(0.1, dtype))
    assert x.tolist() == [[1.5, -2.0], [math.inf, tenth]]
    assert x[1, 1].item() == float(x[1, 1]) == tenth
    assert int(x[0, 0]) == 1 and bool(x[0, 0])
    assert repr(tw.asarray([1.0, 2.0], dtype=dtype)) == f"tensor([1., 2.], dtype={dtype})"
    assert f"{x[0, 0]:.2f}" == "1.50"
    assert x.itemsize == 2 and x.nbytes == 8


@half
@views
def test_pickle_and_copy(dtype, view):
    x, _ = pair(dtype, view)
    for again in (
        *(pickle.loads(pickle.dumps(x, protocol)) for protocol in range(2, 6)),
        copy.copy(x),
        copy.deepcopy(x),
    ):
        assert again.dtype == dtype
        assert again.shape == x.shape
        np.testing.assert_array_equal(value_of(again), value_of(x))


@views
def test_float16_with_numpy(view):
    x, wide = pair("float16", view)
    array = wide.numpy().astype("float16")
    for again in (x.numpy(), np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x))):
        assert again.dtype == np.float16 and again.shape == x.shape
        np.testing.assert_array_equal(again, array)
    assert memoryview(x).format == "e"
    for again in (tw.asarray(array), tw.from_dlpack(array.copy()), tw.asarray(array.astype(">f2"))):
        check_half(again, array, "float16")
    check_half(tw.ones(3, dtype="float16") * np.full(3, 2, "float16"), np.full(3, 2), "float16")
    check_half(tw.asarray(np.float16(1.5)), np.array(1.5), "float16")


def test_numpy_shares_the_bytes_of_halves():
    x = tw.asarray([1.0, 2.0], dtype="float16")
    assert x.numpy().__array_interface__["data"] == np.asarray(x).__array_interface__["data"]
    with pytest.raises(ValueError):
        x.numpy()[0] = 1


@views
def test_bfloat16_with_ml_dtypes(view):
    ml_dtypes = pytest.importorskip(
        "ml_dtypes", reason="ml_dtypes is not installed: tools/requirements.txt lists it"
    )
    x, wide = pair("bfloat16", view)
    array = wide.numpy().astype(ml_dtypes.bfloat16)
    for again in (x.numpy(), np.asarray(x), np.array(x)):
        assert again.dtype == ml_dtypes.bfloat16 and again.shape == x.shape
        np.testing.assert_array_equal(again.astype("float32"), array.astype("float32"))
    check_half(tw.asarray(array), wide.numpy(), "bfloat16")
    check_half(tw.asarray([array, array]), np.stack([wide.numpy()] * 2), "bfloat16")
    check_half(tw.ones((), dtype="bfloat16") * array, wide.numpy(), "bfloat16")
    if x.size:
        assert x.numpy().__array_interface__["data"] == x.numpy().__array_interface__["data"]
        assert not x.numpy().flags.writeable


def test_bfloat16_scalars_and_dtypes_of_ml_dtypes():
    ml_dtypes = pytest.importorskip(
        "ml_dtypes", reason="ml_dtypes is not installed: tools/requirements.txt lists it"
    )
    assert tw.dtype(ml_dtypes.bfloat16) is tw.dtype(np.dtype(ml_dtypes.bfloat16)) is tw.bfloat16
    assert tw.bfloat16 == ml_dtypes.bfloat16 and np.dtype(tw.bfloat16) == ml_dtypes.bfloat16
    assert tw.asarray(ml_dtypes.bfloat16(1.5)).dtype == "bfloat16"
    assert tw.asarray(ml_dtypes.bfloat16(1.5)).item() == 1.5
    with pytest.raises(tw.DTypeError):
        tw.asarray(np.ones(2, ml_dtypes.float8_e5m2))


def test_bfloat16_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    for shape in ((2,), (0,)):
        with pytest.raises(tw.DTypeError, match="install ml_dtypes, or cast"):
            tw.ones(shape, dtype="bfloat16").numpy()
    assert tw.ones(2, dtype="bfloat16").tolist() == [1, 1]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(tw.ones(2, dtype="bfloat16"))


@half
@pytest.mark.parametrize(
    "view", [view for view in VIEWS if view != "reversed"]
)  # torch has no negative strides
def test_dlpack_with_torch(dtype, view):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, wide = pair(dtype, view)
    theirs = torch.from_dlpack(x)
    assert theirs.dtype == getattr(torch, dtype)
    np.testing.assert_array_equal(theirs.to(torch.float32).numpy(), wide.numpy())
    check_half(tw.from_dlpack(theirs), wide.numpy(), dtype)
    check_half(tw.from_dlpack(torch.tensor(wide.numpy()).to(getattr(torch, dtype))), wide.numpy(), dtype)


@half
@views
def test_dlpack_with_itself(dtype, view):
    x, wide = pair(dtype, view)
    check_half(tw.from_dlpack(x), wide.numpy(), dtype)

# conftest.py: what all Python tests share.
from __future__ import annotations

import signal

import numpy as np
import pytest
import thalweg as tw

# A job that a script starts in the background ignores SIGINT; the tests of Ctrl-C need Python's own handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
]  # fmt: skip
INTEGERS = [name for name in REAL if "int" in name]
FLOATS = ["float32", "float64"]
NUMERIC = INTEGERS + FLOATS
COMPLEX = ["complex64", "complex128"]
DTYPES = REAL + COMPLEX
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (33, 65)]


def samples(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values of a dtype: small ones, both signs, with extremes and, for floats, non-finite ones among
    them."""
    if dtype in COMPLEX:
        values = np.empty(shape, dtype)
        part = str(values.real.dtype)
        values.real = samples(part, shape, seed)
        values.imag = np.flip(samples(part, shape, seed + 1000))
        return values
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        values = (rng.standard_normal(shape) * 3).astype(dtype)
        special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0]
    else:
        info = np.iinfo(dtype)
        values = rng.integers(max(info.min, -20), 20, shape).astype(dtype)
        special = [0, 1, info.min, info.max]
    flat = values.reshape(-1)
    if flat.size > 2 * len(special):
        flat[: len(special)] = special
    return values


def layouts(array: np.ndarray):
    """(name, tensor, array) of the same values in several memory layouts."""
    yield "contiguous", tw.asarray(array), array
    if array.ndim >= 2:
        yield "transposed", tw.asarray(np.ascontiguousarray(array.T)).T, array
    if array.ndim >= 1:
        wide = np.repeat(array, 2, axis=-1)
        yield "strided", tw.asarray(wide)[..., ::2], wide[..., ::2]
        yield "reversed", tw.flip(tw.asarray(np.ascontiguousarray(array[::-1])), axis=0), array
        yield (
            "broadcast",
            tw.broadcast_to(tw.asarray(array), (2, *array.shape)),
            np.broadcast_to(array, (2, *array.shape)),
        )


def check(tensor: tw.Tensor, expected, *, rtol: float = 0.0, atol: float = 0.0, dtype: bool = True) -> None:
    """The tensor has the shape, the dtype and (bitwise, or within tolerances) the values of `expected`."""
    expected = np.asarray(expected)
    assert tensor.shape == expected.shape
    if dtype:
        assert tensor.dtype == expected.dtype.name
    values = tensor.numpy()
    if expected.dtype.kind == "c" and values.dtype.kind == "c":
        check_parts(values, expected, rtol, atol)
        return
    if rtol or atol:
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(values, expected)


def check_parts(values: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> None:
    """Complex numbers: non-finite parts are the same, finite ones apart by a share of the number's size at
    most."""
    size = np.nan_to_num(np.abs(expected), nan=0.0, posinf=0.0)
    for part, wanted in ((values.real, expected.real), (values.imag, expected.imag)):
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(np.where(finite, 0, part), np.where(finite, 0, wanted))
        assert (np.isfinite(part) == finite).all()
        difference = np.abs(np.where(finite, part, 0) - np.where(finite, wanted, 0))
        bound = rtol * np.maximum(size, np.abs(np.where(finite, wanted, 0))) + atol
        assert (difference <= bound).all(), f"{values} is not {expected}"


@pytest.fixture
def test_engine():
    """A current engine with the operators test_fail, test_gate and test_sleep."""
    engine = tw.Engine(test_operators=True)
    with engine:
        yield engine
    engine.close()


@pytest.fixture(autouse=True)
def _quiet_numpy():
    with np.errstate(all="ignore"):
        yield

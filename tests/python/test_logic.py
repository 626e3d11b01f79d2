# test_logic.py: isclose and allclose.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw

CLOSE = {
    "float32": [1.0, 1.000001, 1.1, 0.0, 1e-9, -1e-7, np.inf, -np.inf, np.nan, 3e38, -3e38],
    "float64": [1.0, 1.000001, 1.1, 0.0, 1e-9, -1e-7, np.inf, -np.inf, np.nan, 1e308, -1e308],
    "uint8": [0, 1, 2, 254, 255],
    "int64": [0, 1, -1, 2**40, 2**40 + 1],
    "bool": [True, False],
    "complex64": [1 + 1j, 1.000001 + 1j, 1.1j, complex(np.inf, 0), complex(np.nan, 1)],
}


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose_of_all_pairs(dtype, equal_nan):
    values = np.asarray(CLOSE[dtype], dtype=dtype)
    with np.errstate(all="ignore"):
        expected = np.isclose(values[:, None], values, equal_nan=equal_nan)
    found = tw.isclose(tw.asarray(values[:, None]), tw.asarray(values), equal_nan=equal_nan)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_isclose_of_numbers_and_tolerances():
    x = tw.asarray([1.0, 1.1, np.nan])
    np.testing.assert_array_equal(tw.isclose(x, 1.05, atol=0.06).numpy(), [True, True, False])
    np.testing.assert_array_equal(tw.isclose(1.05, x, rtol=0.01).numpy(), [False, False, False])
    assert bool(tw.allclose(x, x, equal_nan=True)) and not bool(tw.allclose(x, x))
    for bad in ({"rtol": -1}, {"atol": np.inf}):
        with pytest.raises(tw.ValueError, match="it must be finite and at least 0"):
            tw.isclose(x, x, **bad)
    with pytest.raises(tw.ShapeError):
        tw.allclose(x, tw.ones(2))

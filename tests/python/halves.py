# halves.py: what the tests of half-precision dtypes share: rounding by its definition, views, checks.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw

HALVES = ["float16", "bfloat16"]
#: Bits of the significand, the exponent of the smallest normal number, the largest number.
FORMATS = {"float16": (11, -14, 65504.0), "bfloat16": (8, -126, (2 - 2.0**-7) * 2.0**127)}

half = pytest.mark.parametrize("dtype", HALVES)


def rounded(values, dtype: str) -> np.ndarray:
    """float64 values of a half-precision dtype nearest to `values`, ties to even, by its definition."""
    digits, lowest, largest = FORMATS[dtype]
    values = np.asarray(values, "float64")
    _, exponent = np.frexp(values)
    last_place = np.ldexp(1.0, np.maximum(exponent - digits, lowest - digits + 1))
    nearest = np.rint(values / last_place) * last_place
    return np.where(np.abs(nearest) > largest, np.copysign(np.inf, values), nearest)


def value_of(tensor: tw.Tensor) -> np.ndarray:
    return tw.astype(tensor, "float64").numpy()


def check_half(tensor: tw.Tensor, expected, dtype: str, rtol: float = 0.0) -> None:
    """The dtype, the shape and the values of `expected`, rounded; or within a share of them."""
    expected = np.asarray(expected)
    assert tensor.dtype == dtype
    assert tensor.shape == expected.shape
    if rtol:
        np.testing.assert_allclose(value_of(tensor), expected, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(value_of(tensor), rounded(expected, dtype))


def check_against_float32(found, wide, dtype: str) -> None:
    """`found` is what the same call gave in float32, rounded once; what is not floating is equal."""
    if isinstance(found, (tuple, list)):
        assert len(found) == len(wide)
        for each, other in zip(found, wide, strict=True):
            check_against_float32(each, other, dtype)
    elif wide.dtype == "float32":
        check_half(found, wide.numpy(), dtype)
    else:
        assert found.dtype == wide.dtype
        np.testing.assert_array_equal(found.numpy(), wide.numpy())


def numbers(shape, dtype: str, seed: int = 0) -> np.ndarray:
    """float32 values that the dtype holds, non-finite ones among them."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal(shape) * 3).astype("float32")
    flat = values.reshape(-1)
    for i, each in enumerate([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 65504.0, 2.0**-14, 2.0**-20]):
        if flat.size > 20:
            flat[i * 2] = each
    return rounded(values, dtype).astype("float32")


VIEWS = {
    "contiguous": lambda x: x,
    "reversed": lambda x: x[::-1, ::-2],
    "transposed": lambda x: tw.permute_dims(x, (1, 0)),
    "gapped": lambda x: x[1::2, 2::3],
    "row": lambda x: tw.broadcast_to(x[1], (5, x.shape[1])),
    "column": lambda x: tw.broadcast_to(x[:, 2:3], (x.shape[0], 6)),
    "one element": lambda x: x[2:3, 1:2],
    "0-d": lambda x: x[3, 4],
    "empty": lambda x: x[:, 3:3],
}
views = pytest.mark.parametrize("view", VIEWS)


def pair(dtype: str, view: str, shape=(37, 41), seed: int = 0) -> tuple[tw.Tensor, tw.Tensor]:
    """A view of half-precision values and the same in float32."""
    wide = tw.asarray(numbers(shape, dtype, seed))
    return VIEWS[view](tw.astype(wide, dtype)), VIEWS[view](wide)


def from_bits(bits, dtype: str) -> tw.Tensor:
    return tw._C.reinterpret(tw.asarray(np.asarray(bits, "uint16")), dtype)


def bits_of(tensor: tw.Tensor) -> np.ndarray:
    return tw._C.reinterpret(tensor, "uint16").numpy()

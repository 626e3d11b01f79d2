# test_reduction_order.py: the order in which reductions combine elements, bit by bit.
from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
import thalweg as tw

FLOATS = ["float32", "float64"]
CHUNK = 32768


def bits(values) -> np.ndarray:
    values = np.ascontiguousarray(values.numpy() if isinstance(values, tw.Tensor) else values)
    return values.view(f"u{values.dtype.itemsize}")


def check_bits(tensor, expected) -> None:
    np.testing.assert_array_equal(bits(tensor), bits(np.asarray(expected)))


def larger(a, b):
    return np.where(np.isnan(b), b, np.where(b > a, b, a))


def smaller(a, b):
    return np.where(np.isnan(b), b, np.where(b < a, b, a))


COMBINE = {"sum": np.add, "max": larger, "min": smaller}
IDENTITY = {"sum": -0.0, "max": -np.inf, "min": np.inf}


def tree(combine, values: list):
    """A balanced tree over values from left to right, as a binary counter builds it."""
    levels: list = []
    for number, value in enumerate(values):
        while number & 1:
            value = combine(levels.pop(), value)
            number >>= 1
        levels.append(value)
    result = levels.pop()
    while levels:
        result = combine(levels.pop(), result)
    return result


def leaf(name: str, values: np.ndarray):
    combine = COMBINE[name]
    if len(values) <= 8:
        result = values[0]
        for value in values[1:]:
            result = combine(result, value)
        return result
    lanes = np.full(128 // values.dtype.itemsize, IDENTITY[name], values.dtype)
    for begin in range(0, len(values), len(lanes)):
        row = values[begin : begin + len(lanes)]
        lanes[: len(row)] = combine(lanes[: len(row)], row)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = combine(lanes[:half], lanes[half:])
    return lanes[0]


def expected_row(name: str, values: np.ndarray):
    size = 2048 // values.dtype.itemsize
    chunks = [values[at : at + CHUNK] for at in range(0, len(values), CHUNK)]
    return tree(
        COMBINE[name],
        [
            tree(COMBINE[name], [leaf(name, chunk[at : at + size]) for at in range(0, len(chunk), size)])
            for chunk in chunks
        ],
    )


def expected_columns(name: str, values: np.ndarray):
    """Blocks of 16 rows, row after row, then a tree of them. Holds for 1024 bytes of columns and more."""
    blocks = []
    for begin in range(0, len(values), 16):
        result = values[begin]
        for row in values[begin + 1 : begin + 16]:
            result = COMBINE[name](result, row)
        blocks.append(result)
    return tree(COMBINE[name], blocks)


def with_specials(name: str, values: np.ndarray, rng) -> np.ndarray:
    """Zeros of both signs and, for max and min, nans of several payloads."""
    flat = values.reshape(-1)
    flat[rng.random(flat.size) < 0.3] = 0.0
    flat[rng.random(flat.size) < 0.3] = -0.0
    if name in ("max", "min"):
        np.minimum(flat, 0, out=flat) if name == "max" else np.maximum(flat, 0, out=flat)
        flat[rng.random(flat.size) < 0.3] = -0.0
        nans = rng.random(flat.size) < 0.001
        bits(flat)[nans] |= np.asarray([np.nan], flat.dtype).view(f"u{flat.itemsize}")[0]
        bits(flat)[nans] += rng.integers(0, 100, nans.sum()).astype(f"u{flat.itemsize}")
    return values


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_rows_combine_in_leaves(name, dtype):
    rng = np.random.default_rng(1)
    lengths = [
        *range(1, 140),
        *range(250, 262),
        *range(508, 550),
        1023,
        1024,
        1025,
        5000,
        CHUNK,
        CHUNK + 1,
        100_003,
    ]
    for special in (False, True):
        source = rng.standard_normal(100_010).astype(dtype)
        if special:
            source = with_specials(name, source, rng)
        for length in lengths:
            values = source[length % 7 :][:length]
            check_bits(getattr(tw, name)(tw.asarray(values)), expected_row(name, values))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_sums_have_one_nan(name, dtype):
    part = "float32" if dtype in ("float32", "complex64") else "float64"
    values = np.ones((50, 300), dtype)
    parts = values.view(part)
    parts[np.random.default_rng(10).random(parts.shape) < 0.1] = np.nan
    parts[::3] = -parts[::3]  # nans of both signs
    bits(parts)[::5, ::7] += np.isnan(parts[::5, ::7]).astype(f"u{parts.itemsize}")
    for axis in (None, 0, 1):
        result = np.atleast_1d(getattr(tw, name)(tw.asarray(values), axis=axis).numpy()).view(part)
        assert np.isnan(result).any()
        check_bits(result[np.isnan(result)], np.full(np.isnan(result).sum(), np.nan, part))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_negative_zeros_stay(name, dtype):
    for length in (*range(1, 70), 511, 512, 513, 600):
        check_bits(getattr(tw, name)(tw.full(length, -0.0, dtype=dtype)), np.asarray(-0.0, dtype))
        check_bits(
            getattr(tw, name)(tw.full((length, 5), -0.0, dtype=dtype), axis=0), np.full(5, -0.0, dtype)
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_columns_combine_in_blocks_of_rows(name, dtype):
    rng = np.random.default_rng(2)
    for rows, columns in (
        (2, 256),
        (15, 257),
        (17, 300),
        (100, 511),
        (333, 1001),
        (1000, 259),
        (130, 2049),
        (700, 4100),
    ):
        values = with_specials(name, rng.standard_normal((rows, columns)).astype(dtype), rng)
        check_bits(getattr(tw, name)(tw.asarray(values), axis=0), expected_columns(name, values))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_columns_do_not_depend_on_their_neighbours(name):
    values = np.random.default_rng(3).standard_normal((777, 5000)).astype("float32")
    whole = getattr(tw, name)(tw.asarray(values), axis=0).numpy()
    for columns in (256, 257, 1000, 2048, 2050):
        check_bits(getattr(tw, name)(tw.asarray(values[:, :columns].copy()), axis=0), whole[:columns])
        check_bits(getattr(tw, name)(tw.asarray(values)[:, :columns], axis=0), whole[:columns])


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_complex_parts_add_up_as_reals(name):
    rng = np.random.default_rng(4)
    values = (rng.standard_normal((530, 331)) + 1j * rng.standard_normal((530, 331))).astype("complex64")
    for axis in (0, 1):
        result = getattr(tw, name)(tw.asarray(values), axis=axis).numpy()
        np.testing.assert_allclose(
            result, getattr(values.astype("complex128"), name)(axis=axis), rtol=1e-4, atol=1e-4
        )
        strided = tw.asarray(np.repeat(values, 2, axis=1))[:, ::2]
        check_parts_equal(getattr(tw, name)(strided, axis=axis).numpy(), result)


def check_parts_equal(a: np.ndarray, b: np.ndarray) -> None:
    check_bits(a.view("float32"), b.view("float32"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_strides_keep_the_bits(name, dtype):
    rng = np.random.default_rng(5)
    values = with_specials(name, rng.standard_normal((70, 1003)).astype(dtype), rng)
    dense = tw.asarray(values)
    strided = tw.asarray(np.repeat(values, 3, axis=1))[:, ::3]
    for axis in (0, 1):
        check_bits(getattr(tw, name)(strided, axis=axis), getattr(tw, name)(dense, axis=axis).numpy())
    for row in (0, 3, 69):
        check_bits(
            getattr(tw, name)(dense, axis=1)[row], getattr(tw, name)(tw.asarray(values[row].copy())).numpy()
        )


@pytest.mark.parametrize("columns", [*range(4, 40), 63, 64, 65, 127, 129, 255, 256, 257, 300])
@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_in_columns(name, columns):
    values = np.random.default_rng(6).standard_normal((67, columns)).astype("float32")
    for row, column in ((0, 0), (16, columns - 1), (33, columns // 2), (66, columns // 3)):
        values[row, column] = np.nan
    result = getattr(tw, name)(tw.asarray(values), axis=0).numpy()
    np.testing.assert_array_equal(result, getattr(np, name)(values, axis=0))


POSITIONS = sorted(
    {*range(70), *range(125, 132), *range(509, 516), *range(2040, 2056), 4095, 4096, CHUNK - 1, CHUNK}
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_of_an_extremum(name, dtype):
    best = 1 if name == "argmax" else 0
    length = CHUNK + 1
    for position in POSITIONS:
        values = np.full(length, 1 - best, dtype)
        values[position] = best
        assert getattr(tw, name)(tw.asarray(values)).item() == position
        values[position:] = best  # the first of equals
        assert getattr(tw, name)(tw.asarray(values)).item() == position


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_in_rows_of_every_length(name, dtype):
    rng = np.random.default_rng(7)
    for length in (*range(1, 140), 255, 256, 257, 2047, 2048, 2049, 2063, 2064, 2065):
        # Few values, so that there are ties, and zeros of both signs are one.
        values = rng.integers(-3, 4, (9, length)).astype(dtype) * np.asarray(-0.5, dtype)
        expected = getattr(np, name)(values, axis=1)
        np.testing.assert_array_equal(getattr(tw, name)(tw.asarray(values), axis=1).numpy(), expected)
        values[np.arange(9), rng.integers(0, length, 9)] = np.nan
        values[np.arange(9), rng.integers(0, length, 9)] = np.nan
        expected = getattr(np, name)(values, axis=1)
        np.testing.assert_array_equal(getattr(tw, name)(tw.asarray(values), axis=1).numpy(), expected)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_nan_wins(name):
    for position in POSITIONS:
        values = np.random.default_rng(8).standard_normal(CHUNK + 1).astype("float32")
        values[position] = np.nan
        values[min(position + 5, CHUNK)] = np.nan
        values[-1] = np.nan
        values[position // 2] = np.inf if name == "argmax" else -np.inf
        values[position] = np.nan
        assert getattr(tw, name)(tw.asarray(values)).item() == position


def digest() -> str:
    """A hash of the bits of many reductions."""
    total = hashlib.sha256()
    for dtype in FLOATS:
        rng = np.random.default_rng(9)
        for shape in ((1, 9), (40, 40), (333, 100), (300, 517), (50, 3000), (3000, 5)):
            for name in ("sum", "mean", "max", "min", "argmax", "argmin", "prod", "var"):
                values = rng.standard_normal(shape).astype(dtype)
                if name != "var":
                    values = with_specials("max" if name == "sum" else name, values, rng)
                if name == "prod":
                    values = 1 + values / 1000
                for axis in (None, 0, 1):
                    total.update(
                        np.asarray(getattr(tw, name)(tw.asarray(values), axis=axis).numpy()).tobytes()
                    )
    return total.hexdigest()


@pytest.mark.timeout(180)
def test_instruction_sets_agree():
    code = "import test_reduction_order; print(test_reduction_order.digest())"
    expected = digest()
    seen = 0
    for isa in ("baseline", "avx2", "avx512"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "THALWEG_CPU_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=os.path.dirname(__file__),
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            assert "this processor can use" in run.stderr, run.stderr
            continue
        assert run.stdout.strip() == expected, isa
        seen += 1
    assert seen > 0

# test_ulp_tool.py: tools/ulp measures what it says, and every function is within its limit on its arguments.
from __future__ import annotations

import importlib.util
import math
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import mpmath
import numpy as np
import pytest
import thalweg as tw

LOADER = SourceFileLoader("ulp", str(Path(__file__).resolve().parents[2] / "tools" / "ulp"))


@pytest.fixture(scope="module")
def ulp():
    spec = importlib.util.spec_from_loader("ulp", LOADER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["ulp"] = module  # dataclasses look their module up
    LOADER.exec_module(module)
    return module


def test_every_function_is_within_its_limit(ulp):
    with np.errstate(all="ignore"):
        rows = list(ulp.rows([], everything=False, scale=0.15))
    assert len(rows) > 90
    assert {row.dtype for row in rows} == {"float32", "float64", "complex64", "complex128"}
    assert [row for row in rows if not row.passed] == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spacing_is_that_of_numpy(ulp, dtype):
    for value in [0.0, 1.0, 1.5, 2.0, -3.0, 1e-40, float(np.finfo(dtype).tiny), 1e30]:
        assert ulp.spacing(value, np.dtype(dtype)) == float(np.spacing(np.array(abs(value), dtype)))


def test_errors_are_counted_in_units(ulp):
    f32 = np.dtype("float32")
    assert ulp.error_of(1 + 2**-23, mpmath.mpf(1), f32) == 1
    assert ulp.error_of(1.0, mpmath.mpf(1) + mpmath.mpf(2) ** -24, f32) == 0.5
    assert ulp.error_of(math.inf, mpmath.mpf(10) ** 50, f32) == 0
    assert ulp.error_of(-math.inf, mpmath.mpf(10) ** 50, f32) == math.inf
    assert ulp.error_of(math.nan, mpmath.mpf(1), f32) == math.inf
    assert ulp.error_of(math.nan, mpmath.nan, f32) == 0


def test_a_wrong_function_is_found(ulp, monkeypatch):
    right = tw.exp
    monkeypatch.setattr(tw, "exp", lambda x: right(x) * (1 + 5 * tw.finfo(x.dtype).eps))
    with np.errstate(all="ignore"):
        rows = list(ulp.rows(["exp"], everything=False, scale=0.15))
    assert [row.dtype for row in rows if not row.passed] == [row.dtype for row in rows]
    assert all(5 < row.error < 12 for row in rows if "float" in row.dtype)

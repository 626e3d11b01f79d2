# test_inspection.py: dtype functions and the inspection of the namespace (array API standard).
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, DTYPES, FLOATS, INTEGERS, NUMERIC


@pytest.mark.parametrize("dtype", FLOATS)
def test_finfo(dtype):
    expected = np.finfo(dtype)
    for of in (dtype, tw.dtype(dtype), tw.ones(2, dtype=dtype)):
        info = tw.finfo(of)
        assert info.bits == expected.bits
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(info, name)) is float
            assert getattr(info, name) == float(getattr(expected, name))
        assert info.dtype == dtype
    with pytest.raises(TypeError, match="^finfo: int64 is not a floating dtype"):
        tw.finfo("int64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_iinfo(dtype):
    expected = np.iinfo(dtype)
    for of in (dtype, tw.dtype(dtype), tw.ones(2, dtype=dtype)):
        info = tw.iinfo(of)
        assert (info.bits, info.min, info.max) == (expected.bits, expected.min, expected.max)
        assert info.dtype == dtype
    for other in ("bool", "float32"):
        with pytest.raises(TypeError, match=f"^iinfo: {other} is not an integer dtype"):
            tw.iinfo(other)


def test_isdtype():
    kinds = {
        "bool": ["bool"],
        "signed integer": [name for name in INTEGERS if name[0] == "i"],
        "unsigned integer": [name for name in INTEGERS if name[0] == "u"],
        "integral": INTEGERS,
        "real floating": FLOATS,
        "complex floating": COMPLEX,
        "numeric": NUMERIC + COMPLEX,
    }
    for dtype in DTYPES:
        for kind, members in kinds.items():
            assert tw.isdtype(tw.dtype(dtype), kind) is (dtype in members)
        assert tw.isdtype(dtype, tw.dtype(dtype))
        assert tw.isdtype(dtype, ("bool", "numeric"))
        assert not tw.isdtype(dtype, ())
    assert tw.isdtype(kind=(tw.int8, "bool"), dtype=tw.int8)
    with pytest.raises(ValueError, match="^isdtype: there is no kind 'float'"):
        tw.isdtype(tw.float32, "float")


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_result_type_and_can_cast(first, second):
    expected = np.result_type(np.dtype(first), np.dtype(second)).name
    assert tw.result_type(tw.dtype(first), second) == expected
    assert tw.result_type(tw.ones(2, dtype=first), tw.dtype(second)) == expected
    assert tw.result_type(first, tw.ones((), dtype=second)) == expected
    assert (tw.ones(2, dtype=first) * tw.ones(2, dtype=second)).dtype == expected
    assert tw.can_cast(first, second) is (expected == second)
    assert tw.can_cast(tw.ones(2, dtype=first), tw.dtype(second)) is (expected == second)


@pytest.mark.parametrize("dtype", DTYPES)
def test_result_type_with_numbers(dtype):
    for number in (True, 2, 2.5):
        assert tw.result_type(tw.dtype(dtype), number) == (tw.ones(2, dtype=dtype) * number).dtype
    assert tw.result_type(1, dtype, 10**30) == tw.result_type(dtype, 1)
    assert tw.result_type(dtype) == dtype
    for nothing in ((), (1,), (1.0, True)):
        with pytest.raises(ValueError, match="^result_type: needs at least one"):
            tw.result_type(*nothing)
    with pytest.raises(TypeError, match="^result_type: "):
        tw.result_type(dtype, "int7")


def test_the_namespace_of_a_tensor():
    x = tw.ones(3)
    assert tw.__array_api_version__ == "2025.12"
    assert x.__array_namespace__() is tw
    for version in ("2021.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is tw
    for unknown in ("2020.12", "2099.12"):
        with pytest.raises(ValueError, match="^__array_namespace__: version"):
            x.__array_namespace__(api_version=unknown)


def test_the_info_object():
    info = tw.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() == tw.ones(1).device
    assert info.devices() == tw.devices()
    assert info.default_device() in info.devices()
    defaults = info.default_dtypes(device=info.default_device())
    assert defaults["real floating"] == tw.ones(1).dtype
    assert defaults["integral"] == tw.arange(3).dtype
    assert defaults["indexing"] == tw.argsort(tw.ones(1)).dtype
    assert list(info.dtypes()) == DTYPES
    assert list(info.dtypes(kind="signed integer")) == ["int8", "int16", "int32", "int64"]
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", *FLOATS]
    assert info.dtypes(device="cpu:0", kind="bool") == {"bool": tw.bool}
    with pytest.raises(ValueError, match="there is no kind"):
        info.dtypes(kind="real")
    with pytest.raises(ValueError, match="device"):
        info.dtypes(device="cpu:99")

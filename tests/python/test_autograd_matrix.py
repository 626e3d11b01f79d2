# test_autograd_matrix.py: first and second derivatives of every differentiable operation of the registry, in
# all dtypes and memory layouts.
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import thalweg as tw
from gradient_samples import SAMPLES, Sample
from thalweg import _C
from thalweg.autograd import gradcheck, gradgradcheck

DIFFERENTIABLE = [name for name in _C.op_names() if _C.op(name).is_differentiable]
#: A gradient in this dtype is as far as this from the one in float64, as a share of the largest element.
TOLERANCES = {"float32": 2e-5, "complex64": 2e-5, "float16": 1e-2, "bfloat16": 1e-1}


def samples(name: str) -> list[Sample]:
    if name not in SAMPLES:
        pytest.fail(
            f"the operation {name} has no sample: add SAMPLES[{name!r}] to tests/python/gradient_samples.py, "
            "calls that its derivatives are checked with (an input without elements among them), or declare "
            "its outputs not_differentiable in its Op record"
        )
    return SAMPLES[name]


def transposed(array: np.ndarray) -> tw.Tensor:
    if array.ndim < 2:
        return tw.asarray(array)
    return tw.permute_dims(tw.asarray(np.ascontiguousarray(array.T)), tuple(reversed(range(array.ndim))))


def backwards(array: np.ndarray) -> tw.Tensor:
    return tw.flip(tw.asarray(np.flip(array).copy()))


def layouts(sample: Sample, arrays: list[np.ndarray]) -> Iterator[tuple[str, list[tw.Tensor]]]:
    """(name, leaves): the arrays in several memory layouts, where they have any but the plain one."""

    def broadcast(array: np.ndarray) -> tw.Tensor:
        if array.ndim < sample.broadcast_rank or array.size == 0:
            return tw.asarray(array)
        return tw.broadcast_to(tw.asarray(array[:1].copy()), array.shape)

    makers = {"contiguous": tw.asarray}
    if max(each.ndim for each in arrays) >= 1:
        makers["backwards"] = backwards
    if max(each.ndim for each in arrays) >= 2:
        makers["transposed"] = transposed
    if max(each.ndim for each in arrays) >= sample.broadcast_rank:
        makers["broadcast"] = broadcast
    if all(each.size == 0 for each in arrays):
        makers = {"contiguous": tw.asarray}
    for layout, make in makers.items():
        yield layout, [make(each).detach().requires_grad_() for each in arrays]


def test_every_differentiable_operation_has_samples():
    for name in DIFFERENTIABLE:
        assert any(0 in each.shape for sample in samples(name) for each in sample.arrays("float64")), (
            f"add a sample of {name} with an input without elements"
        )
    assert set(SAMPLES) <= set(DIFFERENTIABLE), "samples of operations that are not differentiable"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name, dtype):
    for number, sample in enumerate(samples(name)):
        function = sample.call(dtype)
        arrays = sample.arrays(dtype)
        if dtype == "complex128" and not sample.complex_dtypes:
            with pytest.raises(_C.DTypeError):
                function(*map(tw.asarray, arrays))
            continue
        for layout, leaves in layouts(sample, arrays):
            try:
                assert gradcheck(function, leaves)
                assert gradgradcheck(function, leaves)
            except BaseException as error:
                error.add_note(f"sample {number} of {name}, {layout}: shapes {[x.shape for x in leaves]}")
                raise


OF_SEVERAL = [name for name in DIFFERENTIABLE if any(len(each.inputs) > 1 for each in SAMPLES.get(name, []))]
#: Their result has the dtype of the first input, and no imaginary part goes into a real one.
ASSIGNMENTS = {"index_assign", "index_add", "slice_assign", "mask_assign", "mask_scatter"}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_derivatives_by_one_input_alone(name, dtype):
    """The others may not have been saved."""
    for sample in samples(name):
        if dtype == "complex128" and not sample.complex_dtypes:
            continue
        for which in range(len(sample.inputs)):
            inputs = [tw.asarray(each) for each in sample.arrays(dtype)]
            inputs[which].requires_grad_()
            assert gradcheck(sample.call(dtype), inputs)
            assert gradgradcheck(sample.call(dtype), inputs)


@pytest.mark.parametrize("first_is_complex", [False, True])
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_derivatives_of_real_beside_complex_inputs(name, first_is_complex):
    for sample in samples(name):
        if not sample.complex_dtypes or len(sample.inputs) == 1:
            continue
        real, other = sample.arrays("float64"), sample.arrays("complex128")
        chosen = [other[i] if (i == 0) == first_is_complex else real[i] for i in range(len(real))]
        leaves = [tw.asarray(each).requires_grad_() for each in chosen]
        if name in ASSIGNMENTS and not first_is_complex:
            with pytest.raises(_C.DTypeError):
                sample.function(*leaves)
            continue
        assert gradcheck(sample.call("complex128"), leaves)
        assert gradgradcheck(sample.call("complex128"), leaves)


def gradients(function, arrays: list[np.ndarray], dtype: str) -> list[np.ndarray]:
    """Of a fixed weighted sum of the outputs, in wide dtypes."""
    leaves = [tw.astype(tw.asarray(each), dtype).requires_grad_() for each in arrays]
    results = function(*leaves)
    total = tw.zeros((), dtype="float64")
    for each in results if isinstance(results, tuple) else (results,):
        if not each.requires_grad:
            continue
        weights = tw.asarray(np.cos(np.arange(float(each.size))).reshape(each.shape))
        for part in (tw.real(each), tw.imag(each)) if "complex" in str(each.dtype) else (each,):
            total = total + tw.sum(tw.astype(part, "float64") * weights)
    total.backward()
    wide = "complex128" if "complex" in dtype else "float64"
    for leaf in leaves:
        assert leaf.grad is not None and leaf.grad.dtype == dtype and leaf.grad.shape == leaf.shape
    return [tw.astype(leaf.grad, wide).numpy() for leaf in leaves]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_in_narrow_dtypes(name, dtype):
    wide = "complex128" if dtype == "complex64" else "float64"
    for number, sample in enumerate(samples(name)):
        if dtype == "complex64" and not sample.complex_dtypes:
            continue
        function = sample.call(wide)
        arrays = sample.arrays(wide)
        rounded = [tw.astype(tw.astype(tw.asarray(each), dtype), wide).numpy() for each in arrays]
        if dtype in ("float16", "bfloat16") and not sample.halves:
            with pytest.raises(_C.DTypeError):
                function(*(tw.astype(tw.asarray(each), dtype) for each in arrays))
            continue
        expected = gradients(function, rounded, wide)
        for got, wanted in zip(gradients(function, rounded, dtype), expected, strict=True):
            scale = max(1.0, np.max(np.abs(wanted), initial=0))
            np.testing.assert_allclose(
                got,
                wanted,
                rtol=0,
                atol=TOLERANCES[dtype] * scale,
                err_msg=f"sample {number} of {name}: shapes {[each.shape for each in arrays]}",
            )

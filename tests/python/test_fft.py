# test_fft.py: thalweg.fft against NumPy's transforms of long doubles, its shapes and its errors.
from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest
import thalweg as tw
from conftest import COMPLEX, FLOATS, INTEGERS, check, layouts

LENGTHS = [1, 2, 3, 5, 7, 8, 9, 12, 97, 1009, 1024, 65537]
NORMS = ["backward", "ortho", "forward"]
REAL_OF = {"complex64": "float32", "complex128": "float64"}
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
LONG_OF = {
    "float32": "longdouble",
    "float64": "longdouble",
    "complex64": "clongdouble",
    "complex128": "clongdouble",
}
OF_COMPLEX = ["fft", "ifft", "irfft", "hfft"]
OF_REAL = ["rfft", "ihfft"]


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def result_dtype(name: str, dtype: str) -> str:
    real_result = name in ("irfft", "irfftn", "hfft")
    return REAL_OF.get(dtype, dtype) if real_result else COMPLEX_OF.get(dtype, dtype)


def check_transform(name: str, tensor: tw.Tensor, array: np.ndarray, **arguments) -> None:
    """The result is off by rounding errors only, which grow with the logarithm of the length; Bluestein's
    algorithm has about twice as many."""
    found = getattr(tw.fft, name)(tensor, **arguments)
    expected = getattr(np.fft, name)(array.astype(LONG_OF[array.dtype.name]), **arguments)
    assert found.shape == expected.shape
    assert found.dtype == result_dtype(name, array.dtype.name)
    if expected.size == 0:
        return
    count = max(2, math.prod(expected.shape), array.size)
    bound = 2 * np.finfo(array.dtype).eps * (1 + math.log2(count))
    size = np.sqrt(np.mean(np.abs(expected) ** 2))
    assert np.abs(found.numpy() - expected).max() <= bound * max(size, np.finfo(array.dtype).tiny), (
        name,
        arguments,
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n, norm):
    for name, dtype in itertools.chain(
        itertools.product(OF_COMPLEX, COMPLEX), itertools.product(OF_REAL, FLOATS)
    ):
        array = numbers(dtype, (n // 2 + 1 if name in ("irfft", "hfft") else n,))
        check_transform(name, tw.asarray(array), array, n=n, norm=norm)
        if n <= 1024:
            rows = numbers(dtype, (33, *array.shape), seed=1)
            check_transform(name, tw.asarray(rows), rows, n=n, norm=norm)


@pytest.mark.parametrize("name", OF_COMPLEX + OF_REAL)
def test_layouts_axes_padding_and_cropping(name):
    for dtype in COMPLEX if name in OF_COMPLEX else FLOATS:
        for shape in [(6,), (5, 8), (2, 9, 4), (3, 4, 5, 6), (40, 33)]:
            for _, tensor, array in layouts(numbers(dtype, shape)):
                for axis in range(-array.ndim, array.ndim):
                    for n in (None, 1, 4, array.shape[axis], 13):
                        check_transform(name, tensor, array, n=n, axis=axis)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_axes(name):
    for dtype in FLOATS if name == "rfftn" else COMPLEX:
        for shape in [(6,), (5, 8), (9, 4, 3), (3, 4, 5, 6), (40, 33)]:
            for layout, tensor, array in layouts(numbers(dtype, shape)):
                check_transform(name, tensor, array)
                rank = array.ndim
                for count in range(1, rank + 1):
                    for axes in itertools.permutations(range(rank), count):
                        signed = [axis - rank if axis % 2 else axis for axis in axes]
                        check_transform(name, tensor, array, axes=signed, norm=NORMS[count % 3])
                        if layout in ("contiguous", "reversed"):
                            s = [(7, 2, 10, 3)[axis % 4] for axis in axes]
                            check_transform(name, tensor, array, axes=signed, s=s, norm=NORMS[axes[0] % 3])


def test_minus_one_in_s_takes_all_elements():
    array = numbers("complex128", (4, 6, 5))
    x = tw.asarray(array)
    check_equal(tw.fft.fftn(x, s=(-1, 3), axes=(0, 2)), tw.fft.fftn(x, s=(4, 3), axes=(0, 2)))
    check_equal(tw.fft.irfftn(x, s=(-1, -1), axes=(0, 1)), tw.fft.irfftn(x, s=(4, 10), axes=(0, 1)))
    real = tw.asarray(array.real.copy())
    check_equal(tw.fft.rfftn(real, s=(2, -1), axes=(0, 1)), tw.fft.rfftn(real, s=(2, 6), axes=(0, 1)))


def check_equal(found: tw.Tensor, expected: tw.Tensor) -> None:
    check(found, expected.numpy())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_inverses_give_back_what_went_in(dtype, norm):
    tolerance = 40 * np.finfo(dtype).eps
    for shape in [(1,), (16,), (97,), (7, 12), (3, 4, 9)]:
        x = numbers(dtype, shape)
        real = x.real.copy()
        t, r = tw.asarray(x), tw.asarray(real)
        for there, back in (("fft", "ifft"), ("ifft", "fft"), ("fftn", "ifftn"), ("ifftn", "fftn")):
            again = getattr(tw.fft, back)(getattr(tw.fft, there)(t, norm=norm), norm=norm)
            check(again, x, rtol=tolerance, atol=tolerance)
        for there, back in (("rfft", "irfft"), ("ihfft", "hfft")):
            again = getattr(tw.fft, back)(getattr(tw.fft, there)(r, norm=norm), n=shape[-1], norm=norm)
            check(again, real, rtol=tolerance, atol=tolerance)
        axes = range(len(shape))
        again = tw.fft.irfftn(tw.fft.rfftn(r, norm=norm), s=shape, axes=axes, norm=norm)
        check(again, real, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", LENGTHS)
def test_energy_is_kept(n):
    x = numbers("complex128", (n,))
    spectrum = tw.fft.fft(tw.asarray(x), norm="ortho").numpy()
    assert np.sum(np.abs(spectrum) ** 2) == pytest.approx(np.sum(np.abs(x) ** 2), rel=1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_numbers_are_taken_for_complex_ones(dtype):
    array = numbers(dtype, (5, 6))
    wide = tw.asarray(array.astype(COMPLEX_OF[dtype]))
    for name in ("fft", "ifft", "fftn", "ifftn", "irfft", "irfftn", "hfft"):
        check_equal(getattr(tw.fft, name)(tw.asarray(array)), getattr(tw.fft, name)(wide))


def test_imaginary_parts_of_what_must_be_real_do_not_count():
    x = numbers("complex128", (4,))
    without = x.copy()
    without.imag[[0, 3]] = 0
    for name in ("irfft", "hfft"):
        function = getattr(tw.fft, name)
        check_equal(function(tw.asarray(x)), function(tw.asarray(without)))
        assert function(tw.asarray(x), n=7).tolist() != function(tw.asarray(without), n=7).tolist()


def test_empty_batches_and_empty_axes():
    for name in ("fft", "ifft", "irfft", "hfft"):
        assert getattr(tw.fft, name)(tw.zeros((0, 8), dtype="complex64"), n=8).shape == (0, 8)
        check(
            getattr(tw.fft, name)(tw.zeros((3, 0), dtype="complex64"), n=4),
            np.zeros((3, 4), result_dtype(name, "complex64")),
        )
    assert tw.fft.rfft(tw.zeros((2, 0, 8))).shape == (2, 0, 5)
    check(tw.fft.rfft(tw.zeros((3, 0)), n=4), np.zeros((3, 3), "complex64"))
    empty = tw.zeros((0, 3), dtype="complex128")
    check(tw.fft.fftn(empty, s=(4, 5), axes=(0, 1)), np.zeros((4, 5), "complex128"))
    check(tw.fft.irfftn(empty, s=(4, 5), axes=(1, 0)), np.zeros((5, 4)))
    assert tw.fft.fftn(empty, s=(5,), axes=(1,)).shape == (0, 5)


def test_no_axis_to_transform_gives_the_input():
    x = tw.asarray(numbers("complex64", (3, 4)))
    check_equal(tw.fft.fftn(x.T, axes=()), x.T)
    assert tw.fft.ifftn(tw.asarray(2 + 1j)).item() == 2 + 1j
    assert tw.fft.fftn(tw.asarray(2.0)).dtype == "complex64"


def test_non_finite_numbers_stay_in_their_line():
    array = numbers("complex128", (9, 16))
    array[4, 3] = np.nan
    found = tw.fft.fft(tw.asarray(array)).numpy()
    assert np.isnan(found[4]).all()
    assert np.isfinite(np.delete(found, 4, axis=0)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 100, 101])
def test_frequencies(n):
    for d in (1.0, 0.1, 2, -3.5):
        for name in ("fftfreq", "rfftfreq"):
            function, expected = getattr(tw.fft, name), getattr(np.fft, name)(n, d)
            check(function(n, d=d, dtype="float64"), expected, rtol=3e-16)
            check(function(n, d=d), expected.astype("float32"), rtol=1e-7)
            assert function(n, d=d, dtype=tw.float32).dtype == "float32"
    assert tw.fft.fftfreq(n, device="cpu:0").device == tw.zeros(1).device


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX, "bool"])
def test_shifts(dtype):
    one = tw.asarray(1, dtype=dtype)
    check_equal(tw.fft.ifftshift(tw.fft.fftshift(one)), one)
    for shape in [(0,), (1,), (7,), (4, 5), (2, 0, 3), (3, 4, 5)]:
        array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
        for _, tensor, values in layouts(array):
            every_axes = [None, *range(-values.ndim, values.ndim)]
            every_axes += [list(axes) for axes in itertools.permutations(range(values.ndim), 2)]
            for axes in every_axes:
                for name in ("fftshift", "ifftshift"):
                    found = getattr(tw.fft, name)(tensor, axes=axes)
                    check(found, getattr(np.fft, name)(values, axes=axes))
                check(tw.fft.ifftshift(tw.fft.fftshift(tensor, axes=axes), axes=axes), values)


ONE_AXIS = [*OF_COMPLEX, *OF_REAL]
MANY_AXES = ["fftn", "ifftn", "rfftn", "irfftn"]


@pytest.mark.parametrize("name", ONE_AXIS)
def test_errors_of_one_axis(name):
    function, x = getattr(tw.fft, name), tw.ones((3, 4))
    for n in (0, -1, -5):
        with pytest.raises(ValueError, match=rf"^{name}: a length of {n} in n; it must be at least 1"):
            function(x, n=n)
    for axis in (2, -3):
        with pytest.raises(IndexError, match=rf"^{name}: axis {axis} is out of bounds for 2 dimensions"):
            function(x, axis=axis)
    with pytest.raises(IndexError, match=f"^{name}: axis -1 is out of bounds for a 0-d"):
        function(tw.asarray(1.0))
    with pytest.raises(ValueError, match=rf"^{name}: axis 1 of shape \(3, 0\) has too few elements"):
        function(tw.ones((3, 0)))
    with pytest.raises(TypeError, match=f"^{name}: 'n' must be an int, not float"):
        function(x, n=4.0)
    with pytest.raises(TypeError, match=f"^{name}: 'axis' must be an int, not tuple"):
        function(x, axis=(0, 1))


@pytest.mark.parametrize("name", MANY_AXES)
def test_errors_of_several_axes(name):
    function, x = getattr(tw.fft, name), tw.ones((3, 4))
    with pytest.raises(ValueError, match=rf"^{name}: a length of 0 in s; it must be at least 1"):
        function(x, s=(2, 0), axes=(0, 1))
    with pytest.raises(ValueError, match=rf"^{name}: a length of -2 in s"):
        function(x, s=(-2, 3), axes=(0, 1))
    with pytest.raises(ValueError, match=rf"^{name}: s \(2,\) and axes \(0, 1\) differ in length"):
        function(x, s=(2,), axes=(0, 1))
    with pytest.raises(ValueError, match=rf"^{name}: s is \(2, 3\) without axes"):
        function(x, s=(2, 3))
    with pytest.raises(ValueError, match=f"^{name}: axis 0 is given twice"):
        function(x, axes=(0, -2))
    with pytest.raises(IndexError, match=rf"^{name}: axis 2 is out of bounds"):
        function(x, axes=(0, 2))
    with pytest.raises(ValueError, match=rf"^{name}: axis 0 of shape \(0, 4\) has too few elements"):
        function(tw.ones((0, 4)))
    with pytest.raises(TypeError, match=f"^{name}: 's' must be an int or a tuple of ints"):
        function(x, s=(2.0, 3), axes=(0, 1))


@pytest.mark.parametrize("name", [*ONE_AXIS, *MANY_AXES])
def test_errors_of_all_transforms(name):
    function = getattr(tw.fft, name)
    for dtype in ("bool", *INTEGERS):
        with pytest.raises(TypeError, match=rf"^{name}: x has dtype {dtype}; cast it .*astype"):
            function(tw.ones((3, 4), dtype=dtype))
    with pytest.raises(ValueError, match=f"^{name}: norm must be .*not 'other'"):
        function(tw.ones((3, 4)), norm="other")
    with pytest.raises(TypeError, match=f"^{name}: 'norm' must be a str"):
        function(tw.ones((3, 4)), norm=1)


@pytest.mark.parametrize(("name", "other"), [("rfft", "fft"), ("ihfft", "ifft"), ("rfftn", "fftn")])
def test_transforms_of_real_numbers_refuse_complex_ones(name, other):
    for dtype in COMPLEX:
        with pytest.raises(TypeError, match=rf"^{name}: x has dtype {dtype} and must be real; .* {other}$"):
            getattr(tw.fft, name)(tw.ones((3, 4), dtype=dtype))


@pytest.mark.parametrize("name", ["rfftn", "irfftn"])
def test_half_transforms_need_an_axis(name):
    with pytest.raises(ValueError, match=rf"^{name}: needs at least one axis; shape \(\) has none"):
        getattr(tw.fft, name)(tw.asarray(1.0))
    with pytest.raises(ValueError, match=rf"^{name}: needs at least one axis; shape \(3,\) with axes \(\)"):
        getattr(tw.fft, name)(tw.ones(3), axes=())


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_errors_of_frequencies(name):
    function = getattr(tw.fft, name)
    for n in (0, -3):
        with pytest.raises(ValueError, match=f"^{name}: n is {n}; it must be at least 1"):
            function(n)
    with pytest.raises(TypeError, match=f"^{name}: n must be an int, not float"):
        function(4.0)
    with pytest.raises(ValueError, match=f"^{name}: d is 0"):
        function(4, d=0)
    for dtype in ("int64", "complex64", "bool"):
        with pytest.raises(TypeError, match=f"^{name}: dtype must be float32 or float64, not {dtype}"):
            function(4, dtype=dtype)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_errors_of_shifts(name):
    function = getattr(tw.fft, name)
    with pytest.raises(IndexError, match=f"^{name}: axis 2 is out of bounds"):
        function(tw.ones((3, 4)), axes=2)
    with pytest.raises(TypeError, match=f"^{name}: expected a Tensor, not list"):
        function([1.0, 2.0])


def test_any_number_of_threads_gives_the_same_bits():
    rows = numbers("complex64", (301, 200))
    grid = numbers("complex128", (100, 90, 7))
    long = numbers("complex128", (65537,))
    results = []
    for options in ({"num_threads": 1}, {"num_threads": 2}, {"num_threads": 8}, {"mode": "sync"}):
        with tw.Engine(**options) as engine:
            x, y, z = (tw.asarray(array) for array in (rows, grid, long))
            values = [
                tw.fft.fft(x),
                tw.fft.ifft(x, axis=0, n=400),
                tw.fft.rfft(tw.real(x)),
                tw.fft.irfft(x),
                tw.fft.hfft(x, axis=0),
                tw.fft.fftn(y),
                tw.fft.irfftn(y, axes=(2, 0, 1)),
                tw.fft.rfftn(tw.imag(y)),
                tw.fft.fft(z),
            ]
            results.append([value.numpy().tobytes() for value in values])
            engine.synchronize()
    assert all(result == results[0] for result in results)


def test_transforms_never_wait(test_engine):
    before = tw.sync_count()
    with tw.on_sync("error"):
        x = tw.rand(1000)
        y = tw.fft.irfft(tw.fft.rfft(x))
        shifted = tw.fft.fftshift(tw.fft.fftfreq(1000))
    assert tw.sync_count() == before
    np.testing.assert_allclose(y.numpy(), x.numpy(), atol=1e-6)
    assert shifted[0].item() == -0.5


def test_the_module_has_the_names_of_the_standard():
    for name in tw.fft.__all__:
        function = getattr(tw.fft, name)
        assert function.__doc__
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty
        first, *others = signature.parameters.values()
        assert first.kind is inspect.Parameter.POSITIONAL_ONLY
        assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in others)
    assert len(tw.fft.__all__) == 14

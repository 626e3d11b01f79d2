# test_padding.py: pad against NumPy's.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, layouts, samples

MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]
WIDTHS = {
    (): [0, 3, (), [(2, 1)]],
    (1,): [0, 2, (1, 2), [(3, 0)]],
    (7,): [0, 2, (1, 5), [(20, 33)]],
    (3, 4): [1, (0, 2), [(2, 1), (0, 7)], [(1, 2)]],
    (2, 3, 4): [1, [(0, 0), (5, 1), (0, 2)]],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_against_numpy(dtype, mode):
    for shape, widths in WIDTHS.items():
        array = samples(dtype, shape)
        for width in widths:
            pairs = [(width, width)] * len(shape) if isinstance(width, int) else width
            expected = np.pad(array, pairs, mode) if shape else array
            check(tw.pad(tw.asarray(array), width, mode), expected)


@pytest.mark.parametrize("mode", MODES)
def test_layouts(mode):
    for _, tensor, array in layouts(samples("float32", (3, 4))):
        check(tw.pad(tensor, 2, mode), np.pad(array, 2, mode))


def test_constants():
    x = tw.asarray([[1, 2]])
    check(tw.pad(x, 1, constant_values=-3), np.pad([[1, 2]], 1, constant_values=-3))
    check(
        tw.pad(x.astype("float32"), (0, 1), constant_values=-np.inf)[0], np.array([1, 2, -np.inf], "float32")
    )
    check(tw.pad(x, 1, constant_values=tw.asarray(2.0)), np.pad([[1, 2]], 1, constant_values=2))
    with pytest.raises(tw.ShapeError, match="^pad: constant_values must be a number or a 0-d tensor"):
        tw.pad(x, 1, constant_values=x)
    check(tw.pad(tw.zeros((0, 2)), 1, constant_values=1), np.ones((2, 4), "float32"))


def test_axes_of_no_element():
    check(tw.pad(tw.zeros((0, 2)), [(0, 0), (1, 0)], "edge"), np.zeros((0, 3), "float32"))
    for mode in MODES[1:]:
        with pytest.raises(tw.ValueError, match=r"axis 0 of shape \(0, 2\) has no element"):
            tw.pad(tw.zeros((0, 2)), 1, mode)


def test_the_result_is_a_tensor_of_its_own():
    x = tw.ones(3)
    for mode in MODES:
        y = tw.pad(x, 0, mode)
        y += 1
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tw.pad(tw.ones(2), -1), tw.ValueError, "^pad: pad_width -1 must not be negative"),
        (lambda: tw.pad(tw.ones(2), (1, -2)), tw.ValueError, "must not be negative"),
        (lambda: tw.pad(tw.ones(2), (1, 2, 3)), tw.ValueError, "does not fit 1 dimensions"),
        (lambda: tw.pad(tw.ones((2, 3, 4)), [(1, 1), (2, 2)]), tw.ValueError, "does not fit 3 dimensions"),
        (lambda: tw.pad(tw.ones(2), 1.5), tw.DTypeError, "^pad: pad_width must hold ints, not 1.5"),
        (lambda: tw.pad(tw.ones(2), [(1, "a")]), tw.DTypeError, "must hold ints"),
        (lambda: tw.pad(tw.ones(2), 1, "mean"), tw.ValueError, "mode must be one of .*, not 'mean'"),
        (lambda: tw.pad([1, 2], 1), tw.DTypeError, "^pad: expected a Tensor, not list"),
        (
            lambda: tw.pad(tw.arange(3, dtype="int8"), 1, constant_values=300),
            tw.ValueError,
            "300 does not fit int8",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def program() -> list[bytes]:
    x = tw.randn(30, 41, generator=tw.Generator(3))
    return [tw.pad(x, [(3, 4), (50, 6)], mode).numpy().tobytes() for mode in MODES]


def test_same_bits_in_every_mode_and_for_any_number_of_threads():
    with tw.Engine(mode="sync", num_threads=1):
        expected = program()
    for threads in (1, 2):
        with tw.Engine(num_threads=threads):
            assert program() == expected

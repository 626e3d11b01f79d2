# test_autograd_corners.py: gradients where functions have kinks, ties and limits.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw


def leaf(values) -> tw.Tensor:
    return tw.asarray(values, dtype="float64").requires_grad_()


def test_activations_at_zero_and_at_their_limits():
    expected = {
        tw.relu: [0, 0, 0, 1, np.nan],
        lambda x: tw.leaky_relu(x, 0.25): [0.25, 0.25, 0.25, 1, np.nan],
        tw.sigmoid: [0, 0.25, 0.25, 0, np.nan],
        tw.tanh: [0, 1, 1, 0, np.nan],
        tw.silu: [0, 0.5, 0.5, 1, np.nan],
        tw.gelu: [0, 0.5, 0.5, 1, np.nan],
    }
    for function, slopes in expected.items():
        x = leaf([-np.inf, -0.0, 0.0, np.inf, np.nan])
        function(x).sum().backward()
        # relu and leaky_relu choose by comparison: nan passes what comes, or its share of it.
        assert x.grad.tolist()[:4] == slopes[:4], function


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_have_the_slopes_of_their_formulas(dtype):
    numbers = np.concatenate([np.linspace(-30, 30, 301), [1e30, -1e30]]).astype(dtype)
    x = numbers.astype("float64")
    bounded = np.clip(x, -100, 100)
    s = 1 / (1 + np.exp(-bounded))
    bell = np.exp(-bounded * bounded / 2) / np.sqrt(2 * np.pi)
    below = tw.erfc(tw.asarray(-bounded / np.sqrt(2.0))).numpy() / 2
    slopes = {
        tw.sigmoid: s * (1 - s),
        tw.tanh: 1 - np.tanh(x) ** 2,
        tw.silu: s * (1 + bounded * (1 - s)),
        tw.gelu: below + bounded * bell,
    }
    for function, expected in slopes.items():
        given = tw.asarray(numbers).requires_grad_()
        function(given).sum().backward()
        np.testing.assert_allclose(given.grad.numpy(), expected, rtol=0, atol=16 * np.finfo(dtype).eps)


def test_one_sided_clip_passes_the_gradient_at_its_bound():
    for bounds, expected in [
        ((1.0, None), [0, 1, 1]),
        ((None, 1.0), [1, 1, 0]),
        ((1.0, 1.5), [0, 1, 0]),
    ]:
        x = leaf([0.0, 1.0, 2.0])
        tw.clip(x, *bounds).sum().backward()
        assert x.grad.tolist() == expected


def test_max_pools_pass_the_gradient_to_the_first_of_equal_elements():
    x = leaf([[[0.0, 0.0, 3.0, 3.0], [0.0, 0.0, 1.0, 3.0]]])
    tw.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 1, 0], [0, 0, 0, 0]]]
    y = leaf([[2.0, 2.0, 1.0, 2.0]])
    pooled = tw.max_pool1d(y, 3, stride=1)
    assert pooled.tolist() == [[2, 2]]
    (pooled * tw.asarray([[1.0, 10.0]])).sum().backward()
    assert y.grad.tolist() == [[1, 10, 0, 0]]
    z = leaf([[1.0, np.nan]])
    tw.max_pool1d(z, 2).sum().backward()
    assert z.grad.tolist() == [[0, 1]]


@pytest.mark.parametrize("floating", [True, False])
def test_a_query_that_sees_no_key_passes_no_gradient(floating):
    rng = np.random.default_rng(3)
    query, key, value = (leaf(rng.standard_normal((2, 3))) for _ in range(3))
    seen = np.array([[True, False], [False, False]])
    mask = tw.asarray(np.where(seen, 0.0, -np.inf)) if floating else tw.asarray(seen)
    result = tw.scaled_dot_product_attention(query, key, value, mask)
    assert result.tolist() == [value.tolist()[0], [0, 0, 0]]
    (result * tw.asarray(rng.standard_normal((2, 3)))).sum().backward()
    # The first query sees one key alone, whose weight is 1 whatever the score.
    assert query.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert key.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert value.grad.tolist()[1] == [0, 0, 0]


def test_solve_with_one_side_that_requires_no_gradient():
    a, b = leaf([[2.0, 1.0], [1.0, 3.0]]), tw.ones(2, dtype="float64")
    tw.linalg.solve(a, b).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [[-0.16, -0.08], [-0.08, -0.04]], rtol=1e-12)

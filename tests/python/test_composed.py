# test_composed.py: what holds for all functions that are composed of other operators.
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import thalweg as tw

CALLS = {
    "relu": lambda x, i: tw.relu(x),
    "leaky_relu": lambda x, i: tw.leaky_relu(x),
    "sigmoid": lambda x, i: tw.sigmoid(x),
    "silu": lambda x, i: tw.silu(x),
    "softplus": lambda x, i: tw.softplus(x, 2),
    "gelu": lambda x, i: tw.gelu(x),
    "softmax": lambda x, i: tw.softmax(x),
    "log_softmax": lambda x, i: tw.log_softmax(x),
    "logsumexp": lambda x, i: tw.logsumexp(x, axis=0),
    "cross_entropy": lambda x, i: tw.cross_entropy(x, i, label_smoothing=0.1),
    "mse_loss": lambda x, i: tw.mse_loss(x, x),
    "binary_cross_entropy_with_logits": lambda x, i: tw.binary_cross_entropy_with_logits(x, x > 0),
    "layer_norm": lambda x, i: tw.layer_norm(x, 4),
    "rms_norm": lambda x, i: tw.rms_norm(x, 4),
    "batch_norm": lambda x, i: tw.batch_norm(x, training=True).output,
    "dropout": lambda x, i: tw.dropout(x),
    "embedding": lambda x, i: tw.embedding(i, x),
    "one_hot": lambda x, i: tw.one_hot(i, 4),
    "masked_fill": lambda x, i: tw.masked_fill(x, x > 0, 0),
    "scaled_dot_product_attention": lambda x, i: tw.scaled_dot_product_attention(x, x, x, is_causal=True),
    "conv1d": lambda x, i: tw.conv1d(x, x.reshape(2, 3, 2), padding=1),
    "conv2d": lambda x, i: tw.conv2d(x.reshape(1, 3, 4), x.reshape(3, 1, 2, 2), padding="same"),
    "max_pool1d": lambda x, i: tw.max_pool1d(x, 2, padding=1),
    "max_pool2d": lambda x, i: tw.max_pool2d(x.reshape(1, 3, 4), 2),
    "avg_pool1d": lambda x, i: tw.avg_pool1d(x, 2, padding=1, count_include_pad=False),
    "avg_pool2d": lambda x, i: tw.avg_pool2d(x.reshape(1, 3, 4), 2),
    "pad": lambda x, i: tw.pad(x, 1, "reflect"),
    "einsum": lambda x, i: tw.einsum("ij,kj,kl->il", x, x, x),
    "kron": lambda x, i: tw.kron(x, x),
    "topk": lambda x, i: tw.topk(x, 2).values,
    "put_along_axis": lambda x, i: tw.put_along_axis(x, i.reshape(3, 1), 7),
    "cumsum": lambda x, i: tw.cumsum(x, 0),
    "cumprod": lambda x, i: tw.cumprod(x, 0),
    "bernoulli": lambda x, i: tw.bernoulli(tw.sigmoid(x)),
    "permutation": lambda x, i: tw.permutation(x),
    "choice": lambda x, i: tw.choice(x, 2, p=tw.sigmoid(x[:, 0])),
    "exponential": lambda x, i: tw.exponential(3, device=x.device),
    "gamma": lambda x, i: tw.gamma(2.0, 3, device=x.device),
    "integers": lambda x, i: tw.integers(3, shape=4, device=x.device),
}


def inputs(device: str = "cpu:0") -> tuple[tw.Tensor, tw.Tensor]:
    array = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    return tw.asarray(array, device=device), tw.asarray([2, 0, 1], device=device)


def test_these_are_the_names_in_the_readme():
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    paragraph = re.search(r"\*\*More than the standard.\*\*.*?\n\n", readme, re.DOTALL)[0]
    named = set(re.findall(r"`(\w+)`", paragraph)) - {"1d", "2d", "max_pool", "avg_pool"}
    assert named == {name for name in CALLS if "pool" not in name}


@pytest.mark.parametrize("name", CALLS)
def test_results_stay_on_the_device_of_the_inputs(name):
    with tw.Engine(cpu_devices=2):
        tw.manual_seed(1)
        expected = CALLS[name](*inputs())
        tw.manual_seed(1)
        result = CALLS[name](*inputs("cpu:1"))
        assert result.device == "cpu:1"
        assert result.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_nothing_waits_and_no_input_changes(name):
    x, i = inputs()
    before = x.tolist(), i.tolist()
    with tw.on_sync("error"):
        result = CALLS[name](x, i)
    result[...] = tw.zeros_like(result)
    assert (x.tolist(), i.tolist()) == before


def test_a_failure_names_the_line_of_the_caller():
    if tw.engine().mode == "sync":
        pytest.skip("the synchronous engine raises in the call itself")
    loss = tw.cross_entropy(tw.zeros((1, 3)), tw.asarray([3]))
    with pytest.raises(IndexError, match=r"at \S*test_composed\.py:\d+: "):
        loss.item()

# test_nn.py: modules: the tree of parameters, state, layers beside torch's where it is there.
from __future__ import annotations

import copy

import numpy as np
import pytest
import thalweg as tw
from thalweg import _C, nn

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


class Pair(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.scale = nn.Parameter(tw.asarray(2.0))
        self.register_buffer("count", tw.zeros(1))
        self.note = "not a tensor"

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return x * self.scale


NAMES = [
    "scale",
    *(f"{layer}.{what}" for layer in ("first", "rest.0", "rest.1") for what in ("weight", "bias")),
]


def test_parameters_are_found_by_name():
    model = Pair()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_buffers()] == ["count"]
    assert all(each.requires_grad and each.is_leaf for each in model.parameters())
    assert [name for name, _ in model.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert list(model.children()) == [model.first, model.rest]


def test_a_shared_module_counts_once():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    assert len(list(model.parameters())) == 2
    assert len(list(model.state_dict())) == 2


def test_attributes_change_what_they_are():
    model = Pair()
    model.scale = None
    assert [name for name, _ in model.named_parameters()] == NAMES[1:]
    model.first = nn.Linear(3, 4, bias=False)
    assert "first.bias" not in dict(model.named_parameters())
    del model.first
    with pytest.raises(AttributeError, match="'Pair' object has no attribute 'first'"):
        model.first  # noqa: B018
    model.scale = nn.Parameter(tw.asarray(1.0))
    assert "scale" in dict(model.named_parameters())
    assert "scale" in dir(model)


def test_train_and_eval_reach_all_modules():
    model = Pair()
    assert all(module.training for module in model.modules())
    model.eval()
    assert not any(module.training for module in model.modules())
    assert model.train() is model


def test_zero_grad_and_requires_grad():
    model = Pair()
    model(tw.ones((2, 3))).sum().backward()
    assert all(each.grad is not None for each in model.parameters())
    model.zero_grad()
    assert all(each.grad is None for each in model.parameters())
    model.requires_grad_(False)
    assert not model(tw.ones((2, 3))).requires_grad
    assert [name for name, _ in model.named_parameters()] == NAMES  # frozen, and parameters still


def test_state_goes_from_one_model_to_another():
    source, target = Pair(), Pair()
    state = source.state_dict()
    assert list(state) == [*NAMES[:1], "count", *NAMES[1:]]
    assert not any(value.requires_grad for value in state.values())
    kept = target.first.weight
    assert target.load_state_dict(state) == ([], [])
    assert target.first.weight is kept
    assert kept.requires_grad
    assert kept.is_leaf
    x = tw.ones((2, 3))
    assert np.array_equal(source(x).detach().numpy(), target(x).detach().numpy())
    before = state["first.weight"].numpy().copy()
    with tw.no_grad():
        source.first.weight += 1
    assert np.array_equal(state["first.weight"].numpy(), before)  # what was saved stays


def test_state_that_does_not_fit_names_every_fault_and_changes_nothing():
    model = Pair()
    state = model.state_dict()
    before = model.scale.item()
    state["scale"] = tw.asarray(7.0)
    del state["first.bias"]
    state["other"] = tw.ones(1)
    state["first.weight"] = tw.ones((2, 2))
    with pytest.raises(ValueError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert "missing: first.bias" in text
    assert "unexpected: other" in text
    assert "first.weight has shape (2, 2), here (4, 3)" in text
    assert model.scale.item() == before
    state["first.weight"] = tw.zeros((4, 3))
    assert model.load_state_dict(state, strict=False) == (["first.bias"], ["other"])
    assert model.scale.item() == 7.0


def test_to_a_dtype():
    model = Pair().to("float64")
    assert all(each.dtype == "float64" and each.requires_grad for each in model.parameters())
    assert model.count.dtype == "float64"
    assert model(tw.ones((2, 3), dtype="float64")).dtype == "float64"


def test_to_leaves_alone_what_is_there_already():
    model = Pair()
    before = list(model.parameters())
    before[0].grad = tw.asarray(3.0)
    model.to("float32").to(before[0].device)
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
    assert model.scale.grad.item() == 3.0


class Tied(nn.Module):
    """The same parameter and the same buffer under two names."""

    def __init__(self):
        self.embedding = nn.Embedding(5, 3)
        self.output = nn.Linear(3, 5, bias=False)
        self.output.weight = self.embedding.weight
        self.register_buffer("one", tw.zeros(2))
        self.register_buffer("two", self.one)


@pytest.mark.parametrize("again", [lambda m: m.to("float64"), copy.deepcopy, lambda m: m.to("float32")])
def test_shared_parameters_stay_shared(again):
    model = again(Tied())
    assert model.output.weight is model.embedding.weight
    assert model.two is model.one
    assert len(list(model.parameters())) == 1
    tw.optim.SGD(model.parameters(), lr=1.0)
    (model.embedding.weight.sum() + 2 * model.output.weight.sum()).backward()
    assert model.output.weight.grad.tolist() == [[3.0] * 3] * 5


def test_shared_parameters_stay_shared_on_another_device():
    with tw.Engine(cpu_devices=2):
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        model.to("cpu:1")
        assert str(model[0].weight.device) == "cpu:1"
        assert model[1].weight is model[0].weight
        assert len(list(model.parameters())) == 3
        model(tw.ones((2, 3), device="cpu:1")).sum().backward()
        assert str(model[0].weight.grad.device) == "cpu:1"


def test_a_frozen_parameter_is_a_parameter():
    class Frozen(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(tw.asarray([1.0, 2.0]), requires_grad=False)
            self.counts = nn.Parameter(tw.asarray([3]), requires_grad=False)
            self.plain = tw.ones(2)

    model = Frozen()
    assert [name for name, _ in model.named_parameters()] == ["weight", "counts"]
    assert {name: value.tolist() for name, value in model.state_dict().items()} == {
        "weight": [1.0, 2.0],
        "counts": [3],
    }
    assert not model.weight.requires_grad
    other = nn.Module()
    other.weight = model.to("float64").weight
    assert list(other.state_dict()) == ["weight"]
    late = nn.Parameter(tw.ones(1)).requires_grad_(False)
    other.late = late
    assert list(other.state_dict()) == ["weight", "late"]
    with pytest.raises(TypeError, match="Parameter: data must be a Tensor, not ndarray"):
        nn.Parameter(np.ones(2))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (tw.ones(2, dtype="complex64"), TypeError, "Linear: bias is complex64, here float32"),
        ("text", TypeError, "Linear: bias cannot be taken as a tensor: .* str"),
        (None, TypeError, "Linear: bias cannot be taken as a tensor"),
        ([1.0, 2.0, 3.0], ValueError, r"bias has shape \(3,\), here \(2,\)"),
    ],
)
def test_state_with_a_wrong_value_changes_nothing(value, error, text):
    model = nn.Linear(2, 2)
    before = model.weight.tolist()
    with pytest.raises(error, match=text):
        model.load_state_dict({"weight": tw.zeros((2, 2)), "bias": value})
    assert model.weight.tolist() == before


def test_state_of_another_engine_changes_nothing():
    model = nn.Linear(2, 2)
    before = model.weight.tolist()
    with tw.Engine():
        bias = tw.ones(2)
    with pytest.raises(_C.EngineError, match="belongs to another engine"):
        model.load_state_dict({"weight": tw.zeros((2, 2)), "bias": bias})
    assert model.weight.tolist() == before
    assert model.weight.requires_grad and model.weight.is_leaf


def test_state_is_a_mapping_of_what_asarray_takes():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="Linear: state must map names to tensors, .* not be a list"):
        model.load_state_dict([tw.ones((2, 2))])
    model.load_state_dict({"weight": np.eye(2), "bias": [1, 2]})
    assert (model.weight.tolist(), model.bias.tolist()) == ([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])


def test_repr_shows_the_tree():
    text = repr(nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.25)))
    assert text == "Sequential(\n  (0): Linear(2, 3, bias=True)\n  (1): Dropout(p=0.25)\n)"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Linear(0, 3), "in_features is 0"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not divide into 2 groups"),
        (lambda: nn.Dropout(1.5), "p is 1.5"),
        (lambda: nn.MultiheadAttention(6, 4), "4 heads do not divide embed_dim 6"),
    ],
)
def test_layers_refuse_what_makes_no_sense(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_batch_norm_keeps_running_statistics():
    layer = nn.BatchNorm2d(3)
    x = tw.asarray(np.random.default_rng(7).standard_normal((4, 3, 5, 5)).astype(np.float32) * 3 + 1)
    layer(x)
    mean = x.numpy().mean((0, 2, 3))
    assert np.allclose(layer.running_mean.numpy(), 0.1 * mean, atol=1e-5)
    assert not layer.running_mean.requires_grad
    assert layer.num_batches_tracked.item() == 1
    assert layer.num_batches_tracked.dtype == "int64"
    layer.eval()
    before = layer.running_mean.numpy().copy()
    layer(x)
    assert np.array_equal(layer.running_mean.numpy(), before)
    assert layer.num_batches_tracked.item() == 1


@needs_torch
def test_batch_norm_takes_torchs_state():
    ours, theirs = nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    for _ in range(2):
        theirs(torch.randn(2, 3, 4, 4) * 3 + 1)
    assert ours.load_state_dict(theirs.state_dict()) == ([], [])
    assert ours.num_batches_tracked.item() == 2
    assert np.array_equal(ours.running_var.numpy(), theirs.running_var.numpy())
    assert set(ours.state_dict()) == set(theirs.state_dict())


def test_dropout_only_in_training():
    layer = nn.Dropout(0.5)
    x = tw.ones(1000)
    assert 300 < int((layer(x) == 0).sum().item()) < 700
    assert layer.eval()(x).tolist() == x.tolist()


def test_a_small_model_learns():
    tw.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    x = tw.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = tw.asarray([0, 1, 1, 0])
    optimizer = tw.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        loss = tw.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    assert tw.argmax(model(x), axis=1).tolist() == [0, 1, 1, 0]


# --- beside torch


def both(ours, theirs, x):
    """Outputs and gradients of two layers with the same weights."""
    ours.load_state_dict(theirs.state_dict())
    a = tw.asarray(x).requires_grad_()
    b = torch.tensor(x, requires_grad=True)
    result, expected = ours(a), theirs(b)
    assert np.allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    seed = np.random.default_rng(3).standard_normal(expected.shape).astype(np.float32)
    result.backward(tw.asarray(seed))
    expected.backward(torch.tensor(seed))
    assert np.allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4)
    gradients = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        assert np.allclose(parameter.grad.numpy(), gradients[name].grad.numpy(), rtol=1e-3, atol=1e-4), name


@needs_torch
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda lib: lib.Linear(5, 3), (2, 4, 5)),
        (lambda lib: lib.Linear(5, 3, bias=False), (4, 5)),
        (lambda lib: lib.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9, 8)),
        (lambda lib: lib.Conv2d(2, 3, (2, 3), dilation=2), (2, 2, 9, 9)),
        (lambda lib: lib.LayerNorm(6), (3, 4, 6)),
        (lambda lib: lib.LayerNorm((4, 6)), (3, 4, 6)),
        (lambda lib: lib.BatchNorm2d(3), (4, 3, 5, 5)),
        (lambda lib: lib.Sequential(lib.Linear(5, 8), lib.GELU(), lib.Linear(8, 2), lib.SiLU()), (6, 5)),
        (lambda lib: lib.Sequential(lib.Flatten(), lib.Linear(12, 2), lib.Sigmoid()), (2, 3, 4)),
    ],
)
def test_layers_beside_torch(make, shape):
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    both(make(nn), make(torch.nn), x)


@needs_torch
def test_embedding_beside_torch():
    ours, theirs = nn.Embedding(7, 3), torch.nn.Embedding(7, 3)
    ours.load_state_dict({"weight": tw.asarray(theirs.weight.detach().numpy())})
    indices = np.array([[1, 2, 1], [6, 0, 1]])
    result, expected = ours(tw.asarray(indices)), theirs(torch.tensor(indices))
    assert np.array_equal(result.detach().numpy(), expected.detach().numpy())
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    assert np.allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), atol=1e-5)


@needs_torch
@pytest.mark.parametrize("causal", [False, True])
def test_attention_beside_torch(causal):
    ours = nn.MultiheadAttention(8, 2)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    projections = np.split(theirs.in_proj_weight.detach().numpy(), 3)
    biases = np.split(theirs.in_proj_bias.detach().numpy(), 3)
    state = {}
    for name, weight, bias in zip(("query", "key", "value"), projections, biases, strict=True):
        state[f"{name}.weight"], state[f"{name}.bias"] = weight, bias
    state["output.weight"] = theirs.out_proj.weight.detach().numpy()
    state["output.bias"] = theirs.out_proj.bias.detach().numpy()
    ours.load_state_dict({name: tw.asarray(value) for name, value in state.items()})
    x = np.random.default_rng(7).standard_normal((2, 5, 8)).astype(np.float32)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5) if causal else None
    b = torch.tensor(x, requires_grad=True)
    expected = theirs(b, b, b, attn_mask=mask, need_weights=False)[0]
    a = tw.asarray(x).requires_grad_()
    result = ours(a, is_causal=causal)
    assert np.allclose(result.detach().numpy(), expected.detach().numpy(), atol=1e-5)
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    assert np.allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4)

# test_safetensors.py: files of weights.
from __future__ import annotations

import numpy as np
import pytest
import thalweg as tw
from conftest import DTYPES, check, samples

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "complex128"])
def test_a_file_gives_back_what_was_saved(dtype, tmp_path):
    for shape in [(), (0, 2), (3, 4)]:
        array = samples(dtype, shape)
        tensors = {
            "a.weight": tw.asarray(array),
            "b": tw.asarray(array).T if len(shape) == 2 else tw.asarray(array),
        }
        tw.nn.save_safetensors(tensors, tmp_path / "x")
        loaded = tw.nn.load_safetensors(tmp_path / "x")
        assert set(loaded) == set(tensors)
        check(loaded["a.weight"], array)
        check(loaded["b"], array.T)


def test_half_precision_and_metadata(tmp_path):
    halves = {name: tw.asarray([1.5, -2.0], dtype=name) for name in ("float16", "bfloat16")}
    tw.nn.save_safetensors(halves, tmp_path / "x", {"epoch": "3"})
    loaded = tw.nn.load_safetensors(tmp_path / "x")
    assert {name: (str(x.dtype), x.tolist()) for name, x in loaded.items()} == {
        "float16": ("float16", [1.5, -2.0]),
        "bfloat16": ("bfloat16", [1.5, -2.0]),
    }
    with safetensors.safe_open(tmp_path / "x", "np") as file:
        assert file.metadata() == {"epoch": "3"}


def test_weights_of_a_module(tmp_path):
    first, second = (tw.nn.Sequential(tw.nn.Linear(2, 3), tw.nn.LayerNorm(3)) for _ in range(2))
    tw.nn.save_safetensors(first.state_dict(), tmp_path / "x")
    second.load_state_dict(tw.nn.load_safetensors(tmp_path / "x"))
    assert all(x.requires_grad for x in second.parameters())
    x = tw.ones((1, 2))
    check(second(x).detach(), first(x).detach().numpy())


def test_the_file_may_change_after_it_was_read(tmp_path):
    tw.nn.save_safetensors({"x": tw.ones(1000)}, tmp_path / "x")
    loaded = tw.nn.load_safetensors(tmp_path / "x")
    tw.nn.save_safetensors({"x": tw.zeros(1000)}, tmp_path / "x")
    check(loaded["x"], np.ones(1000, "float32"))


def test_torch_reads_and_writes_the_same(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import safetensors.torch as of_torch

    tw.nn.save_safetensors({"x": tw.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="bfloat16").T}, tmp_path / "x")
    assert of_torch.load_file(tmp_path / "x")["x"].tolist() == [[1, 3], [2, 4]]
    of_torch.save_file({"y": torch.arange(6).reshape(2, 3)}, tmp_path / "y")
    check(tw.nn.load_safetensors(tmp_path / "y")["y"], np.arange(6).reshape(2, 3))


def test_errors(tmp_path):
    with pytest.raises(tw.DTypeError, match="^save_safetensors: 'x' is list, not a Tensor"):
        tw.nn.save_safetensors({"x": [1.0]}, tmp_path / "x")
    with pytest.raises(tw.DTypeError, match="^save_safetensors: 'z' is complex128"):
        tw.nn.save_safetensors({"z": tw.ones(2, dtype="complex128")}, tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        tw.nn.load_safetensors(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"123")
    with pytest.raises(tw.ValueError, match="^load_safetensors: .*bad' is not a safetensors file"):
        tw.nn.load_safetensors(tmp_path / "bad")
    with pytest.raises(tw.DeviceError):
        tw.nn.save_safetensors({"x": tw.ones(2)}, tmp_path / "x")
        tw.nn.load_safetensors(tmp_path / "x", device="cpu:9")

# test_readme.py: every program in README.md runs and does what stands beside it.
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import thalweg as tw

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(source: str) -> dict[str, object]:
    names: dict[str, object] = {"tw": tw, "train_step": lambda: (tw.ones(3) + 1).wait()}
    exec(compile(source, "demo.py", "exec"), names)
    return names


def test_the_first_example(capsys):
    run(blocks("python")[0])
    assert float(capsys.readouterr().out) > 0


def test_values_never_change():
    names = run(blocks("python")[1])
    assert names["x"].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert names["row"].tolist() == [10, 11, 12]


def test_errors_are_those_that_are_shown():
    source = blocks("python")[2]
    promised = re.search(r"# (\w+): (.*?) …", source)
    with pytest.raises(IndexError) as caught:
        run(source)
    assert type(caught.value).__name__ == promised[1]
    if tw.engine().mode != "sync":  # which raises a line earlier
        assert str(caught.value).startswith(promised[2])


def test_a_small_network_learns(capsys):
    names = run(blocks("python")[3])
    assert 0 < float(capsys.readouterr().out) < 0.8
    assert all(each.grad is not None for each in names["model"].parameters())


def test_other_libraries_return_tensors():
    for package in ("einops", "scipy", "sklearn"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: tools/requirements.txt lists it")
    # By itself: SciPy reads the variable once.
    program = f"import thalweg as tw\n{blocks('python')[4]}\nprint(isinstance(pairs, tw.Tensor), pairs.shape)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "True (50, 2, 2)\n", ran.stderr


def test_engines_live_side_by_side():
    names = run(blocks("python")[5])
    assert names["engine"].closed
    assert (names["z"] + 1).shape == (100, 100)


def test_graphs_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(blocks("python")[6])
    assert (tmp_path / "live.json").exists()
    assert (tmp_path / "step.json").exists()


def test_all_python_blocks_are_among_these():
    assert len(blocks("python")) == 7


def test_the_cpp_program_is_the_tested_one():
    (program,) = blocks("cpp")
    tested = (ROOT / "tests/kernels/readme_test.cpp").read_text(encoding="utf-8")
    lines = {line.strip() for line in tested.splitlines()}
    for line in program.splitlines():
        assert line.strip() in lines

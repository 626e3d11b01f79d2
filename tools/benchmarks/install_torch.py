# install_torch.py: installs current torch from PyPI, for use on the CPU, where the interpreter finds it.
"""PyPI's Linux wheel is built for CUDA and linked to NVIDIA's libraries: an import needs all of them, on a
machine without a GPU too. The compilers for GPUs that it asks for (triton, cuda-bindings) are left out."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys

GPU_ONLY = re.compile(r"triton|cuda-bindings")


def pip_install(*arguments: str) -> None:
    print("pip install", *arguments, flush=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    # Its complaints about what is left out are of no use; a failure shows in the exit status.
    subprocess.run([*pip, *arguments], stderr=subprocess.DEVNULL, check=True)


def requirements() -> list[str]:
    """What torch requires, without its extras' and without what only a GPU needs."""
    lines = importlib.metadata.requires("torch") or []
    return [line for line in lines if "extra ==" not in line and not GPU_ONLY.match(line)]


def imports() -> bool:
    check = "import torch; print('torch', torch.__version__, 'computes', (torch.ones(8) + 1).sum().item())"
    return subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def main() -> int:
    pip_install("--no-deps", "torch")
    pip_install(*requirements())
    if imports():
        return 0
    print("torch needs more of its packages; installing all it asks for", flush=True)
    pip_install("torch")
    return 0 if imports() else 1


if __name__ == "__main__":
    sys.exit(main())

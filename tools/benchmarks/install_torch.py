# install_torch.py: installs current torch from PyPI, as far as the CPU needs it, beside the running interpreter.
"""PyPI's Linux wheel is built for CUDA: its libraries are linked to a dozen of NVIDIA's, some GB together. To import
torch each of those must be found, on a machine without a GPU too; only the missing ones are installed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

CUDA_ONLY = re.compile(r"^(cuda-|nvidia-|triton)")


def pip_install(*arguments: str) -> None:
    print("pip install", *arguments, flush=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *arguments], check=True)


def requirements() -> tuple[list[str], list[str]]:
    """torch's own requirements: the ordinary ones, and those that only serve CUDA."""
    ordinary, cuda = [], []
    for line in importlib.metadata.requires("torch") or []:
        requirement, _, condition = (part.strip() for part in line.partition(";"))
        if "extra ==" in condition:
            continue
        (cuda if CUDA_ONLY.match(requirement) else ordinary).append(requirement)
    return ordinary, cuda


def missing_libraries() -> set[str]:
    """Shared libraries that torch's need and the loader does not find."""
    folder = Path(str(importlib.metadata.distribution("torch").locate_file("torch"))) / "lib"
    missing = set()
    for library in folder.glob("*.so*"):
        ldd = subprocess.run(["ldd", library], capture_output=True, text=True, check=False)
        missing.update(re.findall(r"(\S+) => not found", ldd.stdout))
    return missing


def provider(library: str, cuda: list[str]) -> str | None:
    """The requirement that brings `library`, by name: libcufft.so.12 is in cuda-toolkit[cufft]."""
    stem = library.removeprefix("lib").lower()
    best, words = None, 0
    for requirement in cuda:
        name, extras, version = re.fullmatch(r"([\w.-]+?)(?:\[(.*)\])?((?:[=<>~!].*)?)", requirement).groups()
        parts = extras.split(",") if extras else [re.sub(r"^nvidia-|-cu\d+$", "", name)]
        for part in parts:
            if stem.startswith(part) and len(part) > words:
                best, words = f"{name}[{part}]{version}" if extras else requirement, len(part)
    return best


def imports() -> bool:
    check = "import torch; print('torch', torch.__version__, 'computes', (torch.ones(8) + 1).sum().item())"
    return subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def main() -> int:
    pip_install("--no-deps", "torch")
    ordinary, cuda = requirements()
    pip_install(*ordinary)
    for _ in range(4):  # what was installed may need more in its turn
        packages = {provider(library, cuda) for library in missing_libraries()} - {None}
        if not packages:
            break
        pip_install(*sorted(packages))
    if not imports():
        print("torch does not import without its other packages; installing all it asks for", flush=True)
        pip_install("torch")
    return 0 if imports() else 1


if __name__ == "__main__":
    sys.exit(main())

# _loader.py: imports the extension module; helps where the dynamic linker does not find PyPI's oneTBB.
"""Imports ``thalweg._C``.

The wheel of oneTBB puts libtbb.so.12 into ``<prefix>/lib``, which the extension's run path covers in virtual
environments. Where packages lie elsewhere (``--target``, ``dist-packages``, ``lib64``) the library is found
through the metadata of the installed package instead.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os


def _tbb_candidates() -> list[str]:
    try:
        files = importlib.metadata.files("tbb") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [os.path.realpath(file.locate()) for file in files if file.name == "libtbb.so.12"]


def _refuse_subinterpreters() -> None:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        try:
            import _interpreters as interpreters
        except ImportError:
            return
    current, main = interpreters.get_current(), interpreters.get_main()
    if current != main:
        raise ImportError("thalweg cannot be imported in a subinterpreter; use threads or processes")


def load() -> None:
    """Imports the extension, after loading oneTBB from its package if the plain import cannot find it."""
    try:
        from thalweg import _C  # noqa: F401
    except ImportError as error:
        if "libtbb" not in str(error):
            raise
        tried = _tbb_candidates()
        for path in tried:
            if os.path.exists(path):
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                break
        else:
            where = ", ".join(tried) or "no installed package called tbb"
            raise ImportError(
                f"{error}; looked also in: {where}. Install it with: pip install tbb"
            ) from error
        from thalweg import _C  # noqa: F401


_refuse_subinterpreters()
load()

# processes.py: programs that tests run in processes of their own.
from __future__ import annotations

import os
import subprocess
import sys
import textwrap

MODES = ["threaded", "caller", "sync"]
PENDING_MODES = ["threaded", "caller"]


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, threading, time\nimport thalweg as tw\n" + textwrap.dedent(code),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def run(code: str, *, status: int = 0, **environment: str) -> tuple[str, str]:
    """Runs the code in a fresh process; its stdout and stderr."""
    process = start(code, **environment)
    try:
        out, err = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"hangs\nstdout: {out}\nstderr: {err}") from None
    assert process.returncode == status, f"status {process.returncode}\nstdout: {out}\nstderr: {err}"
    return out, err


CHAIN = """
def chain(length, size=1000):
    x = tw.zeros(size)
    for _ in range(length):
        x = x + 1
    return x
"""

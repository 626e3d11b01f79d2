# harness.py: what the Python benchmark programs share: loops, peers, checks and the report.
"""The report has the form of harness.h: rows of medians, facts and failures, as JSON on standard output."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import thalweg as tw

try:
    import torch
except ImportError:
    torch = None


@dataclass
class Contestant:
    """One library."""

    name: str
    module: Any
    make: Callable[[np.ndarray], Any]  # a tensor of an array
    drain: Callable[[], None]  # waits for its queue


def contestants() -> list[Contestant]:
    """Ours first, then NumPy, then torch where it is installed (one thread, its default grad mode)."""
    found = [
        Contestant("ours", tw, tw.asarray, tw.synchronize),
        Contestant("numpy", np, np.array, lambda: None),
    ]
    if torch is not None:
        torch.set_num_threads(1)
        found.append(Contestant("torch", torch, torch.tensor, lambda: None))
    return found


def loop_of(expression: str) -> Callable[[int, Any, Any, Any], Any]:
    """A function of (count, lib, a, b) that evaluates `expression` `count` times, for the last value."""
    names: dict[str, Any] = {}
    body = f"    for _ in range(count):\n        c = {expression}\n    return c\n"
    exec("def loop(count, lib, a, b):\n" + body, names)
    return names["loop"]


def checksum(value: Any) -> float:
    """The sum of a result of any of the libraries, or a Python number itself."""
    return float(np.asarray(value, dtype=np.float64).sum())


class Counters:
    """Compares the operators issued and executed since it was made."""

    def __init__(self) -> None:
        self._start = tw.engine().stats()

    def disagreement(self, expected: int) -> str:
        """Empty if `expected` operators were issued and all of them ran; to be asked after a drain."""
        stats = tw.engine().stats()
        issued = stats["issued"] - self._start["issued"]
        executed = stats["executed"] - self._start["executed"]
        if issued == executed == expected:
            return ""
        return f"{issued} issued, {executed} executed, expected {expected}"


class Report:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {"numpy": np.__version__, "torch": torch.__version__ if torch else None}
        self.failures: list[str] = []

    def row(self, case: str, unit: str, samples: dict[str, list[float]], error: str = "") -> None:
        """Adds the medians of `samples` by contestant; a row with an error is left out and fails the run."""
        if error:
            self.failures.append(f"{case}: {error}")
            return
        medians = {name: statistics.median(values) for name, values in samples.items()}
        ours = medians.pop("ours")
        ratio = {peer: ours / value for peer, value in medians.items()}
        self.rows.append({"case": case, "unit": unit, "ours": ours, "peers": medians, "ratio": ratio})

    def print(self) -> None:
        json.dump({"rows": self.rows, "facts": self.facts, "failures": self.failures}, sys.stdout)
        sys.exit(1 if self.failures else 0)


class Case:
    """One expression on two float32 vectors, evaluated in turn by all contestants."""

    def __init__(self, name: str, expression: str, elements: int) -> None:
        self.name = name
        self.samples: dict[str, list[float]] = {}
        self.error = ""
        self._loop = loop_of(expression)
        a = np.arange(1, elements + 1, dtype=np.float32) / 4
        b = np.full(elements, 0.5, dtype=np.float32)
        self._expected = checksum(self._loop(1, np, a, b))
        self._entries = [(each, each.make(a), each.make(b)) for each in contestants()]

    def measure(self, count: int, *, drain_inside: bool = False, idle: float = 0) -> None:
        """One sample of each contestant: ns per call over `count` calls, after `idle` seconds of sleep."""
        for contestant, a, b in self._entries:
            counters = Counters() if contestant.name == "ours" else None
            if idle > 0:
                time.sleep(idle)
            begin = time.perf_counter_ns()
            value = self._loop(count, contestant.module, a, b)
            if drain_inside:
                contestant.drain()
            elapsed = time.perf_counter_ns() - begin
            contestant.drain()
            self.samples.setdefault(contestant.name, []).append(elapsed / count)
            if counters is not None:
                self.error = self.error or counters.disagreement(count)
            if not abs(checksum(value) - self._expected) <= 1e-5 * abs(self._expected):
                self.error = f"{contestant.name}'s checksum is {checksum(value)}, not {self._expected}"

    def report_to(self, report: Report) -> None:
        report.row(self.name, "ns", self.samples, self.error)


def progress(bench: str, done: int, total: int) -> None:
    end = "\r" if done < total else "\n"
    print(f"{bench}: round {done} of {total}", end=end, file=sys.stderr, flush=True)


def rounds(default: int) -> int:
    """The first argument of the program, if there is one. Turns the garbage collector off, as timeit does."""
    gc.disable()
    return int(sys.argv[1]) if len(sys.argv) > 1 else default

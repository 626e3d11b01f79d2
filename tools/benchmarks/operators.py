# operators.py: microseconds of one operator of each family, result included, with two threads for all.
"""NumPy uses its threads (those of its OpenBLAS) in matmul only, where Debian's oneDNN is a peer too if it is
installed. Each case names an expression; `torch` and `numpy` give theirs where it is another. The plain read
of bench_read is the peer of reductions over 1e7 elements."""

import ctypes
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import thalweg as tw
from harness import Contestant, Report, contestants, loop_of, progress, rounds, torch

THREADS = 2
MINIMUM = 0.004  # seconds that one sample takes at least
QUIET = 0.03  # seconds before each sample: threads of OpenMP and OpenBLAS go on spinning after their work
SLOWER = 1.3  # times the better peer: how many rows may be above is counted


class OneDnn:
    """The sgemm of oneDNN's C API, with as many threads."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libdnnl.so.2")
        size, number, matrix = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
        self._library.dnnl_sgemm.argtypes = [ctypes.c_char, ctypes.c_char, size, size, size, number,
                                             matrix, size, matrix, size, number, matrix, size]  # fmt: skip

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        (m, k), n = a.shape, b.shape[1]
        result = np.empty((m, n), np.float32)
        x, y, z = (array.ctypes.data for array in (a, b, result))
        self._library.omp_set_num_threads(THREADS)
        status = self._library.dnnl_sgemm(b"N", b"N", m, n, k, 1, x, k, y, n, 0, z, n)
        if status != 0:
            raise RuntimeError(f"dnnl_sgemm returned {status}")
        return result


def onednn() -> list[Contestant]:
    try:
        return [Contestant("onednn", OneDnn(), np.array, lambda: None)]
    except OSError:
        return []


def uniform(*shape: int, low: float = 0.1, high: float = 4.0) -> np.ndarray:
    return np.random.default_rng(7).uniform(low, high, shape).astype(np.float32)


def vector(n: int) -> list[np.ndarray]:
    return [uniform(n), uniform(n)[::-1].copy()]


def integers(n: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(7).integers(-1000, 1000, n)
    return [numbers, numbers[::-1].copy()]


def matrix(n: int) -> list[np.ndarray]:
    """n elements in rows of about sqrt(n), and one row."""
    rows = round(n**0.5)
    return [uniform(rows, n // rows), uniform(n // rows)]


def rows_to_take(n: int) -> list[np.ndarray]:
    rows = max(1, n // 64)
    return [uniform(rows, 64), np.random.default_rng(7).integers(0, rows, rows)]


def batch(n: int) -> list[np.ndarray]:
    return [uniform(n // 64, 8, 8), uniform(n // 64, 8, 8)]


def square(n: int) -> list[np.ndarray]:
    return [uniform(n, n, low=-1, high=1), uniform(n, n, low=-1, high=1)]


def images(n: int) -> list[np.ndarray]:
    side = max(8, round((n / 8) ** 0.5))
    return [uniform(1, 8, side, side, low=-1, high=1), uniform(8, 8, 3, 3, low=-1, high=1)]


SIZES = (1_000, 100_000, 10_000_000)


@dataclass
class Plan:
    name: str
    expression: str
    inputs: object = vector
    other: dict[str, str | None] = field(default_factory=dict)
    sizes: tuple[int, ...] = SIZES
    tolerance: float = 1e-4


PLANS = [
    Plan("full", "lib.full(a.shape, 1.5, dtype=lib.float32)"),
    Plan("arange", "lib.arange(a.shape[0])"),
    Plan("rand", "lib.rand(a.shape[0])", other={
         "numpy": "generator.random(a.shape[0], dtype=lib.float32)"}, tolerance=math.inf),
    Plan("randn", "lib.randn(a.shape[0])", other={
         "numpy": "generator.standard_normal(a.shape[0], dtype=lib.float32)"}, tolerance=math.inf),
    Plan("add", "a + b"),
    Plan("add a scalar", "a + 1.5"),
    Plan("add a row", "a + b", matrix),
    Plan("add every second", "a[::2] + b[::2]"),
    Plan("multiply", "a * b"),
    Plan("divide", "a / b"),
    Plan("less", "a < b"),
    Plan("where", "lib.where(a < b, a, b)"),
    Plan("maximum", "lib.maximum(a, b)"),
    Plan("sqrt", "lib.sqrt(a)"),
    Plan("exp", "lib.exp(a)"),
    Plan("log", "lib.log(a)"),
    Plan("sin", "lib.sin(a)"),
    Plan("tanh", "lib.tanh(a)"),
    Plan("pow", "a ** b"),
    Plan("pow 2.5", "a ** 2.5"),
    Plan("erf", "lib.erf(a)", other={"numpy": None}),
    Plan("floor_divide", "a // b"),
    Plan("remainder", "a % b"),
    Plan("floor_divide int64 by 3", "a // 3", integers),
    Plan("astype float64", "lib.astype(a, lib.float64)", other={"torch": "a.double()"}),
    Plan("sum", "lib.sum(a)"),
    Plan("sum axis 0", "lib.sum(a, axis=0)", matrix),
    Plan("sum axis 1", "lib.sum(a, axis=1)", matrix),
    Plan("mean axis 0", "lib.mean(a, axis=0)", matrix),
    Plan("mean axis 1", "lib.mean(a, axis=1)", matrix),
    Plan("max", "lib.max(a)"),
    Plan("max axis 0", "lib.max(a, axis=0)", matrix, {"torch": "lib.amax(a, axis=0)"}),
    Plan("max axis 1", "lib.max(a, axis=1)", matrix, {"torch": "lib.amax(a, axis=1)"}),
    Plan("var", "lib.var(a)", other={"torch": "lib.var(a, correction=0)"}),
    Plan("argmax", "lib.argmax(a)"),
    Plan("argmax axis 1", "lib.argmax(a, axis=1)", matrix),
    Plan("cumulative_sum", "lib.cumulative_sum(a)", other={"torch": "lib.cumsum(a, 0)"}, tolerance=1e-2),
    Plan("sort", "lib.sort(a)", other={"torch": "lib.sort(a)[0]"}, sizes=(1_000, 100_000, 1_000_000)),
    Plan("argsort", "lib.argsort(a)", sizes=(1_000, 100_000, 1_000_000), tolerance=math.inf),
    Plan("topk 10", "lib.topk(a, 10)[0]", other={"numpy": "lib.sort(lib.partition(a, -10)[-10:])[::-1]"}),
    Plan("unique", "lib.unique_values(a)", integers, {"torch": "lib.unique(a)", "numpy": "lib.unique(a)"},
         (1_000, 100_000, 1_000_000)),
    Plan("nonzero", "lib.nonzero(a < b)[0]", other={"torch": "lib.nonzero(a < b, as_tuple=True)[0]"}),
    Plan("concat", "lib.concat([a, b])"),
    Plan("transpose", "lib.asarray(a.T, copy=True)", matrix, {"torch": "a.T.contiguous()",
         "numpy": "lib.ascontiguousarray(a.T)"}),
    Plan("roll", "lib.roll(a, 5)"),
    Plan("flip", "lib.asarray(lib.flip(a), copy=True)", other={"torch": "lib.flip(a, [0])",
         "numpy": "lib.ascontiguousarray(lib.flip(a))"}),
    Plan("take rows", "lib.take(a, b, axis=0)", rows_to_take, {"torch": "lib.index_select(a, 0, b)"}),
    Plan("mask", "a[a < b]"),
    Plan("matmul", "a @ b", square, {"onednn": "lib.matmul(a, b)"}, (512, 1024, 2048), 1e-2),
    Plan("matmul 8x8", "a @ b", batch, sizes=(1_000, 100_000, 1_000_000), tolerance=1e-2),
    Plan("softmax", "lib.softmax(a, axis=-1)", matrix, {"torch": "lib.softmax(a, -1)", "numpy": None}),
    Plan("gelu", "lib.gelu(a)", other={"torch": "lib.nn.functional.gelu(a)", "numpy": None}),
    Plan("sigmoid", "lib.sigmoid(a)", other={"numpy": None}),
    Plan("layer_norm", "lib.layer_norm(a, b.shape)", matrix,
         {"torch": "lib.nn.functional.layer_norm(a, b.shape)", "numpy": None}),
    Plan("conv2d 3x3", "lib.conv2d(a, b)", images,
         {"torch": "lib.nn.functional.conv2d(a, b)", "numpy": None}, (1_000, 100_000, 1_000_000), 1e-2),
]  # fmt: skip


class Case:
    def __init__(self, plan: Plan, size: int) -> None:
        self.plan = plan
        self.size = size
        mantissa, power = f"{size:e}".split("e")
        short = f"{float(mantissa):g}e{int(power)}" if size % 10 == 0 else str(size)
        self.name = f"{plan.name}, {short}"
        self.samples: dict[str, list[float]] = {}
        self.error = ""
        arrays = plan.inputs(size)
        self.bytes = arrays[0].nbytes
        self._entries = []
        for each in contestants() + (onednn() if "onednn" in plan.other else []):
            expression = plan.other.get(each.name, plan.expression)
            if expression is not None:
                expression = expression.replace("generator", "lib.random.default_rng(7)")
                self._entries.append((each, loop_of(expression), [each.make(array) for array in arrays]))
        self._counts: dict[str, int] = {}

    def _run(self, contestant: Contestant, loop: object, inputs: list, count: int) -> tuple[float, object]:
        begin = time.perf_counter()
        if contestant.name == "ours":
            for _ in range(count):
                result = loop(1, contestant.module, *inputs)
                result.wait()
        else:
            result = loop(count, contestant.module, *inputs)
        return time.perf_counter() - begin, result

    def measure(self) -> None:
        for contestant, loop, inputs in self._entries:
            if contestant.name not in self._counts:
                self._run(contestant, loop, inputs, 1)
                once = self._run(contestant, loop, inputs, 1)[0]
                self._counts[contestant.name] = max(1, round(MINIMUM / once))
            count = self._counts[contestant.name]
            time.sleep(QUIET)
            self._run(contestant, loop, inputs, 1)
            seconds, result = self._run(contestant, loop, inputs, count)
            self.samples.setdefault(contestant.name, []).append(seconds / count * 1e6)
            del result

    def check(self) -> None:
        """All results against the last contestant's, once: they must be what the case says."""
        results = [
            (each.name, np.asarray(self._run(each, loop, inputs, 1)[1]))
            for each, loop, inputs in self._entries
        ]
        reference = results[-1][1].astype(np.float64)
        for name, result in results:
            if result.shape != reference.shape:
                self.error = f"{name}'s shape is {result.shape}, not {reference.shape}"
            elif self.plan.tolerance != math.inf:
                scale = np.abs(reference).max(initial=0) + 1e-30
                if not np.abs(result - reference).max(initial=0) <= self.plan.tolerance * scale:
                    self.error = f"{name}'s result is another"


def plain_read(program: Path, size: int) -> float:
    """Microseconds of reading `size` bytes with as many threads."""
    command = [str(program), str(size), str(THREADS)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


total = rounds(7)
read_program = Path(os.environ["THALWEG_BENCH_PROGRAMS"]) / "bench_read"
wanted = sys.argv[2:]
tw.set_num_threads(THREADS)
report = Report()
plans = [plan for plan in PLANS if not wanted or any(word in plan.name for word in wanted)]
slower = []
for done, plan in enumerate(plans, 1):
    for size in plan.sizes:
        case = Case(plan, size)
        if torch is not None:
            torch.set_num_threads(THREADS)
        case.check()
        reads = plan.name.startswith(("sum", "mean", "max")) and plan.name != "maximum" and size == SIZES[-1]
        for _ in range(total):
            case.measure()
            if reads:
                case.samples.setdefault("read", []).append(plain_read(read_program, case.bytes))
        report.row(case.name, "us", case.samples, case.error)
        if not case.error:
            ratios = report.rows[-1]["ratio"]
            best = max(value for peer, value in ratios.items() if peer != "read")
            report.rows[-1]["ratio"]["better"] = best
            if size != SIZES[0] and best > SLOWER:
                slower.append(f"{case.name} {best:.2f}")
    progress("operators", done, len(plans))
report.facts["rounds"] = total
report.facts[f"rows slower than {SLOWER} x the better peer, without 1e3"] = (
    f"{len(slower)}: {', '.join(slower)}"
)
report.print()

# fft.py: microseconds of Fourier transforms on one thread, result included, plans kept.
import time

import numpy as np
import thalweg as tw
from harness import Contestant, Report, contestants, progress, rounds

MINIMUM = 0.02  # seconds that one sample takes at least


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    parts = rng.standard_normal(shape)
    return (parts if "float" in dtype else parts + 1j * rng.standard_normal(shape)).astype(dtype)


class Transform:
    """One function of the libraries' fft modules on one array."""

    def __init__(self, function: str, shape: tuple[int, ...], dtype: str) -> None:
        self.name = f"{function} {'x'.join(map(str, shape))} {dtype}"
        self.samples: dict[str, list[float]] = {}
        self.error = ""
        self._function = function
        array = numbers(shape, dtype)
        self._expected = getattr(np.fft, function)(
            array.astype("clongdouble" if "complex" in dtype else "longdouble")
        )
        self._bound = 1e3 * np.finfo(dtype).eps * np.sqrt(np.mean(np.abs(self._expected) ** 2))
        self._entries = [(each, each.make(array)) for each in contestants()]
        self._counts = {each.name: self._repetitions(each, x) for each, x in self._entries}

    def _run(self, contestant: Contestant, x: object, count: int) -> tuple[float, object]:
        function = getattr(contestant.module.fft, self._function)
        begin = time.perf_counter()
        for _ in range(count):
            result = function(x)
            if contestant.name == "ours":
                result.wait()
        return time.perf_counter() - begin, result

    def _repetitions(self, contestant: Contestant, x: object) -> int:
        self._run(contestant, x, 1)
        return max(1, round(MINIMUM / self._run(contestant, x, 1)[0]))

    def measure(self) -> None:
        for contestant, x in self._entries:
            count = self._counts[contestant.name]
            seconds, result = self._run(contestant, x, count)
            self.samples.setdefault(contestant.name, []).append(seconds / count * 1e6)
            if not np.abs(np.asarray(result) - self._expected).max() <= self._bound:
                self.error = f"{contestant.name}'s result is wrong"


tw.set_num_threads(1)
cases = [
    Transform(function, shape, dtype)
    for function, shape, dtype in [
        ("fft", (2**10,), "complex128"),
        ("rfft", (2**10,), "float64"),
        ("fft", (2**16,), "complex128"),
        ("rfft", (2**16,), "float64"),
        ("fft", (2**20,), "complex128"),
        ("rfft", (2**20,), "float64"),
        ("fft", (1000, 1024), "complex64"),
        ("rfft", (1000, 1024), "float32"),
        ("fftn", (512, 512), "complex128"),
        ("rfftn", (512, 512), "float64"),
        ("fft", (65_537,), "complex128"),
        ("fft", (1_000_003,), "complex128"),
    ]
]
total = rounds(15)
for number in range(total):
    for case in cases:
        case.measure()
    progress("fft", number + 1, total)

report = Report()
for case in cases:
    report.row(case.name, "us", case.samples, case.error)
report.facts["rounds"] = total
report.print()

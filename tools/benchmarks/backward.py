# backward.py: what recording costs, and what a backward pass costs for each node of a chain.
"""Every row is of ours and torch's one after the other, one thread each; the gradients are compared. The
bytes of a recorded node come from processes of their own, each of which records one chain."""

import os
import resource
import subprocess
import sys
import time

import numpy as np
import thalweg as tw
from harness import Counters, Report, progress, rounds, torch

NODES = 100_000
RECORDED = 1_000  # operators of one sample of the forward row
BRANCH_SECONDS = 0.1

LIBRARIES = {"ours": tw, **({"torch": torch} if torch is not None else {})}
STEPS = {
    "add": lambda lib, x, b: x + b,
    "mul": lambda lib, x, b: x * b,
    "tanh": lambda lib, x, b: lib.tanh(x),
}


def tensor(lib, array, *, leaf=False):
    made = lib.asarray(array) if lib is tw else lib.tensor(array)
    return made.requires_grad_() if leaf else made


def drain(lib):
    if lib is tw:
        tw.synchronize()


class Forward:
    """Nanoseconds of `a + b` of float32[8] where a requires a gradient, not waiting."""

    name = "forward a + b recorded"

    def __init__(self):
        self.samples = {}
        self.error = ""

    def measure(self):
        for name, lib in LIBRARIES.items():
            a = tensor(lib, np.ones(8, np.float32), leaf=True)
            b = tensor(lib, np.full(8, 0.5, np.float32))
            drain(lib)
            counters = Counters() if lib is tw else None
            begin = time.perf_counter_ns()
            for _ in range(RECORDED):
                c = a + b
            elapsed = time.perf_counter_ns() - begin
            drain(lib)
            self.samples.setdefault(name, []).append(elapsed / RECORDED)
            if not c.requires_grad or float(c.detach().sum()) != 12:
                self.error = f"{name}: not recorded, or wrong"
            elif counters is not None:
                self.error = self.error or counters.disagreement(RECORDED + 1)


class Chain:
    """Nanoseconds of a node of the backward of a chain, until the gradient is there."""

    def __init__(self, step):
        self.name = f"backward chain of {step}, a node"
        self.step = STEPS[step]
        self.samples = {}
        self.error = ""

    def measure(self):
        gradients = {}
        for name, lib in LIBRARIES.items():
            x = tensor(lib, np.linspace(0.1, 0.8, 8).astype(np.float32), leaf=True)
            b = tensor(lib, np.full(8, 1.0000001, np.float32))
            y = x
            for _ in range(NODES):
                y = self.step(lib, y, b)
            seed = tensor(lib, np.ones(8, np.float32))
            drain(lib)
            float(y.detach().sum())
            begin = time.perf_counter_ns()
            y.backward(seed)
            gradients[name] = np.asarray(x.grad)
            self.samples.setdefault(name, []).append((time.perf_counter_ns() - begin) / NODES)
            del x, y
        reference = gradients.get("torch", gradients["ours"])
        if not np.allclose(gradients["ours"], reference, rtol=1e-3, atol=1e-6):
            self.error = f"gradients are {gradients}"


class Branches:
    """Wall seconds of the backward of four independent branches of matrix products, one thread and two."""

    name = "four branches, backward, 2 threads against 1"

    def __init__(self):
        self.walls = {1: [], 2: []}
        self.size = 512
        a = np.random.default_rng(7).standard_normal((self.size, self.size)).astype(np.float32) / 32
        self.factor = tw.asarray(a)
        begin = time.perf_counter()
        (self.factor @ self.factor).wait()
        once = max(time.perf_counter() - begin, 1e-4)
        self.length = max(4, round(BRANCH_SECONDS / once))

    def measure(self):
        values = {}
        for threads in (1, 2):
            tw.set_num_threads(threads)
            leaves = [tw.asarray(np.eye(self.size, dtype=np.float32)).requires_grad_() for _ in range(4)]
            total = None
            for leaf in leaves:
                y = leaf
                for _ in range(self.length):
                    y = y @ self.factor
                total = y.sum() if total is None else total + y.sum()
            total.wait()
            begin = time.perf_counter()
            total.backward()
            for leaf in leaves:
                leaf.grad.wait()
            self.walls[threads].append(time.perf_counter() - begin)
            values[threads] = leaves[0].grad.numpy().tobytes()
        tw.set_num_threads(1)
        return "" if values[1] == values[2] else "the gradients of one thread and of two differ"


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


if "--bytes" in sys.argv:
    step = sys.argv[sys.argv.index("--bytes") + 2]
    lib = LIBRARIES[sys.argv[sys.argv.index("--bytes") + 1]]
    x = tensor(lib, np.linspace(0.1, 0.8, 8).astype(np.float32), leaf=True)
    b = tensor(lib, np.full(8, 1.0000001, np.float32))
    y = x
    for _ in range(10_000):
        y = STEPS[step](lib, y, b)
    drain(lib)
    before = resident()
    for _ in range(NODES):
        y = STEPS[step](lib, y, b)
    drain(lib)
    float(y.detach().sum())
    print((resident() - before) / NODES)
    sys.exit(0)

total = rounds(7)
tw.set_num_threads(1)
if torch is not None:
    torch.set_num_threads(1)
cases = [Forward(), *(Chain(step) for step in STEPS)]
branches = Branches()
branch_error = ""
node_bytes = {step: {} for step in STEPS}
for number in range(total):
    for case in cases:
        case.measure()
    branch_error = branch_error or branches.measure()
    if number < 3:
        for step, samples in node_bytes.items():
            for name in LIBRARIES:
                command = [sys.executable, os.path.abspath(__file__), "--bytes", name, step]
                out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                samples.setdefault(name, []).append(float(out))
    progress("backward", number + 1, total)

report = Report()
for case in cases:
    report.row(case.name, "ns", case.samples, case.error)
for step, samples in node_bytes.items():
    report.row(f"recorded bytes of {step}, a node", "bytes", samples)
report.row(branches.name, "s", {"ours": branches.walls[2], "one thread": branches.walls[1]}, branch_error)
report.facts["rounds"] = total
report.facts["nodes"] = NODES
report.print()

# train.py: seconds of training steps of three models, beside torch with the same weights, data and threads.
"""Each sample is several steps with their loss read at the end. Peak memory comes from processes of their
own, above what they hold once imports are done and the model is built."""

import os
import subprocess
import sys
import time

import numpy as np
import thalweg as tw
from harness import Report, progress, rounds, torch

THREADS = 2
LIBRARIES = {"ours": tw, **({"torch": torch} if torch is not None else {})}


def tensor(lib, array, *, leaf=False):
    made = lib.asarray(array) if lib is tw else lib.tensor(array)
    return made.requires_grad_() if leaf else made


def random(*shape, scale=1.0, seed=7):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


class Mlp:
    """784-512-256-10, batch 128, SGD."""

    name = "MLP 784-512-256-10, batch 128, SGD step"
    steps = 10

    def __init__(self, lib):
        self.lib = lib
        sizes = [784, 512, 256, 10]
        self.weights = [
            tensor(lib, random(a, b, scale=a**-0.5, seed=a), leaf=True)
            for a, b in zip(sizes, sizes[1:], strict=False)
        ]
        self.biases = [tensor(lib, np.zeros(b, np.float32), leaf=True) for b in sizes[1:]]
        self.x = tensor(lib, random(128, 784))
        labels = np.random.default_rng(3).integers(0, 10, 128)
        self.labels = tensor(lib, labels)

    def step(self):
        lib, h = self.lib, self.x
        for number, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = h @ w + b
            if number < 2:
                h = lib.relu(h)
        functions = lib if lib is tw else lib.nn.functional
        loss = functions.cross_entropy(h, self.labels)
        loss.backward()
        with lib.no_grad():
            for parameter in (*self.weights, *self.biases):
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        return loss


class Block:
    """A transformer block: d = 256, 4 heads, sequences of 128, batch 8; forward and backward."""

    name = "transformer block d=256, 4 heads, seq 128, batch 8"
    steps = 3

    def __init__(self, lib):
        self.lib = lib
        d = 256
        shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
        self.w = {
            name: tensor(lib, random(*shape, scale=shape[0] ** -0.5, seed=len(name)), leaf=True)
            for name, shape in shapes.items()
        }
        for name in ("g1", "g2"):
            self.w[name] = tensor(lib, np.ones(d, np.float32), leaf=True)
        for name in ("b1", "b2"):
            self.w[name] = tensor(lib, np.zeros(d, np.float32), leaf=True)
        self.x = tensor(lib, random(8, 128, d))

    def step(self):
        lib, w = self.lib, self.w
        f = lib if lib is tw else lib.nn.functional
        permute = lib.permute_dims if lib is tw else lib.permute
        h = f.layer_norm(self.x, (256,), w["g1"], w["b1"])
        qkv = permute(lib.reshape(h @ w["qkv"], (8, 128, 3, 4, 64)), (2, 0, 3, 1, 4))
        a = f.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        a = lib.reshape(permute(a, (0, 2, 1, 3)), (8, 128, 256))
        x = self.x + a @ w["out"]
        h = f.layer_norm(x, (256,), w["g2"], w["b2"])
        x = x + f.gelu(h @ w["up"]) @ w["down"]
        loss = (x * x).mean()
        loss.backward()
        for parameter in w.values():
            parameter.grad = None
        return loss


class Recurrent:
    """h = tanh(h @ W + x), 64 x 64, batch 16, 1,000 steps; forward and backward."""

    name = "1,000 steps of tanh(h @ W + x), 64x64, batch 16"
    steps = 1

    def __init__(self, lib):
        self.lib = lib
        self.w = tensor(lib, random(64, 64, scale=0.125), leaf=True)
        self.x = tensor(lib, random(16, 64, scale=0.1))

    def step(self):
        h = self.x
        for _ in range(1_000):
            h = self.lib.tanh(h @ self.w + self.x)
        loss = h.sum()
        loss.backward()
        self.w.grad = None
        return loss


MODELS = {"mlp": Mlp, "block": Block, "recurrent": Recurrent}


def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


if "--memory" in sys.argv:
    library, model = sys.argv[sys.argv.index("--memory") + 1 :][:2]
    built = MODELS[model](LIBRARIES[library])
    if library == "torch":
        torch.set_num_threads(THREADS)
    else:
        tw.set_num_threads(THREADS)
        tw.synchronize()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = peak_kib()
    for _ in range(5):
        float(built.step().detach())
    print((peak_kib() - before) / 1024)
    sys.exit(0)

total = rounds(7)
tw.set_num_threads(THREADS)
if torch is not None:
    torch.set_num_threads(THREADS)
report = Report()
times = {key: {} for key in MODELS}
losses = {key: {} for key in MODELS}
built = {key: {name: model(lib) for name, lib in LIBRARIES.items()} for key, model in MODELS.items()}
for number in range(total):
    for key, models in built.items():
        for name, model in models.items():
            time.sleep(0.03)  # threads of OpenMP go on spinning after their work
            model.step()
            begin = time.perf_counter()
            for _ in range(model.steps):
                loss = model.step()
            value = float(loss.detach())
            times[key].setdefault(name, []).append((time.perf_counter() - begin) / model.steps * 1e3)
            losses[key].setdefault(name, []).append(value)
    progress("train", number + 1, total)
memory = {key: {} for key in ("mlp", "block")}
for key, samples in memory.items():
    for name in LIBRARIES:
        for _ in range(3):
            command = [sys.executable, os.path.abspath(__file__), "--memory", name, key]
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            samples.setdefault(name, []).append(float(out))
for key, model in MODELS.items():
    ours = losses[key]["ours"]
    theirs = losses[key].get("torch", ours)
    error = "" if np.allclose(ours, theirs, rtol=1e-2) else f"losses are {ours} and {theirs}"
    report.row(model.name, "ms", times[key], error)
for key, samples in memory.items():
    report.row(f"peak memory of {MODELS[key].name}", "MiB", samples)
report.facts["rounds"] = total
report.facts["threads"] = THREADS
report.print()

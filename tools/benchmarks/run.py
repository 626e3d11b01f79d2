# run.py: runs one benchmark of tools/bench, prints its table and the machine's facts, and writes its JSON.
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PYTHON_BENCHES = ("dispatch", "roundtrip", "operators", "fft", "backward", "train")
CPP_BENCHES = ("engine", "metg", "overlap", "memory")
# Above this a cache line takes the long way between two cores, and so does every operator that changes cores.
FAR_NS = 60.0

# What the project holds itself to, by benchmark and first words of a case: bounds on a ratio to a peer or on
# `ours` itself.
LIMITS: dict[str, dict[str, dict[str, tuple[str, float]]]] = {
    "dispatch": {
        "a + b burst": {"torch": ("<=", 0.45), "numpy": ("<=", 1.5)},
        "a + b sustained": {"torch": ("<=", 0.6)},
    },
    "roundtrip": {"(a + b).item() back to back": {"torch": ("<=", 0.9)}},
    "engine": {name: {"flow": ("<=", 0.8)} for name in ("chain", "independent", "random DAG")},
    "metg": {name: {"flow": ("<=", 4.0)} for name in ("stencil_1d", "nearest", "fft", "random_nearest")},
    "overlap": {"matmuls": {"ours": (">=", 1.8)}, "chains": {"loop": (">=", 0.9)}},
    "operators": {
        **{f"matmul, {size}": {"better": ("<=", 1 / 0.9)} for size in (512, 1024, 2048)},
        **{
            f"{name}{axis}, 1e7": {"read": ("<=", 1 / 0.7), "better": ("<=", 2.0)}
            for name in ("sum", "mean", "max")
            for axis in ("", " axis 0", " axis 1")
        },
        ", 1e5": {"better": ("<=", 2.0)},
        ", 1e6": {"better": ("<=", 2.0)},
        ", 1e7": {"better": ("<=", 2.0)},
    },
    "fft": {},
    "backward": {
        "forward a + b recorded": {"torch": ("<=", 0.6)},
        "backward chain of add": {"torch": ("<=", 0.5)},
        "backward chain of mul": {"torch": ("<=", 0.5)},
        "backward chain of tanh": {"torch": ("<=", 0.5)},
        "recorded bytes": {"torch": ("<=", 0.6)},
        "four branches": {"one thread": ("<=", 0.55)},
    },
    "train": {
        "MLP": {"torch": ("<=", 1.0)},
        "transformer block": {"torch": ("<=", 1.0)},
        "1,000 steps": {"torch": ("<=", 0.6)},
        "peak memory": {"torch": ("<=", 0.9)},
    },
    "memory": {"issue 1e6": {"ours": ("<=", 32.0)}},
}


def commands(name: str, programs: Path, rounds: str | None) -> list[list[str]]:
    """The programs of a benchmark; rows of one name from several processes become one, by their medians."""
    if name in PYTHON_BENCHES:
        return [[sys.executable, str(HERE / f"{name}.py"), *([rounds] if rounds else [])]]
    program = str(programs / f"bench_{name}")
    if name == "memory":  # each measurement in a fresh process
        return [[program, kind] for _ in range(int(rounds or 3)) for kind in ("issue", "chain")]
    return [[program, *([rounds] if rounds else [])]]


def run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    try:
        report = json.loads(process.stdout)
    except json.JSONDecodeError:
        report = {"rows": [], "facts": {}, "failures": []}
    if process.returncode != 0 and not report["failures"]:
        report["failures"].append(f"status {process.returncode} of: {' '.join(command)}")
    return report


def merge(reports: list[dict[str, Any]]) -> dict[str, Any]:
    if len(reports) == 1:
        return reports[0]
    rows: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        for row in report["rows"]:
            rows.setdefault(row["case"], []).append(row)
    medians = [{**same[0], "ours": statistics.median(row["ours"] for row in same)} for same in rows.values()]
    return {
        "rows": medians,
        "facts": {"processes": [report["facts"] for report in reports]},
        "failures": [failure for report in reports for failure in report["failures"]],
    }


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def line_latency(programs: Path, environment: dict[str, str]) -> float:
    program = [programs / "bench_line_latency"]
    process = subprocess.run(program, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(process.stdout)


def distance(latency_ns: float) -> str:
    if latency_ns == 0:
        return "one core"
    return "far" if latency_ns > FAR_NS else "near"


def is_named(case: str, name: str) -> bool:
    """Whether `name` is the first words of a case, or its last if it begins with a comma."""
    # "nearest" must not take random_nearest's row, nor the other way round.
    if name.startswith(","):
        return case.endswith(name)
    return case == name or case.startswith((name + " ", name + ","))


def limit_of(bench: str, row: dict[str, Any]) -> str:
    for prefix, bounds in LIMITS[bench].items():
        if not is_named(row["case"], prefix):
            continue
        texts = []
        for peer, (sign, bound) in bounds.items():
            value = row["ours"] if peer == "ours" else row["ratio"].get(peer)
            what = "" if peer == "ours" else f" x {peer}"
            if value is None:
                texts.append(f"{sign} {bound:g}{what}: {peer} is not installed")
            else:
                reached = value <= bound if sign == "<=" else value >= bound
                texts.append(f"{sign} {bound:g}{what}: {'reached' if reached else 'MISSED'}")
        return "; ".join(texts)
    return ""


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(bench: str, rows: list[dict[str, Any]]) -> str:
    peers = sorted({peer for row in rows for peer in row["peers"]})
    lines = [["case", "unit", "ours", *peers, *(f"ours/{peer}" for peer in peers), "limit"]]
    for row in rows:
        values = [number(row["peers"].get(peer)) for peer in peers]
        ratios = [number(row["ratio"].get(peer)) for peer in peers]
        lines.append([row["case"], row["unit"], number(row["ours"]), *values, *ratios, limit_of(bench, row)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in padded)


def flat_facts(facts: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for key, value in facts.items():
        if key in ("curves", "processes"):  # long: in the JSON only
            continue
        if isinstance(value, dict):
            lines += flat_facts(value, f"{prefix}{key}: ")
        else:
            lines.append(f"{prefix}{key}: {number(value) if isinstance(value, float) else value}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/bench", description="One benchmark.")
    parser.add_argument("name", choices=PYTHON_BENCHES + CPP_BENCHES)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", metavar="N", help="interleaved rounds (default: the benchmark's own)")
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()

    # A value in these changes which BLAS kernel the peers run.
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    machine: dict[str, Any] = {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load average before": os.getloadavg()[0],
    }
    environment["THALWEG_BENCH_PROGRAMS"] = str(options.programs)
    latencies = [line_latency(options.programs, environment)]
    programs = commands(options.name, options.programs, options.rounds)
    report = merge([run(program, environment) for program in programs])
    latencies.append(line_latency(options.programs, environment))
    machine["line latency, ns"] = {"before": latencies[0], "after": latencies[1]}
    machine["cores are"] = " then ".join(dict.fromkeys(distance(latency) for latency in latencies))

    print(f"\n## {options.name}\n\n{table(options.name, report['rows'])}\n")
    print("\n".join(flat_facts(machine) + flat_facts(report["facts"])))
    if machine["load average before"] > machine["cores"] / 2:
        print("NOTE the machine was busy; see the load average", file=sys.stderr)
    for failure in report["failures"]:
        print(f"FAILED {failure}", file=sys.stderr)
    if options.json:
        result = {"benchmark": options.name, "machine": machine}
        result |= {"rows": report["rows"], "facts": report["facts"]}
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Efficiency of the threaded engine over the length of its tasks, and METG(50 %); see metg.sh."""

import argparse
import datetime
import json
import math
import os
import shlex
import statistics
import subprocess
import sys

import measuring
import picture

PATTERNS = ["trivial", "no_comm", "stencil_1d", "dom", "tree", "fft", "nearest", "spread", "random_nearest"]
PEERS = {"openmp": "OpenMP depend", "taskflow": "Taskflow", "onetbb": "oneTBB flow graph", "rayon": "rayon, by hand"}
# As wide as the peers' stencil.
WIDTH = 256
# Nanoseconds of a task, from long to short.
GRAINS = [2**power for power in range(17, 5, -1)]
GOAL = 0.5
# As many as the peers have.
THREADS = 2
# A curve ends below this efficiency.
ENOUGH = 0.05


def tasks_of(grain, seconds):
    """About as many tasks as fill `seconds`, in whole steps; a task costs half a microsecond beside its work."""
    steps = seconds * 1e9 * THREADS / (grain + 500) / WIDTH
    return WIDTH * round(min(max(steps, 16), 4096))


def ours(program, pattern):
    """Runs a pattern: nanoseconds of all tasks of a length."""

    def run(tasks, grain):
        workload = f"taskbench:pattern={pattern},width={WIDTH},steps={tasks // WIDTH},cycles={grain}"
        arguments = [program, "run", workload, "--engine", "threads", "--kernel", "spin", "--executors", str(THREADS)]
        arguments += ["--set", "clock_mhz=1000", "--set", "scheduler.threads=0", "--json", "-"]
        told = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
        return told["threads"]["wall_ns"]

    return run


def peer(path):
    """Runs the stencil on a peer."""

    def run(tasks, grain):
        arguments = [path, "stencil", str(tasks), str(grain)]
        return json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)["ns"]

    return run


def measure(contenders, arguments):
    """A curve of efficiency for each contender: the work of a thread over the wall time, best of some runs. Contenders run in turn,
    so that a busy moment hits them alike; a curve that has fallen low enough ends."""
    curves = {name: [] for name in contenders}
    for grain in GRAINS:
        tasks = tasks_of(grain, arguments.seconds)
        alive = [name for name, rows in curves.items() if not rows or rows[-1]["efficiency"] >= ENOUGH]
        walls = [[contenders[name](tasks, grain) for name in alive] for _ in range(arguments.rounds)]
        for name, wall in zip(alive, map(min, zip(*walls))):
            efficiency = round(tasks * grain / THREADS / wall, 4)
            row = {"name": name, "grain_ns": grain, "tasks": tasks, "wall_ns": wall, "efficiency": efficiency}
            curves[name].append(row)
        print(f"tasks of {grain} ns are done", file=sys.stderr)
    return curves


def peak_of(curves):
    """The efficiency that everybody reaches with the longest task: the median of all curves. It is close to 1 unless others use
    the CPUs too."""
    return statistics.median(rows[0]["efficiency"] for rows in curves.values())


def metg(rows, goal):
    """The shortest task that reaches the goal, between two lengths on a logarithmic scale; 0 if all do, infinite if none does. Where a
    curve ended before it fell below the goal, which takes a very busy machine, the last length."""
    if rows[-1]["efficiency"] >= goal:
        return 0.0 if rows[-1]["grain_ns"] == GRAINS[-1] else rows[-1]["grain_ns"]
    for long, short in zip(rows[-2::-1], rows[::-1]):
        if long["efficiency"] >= goal:
            share = (long["efficiency"] - goal) / (long["efficiency"] - short["efficiency"])
            return long["grain_ns"] * (short["grain_ns"] / long["grain_ns"]) ** share
    return math.inf


def shown(value):
    if value == 0:
        return f"below {GRAINS[-1]}"
    return f"above {measuring.spaced(GRAINS[0])}" if math.isinf(value) else measuring.spaced(value)


def summary(curves, peak):
    """Table of METG, and of efficiency at some lengths."""
    grains = [2**16, 2**13, 2**10]
    lines = []
    for name, rows in curves.items():
        by_grain = {row["grain_ns"]: f"{100 * row['efficiency']:.0f} %" for row in rows}
        lines.append([name, shown(metg(rows, GOAL * peak)), *(by_grain.get(grain, "") for grain in grains)])
    return measuring.table(["", "METG(50 %), ns", *(f"at {measuring.spaced(grain)} ns" for grain in grains)], lines)


def draw(path, title, curves, peak):
    series = {name: [(row["grain_ns"], row["efficiency"]) for row in rows] for name, rows in curves.items()}
    picture.lines(path, title, "length of a task in ns", series, GOAL * peak)


def text(patterns, stencil, peak, arguments, busy):
    command = "scripts/metg.sh " + shlex.join(sys.argv[3:])
    return [
        "# METG(50 %) of the threaded engine",
        "",
        "The smallest task with which half of the CPUs' time goes into tasks, the metric of Task Bench. A task spins for a given",
        f"time; efficiency is the work of {THREADS} CPUs over the wall time, submitting or building included. {THREADS} executors, the",
        f"orchestrator on a thread of its own that shares their CPUs, `scheduler.threads=0`, {WIDTH} points a step, best of",
        f"{arguments.rounds} runs. The longest task of {measuring.spaced(GRAINS[0])} ns reaches {100 * peak:.0f} % (median), which is the peak; METG is where half of the",
        "peak is left. `runs.csv` has every point.",
        "",
        *measuring.machine(command.strip(), busy),
        "",
        "## Patterns",
        "",
        *summary(patterns, peak),
        "",
        "![efficiency by pattern](patterns.svg)",
        "",
        "## The stencil beside others",
        "",
        *summary(stencil, peak),
        "",
        "![efficiency of the stencil](stencil.svg)",
        "",
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("result", nargs="?", default=f"results/{datetime.date.today()}-metg")
    arguments = parser.parse_intermixed_args()
    busy = measuring.Busy()
    contenders = {name: ours(arguments.program, name) for name in PATTERNS}
    for name, title in PEERS.items():
        path = os.path.join(arguments.folder, name)
        if os.path.exists(path):
            contenders[title] = peer(path)
    curves = measure(contenders, arguments)
    patterns = {name: curves[name] for name in PATTERNS}
    stencil = {"ptosim threads": curves["stencil_1d"]}
    stencil.update({name: rows for name, rows in curves.items() if name not in PATTERNS})
    os.makedirs(arguments.result, exist_ok=True)
    peak = peak_of(curves)
    measuring.write_csv(os.path.join(arguments.result, "runs.csv"), [row for rows in curves.values() for row in rows])
    draw(os.path.join(arguments.result, "patterns.svg"), "Efficiency of the threaded engine by pattern", patterns, peak)
    draw(os.path.join(arguments.result, "stencil.svg"), "Efficiency on the stencil", stencil, peak)
    told = "\n".join(text(patterns, stencil, peak, arguments, busy))
    with open(os.path.join(arguments.result, "README.md"), "w") as file:
        file.write(told)
    print(told)


if __name__ == "__main__":
    main()

"""Runs ptosim and its peers in turn on the same graphs and compares nanoseconds per task; see compare_peers.sh."""

import argparse
import datetime
import json
import os
import resource
import shlex
import subprocess
import sys

import measuring
import picture

SHAPES = ["chain", "stencil", "bgemm", "random"]
EXECUTING = ["openmp", "taskflow", "onetbb", "rayon"]
SIMULATING = ["simgrid", "simpy"]
NAMES = {
    "threads": "ptosim threads",
    "virtual": "ptosim virtual",
    "openmp": "OpenMP depend",
    "taskflow": "Taskflow",
    "onetbb": "oneTBB flow graph",
    "rayon": "rayon, by hand",
    "simgrid": "SimGrid",
    "simpy": "SimPy",
}
# Tasks of BGEMM for each product of its batch: 8 × 8 tiles of C, 16 steps, a multiplication and an addition.
PER_PRODUCT = 8 * 8 * 16 * 2
# SimPy gets at most this many tasks: its time per task does not depend on their number.
SIMPY_TASKS = 102_400


def tasks_of(contender, shape, tasks):
    tasks = min(tasks, SIMPY_TASKS) if contender == "simpy" else tasks
    return max(tasks // PER_PRODUCT, 1) * PER_PRODUCT if shape == "bgemm" else tasks


def workload(shape, tasks):
    return {
        "chain": f"chain:n={tasks}",
        "stencil": f"stencil:n={tasks},width=256",
        "bgemm": f"bgemm:batch={tasks // PER_PRODUCT},m=8,n=8,k=16",
        "random": f"random:n={tasks},fanin=3,reach=256,seed=1",
    }[shape]


class Contenders:
    """The programs that are there."""

    def __init__(self, program, folder):
        self.program, self.folder, self.versions = program, folder, {}
        self.executing = ["threads", *filter(self.is_built, EXECUTING)]
        self.simulating = ["virtual", *filter(self.is_built, SIMULATING)]

    def is_built(self, peer):
        if peer == "simpy":
            there = subprocess.run([sys.executable, "-c", "import simpy"], capture_output=True).returncode == 0
        else:
            there = os.path.exists(os.path.join(self.folder, peer))
        if not there:
            print(f"{NAMES[peer]} is not there: left out", file=sys.stderr)
        return there

    def command(self, contender, shape, tasks):
        if contender == "simpy":
            return [sys.executable, "scripts/peers/simpy_peer.py", shape, str(tasks)]
        if contender not in ("threads", "virtual"):
            return [os.path.join(self.folder, contender), shape, str(tasks)]
        engine = ["--engine", "threads", "--set", "scheduler.threads=0"] if contender == "threads" else []
        return [self.program, "run", workload(shape, tasks), "--json", "-", *engine]

    def run(self, contender, shape, tasks):
        """One run: tasks, edges, nanoseconds, and the makespan of a simulation."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(self.command(contender, shape, tasks), capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(done.stdout)
        if contender == "virtual":
            told["ns"] = round(1e9 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        elif contender == "threads":
            told["ns"] = told["threads"]["wall_ns"]
        if "version" in told and contender not in ("threads", "virtual"):
            self.versions[NAMES[contender]] = told["version"]
        makespan = "" if contender in ("threads", *EXECUTING) else told["makespan"]
        return {"tasks": told["tasks"], "edges": told["edges"], "ns": told["ns"], "makespan": makespan}


def measure(contenders, tasks, rounds):
    """All runs, contenders in turn, so that a busy moment hits them alike."""
    rows = []
    for number in range(rounds):
        for shape in SHAPES:
            for contender in contenders.executing + contenders.simulating:
                told = contenders.run(contender, shape, tasks_of(contender, shape, tasks))
                rows.append({"round": number, "shape": shape, "contender": contender, **told})
        print(f"round {number + 1} of {rounds} is done", file=sys.stderr)
    return rows


def check_same_graphs(rows):
    """Contenders with equally many tasks of a shape have equally many edges. The threaded engine counts an edge only when
    the producer has not ended yet, so it is not asked; the virtual engine reads the same workload."""
    edges = {}
    for row in (row for row in rows if row["contender"] != "threads"):
        found = edges.setdefault((row["shape"], row["tasks"]), row["edges"])
        assert found == row["edges"], f"{row['contender']} has another {row['shape']}: {row['edges']} edges, not {found}"


def best(rows, contender, shape):
    """Smallest nanoseconds per task of all rounds."""
    return min(row["ns"] / row["tasks"] for row in rows if (row["contender"], row["shape"]) == (contender, shape))


def comparison(rows, contenders):
    """Table of nanoseconds and ratios; the first contender is ours."""
    lines = []
    for contender in contenders:
        cells = [NAMES[contender]]
        for shape in SHAPES:
            ns = best(rows, contender, shape)
            ratio = ns / best(rows, contenders[0], shape)
            cells.append(measuring.spaced(ns) + (f" ({ratio:.2g} ×)" if contender != contenders[0] else ""))
        lines.append(cells)
    return measuring.table(["ns per task", *SHAPES], lines)


def agreement(rows, peer):
    """How far the makespan of a peer is from ours, by shape, where it has as many tasks."""
    ours = {(row["shape"], row["tasks"]): row["makespan"] for row in rows if row["contender"] == "virtual"}
    theirs = {(row["shape"], row["tasks"]): row["makespan"] for row in rows if row["contender"] == peer}
    gaps = [f"{100 * (theirs[key] / ours[key] - 1):+.1f} % ({key[0]})" for key in theirs if key in ours]
    return [f"The makespan of {NAMES[peer]} differs from ours by {', '.join(gaps)}."] if gaps else []


def draw(folder, name, title, rows, contenders):
    groups = {shape: {NAMES[contender]: best(rows, contender, shape) for contender in contenders} for shape in SHAPES}
    picture.bars(os.path.join(folder, f"{name}.svg"), title, groups)


def text(rows, contenders, arguments, busy):
    command = "scripts/compare_peers.sh " + shlex.join(sys.argv[3:])
    return [
        "# ptosim beside its peers",
        "",
        f"The same graphs, about {measuring.spaced(arguments.tasks)} tasks (SimPy: at most {measuring.spaced(SIMPY_TASKS)}), all",
        f"measured in one run in turn, best of {arguments.rounds}; in brackets the time of a peer over that of ptosim. The time to destroy a",
        "graph is not counted for peers. `runs.csv` has every run; the number of edges is checked to be the same.",
        "",
        *measuring.machine(command.strip(), busy),
        "- peers: " + "; ".join(f"{name} {version}" for name, version in contenders.versions.items()),
        "",
        "## Executing: empty tasks on 2 threads, building and running, wall time",
        "",
        *comparison(rows, contenders.executing),
        "",
        "ptosim finds its dependencies while it submits and keeps accounts, clocks and a bounded window; Taskflow, oneTBB and",
        "rayon get the whole graph first. rayon has no dependencies: counters and consumer lists are written by hand.",
        "",
        "![wall time by shape](executing.svg)",
        "",
        "## Simulating: 24 + 48 workers in virtual time, CPU time",
        "",
        *comparison(rows, contenders.simulating),
        "",
        "The time of ptosim is that of the whole process, with its report; that of peers is building and running alone.",
        "SimGrid and SimPy get queues of ready tasks and fanin counters by hand, as light as they can be used.",
        *(line for peer in SIMULATING for line in agreement(rows, peer)),
        "",
        "![CPU time by shape](simulating.svg)",
        "",
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("result", nargs="?", default=f"results/{datetime.date.today()}-peers")
    arguments = parser.parse_intermixed_args()
    contenders = Contenders(arguments.program, arguments.folder)
    busy = measuring.Busy()
    rows = measure(contenders, arguments.tasks, arguments.rounds)
    check_same_graphs(rows)
    os.makedirs(arguments.result, exist_ok=True)
    measuring.write_csv(os.path.join(arguments.result, "runs.csv"), rows)
    draw(arguments.result, "executing", "Wall ns per task, 2 threads", rows, contenders.executing)
    draw(arguments.result, "simulating", "CPU ns per task", rows, contenders.simulating)
    told = "\n".join(text(rows, contenders, arguments, busy))
    with open(os.path.join(arguments.result, "README.md"), "w") as file:
        file.write(told)
    print(told)


if __name__ == "__main__":
    main()

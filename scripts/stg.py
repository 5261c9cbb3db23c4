"""Runs Standard Task Graphs under two policies and compares the makespans with the known optima; see stg.sh."""

import csv
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

POLICIES = ["pto", "predictive"]
# Largest mean gap of `predictive` to the optimum at 50 tasks, in percent, by number of workers.
LIMITS = {2: 0.4, 4: 0.8, 8: 0.6, 16: 0.1}


def trace(path):
    """The text of a native trace of a graph: one task a line, `id time number-of-producers producers...`."""
    with open(path) as file:
        lines = [line.split("#")[0].split() for line in file]
    rows = [[int(word) for word in line] for line in lines if line][1:]
    out = [json.dumps({"op": "header", "format": "ptosim-trace", "version": 1, "name": os.path.basename(path)})]
    for index, (number, cycles, n_producers, *producers) in enumerate(rows):
        assert number == index and len(producers) == n_producers, f"{path}: task {number}"
        out.append(json.dumps({"op": "submit", "cycles": cycles, "deps": producers}))
    return "\n".join(out) + "\n"


def makespans(program, path, workers):
    """Makespan by policy."""
    arguments = [program, "compare", path, "--policies", ",".join(POLICIES), "--csv", "-"]
    arguments += ["--set", "workers.cube=0", "--set", "workers.vector=0", "--set", f"workers.any={workers}"]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    return {row["policy"]: int(row["makespan"]) for row in csv.DictReader(told.splitlines())}


def measure(program, data, folder, row):
    """One graph on one number of workers."""
    path = os.path.join(folder, row["file"].replace("/", "-"))
    told = makespans(program, path, int(row["processors"]))
    bounds = {key: int(row[key]) for key in ("best_lb", "best_ub")}
    return {"file": row["file"], "tasks": int(row["tasks"]), "workers": int(row["processors"]), **bounds, **told}


def mean_gap(rows, policy):
    """Mean of (makespan - best known) / best known, in percent."""
    return sum(100 * (row[policy] - row["best_ub"]) / row["best_ub"] for row in rows) / len(rows)


def main(program, data, result):
    with open(os.path.join(data, "optimal_makespans.csv")) as file:
        known = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in sorted({row["file"] for row in known}):
            with open(os.path.join(folder, name.replace("/", "-")), "w") as file:
                file.write(trace(os.path.join(data, name)))
        rows = list(pool.map(lambda row: measure(program, data, folder, row), known))
    with open(os.path.join(result, "makespans.csv"), "w", newline="") as file:
        # The optima stay where they come from.
        columns = ["file", "tasks", "workers", *POLICIES]
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    below = [row for row in rows for policy in POLICIES if row[policy] < row["best_lb"]]
    lines = ["| tasks | workers | graphs | pto, mean gap | predictive, mean gap | predictive optimal | limit |"]
    lines.append("|---:|---:|---:|---:|---:|---:|---:|")
    good = not below
    for tasks in sorted({row["tasks"] for row in rows}):
        for workers in sorted({row["workers"] for row in rows}):
            part = [row for row in rows if (row["tasks"], row["workers"]) == (tasks, workers)]
            gaps = [mean_gap(part, policy) for policy in POLICIES]
            optimal = sum(row["predictive"] == row["best_ub"] for row in part)
            limit = LIMITS[workers] if tasks == 50 else None
            good &= gaps[1] <= gaps[0] and (limit is None or gaps[1] <= limit)
            shown = f"{limit} %" if limit else ""
            cells = [tasks, workers, len(part), f"{gaps[0]:.2f} %", f"{gaps[1]:.2f} %", optimal, shown]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    text = [
        "# Standard Task Graphs against their optima",
        "",
        "`scripts/stg.sh FOLDER` runs every graph under `pto` and `predictive` on identical workers without costs.",
        "The gap is that to the best known makespan. `makespans.csv` has every graph. Cycles, not seconds: the table is the",
        "same on every machine.",
        "",
        *lines,
        "",
        f"{len(rows)} runs a policy; {len(below)} below the proven bound.",
        "",
    ]
    with open(os.path.join(result, "README.md"), "w") as file:
        file.write("\n".join(text))
    print("\n".join(text))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

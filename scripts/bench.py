"""Counts instructions per task and holds them against results/baseline.json.

    bench.py PROGRAM [--update] [--only NAME]

Every case is run twice under valgrind, with few and with many tasks; the difference divided by the additional tasks is what a
task costs, start and report aside. Counts do not depend on what else the machine does, so 3 % is a tight guard.
"""

import json
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "results" / "baseline.json"
LIMIT = 0.03
FEW, MANY = 20_000, 60_000

SHAPES = {
    "chain": "chain:n={n}",
    "stencil": "stencil:n={n}",
    "random": "random:n={n},fanin=3",
    # Two tasks a step.
    "bgemm": "bgemm:batch=1,m=10,n=10,k={n_200}",
}


def cases():
    """Name, command and how many tasks it has, for a number of tasks."""
    for name, spec in SHAPES.items():
        yield f"virtual/{name}", lambda n, spec=spec: [spec.format(n=n, n_200=n // 200)]
        yield f"virtual_a2a3/{name}", lambda n, spec=spec: [spec.format(n=n, n_200=n // 200), "--machine", "a2a3"]
    for policy in ["lifo", "cyber_classic", "cyber_choreography", "orleans", "bmf", "ray", "steal"]:
        yield f"policy/{policy}", lambda n, policy=policy: [f"random:n={n},fanin=3", "--policy", policy]
    yield "trace_read/random", lambda n: [("random:n={n},fanin=3", n)]


def count(program, arguments):
    """Instructions that a command takes."""
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", program, "run", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        totals = [line for line in done.stderr.splitlines() if "Collected" in line]
        return int(totals[0].split(":")[1].split()[0])


def per_task(program, arguments_for, scratch):
    counts = []
    for n in (FEW, MANY):
        arguments = arguments_for(n)
        if isinstance(arguments[0], tuple):
            spec, tasks = arguments[0]
            path = str(pathlib.Path(scratch) / f"{tasks}.jsonl")
            subprocess.run([program, "gen", spec.format(n=tasks), "-o", path], check=True, capture_output=True)
            arguments = [path]
        counts.append(count(program, arguments))
    return (counts[1] - counts[0]) / (MANY - FEW)


def main():
    program, options = sys.argv[1], sys.argv[2:]
    only = options[options.index("--only") + 1] if "--only" in options else ""
    known = json.loads(BASELINE.read_text())["instructions_per_task"] if BASELINE.exists() else {}
    found, slower = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        for name, arguments_for in cases():
            if only not in name:
                continue
            now = found[name] = round(per_task(program, arguments_for, scratch), 1)
            before = known.get(name)
            change = f"{(now / before - 1) * 100:+6.2f} %" if before else "     new"
            print(f"{name:30} {now:10.1f} instructions a task {change}", flush=True)
            if before and now > before * (1 + LIMIT):
                slower.append(name)
    if "--update" in options:
        toolchain = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
        facts = {"toolchain": toolchain, "machine": platform.machine(), "instructions_per_task": {**known, **found}}
        BASELINE.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"baseline moved: {BASELINE.relative_to(ROOT)}")
    elif slower:
        sys.exit(f"more than {LIMIT:.0%} slower than results/baseline.json: {', '.join(slower)}")


if __name__ == "__main__":
    main()

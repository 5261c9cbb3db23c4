"""Counts instructions per task and takes ratios of times, and holds both against results/baseline.json.

    bench.py PROGRAM [--update] [--only NAME] [--hot FILE]

Every case is run twice under valgrind, with few and with many tasks; the difference divided by the additional tasks is what a
task costs, start and report aside. Counts do not depend on what else the machine does, so 3 % is a tight guard.

Times do, so they are taken in turns with those of one reference case, and only the ratio of the best ones counts. A ratio must be
worse than the baseline by 3 % beyond what the rounds themselves differ.

`--hot` takes what gungraun printed as JSON about the hot paths, counts of whole functions.
"""

import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "results" / "baseline.json"
LIMIT = 0.03
FEW, MANY = 20_000, 60_000
ROUNDS = 9

SHAPES = {
    "chain": "chain:n={n}",
    "stencil": "stencil:n={n}",
    "random": "random:n={n},fanin=3",
    # Two tasks a step.
    "bgemm": "bgemm:batch=1,m=10,n=10,k={n_200}",
}


def spec_of(shape, n):
    return SHAPES[shape].format(n=n, n_200=n // 200)


def counted():
    """Name and arguments of what is counted, for a number of tasks."""
    for shape in SHAPES:
        yield f"virtual/{shape}", lambda n, shape=shape: [spec_of(shape, n)]
        yield f"virtual_a2a3/{shape}", lambda n, shape=shape: [spec_of(shape, n), "--machine", "a2a3"]
    for policy in ["lifo", "cyber_classic", "cyber_choreography", "orleans", "bmf", "ray", "steal"]:
        yield f"policy/{policy}", lambda n, policy=policy: [spec_of("random", n), "--policy", policy]
    yield "trace_read/random", lambda n: [("random:n={n},fanin=3", n)]


REFERENCE = "wall/chain"


def timed():
    """Name and arguments of what is timed."""
    n = 200_000
    for shape in SHAPES:
        yield f"wall/{shape}", [spec_of(shape, n)]
    yield "wall/a2a3", [spec_of("stencil", n), "--machine", "a2a3"]
    yield "wall/threads", [spec_of("stencil", n), "--engine", "threads", "--set", "scheduler.threads=0"]
    yield "wall/bmf", [spec_of("random", n), "--policy", "bmf"]


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


def seconds(program, arguments):
    start = time.perf_counter()
    subprocess.run([program, "run", "--quiet", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def ratios(program, names):
    """Best time of each case as a multiple of the best of the reference, and by how much rounds differ."""
    cases = {name: arguments for name, arguments in timed() if name in names or name == REFERENCE}
    times = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, arguments in cases.items():
            times[name].append(seconds(program, arguments))
    spread = {name: statistics.median(found) / min(found) - 1 for name, found in times.items()}
    best = {name: min(found) for name, found in times.items()}
    return {name: (round(best[name] / best[REFERENCE], 3), spread[name] + spread[REFERENCE]) for name in names}


def hot_paths(path):
    """Name and instructions of every function that gungraun counted."""
    for line in pathlib.Path(path).read_text().splitlines():
        summary = json.loads(line)
        metrics = summary["profiles"][0]["data"]["total"]["metrics"]
        yield f"hot/{summary['function_name']}/{summary['id']}", metrics["Ir"]["values"]["new"]


class Guard:
    """Compares and remembers."""

    def __init__(self):
        self.known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
        self.found, self.slower = {}, []

    def hold(self, group, name, now, what, tolerance=0.0):
        before = self.known.get(group, {}).get(name)
        self.found.setdefault(group, {})[name] = now
        change = f"{(now / before - 1) * 100:+6.2f} %" if before else "     new"
        beyond = f" ± {tolerance * 100:.0f} %" if tolerance else ""
        print(f"{name:34} {now:12} {what} {change}{beyond}", flush=True)
        if before and now > before * (1 + LIMIT + tolerance):
            self.slower.append(name)

    def move(self):
        toolchain = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
        facts = {"toolchain": toolchain, "machine": platform.machine()}
        for group in sorted({*self.known, *self.found} - {"toolchain", "machine"}):
            facts[group] = {**self.known.get(group, {}), **self.found.get(group, {})}
        BASELINE.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"baseline moved: {BASELINE.relative_to(ROOT)}")


def main():
    program, options = sys.argv[1], sys.argv[2:]
    only = options[options.index("--only") + 1] if "--only" in options else ""
    guard = Guard()
    if "--hot" in options:
        for name, now in hot_paths(options[options.index("--hot") + 1]):
            guard.hold("instructions_of_hot_paths", name, now, "instructions")
    else:
        with tempfile.TemporaryDirectory() as scratch:
            for name, arguments_for in counted():
                if only in name:
                    now = round(per_task(program, arguments_for, scratch), 1)
                    guard.hold("instructions_per_task", name, now, "instructions a task")
        names = [name for name, _ in timed() if only in name and name != REFERENCE]
        for name, (ratio, spread) in (ratios(program, names) if names else {}).items():
            guard.hold("ratios_of_wall_time", name, ratio, f"x {REFERENCE}", spread)
    if "--update" in options:
        guard.move()
    elif guard.slower:
        sys.exit(f"more than {LIMIT:.0%} slower than results/baseline.json: {', '.join(guard.slower)}")


if __name__ == "__main__":
    main()

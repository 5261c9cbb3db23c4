#!/usr/bin/env python3
"""Validates `check` and `size` with recorded traces. Usage: validate_data.py PTOSIM DATA

For every trace of DATA/traces:
- `check` finds no error;
- two tasks without order that get a common buffer, one to read and one to write, are the one error found;
- `size` gives answers that complete, alone and together, and one step less of any of them does not.
Then the number of edges and the outcomes with reduced sizes that the production runtime shows.
"""

import glob
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

PTOSIM, DATA = sys.argv[1:3]
KINDS = ["window", "heap", "deps", "tensors"]
RACES = 3
failures = 0


def ptosim(*arguments):
    """Exit code, result and messages of a call."""
    done = subprocess.run([PTOSIM, *arguments, "--json", "-"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr


def tell(name, is_good, facts):
    global failures
    failures += not is_good
    print(f"ok     {name}" if is_good else f"FAILED {name}: {facts}", flush=True)


def settings(limits):
    return [word for key, value in limits.items() for word in ("--set", f"limits.{key}={value}")]


def completes(trace, limits):
    code, result, message = ptosim("run", trace, "--machine", "a2a3", *settings(limits))
    return code == 0 and result["outcome"] == "completed"


def less(kind, size, spare):
    """The next smaller size that can make a difference, if there is one."""
    smaller = {"window": size // 2, "heap": size - 64}.get(kind, size - 1)
    least = {"window": spare + 1, "heap": 64}.get(kind, 0)
    return smaller if smaller >= least else None


def read(trace):
    with gzip.open(trace, "rt") as lines:
        return [json.loads(line) for line in lines]


def regions(task, *words):
    return {(region if isinstance(region, str) else region[0]) for word in words for region in task.get(word, [])}


def befores(tasks):
    """For every task those that may come before it, as bits: all that it names or shares a written buffer with, and theirs."""
    before, users = [], {}
    for index, task in enumerate(tasks):
        producers = set(task.get("deps", []))
        written = regions(task, "out", "inout", "new")
        for buffer in written | regions(task, "in"):
            producers |= {user for user, writes in users.get(buffer, []) if writes or buffer in written}
            users.setdefault(buffer, []).append((index, buffer in written))
        bits = 0
        for producer in producers:
            bits |= before[producer] | 1 << producer
        before.append(bits)
    return before


def seed_race(operations, dice):
    """A copy with a race between two tasks, and their numbers."""
    operations = [dict(operation) for operation in operations]
    tasks = [operation for operation in operations if operation["op"] == "submit"]
    before = befores(tasks)
    pairs = [(i, j) for j in range(len(tasks)) for i in range(max(0, j - 200), j) if not before[j] >> i & 1]
    if not pairs:
        # Everything is one chain: cut it.
        j = dice.randrange(1, len(tasks))
        pairs = [(j - 1, j)]
        tasks[j]["deps"] = []
    reader, writer = dice.choice(pairs)
    for task, word in ((reader, "in"), (writer, "out")):
        tasks[task][word] = tasks[task].get(word, []) + [["seeded", 16, 64]]
    operations.insert(1, {"op": "buffer", "id": "seeded", "bytes": 128})
    return operations, [reader, writer]


def validate_check(trace, name):
    for hazards in ("raw_waw", "full"):
        code, result, message = ptosim("check", trace, "--machine", "a2a3", "--set", f"rules.hazards={hazards}", "--limit", "1")
        tell(f"check {name} ({hazards})", code == 0 and result["errors"] == 0, message or result)
    operations, dice = read(trace), random.Random(name)
    for _ in range(RACES):
        seeded, pair = seed_race(operations, dice)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.writelines(json.dumps(operation) + "\n" for operation in seeded)
            file.flush()
            code, result, message = ptosim("check", file.name, "--machine", "a2a3")
        races = [[task["task"] for task in finding["tasks"]] for finding in result["findings"] if finding["level"] == "error"]
        is_found = code == 1 and races == [pair] and result["counts"]["write_after_read"] == 1
        tell(f"check {name} with a race between tasks {pair[0]} and {pair[1]}", is_found, message or races)


def validate_size(trace, name):
    code, sizing, message = ptosim("size", trace, "--machine", "a2a3")
    tell(f"size {name}", code == 0, message)
    if code != 0:
        return
    unlimited, spare = sizing["unlimited"]["limits"], sizing["spare"]
    for answer in sizing["answers"]:
        verify(trace, f"{name}: {answer['kind']} alone", unlimited, {answer["kind"]: answer["smallest"]["size"]}, spare)
    smallest = sizing["smallest"]["limits"]
    verify(trace, f"{name}: all together", smallest, smallest, spare)
    fast = ptosim("run", trace, "--machine", "a2a3", *settings(sizing["fast"]["limits"]))[1]["makespan"]
    is_fast = fast == sizing["fast"]["makespan"] <= 1.01 * sizing["unlimited"]["makespan"]
    tell(f"size {name}: fast sizes take {fast} of {sizing['unlimited']['makespan']} cycles", is_fast, sizing["fast"])


def verify(trace, name, others, sizes, spare):
    """The sizes complete, and none of them is enough when it is one step smaller."""
    tell(f"size {name}: {sizes} complete", completes(trace, {**others, **sizes}), others)
    for kind, size in sizes.items():
        smaller = less(kind, size, spare)
        if smaller is not None:
            tell(f"size {name}: {kind} {smaller} does not", not completes(trace, {**others, **sizes, kind: smaller}), others)


def validate_edges():
    for name, hazards, edges in [("qwen3_tier3", "raw", 1584), ("qwen3_tier3", "raw_waw", 1608), ("qwen3_tier4", "raw", 888)]:
        trace = f"{DATA}/traces/{name}.jsonl.gz"
        found = ptosim("check", trace, "--set", "workers.clusters=24", "--set", f"rules.hazards={hazards}", "--limit", "0")[1]["edges"]
        tell(f"{name} has {edges} edges ({hazards})", found == edges, found)


def validate_outcomes():
    qwen = "qwen3_14b_decode_40layer"
    for name, clusters, limits, code, told in [
        ("bgemm_case0", 8, {"window": 4}, 1, "deadlock on window of ring 1 with 3 in use"),
        ("bgemm_case0", 8, {"window": 8}, 0, "completed"),
        ("bgemm_case0", 8, {"window": 16}, 0, "completed"),
        ("bgemm_case0", 8, {"heap": 65536}, 2, "262144 bytes"),
        ("fanin64x64", 8, {"deps": 4}, 2, "64 dependency entries"),
        (qwen, 24, {}, 0, "completed"),
        (qwen, 8, {}, 2, "sync_start with 24 blocks"),
        (qwen, 24, {"window": 512}, 0, "completed"),
        (qwen, 24, {"heap": 64 << 20}, 0, "completed"),
    ]:
        machine = ["--machine", "a2a3", "--set", f"workers.clusters={clusters}", *settings(limits)]
        actual, result, message = ptosim("run", f"{DATA}/traces/{name}.jsonl.gz", *machine)
        stuck = result.get("deadlock")
        words = "deadlock on {resource} of ring {ring} with {used} in use".format(**stuck) if stuck else result.get("outcome", message)
        tell(f"{name} on {clusters} clusters, {limits}: {told}", actual == code and told in words, (actual, words))
    trace = f"{DATA}/traces/bgemm_case0.jsonl.gz"
    code, result, message = ptosim("check", trace, "--machine", "a2a3", "--set", "limits.window=4", "--limit", "1")
    finding = result["findings"][0]
    is_good = code == 1 and finding["kind"] == "never_fits" and "limits.window=8 or more" in finding["remedy"]
    tell("check bgemm_case0, window 4", is_good, finding)


for trace in sorted(glob.glob(f"{DATA}/traces/*.jsonl.gz")):
    name = os.path.basename(trace).removesuffix(".jsonl.gz")
    validate_check(trace, name)
    validate_size(trace, name)
validate_edges()
validate_outcomes()
print("all is as it should be" if failures == 0 else f"{failures} failures")
sys.exit(failures > 0)

"""What every policy costs the host: user CPU time of whole runs, and its ratio to `pto`.

    python3 scripts/policy_cost.py [PROGRAM]

Policies take turns, so that a busy machine disturbs all of them alike; the smallest time of several counts.
"""

import os
import subprocess
import sys

POLICIES = (
    "pto cyber_classic cyber_choreography orleans bmf ray per_worker steal predictive heft static lifo random shortest"
).split()
SHAPES = ["random:n=200k,fanin=3", "bgemm:batch=96,m=8,n=8,k=16", "stencil:n=200k", "chain:n=200k", "wavefront:n=200k"]
ROUNDS = 3


def seconds(program, workload, policy):
    """User CPU time of one run."""
    arguments = [program, "run", workload, "--policy", policy, "--json", os.devnull]
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, f"{workload} under {policy} ended with status {status}"
    return usage.ru_utime


def main(program="target/release/ptosim"):
    print("| policy | " + " | ".join(shape.split(":")[0] for shape in SHAPES) + " |")
    print("|---|" + "---:|" * len(SHAPES))
    best = {}
    for _ in range(ROUNDS):
        for shape in SHAPES:
            for policy in POLICIES:
                best[shape, policy] = min(best.get((shape, policy), float("inf")), seconds(program, shape, policy))
    for policy in POLICIES:
        cells = [f"{best[shape, policy]:.3f} s ({best[shape, policy] / best[shape, 'pto']:.2f})" for shape in SHAPES]
        print(f"| `{policy}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])

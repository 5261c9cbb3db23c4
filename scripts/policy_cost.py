"""What every policy costs the host: instructions a task, and the ratio to `pto`.

    python3 scripts/policy_cost.py [PROGRAM] [POLICY,POLICY,…]

Instructions are counted as in bench.py, so that a busy machine does not matter. What a policy does before the run (reading the
program, ranks, plans) counts too.
"""

import sys

import bench

POLICIES = (
    "pto cyber_classic cyber_choreography orleans bmf ray per_worker steal predictive heft static lifo random shortest"
).split()


def main(program="target/release/ptosim", policies=",".join(POLICIES)):
    policies = policies.split(",")
    print("| policy | " + " | ".join(bench.SHAPES) + " |")
    print("|---|" + "---:|" * len(bench.SHAPES))
    base = {}
    for policy in ["pto"] + [policy for policy in policies if policy != "pto"]:
        cells = []
        for name, spec in bench.SHAPES.items():
            arguments = lambda n, spec=spec: [spec.format(n=n, n_200=n // 200), "--policy", policy]
            count = bench.per_task(program, arguments, None)
            base.setdefault(name, count)
            cells.append(f"{count:.0f} ({count / base[name]:.2f})")
        print(f"| `{policy}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

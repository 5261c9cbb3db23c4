#!/usr/bin/env bash
# Checks the readers of other programs' traces against the samples beside the project, when they are there: numbers of tasks
# and dependencies, dependencies found again from files and regions, every command on every format, bounds of STG makespans.
set -euo pipefail
cd "$(dirname "$0")/.."
data="${1:-../shared/data}"
if [ ! -d "$data/formats" ]; then
    echo "no samples in $data: nothing to validate"
    exit 0
fi
cargo build --release --quiet
ptosim=target/release/ptosim
formats="$data/formats"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # name, expected exit code, expected text, command...
    local name="$1" code="$2" text="$3" actual=0
    shift 3
    timeout 300 "$@" >"$work/out" 2>&1 || actual=$?
    if ! [[ "$actual" =~ ^$code$ ]] || ! grep -qE -- "$text" "$work/out"; then
        echo "FAILED $name: exit $actual instead of $code, or no \"$text\""
        head -5 "$work/out"
        failures=$((failures + 1))
    else
        echo "ok     $name"
    fi
}

counts() { # file, tasks, dependencies, options...
    local file="$1" tasks="$2" edges="$3"
    shift 3
    expect "$(basename "$file") has $tasks tasks" 0 "^tasks +$tasks$" "$ptosim" stat "$file" "$@"
    expect "$(basename "$file") has $edges dependencies" 0 "^dependencies +$edges$" "$ptosim" stat "$file" "$@"
}

counts "$formats/chakra/feeder_test_chakra.0.et.gz" "3 664" "181 878"
counts "$formats/chakra/feeder_test_chakra.0.json.gz" "3 664" "181 878"
expect "critical path of the Chakra trace, 46 140 µs" 0 "^critical path +46 140 000 cycles" \
    "$ptosim" stat "$formats/chakra/feeder_test_chakra.0.et.gz" --set clock_mhz=1000
expect "control dependencies in circles are named" 2 "\"n[0-9]+\" waits for itself|in a circle: \"n" \
    "$ptosim" stat "$formats/chakra/feeder_test_chakra.0.et.gz" --edges all
counts "$formats/hicann_topo/mlaprolog_topo.json" 235 473
counts "$formats/hicann_topo/fixed_task_topo.json" 34 60
counts "$formats/simpler/deps.json" 5 6
counts "$formats/simpler/deps.json" 5 6 --edges infer
counts "$formats/simpler/merged_swimlane.json" 5 6
expect "simpler: regions imply what was recorded" 0 "6 recorded dependencies, 6 by --edges infer, 6 in both" \
    "$ptosim" stat "$formats/simpler" --compare-edges
for file in "$formats"/wfformat/*.json; do
    edges="$("$ptosim" stat "$file" | sed -n 's/^dependencies *//p')"
    expect "$(basename "$file"): files imply its $edges dependencies" 0 \
        "^$edges recorded dependencies, $edges by --edges files, $edges in both" "$ptosim" stat "$file" --compare-edges
done
for file in "$formats"/stg_dialects/*/*.stg; do
    expect "$(basename "$file")" 0 "^tasks " "$ptosim" stat "$file"
done

# Every command on every format, recognised and named.
samples=(
    "stg $formats/stg_dialects/apps/robot.stg"
    "wfformat $formats/wfformat/montage-chameleon-2mass-01d-001.json"
    "hicann $formats/hicann_topo/mlaprolog_topo.json"
    "simpler $formats/simpler/deps.json"
    "dax $formats/dag/inspiral-100.dax.xml"
    "dot $formats/dag/daggen-100-0.25-0.9-0.3-2.dot"
    "chrome $formats/simpler/merged_swimlane.json"
    "pytorch $formats/chakra/linear_pytorch_et_1.0.1.json.gz"
    "pytorch $formats/chakra/pytorch_et_1.0.2-chakra.0.0.4.json.gz"
    "chakra $formats/chakra/feeder_test_chakra.0.et.gz"
)
machine=(--set workers.ai_cpu=2 --set workers.accelerator=2)
for sample in "${samples[@]}"; do
    read -r format file <<<"$sample"
    for from in "" "--from=$format"; do
        expect "run $format $from" 0 "completed" "$ptosim" run "$file" $from "${machine[@]}"
    done
    expect "$format in the header of the report" 0 "format $format" "$ptosim" run "$file" "${machine[@]}"
    expect "check $format" "[01]" "errors" "$ptosim" check "$file" --from "$format" "${machine[@]}"
    expect "size $format" 0 "fast together" "$ptosim" size "$file" --from "$format" "${machine[@]}"
    expect "compare $format" 0 "heft" "$ptosim" compare "$file" --from "$format" --policies pto,heft "${machine[@]}"
    expect "standard input as $format" 0 "^tasks " bash -c '"$0" stat - --from "$1" <"$2"' "$ptosim" "$format" "$file"
    printf 'workload = "%s"\nfrom = "%s"\n[set]\n"workers.ai_cpu" = 2\n"workers.accelerator" = 2\n"limits.window" = [4096, 8192]\n' \
        "$file" "$format" >"$work/sweep.toml"
    expect "sweep $format" 0 "results.jsonl" "$ptosim" sweep "$work/sweep.toml" --out "$work/sweep-$RANDOM"
    for to in jsonl ptob dot csv wf.json chrome.json pftrace; do
        expect "convert $format to $to" 0 "" "$ptosim" convert "$file" "$work/out.$to" "${machine[@]}"
    done
    expect "convert $format to simpler" 0 "" "$ptosim" convert "$file" "$work/simpler" --to simpler "${machine[@]}"
    before="$("$ptosim" stat "$file" | grep -E '^(tasks|dependencies|levels|critical path)' || true)"
    for to in jsonl ptob dot wf.json chrome.json; do
        after="$("$ptosim" stat "$work/out.$to" | grep -E '^(tasks|dependencies|levels|critical path)' || true)"
        if [ "$before" != "$after" ]; then
            echo "FAILED $format through $to: another graph"
            failures=$((failures + 1))
        else
            echo "ok     $format through $to"
        fi
    done
done

# No run without costs may end below the proven bound.
for graph in rand0001 rand0010 rand0050 rand0100; do
    for size in 50 100; do
        file="$data/stg/$size/$graph.stg"
        [ -f "$file" ] || continue
        makespan="$("$ptosim" run "$file" --set workers.any=4 --set workers.cube=0 --set workers.vector=0 --json - --quiet |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["makespan"])')"
        bound="$(python3 - "$data/stg/optimal_makespans.csv" "$size" "$graph" <<'PY'
import csv, sys
path, size, graph = sys.argv[1:]
rows = csv.DictReader(open(path))
print(next(row["best_lb"] for row in rows if row["file"] == f"{size}/{graph}.stg" and row["processors"] == "4"))
PY
)"
        if [ "$makespan" -lt "$bound" ]; then
            echo "FAILED $graph of $size: $makespan is below the bound $bound"
            failures=$((failures + 1))
        else
            echo "ok     $graph of $size: $makespan, bound $bound"
        fi
    done
done

[ "$failures" = 0 ] && echo "all formats are read as they should be"
exit "$((failures > 0))"

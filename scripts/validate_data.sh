#!/usr/bin/env bash
# Checks `check` and `size` against the recorded traces beside the project, when they are there:
# no errors in any trace, a seeded race in each that carries regions is found, the outcomes of reduced sizes.
set -euo pipefail
cd "$(dirname "$0")/.."
data="${1:-../shared/data}"
if [ ! -d "$data/traces" ]; then
    echo "no traces in $data: nothing to validate"
    exit 0
fi
cargo build --release --quiet
ptosim=target/release/ptosim
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # name, expected exit code, expected text, command...
    local name="$1" code="$2" text="$3" actual=0
    shift 3
    "$@" >"$work/out" 2>&1 || actual=$?
    if [ "$actual" != "$code" ] || ! grep -qF -- "$text" "$work/out"; then
        echo "FAILED $name: exit $actual instead of $code, or no \"$text\""
        head -5 "$work/out"
        failures=$((failures + 1))
    else
        echo "ok     $name"
    fi
}

for trace in "$data"/traces/*.jsonl.gz; do
    name="$(basename "$trace" .jsonl.gz)"
    expect "check $name" 0 "0 errors" "$ptosim" check "$trace" --machine a2a3
    # A task that overwrites what the last reader may still read, at the end of a copy.
    if zcat "$trace" | grep -q '"in":'; then
        zcat "$trace" >"$work/race.jsonl"
        region="$(grep -o '"in":\[\[[^]]*\]' "$work/race.jsonl" | tail -1 | sed 's/"in":\[//')"
        echo "{\"op\":\"submit\",\"kernel\":\"seeded\",\"cycles\":1,\"out\":[$region]}" >>"$work/race.jsonl"
        expect "check $name with a seeded race" 1 "\`seeded\`" "$ptosim" check "$work/race.jsonl" --machine a2a3
    fi
    expect "size $name" 0 "fast together" "$ptosim" size "$trace" --machine a2a3 --json "$work/size.json"
    # The answer completes; the window one step below does not.
    read -r window heap deps tensors below < <(python3 - "$work/size.json" <<'PY'
import json, sys
sizing = json.load(open(sys.argv[1]))
limits = sizing["smallest"]["limits"]
window = limits["window"]
print(window, limits["heap"], limits["deps"], limits["tensors"], window // 2 if window // 2 > sizing["spare"] else 0)
PY
)
    sizes=(--set limits.heap="$heap" --set limits.deps="$deps" --set limits.tensors="$tensors")
    expect "run $name at the answer" 0 "completed" "$ptosim" run "$trace" --machine a2a3 --set limits.window="$window" "${sizes[@]}"
    if [ "$below" != 0 ]; then
        expect "run $name below it" 1 "deadlock" "$ptosim" run "$trace" --machine a2a3 --set limits.window="$below" "${sizes[@]}"
    fi
done

traces="$data/traces"
run() { # trace, clusters, setting
    echo "$ptosim" run "$traces/$1.jsonl.gz" --machine a2a3 --set workers.clusters="$2" --set "$3"
}
expect "bgemm, window 4" 1 "ring 1" $(run bgemm_case0 8 limits.window=4)
expect "bgemm, window 8" 0 "completed" $(run bgemm_case0 8 limits.window=8)
expect "bgemm, window 16" 0 "completed" $(run bgemm_case0 8 limits.window=16)
expect "bgemm, heap 65536" 2 "262144 bytes" $(run bgemm_case0 8 limits.heap=65536)
expect "fanin, deps 4" 2 "64 dependency entries" $(run fanin64x64 8 limits.deps=4)
expect "qwen on 24 clusters" 0 "completed" $(run qwen3_14b_decode_40layer 24 limits.spare=1)
expect "qwen on 8 clusters" 2 "sync_start with 24 blocks" $(run qwen3_14b_decode_40layer 8 limits.spare=1)
expect "qwen, window 512" 0 "completed" $(run qwen3_14b_decode_40layer 24 limits.window=512)
expect "qwen, heap 64 MiB" 0 "completed" $(run qwen3_14b_decode_40layer 24 limits.heap=64MiB)
expect "check bgemm, window 4" 1 "limits.window=8 or more" \
    "$ptosim" check "$traces/bgemm_case0.jsonl.gz" --machine a2a3 --set limits.window=4

[ "$failures" = 0 ] && echo "all outcomes are as they should be"
exit "$((failures > 0))"

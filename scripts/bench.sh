#!/usr/bin/env bash
# The guard of speed: instructions per task and ratios of wall time against results/baseline.json, more than 3 % is an error.
#   scripts/bench.sh             compare
#   scripts/bench.sh --hot       the same for the hot paths by themselves, counted by gungraun, which it builds under target/
#   scripts/bench.sh --update    move the baseline, to be committed with the reason; also with --hot
#   scripts/bench.sh --only X    cases whose name contains X
# Needs valgrind. Wall-clock benches are `cargo bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind is missing: install the package of that name" >&2; exit 2; }
if [[ " $* " == *" --hot "* ]]; then
    runner=target/tools/bin/gungraun-runner
    [[ -x $runner ]] || cargo install --quiet --locked gungraun-runner --version 0.20.0 --root target/tools
    counts=target/counts/hot_paths.json
    mkdir -p target/counts
    GUNGRAUN_RUNNER=$PWD/$runner CARGO_TARGET_DIR=$PWD/target/counts \
        cargo bench --quiet --manifest-path benches/counts/Cargo.toml -- --output-format=json >"$counts"
    exec python3 scripts/bench.py - --hot "$counts" $([[ " $* " != *" --update "* ]] || echo --update)
fi
cargo build --release --quiet
exec python3 scripts/bench.py target/release/ptosim "$@"

#!/usr/bin/env bash
# The guard of speed: instructions per task against results/baseline.json, more than 3 % is an error.
#   scripts/bench.sh             compare
#   scripts/bench.sh --update    move the baseline, to be committed with the reason
#   scripts/bench.sh --only X    cases whose name contains X
# Needs valgrind. Wall-clock benches are `cargo bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind is missing: install the package of that name" >&2; exit 2; }
cargo build --release --quiet
exec python3 scripts/bench.py target/release/ptosim "$@"

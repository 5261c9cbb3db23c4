#!/usr/bin/env bash
# METG(50 %): the smallest task at which the threaded engine still spends half of its CPUs' time in tasks, for the patterns
# of Task Bench; and on the stencil that of the peers in scripts/peers that are there.
#
#   scripts/metg.sh [--rounds N] [--seconds S] [RESULT]
#
# RESULT gets README.md, runs.csv and two pictures (default: results/<date>-metg); a run takes about S seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
scripts/peers/build.sh target/peers
exec python3 scripts/metg.py target/release/ptosim target/peers "$@"

#!/usr/bin/env bash
# Standard Task Graphs with known optimal makespans, under `pto` and `predictive`, on 2, 4, 8 and 16 identical workers
# without costs. Fails if a makespan is below the proven bound or the mean gap of `predictive` at 50 tasks is too large.
#
#   scripts/stg.sh FOLDER [RESULT]
#
# FOLDER holds 50/*.stg, 100/*.stg and optimal_makespans.csv; RESULT gets README.md and makespans.csv (default: results/<date>-stg).
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?usage: scripts/stg.sh FOLDER [RESULT]}
[ -f "$data/optimal_makespans.csv" ] || { echo "$data/optimal_makespans.csv is not there; name the folder of the graphs" >&2; exit 2; }
result=${2:-results/$(date +%F)-stg}
cargo build --release --quiet
mkdir -p "$result"
python3 scripts/stg.py target/release/ptosim "$data" "$result"

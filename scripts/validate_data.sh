#!/usr/bin/env bash
# Validates `check` and `size` with the recorded traces beside the project, when they are there (validate_data.py tells how).
#   scripts/validate_data.sh [FOLDER]     default: ../shared/data
#   PTOSIM=path                           program to test (default: a release build)
set -euo pipefail
cd "$(dirname "$0")/.."
data="${1:-../shared/data}"
if [[ ! -d $data/traces ]]; then
    echo "validate_data.sh: SKIPPED, NOTHING WAS TESTED: no traces in $data" >&2
    exit 0
fi
if [[ -z ${PTOSIM:-} ]]; then
    cargo build --release --quiet
    PTOSIM=target/release/ptosim
fi
python3 scripts/validate_data.py "$PTOSIM" "$data"

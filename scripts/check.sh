#!/usr/bin/env bash
# The gate before a commit, here and in CI: format, clippy with warnings as errors, tests, documentation, models of the lock-free
# parts with a small bound.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --check
cargo clippy --all-targets -- -D warnings
cargo test
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}" scripts/loom.sh

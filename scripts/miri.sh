#!/usr/bin/env bash
# Miri over the ready ring, the clocks, the memory of kernels and small programs on threads (tests/races): undefined behaviour,
# data races, leaks. Needs nightly with miri and rust-src. File mappings are out of its reach.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup +nightly component add miri rust-src || { echo "miri: SKIPPED, nightly has no miri here" >&2; exit 0; }
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
# A kernel panics on purpose, and Miri takes minutes for a backtrace.
export RUST_BACKTRACE=0
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}"
cargo +nightly miri test --lib -- engine::threads engine::execute window:: --skip four_threads --skip a_mapping
cargo +nightly miri test --test races -- --skip stress

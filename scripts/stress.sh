#!/usr/bin/env bash
# Stress of the threaded engine: 24 + 48 workers, a window of 16, PTOSIM_STRESS tasks of each generator and as many seeds as
# PTOSIM_STRESS_SEEDS; every task exactly once, after its producers, all consumed; 0 to 3 scheduler threads.
set -euo pipefail
cd "$(dirname "$0")/.."

export PTOSIM_STRESS="${PTOSIM_STRESS:-1000000}"
export PTOSIM_STRESS_SEEDS="${PTOSIM_STRESS_SEEDS:-20}"
export PTOSIM_THREAD_SEEDS="${PTOSIM_THREAD_SEEDS:-20000}"
cargo test --release --test it threads -- --test-threads=1 --nocapture

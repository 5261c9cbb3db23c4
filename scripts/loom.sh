#!/usr/bin/env bash
# Models of the lock-free parts under loom: every interleaving within a bound on preemptions. Under three minutes.
# A documented mutation that must fail: in src/window/mod.rs, `link`, the exchange with `Relaxed` instead of `Release`.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}"
cargo test --release --lib loom_tests -- --test-threads=2 "$@"

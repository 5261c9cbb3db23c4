#!/usr/bin/env bash
# The gate before a commit, here and in CI: format, clippy with warnings as errors, tests, models of the lock-free parts,
# documentation, exports with Perfetto's schema, and the pages in a browser where Chromium is there.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --check
cargo clippy --all-targets -- -D warnings
cargo test
scripts/loom.sh
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
PTOSIM=target/debug/ptosim scripts/check_perfetto.sh
INSTALL=0 QUICK=1 PTOSIM=target/debug/ptosim scripts/browser_tests.sh

#!/usr/bin/env bash
# ThreadSanitizer over the threaded engine: ready ring, free and deterministic mode, execute, embedded programs. Needs nightly
# with rust-src. All shared words are atomics, so what it looks for are races in what they publish: descriptions, arguments,
# numbers. It is blind to races between processes.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! rustup +nightly component list 2>/dev/null | grep -q '^rust-src (installed)'; then
    rustup +nightly component add rust-src || { echo "tsan: SKIPPED, nightly has no rust-src here" >&2; exit 0; }
fi
export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
export PTOSIM_STRESS="${PTOSIM_STRESS:-500}" PTOSIM_THREAD_SEEDS="${PTOSIM_THREAD_SEEDS:-100}"
cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --lib engine::threads
cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --test it -- --test-threads=1 \
    threads::every threads::windows threads::random_programs execute::

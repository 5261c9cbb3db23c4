#!/usr/bin/env bash
# ThreadSanitizer over the threaded engine (tests/races): free mode with 0, 1 and 3 scheduler threads, deterministic mode, kernels on
# numbers, embedded programs, tasks that fail, kernels that panic. Needs nightly with rust-src. All shared words are atomics, so what
# it looks for are races in what they publish: descriptions, arguments, numbers, the plain memory of kernels. It is blind to races
# between processes, and it does not know fences; nothing here is published by a fence alone. PTOSIM_ROUNDS repeats it. Most of the
# time goes into building the standard library and everything else with the sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! rustup +nightly component list 2>/dev/null | grep -q '^rust-src (installed)'; then
    rustup +nightly component add rust-src || { echo "tsan: SKIPPED, nightly has no rust-src here" >&2; exit 0; }
fi
export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
# Unoptimised: twice as fast to build, and the programs are small.
export CARGO_PROFILE_DEV_OPT_LEVEL=0
for _ in $(seq "${PTOSIM_ROUNDS:-1}"); do
    cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --test races
done

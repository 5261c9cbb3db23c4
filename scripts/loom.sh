#!/usr/bin/env bash
# Models of the lock-free parts under loom: every interleaving within a bound on preemptions, in under three minutes. tests/loom
# compiles only the files that are modelled. Arguments go to the test program: `scripts/loom.sh linking`.
#
# A documented mutation that must fail: in src/window/links.rs, `link`, the exchange with `Relaxed` instead of `Release`.
# `scripts/loom.sh --mutate` makes it in a copy, and ends well if three models find it.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="$PWD/target/loom"
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}"

if [ "${1:-}" = --mutate ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    mkdir "$copy/tests"
    cp -r src "$copy/src"
    cp -r tests/loom "$copy/tests/loom"
    sed -i 's/compare_exchange(head, index, Release, Acquire)/compare_exchange(head, index, Relaxed, Relaxed)/' "$copy/src/window/links.rs"
    ! diff -q src/window/links.rs "$copy/src/window/links.rs" >/dev/null || { echo "loom: the exchange in link was not found" >&2; exit 1; }
    told=$(cargo test --manifest-path "$copy/tests/loom/Cargo.toml" -- --test-threads=2 window:: 2>&1) && {
        echo "loom: no model finds the mutation" >&2
        exit 1
    }
    grep '^test .* FAILED$' <<<"$told"
    exit 0
fi
cargo test --manifest-path tests/loom/Cargo.toml -- --test-threads=2 "$@"

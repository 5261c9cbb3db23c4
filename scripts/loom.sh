#!/usr/bin/env bash
# Models of the lock-free parts under loom: every interleaving within a bound on preemptions, in under three minutes. tests/loom
# compiles only the files that are modelled. Arguments go to the test program: `scripts/loom.sh linking`.
#
# Documented mutations that must fail, each made in a copy by `scripts/loom.sh --mutate`, which ends well if models find both:
# in src/window/links.rs, `hang`, the exchange with `Relaxed` instead of `Release`; in src/engine/threads/ring.rs, `follow`, the same.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="$PWD/target/loom"
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}"

# mutate FILE BEFORE AFTER MODELS: some of the models must fail after the change.
mutate() {
    rm -rf "$copy/src"
    cp -r src "$copy/src"
    sed -i "s/$2/$3/" "$copy/$1"
    ! diff -q "$1" "$copy/$1" >/dev/null || { echo "loom: \`$2\` was not found in $1" >&2; exit 1; }
    told=$(cargo test --manifest-path "$copy/tests/loom/Cargo.toml" -- --test-threads=2 "$4" 2>&1) && {
        echo "loom: no model finds the mutation of $1" >&2
        exit 1
    }
    grep '^test .* FAILED$' <<<"$told"
}

if [ "${1:-}" = --mutate ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    mkdir "$copy/tests"
    cp -r tests/loom "$copy/tests/loom"
    mutate src/window/links.rs 'compare_exchange(head, index, Release, Acquire)' 'compare_exchange(head, index, Relaxed, Relaxed)' window::
    mutate src/engine/threads/ring.rs 'position + 1, Release, Relaxed' 'position + 1, Relaxed, Relaxed' ring::
    exit 0
fi
cargo test --manifest-path tests/loom/Cargo.toml -- --test-threads=2 "$@"

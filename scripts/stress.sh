#!/usr/bin/env bash
# Stress of the threaded engine: every generator, 24 + 48 workers, a window of 16, 0 to 3 scheduler threads, free and
# deterministic mode: every task exactly once, after its producers, all consumed. Then random programs in free mode against virtual
# time, and the schedule of deterministic mode against virtual time: 2 000 random programs, and every trace.
#
#   scripts/stress.sh [--tasks N] [--seeds N] [--only GENERATOR] [--programs N] [--rotate]
#
# All of it takes hours. With --rotate each seed runs with one number of scheduler threads instead of with all four, and the
# number of executors changes with the seed as always. `--tasks 20000 --seeds 2 --programs 2000` is a matter of minutes. `--programs 0`
# leaves the programs and traces out. Traces are taken from ../shared/data/traces when they are there.
set -euo pipefail
cd "$(dirname "$0")/.."

export PTOSIM_STRESS=1000000 PTOSIM_STRESS_SEEDS=20 PTOSIM_THREAD_SEEDS=20000
while [ $# -gt 0 ]; do
    case "$1" in
        --tasks) PTOSIM_STRESS="$2" ;;
        --seeds) PTOSIM_STRESS_SEEDS="$2" ;;
        --only) export PTOSIM_STRESS_ONLY="$2" ;;
        --programs) PTOSIM_THREAD_SEEDS="$2" ;;
        --rotate) export PTOSIM_STRESS_ROTATE=1; shift; continue ;;
        *) sed -n '2,/^set/p' "$0" | grep '^#' >&2; exit 2 ;;
    esac
    shift 2
done
traces=../shared/data/traces
if [ -z "${PTOSIM_TRACES:-}" ] && [ -d "$traces" ]; then export PTOSIM_TRACES="$traces"; fi

cargo test --release --test races -- --test-threads=1 --nocapture stress::
if [ "$PTOSIM_THREAD_SEEDS" -gt 0 ]; then
    cargo test --release --test it -- --test-threads=1 --nocapture threads::
fi

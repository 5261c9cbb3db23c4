#!/usr/bin/env bash
# What a user could pick instead, on the same graphs in one run: OpenMP, Taskflow, oneTBB and rayon execute empty tasks beside
# the threaded engine, SimGrid and SimPy simulate beside the virtual one. Sources are in scripts/peers.
#
#   scripts/compare_peers.sh [--install] [--tasks N] [--rounds N] [RESULT]
#
# RESULT gets README.md, runs.csv and two pictures (default: results/<date>-peers). A peer that is not there is told and left
# out; --install asks apt-get and pip for them first. TASKFLOW_INCLUDE names a folder with Taskflow's headers when no package
# has them; with --install they come from the sources of mqt.ddsim, which contain them.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --install ]]; then
    shift
    apt-get update -qq || echo "apt-get update failed" >&2
    for package in g++ libtbb-dev libtaskflow-cpp-dev libsimgrid-dev; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null || echo "no package $package" >&2
    done
    python3 -m pip install --quiet simpy || echo "no package simpy" >&2
    if [[ -z ${TASKFLOW_INCLUDE:-} && ! -e /usr/include/taskflow ]]; then
        mkdir -p target/peers/sources
        python3 -m pip download --quiet --no-deps --no-binary mqt.ddsim -d target/peers/sources mqt.ddsim==1.20.0 &&
            tar xzf target/peers/sources/mqt_ddsim-1.20.0.tar.gz -C target/peers/sources --strip-components=3 \
                mqt_ddsim-1.20.0/extern/taskflow/taskflow || echo "no sources of taskflow" >&2
    fi
fi
if [[ -z ${TASKFLOW_INCLUDE:-} && -e target/peers/sources/taskflow ]]; then
    export TASKFLOW_INCLUDE=$PWD/target/peers/sources
fi

cargo build --release --quiet
scripts/peers/build.sh target/peers
exec python3 scripts/compare_peers.py target/release/ptosim target/peers "$@"

#!/usr/bin/env bash
# Builds the peers that this machine has the libraries for into a folder; names those that it has not.
#   scripts/peers/build.sh FOLDER
set -euo pipefail
folder=$(realpath -m "${1:?usage: scripts/peers/build.sh FOLDER}")
cd "$(dirname "$0")"
mkdir -p "$folder"

# peer NAME PROBE FLAGS...: compiles NAME.cpp if the line PROBE compiles.
peer() {
    local name=$1 probe=$2
    shift 2
    if [[ $folder/$name -nt $name.cpp && $folder/$name -nt graphs.hpp ]]; then return; fi
    rm -f "$folder/$name"
    if ! echo "$probe" | g++ -std=c++20 -x c++ -fsyntax-only "$@" - 2>/dev/null; then
        echo "$name is not there: left out" >&2
        return
    fi
    g++ -O3 -DNDEBUG -std=c++20 -Wall -Wextra -pthread "$name.cpp" -o "$folder/$name" "$@"
}

peer openmp '#include <omp.h>' -fopenmp
peer taskflow '#include <taskflow/taskflow.hpp>' ${TASKFLOW_INCLUDE:+-isystem "$TASKFLOW_INCLUDE"}
peer onetbb '#include <tbb/flow_graph.h>' -ltbb
peer simgrid '#include <simgrid/s4u.hpp>' -lsimgrid

if CARGO_TARGET_DIR=$folder/cargo cargo build --release --quiet --manifest-path rayon/Cargo.toml; then
    ln -sf cargo/release/peer-rayon "$folder/rayon"
else
    echo "rayon cannot be built: left out" >&2
fi

#!/usr/bin/env bash
# Checks Perfetto exports of several workloads with Perfetto's own schema, and that the check sees a wrong one. Installs the PyPI
# packages it needs below target/ where it can, and says so loudly where it cannot: then nothing is checked and the exit code is 0.
#   PTOSIM=path   program (default: a release build)
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/perfetto
mkdir -p "$folder"
python=python3
if ! python3 -c "import perfetto, google.protobuf" 2> /dev/null; then
    python=$folder/venv/bin/python3
    if [[ ! -x $python ]] && ! { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install perfetto protobuf; } > "$folder/install.log" 2>&1; then
        rm -rf "$folder/venv"
        echo "check_perfetto.sh: SKIPPED, NOTHING WAS CHECKED: no PyPI packages perfetto and protobuf" >&2
        exit 0
    fi
fi
if [[ -z ${PTOSIM:-} ]]; then
    cargo build --release --quiet
    PTOSIM=target/release/ptosim
fi

export_run() { # workload, options
    "$PTOSIM" run "$@" --quiet --perfetto "$folder/run.pftrace" --schedule "$folder/run.csv" --json "$folder/run.json"
}
check() { # schedule
    "$python" scripts/check_perfetto.py "$folder/run.pftrace" "$1" "$folder/run.json"
}

while read -r workload options; do
    # Slices without arrows are written in another way than those with.
    for arrows in "" --flows; do
        # shellcheck disable=SC2086
        export_run "$workload" $options $arrows
        echo -n "$workload $options $arrows: "
        check "$folder/run.csv"
    done
done << 'RUNS'
bgemm:batch=2,m=4,n=4,k=4 --machine a2a3
cholesky:tiles=12 --machine reference
transformer:layers=1 --machine a5
random:n=5k,fanin=3 --set limits.window=64
RUNS

awk -F, -v OFS=, 'NR == 5 { $7 += 1 } { print }' "$folder/run.csv" > "$folder/wrong.csv"
if check "$folder/wrong.csv" 2> "$folder/wrong.log"; then
    echo "check_perfetto.sh: FAILED: a schedule with a wrong row went unnoticed" >&2
    exit 1
fi
echo "a schedule with a wrong row is refused: $(cat "$folder/wrong.log")"

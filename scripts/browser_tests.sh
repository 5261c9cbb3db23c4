#!/usr/bin/env bash
# Tests the HTML pages in a headless Chromium. Installs Debian's chromium and npm's playwright-core where it can, and says so
# loudly where it cannot: then nothing is tested and the exit code is 0, or 1 with REQUIRE_BROWSER=1.
#   PTOSIM=path        program to test (default: a release build)
#   CHROMIUM=path      browser
#   INSTALL=0          does not install Chromium
#   QUICK=1            without the pages of a million blocks
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "browser_tests.sh: SKIPPED, NOTHING WAS TESTED: $1" >&2
    exit "${REQUIRE_BROWSER:-0}"
}

folder=target/browser
mkdir -p "$folder"

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [[ -z $CHROMIUM && ${INSTALL:-1} == 1 ]] && command -v apt-get > /dev/null && [[ $(id -u) == 0 ]]; then
    echo "installing chromium and a font"
    { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } > "$folder/install.log" 2>&1 || true
    CHROMIUM=$(command -v chromium || true)
fi
[[ -x $CHROMIUM ]] || skip "no Chromium (Debian: apt-get install chromium fonts-dejavu-core)"
command -v npm > /dev/null || skip "no npm, which playwright-core comes from"
if [[ ! -d $folder/node_modules/playwright-core ]]; then
    echo "installing playwright-core"
    npm install --prefix "$folder" --no-audit --no-fund playwright-core > "$folder/npm.log" 2>&1 || skip "npm cannot install playwright-core"
fi

if [[ -z ${PTOSIM:-} ]]; then
    cargo build --release --quiet
    PTOSIM=target/release/ptosim
fi

echo "making pages in $folder"
"$PTOSIM" run bgemm:batch=2,m=4,n=4,k=4 --machine a2a3 --set workers.clusters=6 --what-if --quiet \
    --html "$folder/plain.html" --json "$folder/plain.json" --schedule "$folder/plain.csv"
python3 - "$folder" << 'PYTHON'
import json, sys
folder = sys.argv[1]
names = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "quotes \" ' ` & < > \\ / end", "x" * 10000,
         "emoji 🚀👩‍👩‍👧‍👦 ✓", "ümläut 漢字 العربية", "${7*7} {{7*7}} %s \u0000 tab\t", "<b>bold</b><!-- comment"]
with open(f"{folder}/nasty.jsonl", "w") as out:
    out.write(json.dumps({"op": "header", "format": "ptosim-trace", "version": 1, "name": "<b>nasty</b> & \"quoted\" " + "w" * 300}) + "\n")
    for i, name in enumerate(names):
        task = {"op": "submit", "name": name, "kernel": name, "cycles": 100 + i}
        if i:
            task["deps"] = [i - 1]
        out.write(json.dumps(task) + "\n")
json.dump(names, open(f"{folder}/nasty-names.json", "w"))
with open(f"{folder}/stuck.jsonl", "w") as out:
    out.write(json.dumps({"op": "header", "format": "ptosim-trace", "version": 1, "name": "stuck"}) + "\n")
    out.write(json.dumps({"op": "scope_begin"}) + "\n")
    for i in range(12):
        out.write(json.dumps({"op": "submit", "name": f"held{i}", "kernel": "tile_add", "cycles": 50, "deps": [i - 1] if i else []}) + "\n")
with open(f"{folder}/huge.jsonl", "w") as out:
    out.write(json.dumps({"op": "header", "format": "ptosim-trace", "version": 1, "name": "huge"}) + "\n")
    out.write(json.dumps({"op": "submit", "cycles": 2**61}) + "\n")
PYTHON
"$PTOSIM" run "$folder/nasty.jsonl" --quiet --html "$folder/nasty.html"
"$PTOSIM" run "$folder/stuck.jsonl" --set limits.window=8 --quiet --html "$folder/stuck.html" --json "$folder/stuck.json" 2> /dev/null || true
"$PTOSIM" report "$folder/plain.json" --html "$folder/from-result.html"
"$PTOSIM" report "$folder/plain.json" --schedule "$folder/plain.csv" --html "$folder/from-schedule.html"
"$PTOSIM" run bgemm:batch=2,m=4,n=4,k=4 --engine threads --quiet --html "$folder/threads.html"
"$PTOSIM" run "$folder/huge.jsonl" --quiet --html "$folder/huge.html"
"$PTOSIM" run chain:n=2100k --quiet --html "$folder/coarse.html"
"$PTOSIM" run random:n=10k --machine a2a3 --quiet --html "$folder/small.html"
rm -f "$folder"/million-*.html
if [[ -z ${QUICK:-} ]]; then
    "$PTOSIM" run chain:n=1M --quiet --html "$folder/million-chain.html"
    "$PTOSIM" run random:n=1M,fanin=3 --machine reference --quiet --html "$folder/million-random.html"
fi
"$PTOSIM" compare cholesky:tiles=6 --policies all --set workers.clusters=2 --html "$folder/compare.html" --json "$folder/compare.json" > /dev/null
"$PTOSIM" compare "$folder/stuck.jsonl" --policies pto,heft --set limits.window=8 --html "$folder/compare-stuck.html" > /dev/null || true
cat > "$folder/sweep.toml" << 'TOML'
name = "window and clusters"
workload = ["cholesky:tiles=8"]
machine = ["a2a3"]
policy = ["pto", "heft"]
[set]
"limits.window" = { from = 16, to = 256, times = 2 }
"workers.clusters" = [1, 2, 4]
"orchestrator.submit" = 10
"orchestrator.per_edge" = 1
TOML
rm -rf "$folder/sweep"
"$PTOSIM" sweep "$folder/sweep.toml" --out "$folder/sweep" > /dev/null
cp "$folder/sweep/report.html" "$folder/sweep.html"
cat > "$folder/near.toml" << 'TOML'
name = "near values"
workload = ["cholesky:tiles=5"]
machine = ["ideal", "a2a3"]
[set]
"limits.window" = [8, 16]
"workers.clusters" = [1, 2]
TOML
rm -rf "$folder/near"
"$PTOSIM" sweep "$folder/near.toml" --out "$folder/near" > /dev/null
cp "$folder/near/report.html" "$folder/near.html"
"$PTOSIM" size cholesky:tiles=6 --machine a2a3 --svg "$folder/size.svg" > /dev/null

cp tests/browser/report.mjs "$folder/report.mjs"
CHROMIUM=$CHROMIUM node "$folder/report.mjs" "$folder"

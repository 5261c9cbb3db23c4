#!/usr/bin/env bash
# Renders the reports of five generators and stores pictures of them under results/gallery/, with the page docs/gallery.md.
# Needs what scripts/browser_tests.sh needs, and says so loudly when it is not there.
#   PTOSIM=path   program (default: a release build)      CHROMIUM=path   browser
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "gallery.sh: SKIPPED, NO PICTURE WAS MADE: $1" >&2
    exit 0
}

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[[ -n $CHROMIUM ]] || skip "no Chromium; scripts/browser_tests.sh installs it where it can"
folder=target/browser
mkdir -p "$folder" results/gallery
if [[ ! -d $folder/node_modules/playwright-core ]]; then
    npm install --prefix "$folder" --no-audit --no-fund playwright-core > "$folder/npm.log" 2>&1 || skip "npm cannot install playwright-core"
fi
if [[ -z ${PTOSIM:-} ]]; then
    cargo build --release --quiet
    PTOSIM=target/release/ptosim
fi

render() { # name, workload, options
    local name=$1 workload=$2
    shift 2
    "$PTOSIM" run "$workload" "$@" --quiet --html "$folder/gallery-$name.html" || true
}

render cholesky cholesky --machine reference
render flash_attention flash_attention:batch=1,heads=2,queries=8,keys=8 --machine a2a3 --set orchestrator.submit=60 --set orchestrator.per_edge=10 --what-if
render transformer transformer:layers=2 --machine reference --set limits.window=256 --what-if
render stencil stencil --machine reference
render moe moe --machine a5 --set orchestrator.submit=100 --set orchestrator.per_edge=20

cat > "$folder/gallery.mjs" << 'JAVASCRIPT'
import { chromium } from "playwright-core";
import path from "node:path";
const [folder, target] = process.argv.slice(2).map((name) => path.resolve(name));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--no-first-run"] });
for (const [name, scheme] of [["cholesky", "light"], ["flash_attention", "dark"], ["transformer", "light"], ["stencil", "dark"], ["moe", "light"]]) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, colorScheme: scheme });
  await page.goto(`file://${folder}/gallery-${name}.html`);
  await page.waitForFunction(() => window.ptosim && window.ptosim.ready);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: `${target}/${name}.png` });
  await page.close();
}
await browser.close();
JAVASCRIPT
CHROMIUM=$CHROMIUM node "$folder/gallery.mjs" "$folder" results/gallery
ls -l results/gallery

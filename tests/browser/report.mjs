// Opens report pages in a headless Chromium and checks what a reader would see.
// Usage: node report.mjs FOLDER   (the folder holds the pages and results that browser_tests.sh made)

import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const folder = path.resolve(process.argv[2]);
// Processor time of the page, so that other programs on the host do not decide.
const LONGEST_OPEN_MS = Number(process.env.LONGEST_OPEN_MS || 2000);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: FLAGS });
let failures = 0;

/// Opens a page of the folder; anything on the console, any request and any dialog fails the test.
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: options.width || 1280, height: 900 }, colorScheme: options.scheme || "light" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) complaints.push(`request: ${request.url()}`); });
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable");
  const started = Date.now();
  await page.goto(`file://${folder}/${name}.html`);
  await page.waitForFunction(() => window.ptosim && window.ptosim.ready);
  await settled(page);
  const milliseconds = Date.now() - started;
  const { metrics } = await session.send("Performance.getMetrics");
  const processor = 1000 * metrics.find((metric) => metric.name === "ProcessTime").value;
  return { page, context, complaints, milliseconds, processor };
}

const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const result = (name) => JSON.parse(fs.readFileSync(`${folder}/${name}.json`, "utf8"));
const sum = (values) => values.reduce((a, b) => a + b, 0);

async function test(title, action) {
  const pages = [];
  const openOne = async (...args) => {
    const opened = await open(...args);
    pages.push(opened);
    return opened;
  };
  try {
    await action(openOne);
    for (const { complaints } of pages) assert.deepEqual(complaints, []);
    console.log(`ok    ${title}`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL  ${title}\n${error.stack}`);
  }
  for (const { context } of pages) await context.close();
}

await test("the timeline has a lane for every worker and shows every block", async (open) => {
  const { page } = await open("plain");
  const expected = result("plain");
  const lanes = await page.evaluate(() => window.ptosim.data.lanes.map((lane) => [lane.kind, lane.n]));
  assert.equal(lanes.filter(([kind]) => kind === "worker").length, expected.workers.length);
  assert.equal(lanes.filter(([kind]) => kind === "orchestrator").length, 1);
  assert.ok(lanes.some(([kind, n]) => kind === "scheduler" && n > 0));
  assert.deepEqual(lanes.filter(([kind]) => kind === "worker").map(([, n]) => n), expected.workers.map((worker) => worker.blocks));
  const drawn = await page.evaluate(() => {
    const { view } = window.ptosim;
    view.spacer.style.height = "4000px"; view.height = 4000; view.draw();
    return view.blocksDrawn;
  });
  assert.equal(drawn, sum(expected.workers.map((worker) => worker.blocks)));
});

await test("blocks stand where the schedule says", async (open) => {
  const { page } = await open("plain");
  const rows = fs.readFileSync(`${folder}/plain.csv`, "utf8").trim().split("\n").slice(1).map((line) => line.split(",").map(Number));
  const found = await page.evaluate(() => {
    const rows = [];
    window.ptosim.data.lanes.filter((lane) => lane.kind === "worker").forEach((lane, worker) => {
      for (let i = 0; i < lane.n; i += 1) {
        rows.push([lane.task[i], lane.part.get(i) || 0, worker, window.ptosim.data.tasks.submit[lane.task[i]], lane.start[i] - lane.wait[i], lane.start[i], lane.end[i]]);
      }
    });
    return rows;
  });
  const key = (row) => row.join(",");
  assert.deepEqual(found.map(key).sort(), rows.map(key).sort());
});

await test("sums in the page are those of the result", async (open) => {
  const { page } = await open("plain");
  const expected = result("plain");
  const parts = await page.evaluate((chart) => Array.from(document.querySelectorAll(`[data-chart="${chart}"] [data-part]`), (node) => [node.dataset.part, Number(node.dataset.cycles)]), "workers");
  for (const account of Object.keys(expected.workers[0].accounts)) {
    const shown = sum(parts.filter(([name]) => name === account).map(([, cycles]) => cycles));
    assert.equal(shown, sum(expected.workers.map((worker) => worker.accounts[account])), account);
  }
  assert.equal(sum(parts.map(([, cycles]) => cycles)), expected.workers.length * expected.makespan);
  const blame = await page.evaluate(() => Array.from(document.querySelectorAll("[data-blame]"), (row) => [row.dataset.blame, Number(row.dataset.cycles)]));
  assert.deepEqual(Object.fromEntries(blame), expected.path.blame);
  assert.equal(sum(blame.map(([, cycles]) => cycles)), expected.makespan);
  const waits = await page.evaluate(() => Array.from(document.querySelectorAll(".histogram"), (node) => Array.from(node.children, (bar) => Number(bar.dataset.count)).reduce((a, b) => a + b, 0)));
  assert.deepEqual(waits, [expected.latency.submit_to_ready.count, expected.latency.ready_to_start.count]);
});

await test("keys, buttons and the wheel zoom and move", async (open) => {
  const { page } = await open("plain");
  const span = () => page.evaluate(() => window.ptosim.view.view);
  const whole = await span();
  await page.focus("canvas");
  await page.keyboard.press("+");
  const nearer = await span();
  assert.ok(nearer.to - nearer.from < whole.to - whole.from);
  await page.keyboard.press("ArrowRight");
  assert.ok((await span()).from > nearer.from);
  await page.keyboard.press("0");
  assert.deepEqual(await span(), whole);
  await page.click("button[aria-label='Zoom in']");
  assert.ok((await span()).to - (await span()).from < whole.to - whole.from);
  await page.click("button[aria-label='Show the whole run']");
  const box = await page.locator("canvas").boundingBox();
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  const after = await span();
  assert.ok(after.to - after.from < whole.to - whole.from);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 60, { steps: 4 });
  await page.mouse.up();
  assert.ok((await span()).from > after.from, "dragging to the left shows what comes later");
});

await test("the axis names whole cycles, each once, however near it is", async (open) => {
  const { page } = await open("plain");
  const { ticks, end } = await page.evaluate(() => {
    const { view } = window.ptosim;
    const { end } = view.data;
    const ticks = [];
    const look = (from, to) => { view.view = { from, to }; ticks.push(view.ticks()); };
    look(0, 5);
    for (let span = end; span >= 1; span /= 3) look(end - span, end);
    // A view far behind the beginning of a long run.
    for (let span = 1e9; span >= 1; span /= 7) look(123456789000, 123456789000 + span);
    return { ticks, end };
  });
  assert.deepEqual(ticks[0].map(([tick]) => tick), [0, 1, 2, 3, 4, 5]);
  for (const list of ticks) {
    const texts = list.map(([, text]) => text);
    assert.equal(new Set(texts).size, texts.length, texts.join(" "));
    assert.ok(list.every(([tick]) => Number.isInteger(tick)), `${end}: ${texts.join(" ")}`);
  }
});

await test("a click shows producers and consumers, and they lead on", async (open) => {
  const { page } = await open("plain");
  const target = await page.evaluate(() => {
    const { data, view, browser } = window.ptosim;
    const task = data.tasks.first.findIndex((first, i) => i > 0 && first > data.tasks.first[i - 1]) - 1;
    browser.goTo(task);
    browser.select(null);
    const place = view.tasks.place(task);
    const lane = data.lanes[place.lane];
    view.show(lane.start[place.row] - 50, lane.end[place.row] + 50);
    view.draw();
    return { task, x: view.x((lane.start[place.row] + lane.end[place.row]) / 2), y: view.y(view.laneOf.get(place.lane)) + view.row / 2, producers: view.tasks.producers(task).map((producer) => view.tasks.label(producer)), label: view.tasks.label(task) };
  });
  const box = await page.locator("canvas").boundingBox();
  await page.mouse.move(box.x + target.x, box.y + target.y);
  assert.ok((await page.locator(".tip").innerText()).includes(target.label));
  await page.mouse.click(box.x + target.x, box.y + target.y);
  assert.equal(await page.locator("#detail h3").innerText(), target.label);
  const listed = await page.locator("[data-links='Producers'] button").allInnerTexts();
  assert.deepEqual(listed, target.producers.slice(0, listed.length));
  await page.locator("[data-links='Producers'] button").first().click();
  assert.equal(await page.locator("#detail h3").innerText(), target.producers[0]);
  await page.focus("canvas");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#detail").innerText(), "");
  await page.keyboard.press(".");
  assert.notEqual(await page.locator("#detail h3").innerText(), "");
});

await test("the search finds tasks and kernels", async (open) => {
  const { page } = await open("plain");
  const expected = result("plain");
  const kernel = expected.kernels[0];
  await page.keyboard.press("/");
  await page.keyboard.type(kernel.name);
  const found = await page.evaluate(() => window.ptosim.finder.found.length);
  assert.equal(found, sum(expected.kernels.filter((other) => other.name.includes(kernel.name)).map((other) => other.count)));
  await page.keyboard.press("Enter");
  assert.match(await page.locator(".tools output").innerText(), /^1 of /);
  await page.fill("#search", "#7");
  assert.equal(await page.evaluate(() => window.ptosim.finder.found.every(({ lane, row }) => window.ptosim.data.lanes[lane].task[row] === 7)), true);
  await page.fill("#search", "no such thing");
  assert.match(await page.locator(".tools output").innerText(), /^0 blocks/);
  // A default name is a name, unless the task has another.
  const blocksOf = (page, text) => page.evaluate((text) => { const { finder, data } = window.ptosim; finder.run(text); return finder.found.map(({ lane, row }) => data.lanes[lane].task[row]); }, text);
  const named = await open("stuck");
  assert.deepEqual(await blocksOf(named.page, "held3"), [3]);
  assert.deepEqual(await blocksOf(named.page, "task3"), []);
  const unnamed = await open("huge");
  for (const text of ["task0", "Task0 ", "#0", "0"]) assert.deepEqual(await blocksOf(unnamed.page, text), [0], text);
});

await test("a search in a page without single blocks says that they are not kept", async (open) => {
  const { page } = await open("coarse");
  const answer = async (text) => { await page.fill("#search", text); return page.locator(".tools output").innerText(); };
  const kernel = await page.evaluate(() => window.ptosim.report.kernels[0].name);
  assert.match(await answer("12"), /^task 12 is not kept$/);
  assert.match(await answer("task12"), /^task 12 is not kept$/);
  assert.match(await answer("#9999999"), /^0 blocks/);
  assert.match(await answer("no such thing"), /^0 blocks/);
  assert.equal(await answer(kernel), "blocks are not kept");
});

await test("a page says when its numbers are rounded, and breaks none inside a group", async (open) => {
  const { page } = await open("huge", { width: 400 });
  assert.match(await page.locator(".rounded").innerText(), /beyond 2\^53/);
  const lines = (await page.locator(".card b").first().innerText()).split("\u202f").map((part) => part.trim().length);
  assert.ok(lines.slice(1).every((length) => length === 3), String(lines));
  const heights = await page.evaluate(() => {
    const text = document.querySelector(".card b");
    return Array.from(text.childNodes).filter((node) => node.nodeType === 3 && node.data.trim()).map((node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getClientRects().length;
    });
  });
  assert.ok(heights.length > 5 && heights.every((rows) => rows === 1), String(heights));
  const plain = await open("plain");
  assert.equal(await plain.page.locator(".rounded").count(), 0);
});

await test("the kernel table sorts by every column", async (open) => {
  const { page } = await open("plain");
  const column = (n) => page.locator(`#kernel-table tbody tr td:nth-child(${n})`).allInnerTexts();
  const numbers = async (n) => (await column(n)).map((text) => Number(text.replace(/[^\d.]/g, "")));
  for (const n of [2, 3, 6]) {
    await page.locator(`#kernel-table th:nth-child(${n}) button`).click();
    const down = await numbers(n);
    const sorted = [...down].sort((a, b) => b - a);
    const isUp = (await page.locator(`#kernel-table th:nth-child(${n})`).getAttribute("aria-sort")) === "ascending";
    assert.deepEqual(down, isUp ? sorted.reverse() : sorted);
  }
});

await test("names are text, whatever they contain", async (open) => {
  const { page } = await open("nasty");
  const names = JSON.parse(fs.readFileSync(`${folder}/nasty-names.json`, "utf8"));
  const shown = await page.evaluate((count) => Array.from({ length: count }, (_, task) => window.ptosim.view.tasks.label(task)), names.length);
  assert.deepEqual(shown, names);
  for (let task = 0; task < names.length; task += 1) {
    await page.evaluate((task) => window.ptosim.browser.goTo(task), task);
    assert.equal(await page.locator("#detail h3").evaluate((node) => node.textContent), names[task]);
  }
  assert.equal(await page.evaluate(() => document.querySelectorAll("main script, main img, main b b").length), 0);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
});

await test("a deadlock shows what holds what", async (open) => {
  const { page } = await open("stuck");
  const text = await page.locator("#deadlock").innerText();
  const { deadlock } = result("stuck");
  assert.ok(text.includes(`Task ${deadlock.task}`) && text.includes(`Task ${deadlock.oldest.task}`), text);
  for (const [key, value] of Object.entries(deadlock.needed)) assert.ok(text.includes(`--set ${key}=${value}`), text);
});

await test("a page made from a result alone says what is missing", async (open) => {
  const { page } = await open("from-result");
  assert.match(await page.locator("#timeline").innerText(), /holds no timeline/);
  assert.ok(await page.locator("#kernel-table tbody tr").count() > 0);
  const blocks = await open("from-schedule");
  const lanes = await blocks.page.evaluate(() => window.ptosim.data.lanes.filter((lane) => lane.kind === "worker").map((lane) => lane.n));
  assert.deepEqual(lanes, result("plain").workers.map((worker) => worker.blocks));
});

await test("a page of blocks alone says what is not recorded", async (open) => {
  for (const [name, hasPath] of [["from-schedule", true], ["threads", false]]) {
    const { page } = await open(name);
    await page.evaluate(() => window.ptosim.browser.goTo(5));
    const detail = await page.locator("#detail").innerText();
    assert.match(detail, /kernel not recorded/);
    assert.match(detail, /producers and consumers are not recorded/);
    assert.equal(await page.locator("[data-links]").count(), 0);
    const timeline = await page.locator("#timeline").innerText();
    assert.match(timeline, /Kernels and dependencies of the blocks are not recorded/);
    assert.doesNotMatch(timeline, /too many to draw/);
    assert.equal(await page.locator("#timeline .legend > span").count(), 0, "no block has the colour of its kernel");
    assert.equal(await page.locator("#kernel-table i.key").count(), 0);
    assert.equal(await page.locator("#critical-path").count(), hasPath ? 1 : 0);
    assert.equal(await page.locator("#runtime").count(), hasPath ? 1 : 0);
    assert.equal(await page.locator("tbody:empty").count(), 0);
  }
  const { page } = await open("huge");
  await page.evaluate(() => window.ptosim.browser.goTo(0));
  assert.match(await page.locator("#detail").innerText(), /Producers: none linked\s+Consumers: none linked/);
});

await test("a comparison tells no ratio for what did not complete", async (open) => {
  const { page } = await open("compare-stuck");
  assert.deepEqual(await page.locator("#policies tbody td:nth-child(4)").allInnerTexts(), ["–", "–"]);
});

await test("labels of a sweep do not overlap, whatever is on the axes", async (open) => {
  for (const width of [1280, 400]) {
    const { page } = await open("near", { width });
    const options = await page.locator("#x option").allInnerTexts();
    for (const option of options) {
      await page.selectOption("#x", option);
      await page.selectOption("#y", option);
      await page.selectOption("#columns", options.includes(option) && await page.locator(`#columns option[value="${option}"]`).count() ? option : "machine");
      const faults = await page.evaluate(() => Array.from(document.querySelectorAll("svg.picture"), (picture) => {
        const boxes = Array.from(picture.querySelectorAll("text"), (node) => ({ text: node.textContent, box: node.getBoundingClientRect() }));
        const outside = boxes.filter(({ box }) => box.left < 0 || box.right > document.documentElement.clientWidth);
        const overlapping = boxes.filter(({ box: a }, i) => boxes.slice(0, i).some(({ box: b }) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1));
        return [...outside, ...overlapping].map(({ text }) => text);
      }).flat());
      assert.deepEqual(faults, [], `${width} ${option}`);
      const ends = await page.evaluate((option) => {
        const values = window.ptosim.runs.map((run) => run[option]).filter((value) => typeof value === "number");
        return values.length ? [Math.min(...values), Math.max(...values)].map((value) => [value, Array.from(document.querySelectorAll("svg.picture text"), (node) => node.textContent)]) : [];
      }, option);
      if (option === "makespan") for (const [value, texts] of ends) assert.equal(texts.filter((text) => Number(text.replace(/\D/g, "")) === value).length, 2, `${value} in ${texts}`);
    }
  }
});

await test("a comparison shows every policy, its makespan and the bound", async (open) => {
  const { page } = await open("compare");
  const expected = result("compare").policies.filter((row) => row.result);
  const bars = await page.evaluate(() => Array.from(document.querySelectorAll("[data-policy]"), (bar) => ({
    policy: bar.dataset.policy, cycles: Number(bar.dataset.cycles), width: bar.getBoundingClientRect().width, bound: bar.nextSibling.getBoundingClientRect().x - bar.getBoundingClientRect().x })));
  const cycles = Object.fromEntries(expected.map((row) => [row.policy, row.result.makespan]));
  assert.deepEqual(Object.fromEntries(bars.map((bar) => [bar.policy, bar.cycles])), cycles);
  const longest = bars.reduce((a, b) => (a.cycles > b.cycles ? a : b));
  for (const bar of bars) {
    assert.ok(Math.abs(bar.width / longest.width - bar.cycles / longest.cycles) < 0.01, bar.policy);
    const { lower_bound } = expected.find((row) => row.policy === bar.policy).result;
    assert.ok(Math.abs(bar.bound / longest.width - lower_bound / longest.cycles) < 0.01, bar.policy);
  }
  const shown = (await page.locator("#policies tbody td:nth-child(3)").allInnerTexts()).map((text) => Number(text.replace(/\D/g, "")));
  assert.deepEqual(shown, Object.values(cycles).sort((a, b) => a - b));
});

await test("a sweep shows every run that completed, over any parameter", async (open) => {
  const { page } = await open("sweep");
  const runs = fs.readFileSync(`${folder}/sweep/results.jsonl`, "utf8").trim().split("\n").map((line) => JSON.parse(line)).filter((run) => run.outcome === "completed");
  assert.equal(await page.locator("[data-run]").count(), runs.length);
  await page.selectOption("#columns", "limits.window");
  await page.selectOption("#lines", "workers.clusters");
  const distinct = (key) => new Set(runs.map((run) => run.settings[key])).size;
  assert.equal(await page.locator("[data-cell]").count(), distinct("limits.window") * distinct("workers.clusters"));
  const fastest = Math.min(...runs.map((run) => run.makespan));
  assert.equal(Number((await page.locator("#runs tbody td").first().innerText()).replace(/\D/g, "")), fastest);
  const before = await page.locator("[data-run]").first().getAttribute("cx");
  await page.selectOption("#x", "makespan");
  assert.notEqual(await page.locator("[data-run]").first().getAttribute("cx"), before);
});

await test("nothing overlaps or is cut off, light and dark, wide and narrow, on paper", async (open) => {
  for (const name of ["plain", "nasty", "stuck", "threads", "huge", "compare", "sweep", "near"]) {
    for (const scheme of ["light", "dark"]) {
      for (const width of [1280, 400]) {
        const { page } = await open(name, { scheme, width });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(wide, 0, `${name} ${scheme} ${width}: ${wide} pixels too wide`);
        const boxes = await page.evaluate(() => Array.from(document.querySelectorAll("h2, .card, figure, .tools > *, .bars > *, .legend > span, svg.picture text")).filter((node) => !node.closest("details:not([open])")).map((node) => {
          const { x, y, width, height } = node.getBoundingClientRect();
          return { x, y, width, height, text: node.textContent.slice(0, 40), inside: node.parentElement.className };
        }).filter((box) => box.width > 0 && box.height > 0));
        for (const box of boxes) assert.ok(box.x >= 0 && box.x + box.width <= width + 0.5, `${name} ${width}: "${box.text}" leaves the page`);
        for (let i = 0; i < boxes.length; i += 1) {
          for (let j = i + 1; j < boxes.length; j += 1) {
            const [a, b] = [boxes[i], boxes[j]];
            const overlap = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1 && Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 1;
            assert.ok(!overlap, `${name} ${scheme} ${width}: "${a.text}" and "${b.text}" overlap`);
          }
        }
        await page.screenshot({ path: `${folder}/${name}-${scheme}-${width}.png`, fullPage: true });
      }
    }
    const { page } = await open(name, { scheme: "dark" });
    await page.emulateMedia({ media: "print" });
    await settled(page);
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
    // On a sheet of A4 nothing is wider than the sheet, and colours are printed.
    await page.setViewportSize({ width: 718, height: 1040 });
    await settled(page);
    const faults = await page.evaluate(() => Array.from(document.querySelectorAll("canvas, table, svg, .bar, td.words")).filter((node) => {
      const { width, right } = node.getBoundingClientRect();
      return width > 0 && right > document.documentElement.clientWidth + 0.5;
    }).map((node) => `${node.tagName} ${node.id} ${node.className}`));
    assert.deepEqual(faults, [], `${name} on paper`);
    assert.ok(await page.evaluate(() => Array.from(document.querySelectorAll("i, u, td.meter > div")).every((node) => getComputedStyle(node).printColorAdjust === "exact")), `${name}: colours are not printed`);
    for (const select of await page.locator("select").all()) assert.ok(await select.isVisible(), `${name}: choices are not printed`);
    await page.screenshot({ path: `${folder}/${name}-print.png`, fullPage: true });
    await page.emulateMedia({ media: null });
    await page.setViewportSize({ width: 1280, height: 900 });
    await settled(page);
    await page.evaluate(() => matchMedia("print").addEventListener("change", ({ matches }) => {
      const { view } = window.ptosim;
      if (matches && view) window.printed = [view.width, view.stage.clientWidth];
    }));
    await page.pdf({ path: `${folder}/${name}.pdf`, format: "A4", margin: { top: "1cm", bottom: "1cm", left: "1cm", right: "1cm" } });
    const printed = await page.evaluate(() => window.printed);
    if (await page.locator("canvas").count()) assert.ok(printed && printed[0] === printed[1] && printed[0] < 800, `${name}: the timeline is ${printed} wide on paper`);
  }
});

await test("ten thousand blocks make a small file", async (open) => {
  assert.ok(fs.statSync(`${folder}/small.html`).size < 2e6, "10 000 blocks take 2 MB or more");
  await open("small");
});

const millions = ["million-chain", "million-random"].filter((name) => fs.existsSync(`${folder}/${name}.html`));
if (millions.length === 0) console.log("skip  a million blocks open and zoom quickly: QUICK leaves their pages out");
else await test("a million blocks open and zoom quickly", async (open) => {
  for (const name of millions) {
    const size = fs.statSync(`${folder}/${name}.html`).size;
    assert.ok(size < 30e6, `${name}: ${size} bytes`);
    const { page, milliseconds, processor } = await open(name);
    const zoom = await page.evaluate(async () => {
      const { view } = window.ptosim;
      const times = [];
      for (let i = 0; i < 24; i += 1) {
        view.zoom(1.7, view.data.end * 0.37);
        view.draw();
        times.push(view.frame);
      }
      view.fit();
      view.draw();
      times.push(view.frame);
      return Math.max(...times);
    });
    const click = await page.evaluate(() => {
      const started = performance.now();
      window.ptosim.browser.goTo(500000);
      return performance.now() - started;
    });
    const blocks = await page.evaluate(() => window.ptosim.data.lanes.reduce((sum, lane) => sum + (lane.kind === "worker" ? lane.n : 0), 0));
    assert.equal(blocks, 1000000);
    console.log(`      ${name}: ${(size / 1e6).toFixed(1)} MB, opens in ${milliseconds} ms (${processor.toFixed(0)} ms of processor time), slowest frame ${zoom.toFixed(0)} ms, first click ${click.toFixed(0)} ms`);
    assert.ok(processor < LONGEST_OPEN_MS, `${name} takes ${processor} ms of processor time to open`);
    assert.ok(zoom < LONGEST_OPEN_MS, `${name}: a frame takes ${zoom} ms`);
  }
});

await browser.close();
process.exit(failures ? 1 : 0);

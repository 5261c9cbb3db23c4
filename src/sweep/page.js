// The runs of a sweep: a scatter plot and a heat map to play with, and a table.

const data = JSON.parse(byId("ptosim-sweep").textContent);
const FIELDS = ["workload", "machine", "policy", "outcome", "makespan", "workers", "memory", "efficiency"];
const MEASURED = ["makespan", "workers", "memory", "efficiency"];
const LISTED = 50;
/// From dark to light, in an order that everybody sees (viridis).
const SCALE = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];

const runs = data.rows.map((cells) => {
  const settings = data.keys.map((key, i) => [key, cells[FIELDS.length][i]]);
  return Object.fromEntries([...FIELDS.map((field, i) => [field, cells[i]]), ...settings]);
});
const parameters = ["machine", "policy", ...data.keys].filter((key) => new Set(runs.map((run) => run[key])).size > 1);

/// The value of a setting, which may be a size such as 1MiB; NaN when it is a word.
function number(value) {
  const match = /^([0-9.]+)\s*([KMGT]iB)?$/i.exec(String(value));
  return match ? parseFloat(match[1]) * 1024 ** ("KMGT".indexOf((match[2] || " ")[0].toUpperCase()) + 1) : NaN;
}

function shown(key, value) {
  if (key === "memory") return bytesText(value);
  if (key === "efficiency") return percent(value);
  return typeof value === "number" ? group(value) : String(value);
}

/// A colour between the ends of the scale.
function colourAt(part) {
  const place = Math.min(Math.max(part, 0), 1) * (SCALE.length - 1);
  const below = Math.min(Math.floor(place), SCALE.length - 2);
  const [from, to] = [rgb(SCALE[below]), rgb(SCALE[below + 1])];
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * (place - below))).join(",")})`;
}

/// Where values lie from 0 to 1: numbers by size, logarithmically when they span much; words in their order.
function axis(key, values) {
  const marks = [...new Set(values)].sort((a, b) => number(a) - number(b) || String(a).localeCompare(String(b)));
  const numbers = marks.map(number);
  if (numbers.some(Number.isNaN)) return { at: (value) => (marks.indexOf(value) + 0.5) / marks.length, marks };
  const [low, high] = [numbers[0], numbers[numbers.length - 1]];
  const scaled = low > 0 && high / low > 20 ? Math.log : (value) => value;
  const at = (value) => (high > low ? (scaled(number(value)) - scaled(low)) / (scaled(high) - scaled(low)) : 0.5);
  return { at, marks: marks.length > 6 ? [0, 1, 2, 3, 4].map((i) => marks[Math.round((i * (marks.length - 1)) / 4)]) : marks };
}

const describe = (run) => [...FIELDS, ...data.keys].map((key) => `${key}: ${shown(key, run[key])}`).join("\n");
const label = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);
const WIDTH = 700;
const picture = (name, ...children) => svg("svg", { viewBox: `0 0 ${WIDTH} 400`, class: "picture", role: "img", "aria-label": name }, ...children);

/// Narrow pages have larger letters in their pictures, as the style says.
const narrow = matchMedia("(max-width: 520px)");
const letters = () => (narrow.matches ? 20 : 13);
const pen = document.createElement("canvas").getContext("2d");
function wide(text) {
  pen.font = `${letters()}px ${getComputedStyle(document.documentElement).fontFamily}`;
  return pen.measureText(text).width;
}

/// A value in the room there is for it: numbers become short, words are cut.
function fitted(key, value, room) {
  const text = shown(key, value);
  if (wide(text) <= room) return text;
  return typeof value === "number" ? short(value) : clip(text, Math.floor((text.length * room) / wide(text)));
}

/// The first and the last of some labels in a row, and of those between them the ones that overlap no other.
function spaced(labels) {
  const areApart = (a, b) => a.to <= b.from || b.to <= a.from;
  const last = labels[labels.length - 1];
  const kept = labels.slice(0, 1);
  for (const label of labels.slice(1)) {
    if (label === last || (areApart(label, last) && areApart(label, kept[kept.length - 1]))) kept.push(label);
  }
  return kept;
}

/// Labels of values along the x axis.
function labelsAcross(key, values, at, y) {
  return spaced(values.map((value) => {
    const text = fitted(key, value, 250);
    const half = wide(text) / 2 + 4;
    const x = Math.min(Math.max(at(value), half), WIDTH - half);
    return { text, x, from: x - half, to: x + half };
  })).map(({ text, x }) => label(x, y, "middle", text));
}

/// Labels of values along the y axis, up to `x`.
function labelsUp(key, values, at, x) {
  const half = 0.65 * letters();
  return spaced(values.map((value) => ({ text: fitted(key, value, x), y: at(value), from: at(value) - half, to: at(value) + half })))
    .map(({ text, y }) => label(x, y + 4, "end", text));
}

/// A colour scale, or a key of words, below a picture.
function colourKey(key, scale) {
  if (scale.marks.some((mark) => Number.isNaN(number(mark)))) return legend(scale.marks.map((mark) => [mark, colourAt(scale.at(mark))]));
  const ends = [scale.marks[0], scale.marks[scale.marks.length - 1]];
  return make("div", { class: "ramp" }, make("span", {}, `${key} ${shown(key, ends[0])}`), make("i", { style: `background:linear-gradient(90deg, ${SCALE.join(", ")})` }), make("span", {}, shown(key, ends[1])));
}

function scatter(list, { x: xKey, y: yKey, colour }) {
  const [x, y, shade] = [xKey, yKey, colour].map((key) => axis(key, list.map((run) => run[key])));
  const [left, bottom, width, height] = [110, 350, 560, 320];
  const across = (value) => left + 12 + x.at(value) * (width - 24);
  const up = (value) => bottom - 12 - y.at(value) * (height - 24);
  return [picture(`${yKey} over ${xKey}`,
    svg("path", { class: "axis", d: `M${left},${bottom - height}V${bottom}H${left + width}` }), label(0, 18, "start", yKey), label(left + width / 2, 392, "middle", xKey),
    ...labelsAcross(xKey, x.marks, across, bottom + 18), ...labelsUp(yKey, y.marks, up, left - 8),
    ...list.map((run) => svg("circle", { cx: across(run[xKey]), cy: up(run[yKey]), r: 5, fill: colourAt(shade.at(run[colour])), "data-run": "" }, svg("title", {}, describe(run))))), colourKey(colour, shade)];
}

function heat(list, { columns: columnKey, lines: lineKey }) {
  const best = new Map();
  for (const run of list) {
    const key = JSON.stringify([run[columnKey], run[lineKey]]);
    if (!best.has(key) || best.get(key).makespan > run.makespan) best.set(key, run);
  }
  const sorted = (key) => [...new Set(list.map((run) => run[key]))].sort((a, b) => number(a) - number(b) || String(a).localeCompare(String(b)));
  const [columns, lines] = [sorted(columnKey), sorted(lineKey)];
  const shade = axis("makespan", [...best.values()].map((run) => run.makespan));
  const [left, top, width, height] = [140, 30, 540 / columns.length, 320 / lines.length];
  const cells = columns.flatMap((column, i) => lines.map((line, j) => {
    const run = best.get(JSON.stringify([column, line]));
    return svg("rect", { x: left + i * width, y: top + j * height, width: Math.max(width - 1, 1), height: Math.max(height - 1, 1), fill: run ? colourAt(shade.at(run.makespan)) : "var(--lane)", "data-cell": "" },
      svg("title", {}, run ? describe(run) : "no run completed"));
  }));
  return [picture(`best makespan by ${columnKey} and ${lineKey}`, ...cells, label(0, 18, "start", lineKey), label(left + 270, 392, "middle", columnKey),
    ...labelsAcross(columnKey, columns, (column) => left + (columns.indexOf(column) + 0.5) * width, top + 338),
    ...labelsUp(lineKey, lines, (line) => top + (lines.indexOf(line) + 0.5) * height, left - 8)), colourKey("makespan", shade)];
}

function table(list) {
  const keys = [...MEASURED, ...parameters];
  const columns = keys.map((key) => [key, (run) => (Number.isNaN(number(run[key])) ? String(run[key]) : number(run[key])), (run) => shown(key, run[key])]);
  const fastest = [...list].sort((a, b) => a.makespan - b.makespan).slice(0, LISTED);
  return [sortableTable("runs", columns, fastest, 0, true), list.length > LISTED ? make("p", { class: "soft" }, `The fastest ${LISTED} of ${count(list.length, "run")}; results.csv has all.`) : null];
}

/// A section whose content depends on a few choices.
function playground(title, choices, draw, workload) {
  const stage = make("div", { class: "drawn" });
  const selects = choices.map(([name, options, chosen]) => {
    const select = make("select", { id: name, onchange: () => redraw() }, options.map((option) => make("option", { value: option, selected: option === chosen }, clip(option, 60))));
    return make("label", {}, `${name} `, select);
  });
  function redraw() {
    const list = runs.filter((run) => run.workload === workload.value && run.outcome === "completed");
    const values = Object.fromEntries(choices.map(([name], i) => [name, selects[i].lastChild.value]));
    stage.replaceChildren(...(list.length ? draw(list, values) : [make("p", {}, "No run of this workload completed.")]).filter(Boolean));
  }
  workload.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  redraw();
  return section(title, selects.length ? make("div", { class: "tools" }, selects) : null, stage);
}

function build() {
  const completed = runs.filter((run) => run.outcome === "completed").length;
  const workload = make("select", { id: "workload" }, [...new Set(runs.map((run) => run.workload))].map((name) => make("option", { value: name }, clip(name, 80))));
  byId("head").append(titleRow(`${data.name}: ${count(runs.length, "run")}`, `${group(completed)} completed`, completed === runs.length, () => {}), make("div", { class: "tools" }, make("label", {}, "workload ", workload)), roundingNote(data.rows, "results.csv"));
  const all = [...MEASURED, ...parameters];
  const isWord = (key) => runs.some((run) => Number.isNaN(number(run[key])));
  const [first = "workers", second = first] = [...parameters].sort((a, b) => isWord(a) - isWord(b));
  byId("main").append(playground("Every run", [["x", all, first], ["y", all, "makespan"], ["colour", all, second]], scatter, workload));
  if (parameters.length > 0) byId("main").append(playground("Best makespan", [["columns", parameters, first], ["lines", parameters, second]], heat, workload));
  byId("main").append(playground("Runs, fastest first", [], table, workload));
  window.ptosim = { runs, ready: true };
}
build();

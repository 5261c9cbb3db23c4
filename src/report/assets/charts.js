// Bars, curves, histograms and tables.

function legend(entries) {
  return make("div", { class: "legend" }, entries.map(([name, colour]) => make("span", {}, make("i", { style: `background:${colour}` }), make("span", {}, name))));
}

/// One bar whose parts are `[name, value, colour]`.
function stacked(parts, whole, label) {
  const used = parts.filter(([, value]) => value > 0);
  const text = used.map(([name, value]) => `${name} ${percent(share(value, whole))}`).join(", ");
  return make("div", { class: "bar", role: "img", "aria-label": `${label}: ${text || "nothing"}` },
    used.map(([name, value, colour]) => make("i", { style: `background:${colour};width:${100 * share(value, whole)}%`, title: `${name}: ${group(value)} cycles, ${percent(share(value, whole))}`, "data-part": name, "data-cycles": value })));
}

const accountParts = (accounts) => Object.entries(accounts).map(([name, cycles]) => [name, cycles, ACCOUNT_COLOURS[name]]);

function accountBars() {
  const types = new Map();
  for (const worker of report.workers) {
    const sum = types.get(worker.type) || { workers: 0, accounts: {} };
    sum.workers += 1;
    for (const [name, cycles] of Object.entries(worker.accounts)) sum.accounts[name] = (sum.accounts[name] || 0) + cycles;
    types.set(worker.type, sum);
  }
  const names = Object.keys(report.workers[0] ? report.workers[0].accounts : {});
  const used = names.filter((name) => report.workers.some((worker) => worker.accounts[name] > 0));
  const byType = make("div", { class: "bars", "data-chart": "types" }, [...types].flatMap(([type, sum]) => [
    make("span", {}, `${type} × ${sum.workers}`), stacked(accountParts(sum.accounts), sum.workers * report.makespan, type)]));
  const nth = new Map();
  const label = (worker) => {
    nth.set(worker.type, (nth.has(worker.type) ? nth.get(worker.type) : -1) + 1);
    return `${worker.type} ${nth.get(worker.type)}`;
  };
  const byWorker = make("div", { class: "bars fine", "data-chart": "workers" }, report.workers.flatMap((worker) => [
    make("span", {}, label(worker)), stacked(accountParts(worker.accounts), report.makespan, `worker ${worker.id}`)]));
  const table = dataTable(["account", ...types.keys()], used.map((name) => [name, ...[...types.values()].map((sum) => percent(share(sum.accounts[name], sum.workers * report.makespan)))]));
  return [legend(used.map((name) => [name, ACCOUNT_COLOURS[name]])), byType,
    make("details", {}, make("summary", {}, "As numbers"), make("div", { class: "scroll" }, table)),
    make("details", { open: report.workers.length <= 24 }, make("summary", {}, "Every worker"), byWorker)];
}

/// A curve of bins with its peak, its mean and its limit.
function curve({ title, note, max, mean, bin, limit, text }) {
  const highest = max.reduce((a, b) => Math.max(a, b), 0);
  const nearLimit = limit && highest * 2 >= limit;
  const top = Math.max(nearLimit ? limit : highest, 1);
  const [width, height] = [600, 100];
  const length = Math.max(max.length * bin, 1);
  const x = (i) => ((i * bin) / length) * width;
  const y = (value) => height - (Math.min(value, top) / top) * height;
  const steps = (values) => values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)} ${x(i + 1).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: at most ${text(highest)}` },
    svg("polygon", { class: "area", points: `0,${height} ${steps(mean)} ${width},${height}` }), svg("polyline", { class: "peak", points: steps(max) }));
  if (nearLimit) drawing.append(svg("line", { class: "limit", x1: 0, x2: width, y1: y(limit), y2: y(limit) }));
  return make("figure", { "data-curve": title },
    make("figcaption", {}, make("b", {}, title), make("span", {}, note || `most ${text(highest)}${limit ? ` of ${text(limit)}` : ""}`)),
    make("div", { class: "plot" }, drawing, make("div", { class: "scale" }, make("span", {}, "0"), make("span", {}, `${nearLimit ? "limit dashed; " : ""}top ${text(top)}`), make("span", {}, short(length)))));
}

/// Workers of a type that run something, from the lanes.
function parallelism(data) {
  const bins = 400;
  const width = Math.max(report.makespan, 1) / bins;
  const sums = new Map();
  report.workers.forEach((worker) => sums.set(worker.type, { busy: new Float64Array(bins), workers: 0 }));
  report.workers.forEach((worker) => { sums.get(worker.type).workers += 1; });
  const lanes = data.lanes.filter((lane) => lane.kind === "worker");
  lanes.forEach((lane, id) => {
    const { busy } = sums.get(report.workers[id].type);
    for (let i = 0; i < lane.n; i += 1) {
      const density = lane.busy ? lane.busy[i] / (lane.end[i] - lane.start[i]) : 1;
      const last = Math.min(bins - 1, Math.floor(lane.end[i] / width));
      for (let bin = Math.floor(lane.start[i] / width); bin <= last; bin += 1) {
        busy[bin] += Math.max(0, Math.min(lane.end[i], (bin + 1) * width) - Math.max(lane.start[i], bin * width)) * density;
      }
    }
  });
  return [...sums].map(([type, { busy, workers }]) => {
    const values = Array.from(busy, (cycles) => cycles / width);
    const mean = values.reduce((a, b) => a + b, 0) / bins;
    return curve({ title: `${type} workers running`, note: `mean ${mean.toFixed(1)} of ${workers}`, max: values, mean: values, bin: width, limit: workers, text: (value) => decimal(value) });
  });
}

function histogram(name, buckets) {
  const highest = Math.max(...buckets, 1);
  const label = (i) => (i === 0 ? "0" : i === 1 ? "1" : `${group(2 ** (i - 1))} to ${group(2 ** i - 1)}`);
  const all = buckets.reduce((a, b) => a + b, 0);
  return make("figure", {}, make("figcaption", {}, make("b", {}, name), make("span", {}, `${group(all)} measured`)),
    make("div", { class: "histogram", role: "img", "aria-label": buckets.map((number, i) => (number ? `${label(i)} cycles: ${number}` : "")).filter(Boolean).join("; ") },
      buckets.map((number, i) => make("div", { class: number ? "" : "none", style: `height:${(100 * number) / highest}%`, title: `${label(i)} cycles: ${group(number)} (${percent(share(number, all))})`, "data-count": number }))),
    make("div", { class: "plot" }, make("div", { class: "scale" }, make("span", {}, "0"), make("span", {}, "cycles, by powers of two"), make("span", {}, buckets.length > 1 ? short(2 ** (buckets.length - 1)) : ""))));
}

function dataTable(header, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, header.map((title) => make("th", { scope: "col" }, title)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, typeof cell === "string" ? longText(cell) : cell))))));
}

/// A table whose columns sort by a click; `columns` are `[title, value of a row, text of a row]`.
function sortableTable(columns, rows, sorted) {
  const body = make("tbody", {});
  const buttons = columns.map(([title], i) => make("button", { type: "button", onclick: () => sort(i) }, title));
  let [by, down] = [sorted, true];
  function fill() {
    const value = columns[by][1];
    const compare = (a, b) => (typeof value(a) === "string" ? value(b).localeCompare(value(a)) : value(b) - value(a));
    const order = [...rows].sort((a, b) => (down ? compare(a, b) : compare(b, a)));
    body.replaceChildren(...order.map((row) => make("tr", {}, columns.map(([, , text]) => make("td", {}, text(row))))));
    buttons.forEach((button, i) => {
      button.className = i === by ? `sorted${down ? "" : " up"}` : "";
      button.parentElement.setAttribute("aria-sort", i === by ? (down ? "descending" : "ascending") : "none");
    });
  }
  function sort(column) {
    [by, down] = [column, column === by ? !down : true];
    fill();
  }
  const heads = buttons.map((button) => make("th", { scope: "col" }, button));
  fill();
  return make("div", { class: "scroll" }, make("table", { id: "kernel-table" }, make("thead", {}, make("tr", {}, heads)), body));
}

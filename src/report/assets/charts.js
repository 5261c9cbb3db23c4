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

/// A curve of bins with its peak, its mean and its limit.
function curve({ title, note, max, mean, bin, limit, text }) {
  const highest = max.reduce((a, b) => Math.max(a, b), 0);
  const nearLimit = limit && highest * 2 >= limit;
  const top = (nearLimit ? limit : highest) || 1;
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

/// A table whose columns sort by a click; `columns` are `[title, value of a row, text of a row, class]`. Numbers sort from the
/// largest down at first, unless `up`.
function sortableTable(id, columns, rows, sorted, up = false) {
  const body = make("tbody", {});
  const buttons = columns.map(([title], i) => make("button", { type: "button", onclick: () => sort(i) }, title));
  let [by, down] = [sorted, !up];
  function fill() {
    const value = columns[by][1];
    const compare = (a, b) => (typeof value(a) === "string" ? value(b).localeCompare(value(a)) : value(b) - value(a));
    const order = [...rows].sort((a, b) => (down ? compare(a, b) : compare(b, a)));
    body.replaceChildren(...order.map((row) => make("tr", {}, columns.map(([, , text, kind]) => make("td", { class: kind || "" }, text(row))))));
    buttons.forEach((button, i) => {
      button.className = i === by ? `sorted${down ? "" : " up"}` : "";
      button.parentElement.setAttribute("aria-sort", i === by ? (down ? "descending" : "ascending") : "none");
    });
  }
  function sort(column) {
    [by, down] = [column, column === by ? !down : true];
    fill();
  }
  const heads = buttons.map((button, i) => make("th", { scope: "col", class: columns[i][3] || "" }, button));
  fill();
  return make("div", { class: "scroll" }, make("table", { id }, make("thead", {}, make("tr", {}, heads)), body));
}

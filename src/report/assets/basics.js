// Small things that everything else uses. Texts from the run only ever become text nodes.

const byId = (id) => document.getElementById(id);

/// An element with attributes and children; a child that is no node becomes text.
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/// 1234567 as 1 234 567, with spaces that do not break.
function group(number) {
  const [whole, part] = String(number).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return part ? `${grouped}.${part}` : grouped;
}

/// A grouped number that may be broken between its groups, never inside one.
const betweenGroups = (text) => text.split("\u202f").flatMap((part, i) => (i ? ["\u202f", make("wbr"), part] : part));

/// Whether a value holds a number that a script cannot tell from the next one.
const isRounded = (value) => (typeof value === "number" ? Math.abs(value) > Number.MAX_SAFE_INTEGER : value !== null && typeof value === "object" && Object.values(value).some(isRounded));
const roundingNote = (value, file) => (isRounded(value) ? make("p", { class: "soft rounded" }, `Numbers beyond 2^53 are rounded here; ${file} has them exactly.`) : "");

const share = (part, whole) => (whole > 0 ? part / whole : 0);
const percent = (value) => `${(100 * value).toFixed(1)}\u202f%`;
const count = (number, noun) => `${group(number)} ${noun}${number === 1 ? "" : "s"}`;
const decimal = (number) => group(Number(number).toFixed(1));

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes % 1 === 0 ? bytes : bytes.toFixed(1)}\u202f${units[unit]}`;
}

function duration(cycles, mhz) {
  const micros = cycles / Math.max(mhz, 1);
  if (micros < 1) return `${(micros * 1e3).toFixed(0)}\u202fns`;
  if (micros < 1e3) return `${micros.toFixed(2)}\u202fµs`;
  if (micros < 1e6) return `${(micros / 1e3).toFixed(2)}\u202fms`;
  return `${(micros / 1e6).toFixed(2)}\u202fs`;
}

/// A number in few characters, for axes.
const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
function short(number) {
  for (const [size, letter] of UNITS) {
    if (number >= size) return `${+(number / size).toPrecision(4)}${letter}`;
  }
  return String(+number.toPrecision(4));
}

/// A tick of an axis, with as many digits as tell it from the next one.
function tickText(tick, step) {
  const [size, letter] = (step >= 1000 && UNITS.find(([size]) => tick >= size)) || [1, ""];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
  return `${group(+(tick / size).toFixed(digits))}${letter}`;
}

/// Sentences in which options such as `--set` are not broken behind their hyphens.
const prose = (text) => text.split(/(--[a-z][a-z-]*)/).map((part, i) => (i % 2 ? make("span", { class: "option" }, part) : part));

/// A name that may be very long: all of it is there, but it does not take the page.
const longText = (text) => (text.length > 60 ? make("span", { class: "long" }, text) : betweenGroups(text));
const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…` : text);

/// The first index from `low` to `high` at which `test` holds; `test` is false before and true from there on.
function search(low, high, test) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
  return make("section", { id, "aria-label": title }, make("h2", {}, title), children);
}

/// The name of the page, how it ended, and the switch between light and dark; `repaint` draws what the style does not reach.
function titleRow(title, ending, isGood, repaint) {
  document.title = clip(title, 120);
  const theme = make("button", { type: "button", class: "theme", onclick: () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    repaint();
  } }, "Light / dark");
  return make("div", { class: "title" }, make("h1", {}, title), make("span", { class: `badge ${isGood ? "good" : "bad"}` }, ending), theme);
}

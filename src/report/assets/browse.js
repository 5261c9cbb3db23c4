// What a reader does with the timeline: zoom, move, look at a block, follow dependencies, search.

const LISTED = 40;

class Browser {
  constructor(view) {
    this.view = view;
    this.tip = make("div", { class: "tip", role: "tooltip" });
    this.panel = make("div", { class: "detail", id: "detail", "aria-live": "polite" });
    view.stage.append(this.tip);
    this.listen();
  }

  listen() {
    const { canvas } = this.view;
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => { this.pressed = null; });
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("dblclick", (event) => this.view.zoom(3, this.view.cycle(event.offsetX)));
  }

  key(event) {
    const { view } = this;
    const actions = {
      "+": () => view.zoom(1.6), "=": () => view.zoom(1.6), "-": () => view.zoom(1 / 1.6), 0: () => view.fit(),
      ArrowLeft: () => view.pan(-0.2), ArrowRight: () => view.pan(0.2), Home: () => view.pan(-1e9), End: () => view.pan(1e9),
      ArrowUp: () => this.step(-1, 0), ArrowDown: () => this.step(1, 0), ",": () => this.step(0, -1), ".": () => this.step(0, 1),
      PageUp: () => view.spacer.scrollBy(0, -view.height / 2), PageDown: () => view.spacer.scrollBy(0, view.height / 2),
      Escape: () => this.select(null), Enter: () => this.focus(),
    };
    const action = actions[event.key];
    if (action && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  }

  /// Zooms with the control key, moves sideways; anything else scrolls as usual.
  wheel(event) {
    const { view } = this;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      view.zoom(Math.exp(-event.deltaY / 300), view.cycle(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / view.width);
    }
  }

  press(event) {
    this.pressed = { x: event.offsetX, from: this.view.view.from, to: this.view.view.to, moved: false };
    this.view.canvas.setPointerCapture(event.pointerId);
  }
  move(event) {
    const { view, pressed } = this;
    if (!pressed) return this.hover(event.offsetX, event.offsetY);
    if (Math.abs(event.offsetX - pressed.x) > 3) pressed.moved = true;
    if (pressed.moved) {
      const cycles = (event.offsetX - pressed.x) / view.scale();
      const length = pressed.to - pressed.from;
      const from = Math.min(Math.max(0, pressed.from - cycles), view.data.end - length);
      view.show(from, from + length);
      this.hideTip();
    }
    return undefined;
  }
  release(event) {
    const { pressed } = this;
    this.pressed = null;
    if (pressed && !pressed.moved) this.select(this.hit(event.offsetX, event.offsetY));
  }

  /// The span under a point, or the nearest one within a few pixels.
  hit(x, y) {
    const { view } = this;
    const at = view.laneAt(y);
    if (at < 0 || x < view.gutter) return null;
    const lane = view.lanes[at];
    const cycle = view.cycle(x);
    const slack = 3 / view.scale();
    const next = search(0, lane.n, (i) => lane.end[i] >= cycle);
    for (const row of [next, next - 1]) {
      if (row >= 0 && row < lane.n && lane.start[row] - slack <= cycle && lane.end[row] + slack >= cycle) {
        return { lane: view.data.lanes.indexOf(lane), row };
      }
    }
    return null;
  }

  hover(x, y) {
    const found = this.hit(x, y);
    if (!found) return this.hideTip();
    this.tip.replaceChildren(...this.facts(found).map((line) => make("div", {}, line)));
    this.tip.style.display = "block";
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const { view } = this;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, view.width - width - 4))}px`;
    this.tip.style.top = `${y + height + 18 < view.height ? y + 16 : Math.max(0, y - height - 10)}px`;
    return undefined;
  }
  hideTip() { this.tip.style.display = "none"; }

  facts({ lane: which, row }) {
    const { view } = this;
    const lane = view.data.lanes[which];
    const span = `${group(lane.start[row])} to ${group(lane.end[row])}, ${count(lane.end[row] - lane.start[row], "cycle")}`;
    if (lane.busy) {
      return [`${lane.name}: busy ${percent(lane.busy[row] / (lane.end[row] - lane.start[row]))}`, span, "too many blocks to keep each of them"];
    }
    if (lane.kind === "orchestrator") return [`orchestrator: ${PHASES[lane.label[row]][0]}`, span];
    if (lane.kind === "scheduler") return [`${lane.name}: ${JOBS[lane.label[row]][0]} ${clip(view.tasks.label(lane.task[row]), 80)}`, span];
    const task = lane.task[row];
    if (!head.has_tasks) return [view.tasks.label(task), lane.name, span, ...this.reasons(which, row)];
    const producers = view.tasks.producers(task);
    return [clip(view.tasks.label(task), 200), `kernel ${clip(view.tasks.kernel(task), 120)} on ${lane.name}`, span,
      ...this.reasons(which, row), `${count(producers.length, "producer")}, ${count(view.tasks.consumers(task).length, "consumer")}`];
  }

  /// Why a block started when it did, in words.
  reasons(which, row) {
    const { view } = this;
    const lane = view.data.lanes[which];
    const { tasks } = view.data;
    const task = lane.task[row];
    const start = lane.start[row];
    const ready = start - lane.wait[row];
    const lines = [];
    if (task < tasks.n && ready > tasks.submit[task]) {
      let last = null;
      for (const producer of view.tasks.producers(task)) {
        const place = view.tasks.place(producer);
        if (place && (!last || place.end > last.end)) last = { end: place.end, producer };
      }
      const why = last && last.end > tasks.submit[task] ? `for ${clip(view.tasks.label(last.producer), 60)}` : "for its admission";
      lines.push(`waited ${count(ready - tasks.submit[task], "cycle")} ${why}`);
    }
    if (lane.wait[row] > 0) {
      const busy = row > 0 && lane.end[row - 1] > ready;
      const why = busy ? `while the worker ran ${clip(view.tasks.label(lane.task[row - 1]), 60)}` : "for the scheduler, a partner or the policy";
      lines.push(`ready for ${count(lane.wait[row], "cycle")} ${why}`);
    }
    return lines;
  }

  select(place) {
    this.view.selected = place;
    this.view.redraw();
    this.panel.replaceChildren(...(place ? this.describe(place) : []));
  }

  describe(place) {
    const { view } = this;
    const lane = view.data.lanes[place.lane];
    if (lane.kind !== "worker" || !lane.task) return this.facts(place).map((line) => make("div", {}, line));
    const task = lane.task[place.row];
    const { tasks } = view.data;
    const part = lane.part.get(place.row) || 0;
    const known = task < tasks.n;
    const lines = [
      `task ${task}${known && tasks.blocks[task] > 1 ? `, block ${part} of ${tasks.blocks[task]}` : part > 0 ? `, block ${part}` : ""}, kernel ${known ? `${view.tasks.kernel(task)}, ${TYPES[tasks.kind[task]]}` : "not recorded"}, on ${lane.name}`,
      `${known ? `submitted at ${group(tasks.submit[task])}, ` : ""}ready at ${group(lane.start[place.row] - lane.wait[place.row])}, ran from ${group(lane.start[place.row])} to ${group(lane.end[place.row])} (${count(lane.end[place.row] - lane.start[place.row], "cycle")})`,
      ...this.reasons(place.lane, place.row),
    ];
    const nodes = [make("h3", {}, view.tasks.label(task)), ...lines.map((line) => make("p", {}, line))];
    if (!known) nodes.push(make("p", { class: "soft" }, "Its producers and consumers are not recorded."));
    else if (!tasks.known[task]) nodes.push(make("p", { class: "soft" }, "Producers of this task were not kept: there are too many dependencies."));
    else nodes.push(this.links("Producers", view.tasks.producers(task)), this.links("Consumers", view.tasks.consumers(task)));
    return nodes;
  }

  links(title, list) {
    const chips = list.slice(0, LISTED).map((task) =>
      make("button", { type: "button", onclick: () => this.goTo(task) }, clip(this.view.tasks.label(task), 60)));
    if (list.length > LISTED) chips.push(make("span", { class: "soft" }, `and ${group(list.length - LISTED)} more`));
    return make("div", {}, make("b", {}, `${title}: ${list.length === 0 ? "none linked" : group(list.length)}`), make("div", { class: "chips", "data-links": title }, chips));
  }

  /// Selects the first block of a task and brings it into sight.
  goTo(task) {
    const place = this.view.tasks.place(task);
    if (!place) return false;
    this.select({ lane: place.lane, row: place.row });
    this.focus();
    return true;
  }

  focus() {
    const { view } = this;
    if (!view.selected) return;
    const { lane, row } = view.selected;
    const spans = view.data.lanes[lane];
    const own = spans.end[row] - spans.start[row];
    const length = view.view.to - view.view.from;
    const wanted = length > 400 * Math.max(own, 1) ? 40 * Math.max(own, 1) : length;
    const middle = (spans.start[row] + spans.end[row]) / 2;
    if (wanted < length || spans.start[row] < view.view.from || spans.end[row] > view.view.to) view.show(middle - wanted / 2, middle + wanted / 2);
    const top = view.laneOf.get(lane) * view.row;
    if (top < view.spacer.scrollTop || top + view.row + AXIS > view.spacer.scrollTop + view.height) view.spacer.scrollTop = Math.max(0, top - view.height / 2);
  }

  /// The next block in the lane, or the nearest one in the lane above or below.
  step(lanes, rows) {
    const { view } = this;
    if (!view.selected) {
      const middle = (view.view.from + view.view.to) / 2;
      const lane = view.lanes.find((spans) => spans.kind === "worker" && spans.n > 0);
      if (!lane) return;
      const row = Math.min(search(0, lane.n, (i) => lane.end[i] >= middle), lane.n - 1);
      this.select({ lane: view.data.lanes.indexOf(lane), row });
    } else if (rows) {
      const { lane, row } = view.selected;
      const next = Math.min(Math.max(row + rows, 0), view.data.lanes[lane].n - 1);
      this.select({ lane, row: next });
    } else {
      const spans = view.data.lanes[view.selected.lane];
      const middle = spans.start[view.selected.row];
      let at = view.laneOf.get(view.selected.lane) + lanes;
      while (at >= 0 && at < view.lanes.length && view.lanes[at].n === 0) at += lanes;
      if (at < 0 || at >= view.lanes.length) return;
      const lane = view.lanes[at];
      const row = Math.min(search(0, lane.n, (i) => lane.end[i] >= middle), lane.n - 1);
      this.select({ lane: view.data.lanes.indexOf(lane), row });
    }
    this.focus();
  }
}

/// The task that `7`, `#7` or `task7` means; -1 for any other text.
const taskNumber = (text) => (/^(#|task)?\d+$/.test(text) ? Number(text.replace(/\D+/, "")) : -1);

/// Blocks whose task or kernel a text is about: a number means a task, `task7` a task 7 without a name, anything else a part of a
/// name.
class Search {
  constructor(browser) {
    this.browser = browser;
    this.view = browser.view;
    this.found = [];
    this.at = -1;
    this.labels = new Set();
    this.tasks = new Set();
  }

  /// How many blocks match.
  run(text) {
    const wanted = text.trim().toLowerCase();
    this.found = [];
    this.at = -1;
    this.labels = new Set();
    this.tasks = new Set();
    if (wanted) this.collect(wanted);
    this.places = this.found.length <= MOST_MARKS ? this.found : null;
    this.view.matching = wanted ? this : null;
    this.view.redraw();
    return this.found.length;
  }

  collect(wanted) {
    const { names, tasks, lanes } = this.view.data;
    const number = taskNumber(wanted);
    const isNamed = wanted.startsWith("task") && number < tasks.n && tasks.name[number] >= 0;
    const inName = new Set();
    for (let i = 0; i < names.count; i += 1) if (names.text(i).toLowerCase().includes(wanted)) inName.add(i);
    for (let task = 0; task < tasks.n; task += 1) {
      if (inName.has(tasks.name[task]) || inName.has(tasks.kernel[task] - 1)) this.tasks.add(task);
    }
    if (number >= 0 && !isNamed) this.tasks.add(number);
    for (const symbol of inName) this.labels.add(symbol + 1);
    lanes.forEach((lane, which) => {
      if (lane.kind !== "worker" || !lane.task) return;
      for (let row = 0; row < lane.n; row += 1) if (this.tasks.has(lane.task[row])) this.found.push({ lane: which, row });
    });
    this.found.sort((a, b) => lanes[a.lane].start[a.row] - lanes[b.lane].start[b.row] || a.lane - b.lane);
  }

  has(lane, row) { return this.tasks.has(lane.task[row]); }
  hasLabel(lane, label) { return lane.kind === "worker" && this.labels.has(label); }

  /// Goes to the next or an earlier match.
  step(by) {
    if (this.found.length === 0) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.browser.select(this.found[this.at]);
    this.browser.focus();
  }
}

// The timeline: one lane a worker, drawn pixel by pixel, so that a million blocks cost no more than a thousand.

const AXIS = 22;
/// Changes of lane in one column of pixels that the critical path is drawn with.
const MOST_CHANGES = 4;
const MOST_LABELS = 600;
const MOST_MARKS = 4000;
/// Pixels of height that fit onto one sheet.
const MOST_ON_PAPER = 900;

class TimelineView {
  constructor(stage, data, tasks) {
    this.data = data;
    this.tasks = tasks;
    this.stage = stage;
    this.canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": "Timeline: one lane a worker. Plus and minus zoom, arrows move, comma and full stop go from block to block." });
    this.spacer = make("div", { class: "scroller" }, this.canvas);
    this.filler = make("div", {});
    this.spacer.append(this.filler);
    stage.append(this.spacer);
    this.context = this.canvas.getContext("2d");
    this.view = { from: 0, to: data.end };
    this.selected = null;
    this.matching = null;
    this.showPath = data.path.n > 0;
    this.lanes = data.lanes.filter((lane) => lane.n > 0 || lane.kind === "worker");
    this.laneOf = new Map(data.lanes.map((lane, index) => [index, this.lanes.indexOf(lane)]));
    this.row = this.lanes.length > 60 ? 11 : this.lanes.length > 24 ? 15 : 20;
    this.colours();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(stage);
    this.spacer.addEventListener("scroll", () => this.redraw());
  }

  /// Pixel colours of every kind of lane, for the present theme.
  colours() {
    const background = rgb(themeColour("--lane"));
    const dim = background.map((value) => value);
    const kernels = ["(unnamed)"];
    for (let i = 0; i < this.data.names.count; i += 1) kernels.push(null);
    const used = new Set(report.kernels.map((kernel) => kernel.name));
    const limit = Math.min(this.data.names.count, 20000);
    const colours = kernels.map(() => REST_COLOURS[0]);
    colours[0] = kernelColour("(unnamed)");
    const all = this.data.names;
    const seen = new Set(this.data.tasks.kernel);
    for (let i = 0; i < all.count && (i < limit || seen.size < limit); i += 1) {
      if (!seen.has(i + 1) && this.data.tasks.n > 0) continue;
      const name = all.text(i);
      if (used.has(name)) colours[i + 1] = kernelColour(name);
    }
    this.kernelColours = colours;
    const faint = (list) => list.map((colour) => {
      const mixed = rgb(colour).map((value, i) => Math.round(dim[i] + (value - dim[i]) * 0.22));
      return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
    });
    const phases = PHASES.map((phase) => phase[1]);
    const jobs = JOBS.map((job) => job[1]);
    this.tables = {
      worker: [pixelTable(colours, background), pixelTable(faint(colours), background)],
      orchestrator: [pixelTable(phases, background), pixelTable(faint(phases), background)],
      scheduler: [pixelTable(jobs, background), pixelTable(faint(jobs), background)],
    };
    const [r, g, b] = background;
    this.background = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    const [pr, pg, pb] = rgb(themeColour("--paper"));
    this.paper = ((255 << 24) | (pb << 16) | (pg << 8) | pr) >>> 0;
  }

  resize() {
    const width = this.stage.clientWidth;
    if (width === 0) return;
    this.gutter = width < 520 ? 78 : 110;
    const full = this.lanes.length * this.row + AXIS;
    const most = matchMedia("print").matches ? MOST_ON_PAPER : Math.max(240, Math.round(window.innerHeight * 0.62));
    const height = Math.min(full, most);
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.spacer.style.height = `${height}px`;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.filler.style.height = `${Math.max(0, full - height)}px`;
    this.width = width;
    this.height = height;
    this.redraw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  // Between cycles and pixels.
  scale() { return (this.width - this.gutter) / (this.view.to - this.view.from); }
  x(cycle) { return this.gutter + (cycle - this.view.from) * this.scale(); }
  cycle(x) { return this.view.from + (x - this.gutter) / this.scale(); }
  y(lane) { return AXIS + lane * this.row - this.spacer.scrollTop; }
  laneAt(y) {
    const lane = Math.floor((y - AXIS + this.spacer.scrollTop) / this.row);
    return y >= AXIS && lane >= 0 && lane < this.lanes.length ? lane : -1;
  }

  /// Shows a span of cycles, as near as it fits into the run.
  show(from, to) {
    const least = Math.min(8, this.data.end);
    const length = Math.min(Math.max(to - from, least), this.data.end);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(0, middle - length / 2), this.data.end - length);
    this.view = { from: start, to: start + length };
    this.redraw();
  }
  zoom(factor, at) {
    const { from, to } = this.view;
    const middle = at === undefined ? (from + to) / 2 : at;
    this.show(middle - (middle - from) / factor, middle + (to - middle) / factor);
  }
  pan(part) {
    const step = (this.view.to - this.view.from) * part;
    this.show(this.view.from + step, this.view.to + step);
  }
  fit() { this.show(0, this.data.end); }

  draw() {
    const started = performance.now();
    const { context, canvas, ratio } = this;
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(this.paper);
    const left = Math.round(this.gutter * ratio);
    const line = { n: canvas.width - left, cover: null, best: null, label: null, pixels: null };
    line.cover = new Float32Array(line.n);
    line.best = new Float32Array(line.n);
    line.label = new Int32Array(line.n);
    line.pixels = new Uint32Array(line.n);
    const first = Math.max(0, Math.floor(this.spacer.scrollTop / this.row));
    const last = Math.min(this.lanes.length, Math.ceil((this.spacer.scrollTop + this.height) / this.row));
    this.blocksDrawn = 0;
    for (let lane = first; lane < last; lane += 1) {
      this.drawLane(this.lanes[lane], line);
      const top = Math.max(Math.round((this.y(lane) + 1) * ratio), Math.round(AXIS * ratio));
      const bottom = Math.min(Math.round((this.y(lane) + this.row) * ratio), canvas.height);
      for (let y = top; y < bottom; y += 1) pixels.set(line.pixels, y * canvas.width + left);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawTexts(first, last);
    this.drawMatches();
    if (this.showPath) this.drawPath();
    this.drawSelection();
    this.drawAxis();
    this.frame = performance.now() - started;
    if (this.onDraw) this.onDraw();
  }

  /// Fills `line.pixels` with one lane: what covers most of a pixel gives its colour, how much of it its strength.
  drawLane(lane, line) {
    const { n, cover, best, label } = line;
    cover.fill(0);
    best.fill(0);
    const scale = n / (this.view.to - this.view.from);
    let items = lane;
    let level = -1;
    const range = (of) => [search(0, of.n, (i) => of.end[i] >= this.view.from), search(0, of.n, (i) => of.start[i] > this.view.to)];
    let [low, high] = range(items);
    while (high - low > 4 * n && level + 1 < lane.levels.length) {
      level += 1;
      items = lane.levels[level];
      [low, high] = range(items);
    }
    if (level < 0 && lane.kind === "worker" && !lane.busy) this.blocksDrawn += high - low;
    const faint = this.matching ? (i) => (level < 0 && lane.task && lane.kind === "worker" ? !this.matching.has(lane, i) : !this.matching.hasLabel(lane, items.label[i])) : null;
    const from = this.view.from;
    for (let i = low; i < high; i += 1) {
      const a = Math.max((items.start[i] - from) * scale, 0);
      const b = Math.min((items.end[i] - from) * scale, n);
      const density = items.busy ? items.busy[i] / (items.end[i] - items.start[i]) : 1;
      const colour = faint && faint(i) ? -items.label[i] - 1 : items.label[i];
      let p = Math.min(Math.floor(a), n - 1);
      if (b - a < 0.2) {
        cover[p] += 0.2 * density;
        if (best[p] < 0.2) { best[p] = 0.2; label[p] = colour; }
        continue;
      }
      for (; p < b; p += 1) {
        const part = (Math.min(p + 1, b) - Math.max(p, a)) * density;
        cover[p] += part;
        if (part > best[p]) { best[p] = part; label[p] = colour; }
      }
      if (b - a > 4 && b < n) cover[p - 1] = Math.min(cover[p - 1], 0.4);
    }
    const [strong, weak] = this.tables[lane.kind];
    for (let p = 0; p < n; p += 1) {
      if (cover[p] === 0) line.pixels[p] = this.background;
      else {
        const step = Math.max(1, Math.min(STEPS, Math.round(cover[p] * STEPS)));
        const at = label[p];
        line.pixels[p] = at < 0 ? weak[(-at - 1) * (STEPS + 1) + step] : strong[at * (STEPS + 1) + step];
      }
    }
  }

  drawTexts(first, last) {
    const { context } = this;
    context.font = `${Math.min(11, this.row - 2)}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    context.fillStyle = themeColour("--paper");
    context.fillRect(0, 0, this.gutter - 1, this.height);
    for (let lane = first; lane < last; lane += 1) {
      context.fillStyle = themeColour("--ink");
      context.fillText(this.lanes[lane].name, 4, this.y(lane) + this.row / 2 + 0.5, this.gutter - 8);
    }
    if (this.row < 15) return;
    let left = MOST_LABELS;
    context.save();
    context.beginPath();
    context.rect(this.gutter, AXIS, this.width - this.gutter, this.height - AXIS);
    context.clip();
    for (let lane = first; lane < last && left > 0; lane += 1) left -= this.drawLabels(this.lanes[lane], lane, left);
    context.restore();
  }

  drawLabels(lane, at, most) {
    if (!lane.task || lane.kind !== "worker") return 0;
    const { context } = this;
    const low = search(0, lane.n, (i) => lane.end[i] >= this.view.from);
    const high = search(0, lane.n, (i) => lane.start[i] > this.view.to);
    if (high - low > most) return 0;
    let drawn = 0;
    for (let i = low; i < high; i += 1) {
      const x0 = Math.max(this.x(lane.start[i]), this.gutter);
      const room = Math.min(this.x(lane.end[i]), this.width) - x0;
      if (room < 34) continue;
      const [r, g, b] = rgb(this.kernelColours[lane.label[i]] || REST_COLOURS[0]);
      context.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000000" : "#ffffff";
      const text = clip(this.tasks.label(lane.task[i]), Math.floor(room / 6));
      context.fillText(text, x0 + 3, this.y(at) + this.row / 2 + 0.5, room - 5);
      drawn += 1;
    }
    return drawn;
  }

  /// Marks blocks that match but are too small to be seen.
  drawMatches() {
    if (!this.matching || !this.matching.places) return;
    const { context } = this;
    context.fillStyle = themeColour("--path");
    const places = this.matching.places.slice(0, MOST_MARKS);
    for (const { lane, row } of places) {
      const at = this.laneOf.get(lane);
      const spans = this.data.lanes[lane];
      const x0 = this.x(spans.start[row]);
      const x1 = this.x(spans.end[row]);
      if (x1 < this.gutter || x0 > this.width || this.y(at) < AXIS) continue;
      context.fillRect(Math.max(x0, this.gutter), this.y(at) + 1, Math.max(2, x1 - x0), 2);
    }
  }

  drawPath() {
    const { context } = this;
    const { path } = this.data;
    const low = search(0, path.n, (i) => path.to[i] >= this.view.from);
    const high = search(0, path.n, (i) => path.from[i] > this.view.to);
    context.save();
    context.beginPath();
    context.rect(this.gutter, AXIS, this.width - this.gutter, this.height - AXIS);
    context.clip();
    context.fillStyle = themeColour("--path");
    context.strokeStyle = themeColour("--path");
    context.lineWidth = 1.2;
    context.beginPath();
    // However many steps there are, a lane is filled once in each pixel, and a column of pixels has one line at most: none
    // where the path changes lanes so often that lines would hide everything.
    const drawnUntil = new Float64Array(this.lanes.length).fill(-Infinity);
    const top = this.y(0) + this.row - 1.5;
    let [beforeX, beforeY] = [NaN, NaN];
    let column = null;
    const finishColumn = () => {
      if (column && column.changes <= MOST_CHANGES) {
        context.moveTo(column.x, column.top);
        context.lineTo(column.x, column.bottom);
      }
      column = null;
    };
    for (let i = low; i < high; i += 1) {
      const lane = path.lane[i] < 0 ? -1 : this.laneOf.get(path.lane[i]);
      if (lane < 0) continue;
      const x0 = this.x(path.from[i]);
      const x1 = Math.max(this.x(path.to[i]), x0 + 1);
      const y = top + lane * this.row;
      if (Math.ceil(x1) > drawnUntil[lane]) {
        const from = Math.max(x0, drawnUntil[lane]);
        drawnUntil[lane] = Math.ceil(x1);
        context.fillRect(from, y - 1.5, drawnUntil[lane] - from, 3);
      }
      if (x0 - beforeX > 1) {
        finishColumn();
        context.moveTo(beforeX, beforeY);
        context.lineTo(x0, y);
      } else if (!Number.isNaN(beforeY) && beforeY !== y) {
        const at = Math.round(x0);
        if (!column || column.x !== at) {
          finishColumn();
          column = { x: at, top: y, bottom: y, changes: 0 };
        }
        column.changes += 1;
        column.top = Math.min(column.top, beforeY, y);
        column.bottom = Math.max(column.bottom, beforeY, y);
      }
      [beforeX, beforeY] = [x1, y];
    }
    finishColumn();
    context.stroke();
    context.restore();
  }

  drawSelection() {
    if (!this.selected) return;
    const { context } = this;
    const { lane, row } = this.selected;
    const spans = this.data.lanes[lane];
    const box = (which, i) => ({ x0: this.x(this.data.lanes[which].start[i]), x1: this.x(this.data.lanes[which].end[i]), y: this.y(this.laneOf.get(which)) });
    context.save();
    context.beginPath();
    context.rect(this.gutter, AXIS, this.width - this.gutter, this.height - AXIS);
    context.clip();
    const own = box(lane, row);
    context.lineWidth = 1;
    const line = (from, to, dash) => {
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(from.x1, from.y + this.row / 2);
      context.lineTo(to.x0, to.y + this.row / 2);
      context.stroke();
    };
    context.strokeStyle = themeColour("--select");
    if (spans.task && spans.kind === "worker") {
      const task = spans.task[row];
      for (const [list, isProducer] of [[this.tasks.producers(task), true], [this.tasks.consumers(task), false]]) {
        for (const other of list.slice(0, 100)) {
          const place = this.tasks.place(other);
          if (!place) continue;
          const there = box(place.lane, place.row);
          if (isProducer) line(there, own, []);
          else line(own, there, [4, 3]);
          context.setLineDash([]);
          context.strokeRect(there.x0, there.y + 1, Math.max(2, there.x1 - there.x0), this.row - 2);
        }
      }
    }
    context.setLineDash([]);
    context.lineWidth = 2.5;
    context.strokeRect(own.x0, own.y + 1, Math.max(3, own.x1 - own.x0), this.row - 2);
    context.restore();
  }

  /// The cycles that the axis names, with their texts; nothing happens between two cycles, so ticks are whole.
  ticks() {
    const span = this.view.to - this.view.from;
    const rough = Math.max(1, span / Math.max(2, (this.width - this.gutter) / 110));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((tick) => tick >= rough) || power;
    const ticks = [];
    for (let tick = Math.ceil(this.view.from / step) * step; tick <= this.view.to; tick += step) ticks.push([tick, tickText(tick, step)]);
    return ticks;
  }

  drawAxis() {
    const { context } = this;
    context.fillStyle = themeColour("--paper");
    context.fillRect(0, 0, this.width, AXIS - 1);
    context.font = '11px system-ui, "DejaVu Sans", sans-serif';
    context.fillStyle = themeColour("--soft");
    context.fillText("cycles", 4, AXIS / 2);
    for (const [tick, text] of this.ticks()) {
      const x = this.x(tick);
      context.fillRect(x, AXIS - 5, 1, 4);
      const width = context.measureText(text).width;
      context.fillText(text, Math.min(Math.max(x - width / 2, this.gutter), this.width - width - 2), AXIS / 2 - 2);
    }
  }
}

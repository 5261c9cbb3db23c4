// Reads what is inside the file: the report, and the timeline with its packed bytes.

const report = JSON.parse(byId("ptosim-report").textContent);
const head = byId("ptosim-timeline") ? JSON.parse(byId("ptosim-timeline").textContent) : null;

function unpack(node) {
  const text = atob(node.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  node.textContent = "";
  return bytes;
}

/// Numbers of seven bits a byte, the lowest first.
class Reader {
  constructor(bytes, from, length) {
    this.bytes = bytes;
    this.at = from;
    this.end = from + length;
  }
  number() {
    let byte = this.bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 128;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    return value;
  }
}

const signed = (number) => (number % 2 ? -(number + 1) / 2 : number / 2);

function readNames(reader, count) {
  const starts = new Uint32Array(count + 1);
  let text = new Uint8Array(Math.max(1024, 2 * (reader.end - reader.at)));
  let used = 0;
  for (let i = 0; i < count; i += 1) {
    const shared = reader.number();
    const own = reader.number();
    if (used + shared + own > text.length) {
      const larger = new Uint8Array(2 * text.length + shared + own);
      larger.set(text);
      text = larger;
    }
    const before = i > 0 ? starts[i - 1] : 0;
    text.copyWithin(used, before, before + shared);
    text.set(reader.bytes.subarray(reader.at, reader.at + own), used + shared);
    reader.at += own;
    starts[i] = used;
    used += shared + own;
    starts[i + 1] = used;
  }
  const decoder = new TextDecoder();
  return { count, text: (symbol) => decoder.decode(text.subarray(starts[symbol], starts[symbol + 1])) };
}

function readTasks(reader, n) {
  const tasks = {
    n, kind: new Uint8Array(n), submit: new Float64Array(n), kernel: new Uint32Array(n), name: new Int32Array(n).fill(-1),
    blocks: new Uint32Array(n).fill(1), known: new Uint8Array(n), first: new Uint32Array(n + 1),
    producers: new Uint32Array(reader.end - reader.at),
  };
  let submit = 0;
  let name = 0;
  let edges = 0;
  for (let i = 0; i < n; i += 1) {
    const flags = reader.bytes[reader.at++];
    tasks.kind[i] = flags & 7;
    submit += reader.number();
    tasks.submit[i] = submit;
    tasks.kernel[i] = reader.number();
    if (flags & 8) {
      name += signed(reader.number());
      tasks.name[i] = name;
    }
    if (flags & 16) tasks.blocks[i] = reader.number();
    const producers = reader.number();
    tasks.known[i] = producers > 0 ? 1 : 0;
    for (let j = 1; j < producers; j += 1) tasks.producers[edges++] = i - reader.number();
    tasks.first[i + 1] = edges;
  }
  return tasks;
}

/// Spans one by one. `label` is what gives the colour: kernel, phase or job.
function readSpans(reader, track, tasks) {
  const n = track.count;
  const lane = { name: track.name, kind: track.kind, n, start: new Float64Array(n), end: new Float64Array(n),
    task: new Uint32Array(n), label: new Uint32Array(n), wait: new Float64Array(n), part: new Map(), busy: null };
  const isWorker = track.kind === "worker";
  let end = 0;
  let task = 0;
  for (let i = 0; i < n; i += 1) {
    lane.start[i] = end + reader.number();
    end = lane.start[i] + reader.number();
    lane.end[i] = end;
    const about = reader.number();
    task += signed(Math.floor(about / 2));
    lane.task[i] = task;
    if (about % 2) lane.part.set(i, reader.number());
    const extra = reader.number();
    if (isWorker) {
      lane.wait[i] = extra;
      lane.label[i] = task < tasks.n ? tasks.kernel[task] : 0;
    } else lane.label[i] = extra;
  }
  return lane;
}

/// Bins, when there were too many spans.
function readBins(reader, track) {
  const found = [];
  for (let bin = 0; reader.at < reader.end; bin += 1) {
    const cycles = reader.number();
    const label = reader.number();
    if (cycles > 0) found.push([bin, cycles, label]);
  }
  const n = found.length;
  const lane = { name: track.name, kind: track.kind, n, start: new Float64Array(n), end: new Float64Array(n),
    task: null, label: new Uint32Array(n), wait: null, part: new Map(), busy: new Float64Array(n), total: track.count };
  found.forEach(([bin, cycles, label], i) => {
    lane.start[i] = bin * track.bin;
    lane.end[i] = (bin + 1) * track.bin;
    lane.busy[i] = cycles;
    lane.label[i] = label;
  });
  return lane;
}

function readPath(reader, n, lanes) {
  const path = { n, from: new Float64Array(n), to: new Float64Array(n), blame: new Uint8Array(n), kernel: new Uint8Array(n),
    task: new Float64Array(n).fill(-1), lane: new Int32Array(n).fill(-1) };
  const firstWorker = lanes.findIndex((lane) => lane.kind === "worker");
  const byOrchestrator = new Set(["submit", "submit_at", "window", "heap", "deps", "tensors"].map((name) => head.blames.findIndex((blame) => blame[0] === name)));
  let clock = 0;
  let task = 0;
  for (let i = 0; i < n; i += 1) {
    const flags = reader.bytes[reader.at++];
    path.blame[i] = flags >> 3;
    path.kernel[i] = flags & 1;
    path.from[i] = clock;
    clock += reader.number();
    path.to[i] = clock;
    if (flags & 2) {
      task += signed(reader.number());
      path.task[i] = task;
    }
    if (flags & 4) path.lane[i] = firstWorker + reader.number();
    else if (byOrchestrator.has(path.blame[i]) && !path.kernel[i]) path.lane[i] = 0;
  }
  return path;
}

function readTimeline() {
  const bytes = unpack(byId("ptosim-bytes"));
  let at = 0;
  const part = (length) => {
    const reader = new Reader(bytes, at, length);
    at += length;
    return reader;
  };
  const names = readNames(part(head.names.bytes), head.names.count);
  const tasks = readTasks(part(head.tasks.bytes), head.tasks.count);
  const lanes = head.tracks.map((track) =>
    track.bin ? readBins(part(track.bytes), track) : readSpans(part(track.bytes), track, tasks));
  const path = readPath(part(head.path.bytes), head.path.count, lanes);
  lanes.forEach(buildLevels);
  return { names, tasks, lanes, path, end: Math.max(head.end, report.makespan, 1) };
}

/// Level of detail: groups of eight spans, of eight groups, and so on, each with its busy cycles and its main label.
const FACTOR = 8;
function buildLevels(lane) {
  lane.levels = [];
  let below = lane;
  while (below.n > 4 * FACTOR) {
    const n = Math.ceil(below.n / FACTOR);
    const level = { n, start: new Float64Array(n), end: new Float64Array(n), busy: new Float64Array(n), label: new Uint32Array(n) };
    for (let i = 0; i < n; i += 1) {
      const last = Math.min(below.n, (i + 1) * FACTOR);
      let votes = 0;
      for (let j = i * FACTOR; j < last; j += 1) {
        const busy = below.busy ? below.busy[j] : below.end[j] - below.start[j];
        level.busy[i] += busy;
        if (level.label[i] === below.label[j]) votes += busy;
        else if (busy >= votes) {
          level.label[i] = below.label[j];
          votes = busy - votes;
        } else votes -= busy;
      }
      level.start[i] = below.start[i * FACTOR];
      level.end[i] = below.end[last - 1];
    }
    lane.levels.push(level);
    below = level;
  }
}

const TYPES = ["MIX", "CUBE", "VECTOR", "AI_CPU", "ACCELERATOR", "NONE"];

/// Names and places of tasks, found out when they are first asked for.
class Tasks {
  constructor(data) {
    this.data = data;
    this.index = null;
    this.consumerLists = null;
  }
  label(task) {
    const { tasks, names } = this.data;
    return task < tasks.n && tasks.name[task] >= 0 ? names.text(tasks.name[task]) : `task${task}`;
  }
  kernel(task) {
    const { tasks, names } = this.data;
    return task < tasks.n && tasks.kernel[task] > 0 ? names.text(tasks.kernel[task] - 1) : "(unnamed)";
  }
  producers(task) {
    const { tasks } = this.data;
    return task < tasks.n ? Array.from(tasks.producers.subarray(tasks.first[task], tasks.first[task + 1])) : [];
  }
  consumers(task) {
    if (!this.consumerLists) this.consumerLists = this.reverse();
    const { first, list } = this.consumerLists;
    return task + 1 < first.length ? Array.from(list.subarray(first[task], first[task + 1])) : [];
  }
  reverse() {
    const { tasks } = this.data;
    const edges = tasks.first[tasks.n];
    const first = new Uint32Array(tasks.n + 2);
    for (let i = 0; i < edges; i += 1) first[tasks.producers[i] + 2] += 1;
    for (let i = 2; i < first.length; i += 1) first[i] += first[i - 1];
    const list = new Uint32Array(edges);
    for (let task = 0; task < tasks.n; task += 1) {
      for (let i = tasks.first[task]; i < tasks.first[task + 1]; i += 1) list[first[tasks.producers[i] + 1]++] = task;
    }
    return { first, list };
  }
  /// Where a task ran: the lane and index of its first block, and the end of its last; lane -1 if it did not.
  place(task) {
    if (!this.index) this.index = this.locate();
    const { lane, row, end } = this.index;
    return task < lane.length && lane[task] >= 0 ? { lane: lane[task], row: row[task], end: end[task] } : null;
  }
  locate() {
    const { lanes } = this.data;
    let n = this.data.tasks.n;
    for (const lane of lanes) if (lane.kind === "worker" && lane.task) for (const task of lane.task) if (task >= n) n = task + 1;
    const index = { lane: new Int32Array(n).fill(-1), row: new Uint32Array(n), end: new Float64Array(n) };
    lanes.forEach((lane, which) => {
      if (lane.kind !== "worker" || !lane.task) return;
      for (let i = 0; i < lane.n; i += 1) {
        const task = lane.task[i];
        const known = index.lane[task];
        if (known < 0 || lane.start[i] < lanes[known].start[index.row[task]]) {
          index.lane[task] = which;
          index.row[task] = i;
        }
        if (lane.end[i] > index.end[task]) index.end[task] = lane.end[i];
      }
    });
    return index;
  }
}

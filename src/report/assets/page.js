// Puts the page together.

const isGood = report.outcome === "completed";

function reportTitle() {
  const words = { completed: "completed", deadlock: "deadlock", failed: "failed", timeout: "timed out" };
  return titleRow(`${report.workload} on ${report.machine.name}`, words[report.outcome] || report.outcome, isGood, repaint);
}

let view = null;
function repaint() {
  if (view) {
    view.colours();
    view.redraw();
  }
}

function cards() {
  const { bounds } = report;
  const busy = report.workers.reduce((sum, worker) => sum + worker.busy, 0);
  const facts = [
    [group(report.makespan), `cycles makespan, ${duration(report.makespan, report.machine.clock_mhz)}`],
    [group(bounds.lower_bound), "cycles lower bound"],
    [percent(bounds.efficiency), "efficiency: bound / makespan"],
    [percent(share(busy, report.workers.length * report.makespan)), `of ${report.workers.length} workers busy`],
    [group(bounds.critical_path), "cycles critical path"],
    [group(bounds.work), "cycles work per worker"],
    [group(report.tasks), `tasks, ${count(report.blocks, "block")}`],
    [group(report.edges), "dependencies linked"],
  ];
  return make("div", { class: "cards" }, facts.map(([value, text]) => make("div", { class: "card" }, make("b", {}, betweenGroups(value)), make("span", {}, text))));
}

/// What holds what, when a run got stuck.
function deadlockView() {
  const stuck = report.deadlock;
  if (!stuck) return null;
  const box = (title, ...lines) => make("div", {}, make("b", {}, title), lines.filter(Boolean).map((line) => make("div", {}, line)));
  const at = (line) => (line ? `, line ${line}` : "");
  const tasks = (list) => `${list.slice(0, 12).join(", ")}${list.length > 12 ? ` and ${list.length - 12} more` : ""}`;
  const boxes = [];
  if (stuck.task !== undefined) boxes.push(box(`Task ${stuck.task} ${stuck.name || ""}${at(stuck.line)} cannot be submitted`, `it asks for ${group(stuck.wanted)} of the ${stuck.resource}; ${group(stuck.used)} of ${group(stuck.size)} are in use${stuck.spare ? ` and ${group(stuck.spare)} kept free` : ""}`));
  boxes.push(box(stuck.resource === "tensors" ? "The tensor map is full" : `The ${stuck.resource} of ring ${stuck.ring} is full`, `${group(stuck.current)} tasks entered ${stuck.resource === "tensors" ? `ring ${stuck.ring}` : "it"}, ${group(stuck.last_task_alive)} have left it`));
  if (stuck.oldest) {
    const { oldest } = stuck;
    boxes.push(box(`Task ${oldest.task} ${oldest.name}${at(oldest.line)} is the oldest in it and ${oldest.state}`,
      ...oldest.held_by_scopes.map((scope) => `held by the scope of depth ${scope.depth}${scope.line ? ` opened in line ${scope.line}` : ""}, which holds ${count(scope.tasks, "task")}`),
      oldest.waits_for_consumers.length ? `its consumers have not completed: ${tasks(oldest.waits_for_consumers)}` : "",
      oldest.waits_for_producers.length ? `its producers have not completed: ${tasks(oldest.waits_for_producers)}` : ""));
  }
  const needed = Object.entries(stuck.needed).map(([key, value]) => `--set ${key}=${value}`).join(" ");
  return section("Deadlock", make("p", {}, `Nothing can happen any more at cycle ${group(stuck.at)}. Each box waits for the one below.`), make("div", { class: "holds" }, boxes),
    needed ? make("p", {}, "It finishes with ", make("code", {}, prose(needed))) : make("p", {}, "No larger size helps."));
}

function timelineSection() {
  if (!head) {
    return section("Timeline", make("p", {}, "This page was made from a result file, which holds no timeline: when and where blocks ran is only known while a run goes on. ",
      make("code", {}, "ptosim run … --html FILE"), " writes a page with the timeline, the curves and the critical path; ", make("code", {}, "ptosim report RESULT.json --schedule FILE.csv --html FILE"), " adds the blocks of a schedule."));
  }
  const data = readTimeline();
  const stage = make("div", { class: "stage" });
  const tasks = new Tasks(data);
  const output = make("output", {});
  const field = make("input", { type: "search", id: "search", placeholder: "task, number or kernel", "aria-label": "Search tasks and kernels" });
  const tools = make("div", { class: "tools" });
  const found = section("Timeline", tools);
  found.append(stage);
  byId("main").append(found);
  view = new TimelineView(stage, data, tasks);
  const browser = new Browser(view);
  const finder = new Search(browser);
  const told = () => {
    const number = finder.found.length;
    const lost = isCoarse(data) ? taskNumber(field.value.trim().toLowerCase()) : -1;
    if (!field.value.trim()) output.value = "";
    else if (lost >= 0 && lost < report.tasks) output.value = `task ${group(lost)} is not kept`;
    else output.value = finder.at >= 0 ? `${group(finder.at + 1)} of ${group(number)}` : isCoarse(data) && finder.labels.size > 0 ? "blocks are not kept" : `${count(number, "block")} found`;
  };
  field.addEventListener("input", () => { finder.run(field.value); told(); });
  const next = (by) => { finder.step(by); told(); };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") next(event.shiftKey ? -1 : 1); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
  });
  const button = (text, title, action) => make("button", { type: "button", title, "aria-label": title, onclick: action }, text);
  const path = make("button", { type: "button", "aria-pressed": String(view.showPath), onclick: () => {
    view.showPath = !view.showPath;
    path.setAttribute("aria-pressed", String(view.showPath));
    view.redraw();
  } }, "Critical path");
  tools.append(button("−", "Zoom out", () => view.zoom(1 / 2)), button("+", "Zoom in", () => view.zoom(2)), button("Fit", "Show the whole run", () => view.fit()),
    button("←", "Move left", () => view.pan(-0.4)), button("→", "Move right", () => view.pan(0.4)), ...(data.path.n > 0 ? [path] : []),
    make("div", { class: "find" }, field, button("↑", "Previous match", () => next(-1)), button("↓", "Next match", () => next(1)), output));
  found.append(make("p", { class: "soft keys" }, "Drag or ", make("kbd", {}, "←"), " ", make("kbd", {}, "→"), " move, ", make("kbd", {}, "Ctrl"), " + wheel or ", make("kbd", {}, "+"), " ", make("kbd", {}, "−"), " zoom, ", make("kbd", {}, "0"), " shows all, ",
    make("kbd", {}, ","), " ", make("kbd", {}, "."), " go from block to block, ", make("kbd", {}, "↑"), " ", make("kbd", {}, "↓"), " from lane to lane, ", make("kbd", {}, "/"), ` searches. Click a block for ${head.has_tasks ? "its producers and consumers" : "its times"}.`));
  found.append(...coarseness(data), browser.panel, timelineLegend(data));
  window.ptosim = { report, data, view, browser, finder };
  return data;
}

/// Whether there were too many blocks to keep them one by one.
const isCoarse = (data) => data.lanes.some((lane) => lane.kind === "worker" && lane.busy);

/// What the page does not hold, because it is not recorded or the run was too long for it.
function coarseness(data) {
  const notes = [];
  if (isCoarse(data)) notes.push(`${count(report.blocks, "block")} are too many to keep one by one: lanes show how busy a worker was${head.has_tasks ? " and with which kernel mostly" : ""}.`);
  if (!head.has_tasks) notes.push("Kernels and dependencies of the blocks are not recorded.");
  if (report.path && report.path.steps > 0 && !head.has_path) notes.push("Where the critical path ran is not recorded.");
  if (head.has_path && data.path.n === 0) notes.push(`The critical path has ${count(report.path.steps, "step")}, too many to draw; its causes below count all of them.`);
  return notes.map((note) => make("p", { class: "soft coarse" }, note));
}

function timelineLegend(data) {
  const kernels = report.kernels.slice(0, KERNEL_COLOURS.length).map((kernel) => [clip(kernel.name, 80), kernelColour(kernel.name)]);
  if (report.kernels.length > KERNEL_COLOURS.length) kernels.push([`${report.kernels.length - KERNEL_COLOURS.length} more`, REST_COLOURS[0]]);
  const used = (kind, labels) => labels.filter((_, label) => data.lanes.some((lane) => lane.kind === kind && lane.label.some((found, i) => found === label && (!lane.busy || lane.busy[i] > 0)))).map(([name, colour]) => [`${kind}: ${name}`, colour]);
  const path = data.path.n > 0 ? [["critical path", "var(--path)"]] : [];
  return make("div", {}, hasColours ? legend(kernels) : null, legend([...used("orchestrator", PHASES), ...used("scheduler", JOBS), ...path]));
}

function pathSection() {
  if (!report.path || report.path.steps === 0) return null;
  const { path } = report;
  const meanings = new Map(head ? head.blames : []);
  const order = head ? head.blames.map(([name]) => name) : Object.keys(path.blame);
  const causes = order.filter((name) => path.blame[name] > 0);
  const parts = causes.map((name) => [name, path.blame[name], BLAME_COLOURS[name]]);
  const rows = causes.map((name) => make("tr", { "data-blame": name, "data-cycles": path.blame[name] },
    make("td", {}, make("i", { class: "key", style: `background:${BLAME_COLOURS[name]}` }), ` ${name}`), make("td", {}, group(path.blame[name])), make("td", {}, percent(share(path.blame[name], report.makespan))), make("td", { class: "words" }, meanings.get(name) || "")));
  rows.push(make("tr", {}, make("td", {}, "makespan"), make("td", {}, group(report.makespan)), make("td", {}, percent(report.makespan ? 1 : 0)), make("td", {})));
  return section("Critical path", make("p", {}, `Why the run took ${count(report.makespan, "cycle")}: from the last end back to cycle 0, what made each step happen then and not earlier. ${count(path.blocks, "block")} on the path.`),
    make("div", { class: "bars" }, make("span", {}, "blame"), stacked(parts, report.makespan, "critical path")),
    make("div", { class: "scroll" }, make("table", { id: "blame-table" }, make("thead", {}, make("tr", {}, ["cause", "cycles", "share"].map((title) => make("th", { scope: "col" }, title)), make("th", { class: "words", scope: "col" }, "what it is"))), make("tbody", {}, rows))),
    make("h3", {}, "Kernels on it"), make("div", { class: "scroll" }, dataTable(["kernel", "blocks", "cycles", "share"], path.kernels.map((kernel) => [kernel.name, group(kernel.blocks), group(kernel.cycles), percent(share(kernel.cycles, report.makespan))]))));
}

function whatIfSection() {
  const difference = (answer) => {
    if (answer.outcome !== "completed") return "does not complete";
    if (report.outcome !== "completed") return "completes";
    return `${answer.gain > 0 ? "−" : answer.gain < 0 ? "+" : ""}${percent(Math.abs(answer.share))}`;
  };
  if (!report.what_if || report.what_if.length === 0) return null;
  const best = Math.max(...report.what_if.map((answer) => answer.gain), 1);
  const rows = report.what_if.map((answer) => make("tr", {}, make("td", {}, answer.change), make("td", {}, group(answer.makespan)), make("td", {}, difference(answer)),
    make("td", { class: "meter" }, make("div", { style: `width:${(100 * Math.max(answer.gain, 0)) / best}%` })), make("td", { class: "words" }, make("code", {}, prose(answer.settings.map((setting) => `--set ${setting}`).join(" "))))));
  return section("What if", make("p", {}, "The same run with other settings, the largest gain first."), make("div", { class: "scroll" },
    make("table", { id: "what-if" }, make("thead", {}, make("tr", {}, ["change", "makespan", "difference", ""].map((title) => make("th", { scope: "col" }, title)), make("th", { class: "words", scope: "col" }, "to try it"))), make("tbody", {}, rows))));
}

function curvesSection() {
  const text = (unit) => (value) => (unit === "bytes" ? bytesText(Math.round(value)) : group(+Number(value).toFixed(1)));
  const figures = head.curves.map((found) => curve({ title: found.name, max: found.max, mean: found.mean, bin: found.bin, limit: found.limit, text: text(found.unit) }));
  return section("Occupancy", make("p", { class: "soft" }, "Line: most in an interval; area: mean. The dashed line is the limit, where it is near."), make("div", { class: "grid" }, figures));
}

function latencySection() {
  const rows = Object.entries(report.latency).map(([name, wait]) => [name.replaceAll("_", " "), group(wait.count), decimal(wait.mean), group(wait.p50), group(wait.p90), group(wait.p99), group(wait.max)]);
  const figures = head ? [make("div", { class: "grid" }, head.waits.map((wait) => histogram(wait.name, wait.buckets)))] : [];
  return section("Waiting times", figures, rows.length === 0 ? null : make("div", { class: "scroll" }, dataTable(["in cycles", "count", "mean", "p50", "p90", "p99", "max"], rows)));
}

function kernelSection() {
  const columns = [
    ["kernel", (kernel) => kernel.name, (kernel) => make("span", {}, hasColours ? [make("i", { class: "key", style: `background:${kernelColour(kernel.name)}` }), " "] : null, longText(kernel.name))],
    ["blocks", (kernel) => kernel.count, (kernel) => group(kernel.count)], ["cycles", (kernel) => kernel.total, (kernel) => group(kernel.total)],
    ["share", (kernel) => kernel.share, (kernel) => percent(kernel.share)], ["mean", (kernel) => kernel.mean, (kernel) => decimal(kernel.mean)], ["max", (kernel) => kernel.max, (kernel) => group(kernel.max)],
  ];
  return section("Kernels", sortableTable("kernel-table", columns, report.kernels, 2));
}

function runtimeSection() {
  const { orchestrator, scheduler } = report;
  const phases = [["working", orchestrator.working, "#0072b2"], ["waiting for submit_at", orchestrator.waiting, "#a8adb4"], ["window full", orchestrator.blocked.window, "#d55e00"], ["heap full", orchestrator.blocked.heap, "#e69f00"],
    ["dependency entries used up", orchestrator.blocked.deps, "#882255"], ["tensor-map entries used up", orchestrator.blocked.tensors, "#999933"], ["stuck", orchestrator.stuck, "#332288"], ["done", orchestrator.done, "var(--rest)"]];
  const jobs = [["admit", scheduler.admit, "#56b4e9"], ["complete", scheduler.complete, "#009e73"], ["dispatch", scheduler.dispatch, "#cc79a7"], ["idle", scheduler.idle, "var(--rest)"]];
  const used = [...phases, ...jobs].filter(([, value]) => value > 0);
  if (used.length === 0) return null;
  return section("Runtime", legend(used.map(([name, , colour]) => [name, colour])), make("div", { class: "bars", "data-chart": "runtime" }, make("span", {}, "orchestrator"), stacked(phases, report.finish, "orchestrator"),
    make("span", {}, `scheduler × ${scheduler.threads}`), stacked(jobs, scheduler.threads * report.finish, "scheduler")));
}

function settingsSection() {
  const rows = [];
  const walk = (prefix, value) => {
    for (const [key, inner] of Object.entries(value)) {
      if (inner !== null && typeof inner === "object") walk(`${prefix}${key}.`, inner);
      else rows.push([`${prefix}${key}`, String(inner)]);
    }
  };
  walk("", report.machine);
  walk("policy_report.", report.policy_report || {});
  return section("Settings", make("p", {}, `policy ${report.policy}, engine ${report.engine}`), make("details", {}, make("summary", {}, "All settings of the machine"), make("div", { class: "scroll" }, dataTable(["setting", "value"], rows))));
}

function build() {
  byId("head").append(reportTitle(), cards(), make("p", { class: `verdict ${isGood ? "" : "bad"}` }, prose(report.verdict)), ...report.notes.map((note) => make("p", { class: "soft" }, prose(`Note: ${note}`))), roundingNote([report, head], "the result file"));
  const main = byId("main");
  const add = (...sections) => main.append(...sections.filter(Boolean));
  add(deadlockView());
  const data = timelineSection();
  if (!head) add(data);
  add(pathSection(), whatIfSection(), section("Where the worker cycles went", accountBars()), runtimeSection());
  if (head) add(section("Parallelism", make("div", { class: "grid" }, parallelism(data))), head.curves.length ? curvesSection() : null);
  add(latencySection(), kernelSection(), settingsSection());
  if (!window.ptosim) window.ptosim = { report };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  matchMedia("print").addEventListener("change", () => {
    if (view) {
      view.colours();
      view.resize();
      view.draw();
    }
  });
  window.ptosim.ready = true;
}
build();

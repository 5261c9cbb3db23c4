// What is drawn of kernels and workers: colours, accounts, how many run at a time.

const kernelRank = new Map(report.kernels.map((kernel, rank) => [kernel.name, rank]));
function kernelColour(name) {
  const rank = kernelRank.has(name) ? kernelRank.get(name) : KERNEL_COLOURS.length;
  return rank < KERNEL_COLOURS.length ? KERNEL_COLOURS[rank] : REST_COLOURS[rank % REST_COLOURS.length];
}

/// Whether blocks of the timeline have the colours of their kernels.
const hasColours = head !== null && head.has_tasks;

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
  const few = (value) => group(+value.toPrecision(3));
  return [...sums].map(([type, { busy, workers }]) => {
    const values = Array.from(busy, (cycles) => cycles / width);
    const mean = values.reduce((a, b) => a + b, 0) / bins;
    return curve({ title: `${type} workers running`, note: `mean ${few(mean)} of ${workers}`, max: values, mean: values, bin: width, limit: workers, text: few });
  });
}

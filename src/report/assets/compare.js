// Policies side by side.

const comparison = JSON.parse(byId("ptosim-comparison").textContent);
const runs = comparison.policies.filter((row) => row.result).map((row) => ({ policy: row.policy, ...row.result }));
const isComplete = (run) => run.outcome === "completed";

/// One bar a policy, the fastest first; the line is the lower bound.
function makespans() {
  const longest = Math.max(...runs.map((run) => Math.max(run.makespan, run.lower_bound)), 1);
  const order = [...runs].sort((a, b) => isComplete(b) - isComplete(a) || a.makespan - b.makespan);
  const bars = order.flatMap((run) => {
    const ending = isComplete(run) ? "" : `, ${run.outcome}`;
    const text = `${group(run.makespan)} cycles${isComplete(run) ? `, ${run.ratio.toFixed(3)} × bound` : ending}`;
    return [make("span", {}, run.policy),
      make("div", { class: "bar bounded", role: "img", "aria-label": `${run.policy}: ${text}`, title: text },
        make("i", { class: isComplete(run) ? "good" : "bad", style: `width:${(100 * run.makespan) / longest}%`, "data-policy": run.policy, "data-cycles": run.makespan }),
        make("u", { style: `left:${(100 * run.lower_bound) / longest}%`, title: `lower bound ${group(run.lower_bound)}` })),
      make("span", { class: "value" }, `${group(run.makespan)}${ending}`)];
  });
  const legends = [["makespan in cycles", "var(--accent)"], ["lower bound, which no policy can beat", "var(--path)"]];
  if (!runs.every(isComplete)) legends.push(["did not complete: where it stopped", "var(--bad)"]);
  return section("Makespan", legend(legends), make("div", { class: "bars values", "data-chart": "makespan" }, bars));
}

/// Where all workers of each policy spent their cycles.
function accounts() {
  const sums = runs.map((run) => {
    const sum = {};
    for (const type of run.types) for (const [name, cycles] of Object.entries(type.accounts)) sum[name] = (sum[name] || 0) + cycles;
    return [run.policy, sum];
  });
  const used = Object.keys(ACCOUNT_COLOURS).filter((name) => sums.some(([, sum]) => sum[name] > 0));
  const bars = sums.flatMap(([policy, sum]) => {
    const whole = Object.values(sum).reduce((a, b) => a + b, 0);
    return [make("span", {}, policy), stacked(Object.entries(sum).map(([name, cycles]) => [name, cycles, ACCOUNT_COLOURS[name]]), whole, policy)];
  });
  return section("Where the worker cycles went", legend(used.map((name) => [name, ACCOUNT_COLOURS[name]])), make("div", { class: "bars" }, bars));
}

function counters(run) {
  return Object.entries(run.counters || {}).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]) => `${name} ${group(value)}`).join(", ");
}

function table() {
  const types = [...new Set(runs.flatMap((run) => run.types.map((type) => type.type)))];
  const busy = (run, name) => (run.types.find((type) => type.type === name) || { utilisation: 0 }).utilisation;
  const columns = [
    ["policy", (run) => run.policy, (run) => run.policy], ["ended", (run) => run.outcome, (run) => run.outcome],
    ["makespan", (run) => run.makespan, (run) => group(run.makespan)], ["× bound", (run) => (isComplete(run) ? run.ratio : 0), (run) => (isComplete(run) ? run.ratio.toFixed(3) : "–")],
    ...types.map((name) => [`${name} busy`, (run) => busy(run, name), (run) => percent(busy(run, name))]),
    ["wait p50", (run) => run.ready_to_start.p50, (run) => group(run.ready_to_start.p50)], ["wait p99", (run) => run.ready_to_start.p99, (run) => group(run.ready_to_start.p99)],
    ["fairness", (run) => run.fairness, (run) => run.fairness.toFixed(3)], ["counters", counters, counters, "words"],
  ];
  return section("Table", make("p", { class: "soft" }, "Waits are from ready to start, in cycles. Fairness is Jain's index of the busy cycles of a type's workers: 1 when all are equal."),
    sortableTable("policies", columns, runs, 2, true));
}

function build() {
  const isGood = comparison.policies.every((row) => row.result && isComplete(row.result));
  const failed = comparison.policies.filter((row) => row.error);
  byId("head").append(titleRow(`${comparison.workload} on ${comparison.machine.name}, ${comparison.policies.length} policies`, isGood ? "all completed" : "not all completed", isGood, () => {}),
    make("p", { class: `verdict ${isGood ? "" : "bad"}` }, prose(comparison.verdict)), roundingNote(comparison, "the file of --json"));
  const main = byId("main");
  if (runs.length > 0) main.append(makespans(), accounts(), table());
  if (failed.length > 0) main.append(section("Could not run", dataTable(["policy", "why"], failed.map((row) => [row.policy, row.error]))));
  window.ptosim = { comparison, ready: true };
}
build();

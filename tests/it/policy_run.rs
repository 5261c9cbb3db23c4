//! Runs a program under a policy and keeps what happened, in the words of the acceptance file.
//!
//! Programs are written in the notation of the acceptance tables, `name:cycles(deps){attributes}`, or taken from the file;
//! both become a trace that the product's own reader reads.

use ptosim::config::{Machine, Workers};
use ptosim::engine::{BlockRow, Cause, Observer, Retired, RunError, simulate_under};
use ptosim::id::TaskId;
use ptosim::policy::{bmf, ray};
use ptosim::report::Report;
use ptosim::workload::{Symbols, TraceFile, Workload};
use serde_json::{Map, Value, json};
use std::io::Write;

/// What a run tells.
pub struct Told {
    pub report: Report,
    /// Name, worker, start and end of every block, by start.
    pub starts: Vec<(String, u32, u64, u64)>,
    /// Cycle, name and reason, in order.
    pub cancelled: Vec<(u64, String, String)>,
    /// Tasks that `last_task_alive` passed.
    pub last_task_alive: u64,
}

impl Told {
    /// A field of the policy's own report.
    pub fn policy(&self, field: &str) -> &Value {
        &self.report.policy_report[field]
    }

    /// `task@worker[start,end)` in start order.
    pub fn schedule(&self) -> String {
        let mut rows = self.starts.clone();
        rows.sort_by_key(|(_, worker, start, _)| (*start, *worker));
        let rows = rows.iter().map(|(name, worker, start, end)| format!("{name}@w{worker}[{start},{end})"));
        rows.collect::<Vec<_>>().join(" ")
    }

    /// `task@cycle` of a list of `[cycle, task]`.
    pub fn events(&self, field: &str) -> String {
        let list = self.policy(field).as_array().expect("a list of events");
        let event = |event: &Value| format!("{}@{}", event[1].as_str().expect("a name"), event[0]);
        list.iter().map(event).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Default)]
struct Listener {
    names: Vec<String>,
    told_rows: Vec<(String, u32, u64, u64)>,
    cancelled: Vec<(u64, String, String)>,
    last_task_alive: u64,
}

impl Listener {
    fn name(&self, task: TaskId) -> String {
        self.names[task.0 as usize].clone()
    }
}

impl Observer for Listener {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.told_rows.push((self.name(row.task), row.worker.0, row.start, row.end));
    }

    fn retired(&mut self, _retired: &Retired, _now: u64) {
        self.last_task_alive += 1;
    }

    fn cancelled(&mut self, task: TaskId, cause: &Cause<'_>, now: u64) {
        let reason = match cause {
            Cause::Upstream(task) => format!("upstream {}", self.name(*task)),
            Cause::Dropped(reason) => (*reason).to_string(),
        };
        self.cancelled.push((now, self.name(task), reason));
    }
}

/// Runs operations of a trace under the policy that the compact configuration names.
pub fn run(policy: &Value, machine: &Machine, operations: &[Value]) -> Result<Told, RunError> {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().expect("a place for a trace");
    let header = json!({"op": "header", "format": "ptosim-trace", "version": 1, "name": "case"});
    for line in std::iter::once(&header).chain(operations) {
        writeln!(file, "{line}").expect("room for a trace");
    }
    let workload = TraceFile::new(file.path());
    let submits = operations.iter().filter(|operation| operation["op"] == "submit");
    let name = |(index, submit): (usize, &Value)| submit["name"].as_str().map_or(format!("task{index}"), String::from);
    let mut listener = Listener { names: submits.enumerate().map(name).collect(), ..Listener::default() };
    let report = simulate(policy, &workload, machine, &mut listener)?;
    Ok(Told {
        report,
        starts: listener.told_rows,
        cancelled: listener.cancelled,
        last_task_alive: listener.last_task_alive,
    })
}

/// Runs any workload under the policy that the compact configuration names.
pub fn simulate(
    policy: &Value,
    workload: &dyn Workload,
    machine: &Machine,
    observer: &mut impl Observer,
) -> Result<Report, RunError> {
    let mut config = policy.clone();
    let name = config["policy"].take();
    config.as_object_mut().expect("a table").remove("policy");
    match name.as_str() {
        Some("bmf") => {
            let config: bmf::Config = serde_json::from_value(config).expect("settings of bmf");
            simulate_under(workload, machine, bmf::Bmf::new(&config, workload, machine)?, observer)
        }
        Some("ray") => {
            let config: ray::Config = serde_json::from_value(config).expect("settings of ray");
            simulate_under(workload, machine, ray::Ray::new(&config, workload, machine)?, observer)
        }
        other => panic!("no policy {other:?} here"),
    }
}

/// A machine such as `2any` or `1C+2V`.
pub fn machine(text: &str) -> Machine {
    let mut machine = Machine { workers: Workers::default(), ..Machine::default() };
    for part in text.split('+') {
        let digits = part.chars().take_while(char::is_ascii_digit).count();
        let count: u32 = part[..digits].parse().expect("a number of workers");
        match &part[digits..] {
            "C" => machine.workers.cube = count,
            "V" => machine.workers.vector = count,
            "any" => machine.workers.any = count,
            "clusters" => machine.workers.clusters = count,
            other => panic!("no worker type {other}"),
        }
    }
    machine
}

/// Tasks such as `b:10(a){n=1 ts=3}`; attributes are `n` node, `ts` timestamp, `src` source, `at` `schedule_at`, `sub`
/// `submit_at`, `type`, `blocks`, and the words `FAULT` and `SYNC`. A type is VECTOR unless said otherwise.
pub fn program(text: &str) -> Vec<Value> {
    let mut operations = Vec::new();
    for task in tasks(text) {
        let (name, rest) = task.split_once(':').expect("name:cycles");
        let (cycles, attributes) = rest.split_once('{').unwrap_or((rest, "}"));
        let (cycles, deps) = cycles.split_once('(').unwrap_or((cycles, ")"));
        let deps: Vec<_> = deps.trim_end_matches(')').split(',').filter(|dep| !dep.is_empty()).collect();
        let cycles: u64 = cycles.parse().expect("cycles");
        let mut fields: Map<String, Value> = Map::new();
        for (key, value) in
            [("op", json!("submit")), ("name", json!(name)), ("cycles", json!(cycles)), ("deps", json!(deps))]
        {
            fields.insert(key.into(), value);
        }
        for attribute in attributes.trim_end_matches('}').split_whitespace() {
            let (key, value) = field(attribute);
            fields.insert(key.into(), value);
        }
        operations.push(Value::Object(fields));
    }
    operations
}

/// Words of a program, where what stands in braces belongs together.
fn tasks(text: &str) -> Vec<String> {
    let mut tasks = vec![String::new()];
    let mut depth = 0;
    for character in text.chars() {
        depth += i32::from(character == '{') - i32::from(character == '}');
        if character.is_whitespace() && depth == 0 {
            tasks.push(String::new());
        } else {
            tasks.last_mut().expect("there is always one").push(character);
        }
    }
    tasks.retain(|task| !task.is_empty());
    tasks
}

fn field(attribute: &str) -> (&str, Value) {
    let (key, text) = attribute.split_once('=').unwrap_or((attribute, ""));
    let value = text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
    match key {
        "n" => ("node", value),
        "ts" => ("timestamp", value),
        "src" => ("source", json!(text)),
        "at" => ("schedule_at", value),
        "sub" => ("submit_at", value),
        "type" => ("worker_type", value),
        "FAULT" => ("fault", json!(true)),
        "SYNC" => ("sync_start", json!(true)),
        "blocks" | "parent" | "spawn_offset" | "kernel" | "uuid" => (key, value),
        other => panic!("no attribute {other}"),
    }
}

/// A command of a trace: cycle, command, and arguments by position.
pub fn control(at: u64, command: &str, arguments: &[Value]) -> Value {
    let names: &[&str] = match command {
        "pause" | "resume" => &["queue"],
        "remove_routine" | "notify" => &["routine"],
        "stop_activation" => &["activation"],
        _ => &["node", "queue"],
    };
    let mut fields = json!({"op": "control", "at": at, "cmd": command});
    for (name, value) in names.iter().zip(arguments) {
        fields[name] = value.clone();
    }
    fields
}

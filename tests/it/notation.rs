//! Small programs in the notation of the case tables, run under a policy: `A:10 B:5(A){prio=3}`.

use ptosim::config::{Machine, Workers};
use ptosim::engine::{BlockRow, Observer, RunError, simulate_under};
use ptosim::policy::Policy;
use ptosim::report::Report;
use ptosim::workload::{Program, Symbols, TraceFile};
use serde_json::{Value, json};
use std::io::Write;

/// What a run came to.
pub struct Ran {
    /// Name, worker, start and end of every block, in the order in which they started.
    pub starts: Vec<(String, u32, u64, u64)>,
    /// The report, or why there is none.
    pub report: Result<Report, RunError>,
}

impl Ran {
    /// All starts as `A@0[0,10)`, by start and worker.
    pub fn schedule(&self) -> String {
        let mut rows = self.starts.clone();
        rows.sort_by_key(|(_, worker, start, _)| (*start, *worker));
        let row = |(name, worker, start, end): &(String, u32, u64, u64)| format!("{name}@{worker}[{start},{end})");
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    /// The report.
    pub fn ok(&self) -> &Report {
        self.report.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The error, in which the trace is called `case`.
    pub fn error(&self) -> String {
        let error = self.report.as_ref().expect_err("the run must not succeed").to_string();
        let (file, told) = error.split_once(':').expect("it begins with the file");
        assert!(file.starts_with(&*std::env::temp_dir().to_string_lossy()), "{error}");
        format!("case:{told}")
    }
}

/// A machine of workers that run everything, without costs.
pub fn any(workers: u32) -> Machine {
    Machine { workers: Workers { any: workers, ..Workers::default() }, ..Machine::default() }
}

/// A machine of cubes and vectors, without costs.
pub fn typed(cube: u32, vector: u32) -> Machine {
    Machine { workers: Workers { cube, vector, ..Workers::default() }, ..Machine::default() }
}

/// Runs a program written as `name:cycles(producer,producer){key=value key=value}`; words that begin with `@` are controls,
/// `@15:shutdown` or `@15:remove_routine{routine=A}`.
pub fn play(text: &str, machine: &Machine, policy: impl Policy) -> Ran {
    run(&lines(text), machine, policy)
}

/// Runs operations of a trace.
pub fn run(lines: &[Value], machine: &Machine, policy: impl Policy) -> Ran {
    let mut starts = Starts::default();
    let report = simulate_under(&program(lines), machine, policy, &mut starts);
    Ran { starts: starts.0, report }
}

/// Operations of a trace as a workload, by way of a file.
pub fn program(lines: &[Value]) -> Program {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let header = json!({"op": "header", "format": "ptosim-trace", "version": 1, "name": "case"});
    for line in std::iter::once(&header).chain(lines) {
        writeln!(file, "{line}").expect("the file takes a line");
    }
    Program::load(&TraceFile::new(file.path())).unwrap_or_else(|error| panic!("{error}"))
}

#[derive(Default)]
struct Starts(Vec<(String, u32, u64, u64)>);

impl Observer for Starts {
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        let name = row.name.map_or_else(|| format!("task{}", row.task), |name| names.name(name).to_string());
        self.0.push((name, row.worker.0, row.start, row.end));
    }
}

/// Attributes stand in braces and may contain spaces; everything else is split at spaces.
fn lines(text: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let end = match rest.find('{') {
            Some(brace) if brace < end => rest.find('}').expect("a closing brace") + 1,
            _ => end,
        };
        lines.push(line(&rest[..end]));
        rest = rest[end..].trim_start();
    }
    lines
}

fn line(word: &str) -> Value {
    let (word, attributes) = word.split_once('{').unwrap_or((word, "}"));
    let (head, tail) = word.split_once(':').expect("name:cycles or @cycle:command");
    let mut line = if let Some(at) = head.strip_prefix('@') {
        json!({"op": "control", "at": number(at), "cmd": tail})
    } else {
        let (cycles, deps) = tail.split_once('(').unwrap_or((tail, ")"));
        let deps: Vec<_> = deps.trim_end_matches(')').split(',').filter(|dep| !dep.is_empty()).collect();
        json!({"op": "submit", "name": head, "cycles": number(cycles), "deps": deps})
    };
    for attribute in attributes.trim_end_matches('}').split_whitespace() {
        let (key, value) = attribute.split_once('=').expect("key=value");
        line[long(key)] = match value {
            "null" => Value::Null,
            "true" => json!(true),
            _ if matches!(key, "rt" | "act" | "par" | "grp" | "routine" | "activation") => json!(value),
            _ => value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number)),
        };
    }
    line
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number of cycles")
}

fn long(key: &str) -> &str {
    match key {
        "rt" => "routine",
        "act" => "activation",
        "par" => "parent",
        "grp" => "group",
        "proc" => "processor",
        "on" => "worker_type",
        "post" => "post_cycles",
        "kind" => "work_item",
        "sub" => "submit_at",
        "sync" => "sync_start",
        "off" => "spawn_offset",
        other => other,
    }
}

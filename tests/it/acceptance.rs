//! The order and cycle cases of `acceptance.json`, run by the model and by the engine.
//!
//! A case names its policy; [`runner`] says who can run it. Another policy joins by adding its configuration there.

use crate::invariants;
use crate::model::{self, Ending};
use crate::policy_cases;
use crate::program::{Op, Program};
use ptosim::config::{Machine, Workers};
use ptosim::engine::{BlockRow, Observer};
use ptosim::id::{TaskId, TaskType};
use ptosim::workload::{Cost, Submit, Symbols};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// One case of the file.
#[derive(Deserialize)]
struct Case {
    id: String,
    title: String,
    machine: Vec<String>,
    policy: Map<String, Value>,
    pto: BTreeMap<String, u64>,
    controls: Vec<Vec<Value>>,
    program: Vec<Map<String, Value>>,
    expect: Expect,
}

/// What must come out; a list or number that is absent is not looked at.
#[derive(Deserialize)]
struct Expect {
    starts: Vec<(String, u32, u64, u64)>,
    makespan: u64,
    tasks_completed: u64,
    tasks_consumed: u64,
    last_task_alive: u64,
    busy: Vec<u64>,
    stall: Vec<u64>,
    error: Option<Vec<String>>,
    orch_blocked: Option<u64>,
    consumed_at: Option<Vec<(u64, String)>>,
    ring_history: Option<Vec<(u64, u64, u64)>>,
    ops: Option<BTreeMap<String, u64>>,
    turns: Option<u64>,
    quantum_expirations: Option<u64>,
}

/// What a run tells, in the words of the file. `None` is what this runner cannot tell.
#[derive(Default)]
pub struct Answer {
    pub starts: Vec<(String, u32, u64, u64)>,
    pub makespan: u64,
    pub tasks_completed: u64,
    pub tasks_consumed: u64,
    pub last_task_alive: Option<u64>,
    pub busy: Vec<u64>,
    pub error: Option<String>,
    pub orch_blocked: u64,
    pub edges: u64,
    pub consumed_at: Option<Vec<(u64, String)>>,
    pub ring_history: Option<Vec<(u64, u64, u64)>>,
    /// Counters of the policy.
    pub policy: Value,
}

/// Who runs a case.
type Runner = fn(&Case) -> Answer;

#[test]
fn the_model_passes_the_acceptance_cases() {
    let passed = pass(|policy| (policy == "pto").then_some(by_model as Runner));
    assert_eq!(passed, 15, "cases of the default policy");
}

#[test]
fn the_engine_passes_the_acceptance_cases() {
    let passed = pass(runner);
    assert_eq!(passed, 63, "cases of all policies");
}

/// The engine under a policy of the file, if it has that policy.
fn runner(policy: &str) -> Option<Runner> {
    match policy {
        "pto" => Some(by_engine),
        "classic" | "choreography" => Some(by_cyber),
        "orleans" => Some(by_orleans),
        "bmf" | "ray" => Some(|case| policy_cases::answer(&case.id)),
        _ => None,
    }
}

/// Runs and checks every case whose policy has a runner; gives their number.
fn pass(runner: impl Fn(&str) -> Option<Runner>) -> usize {
    let cases: Vec<Case> = serde_json::from_str(include_str!("acceptance.json")).expect("the file has this form");
    let mut passed = 0;
    for case in &cases {
        let policy = case.policy["policy"].as_str().expect("a policy has a name");
        if let Some(run) = runner(policy) {
            check(case, &run(case));
            passed += 1;
        }
    }
    passed
}

fn check(case: &Case, answer: &Answer) {
    let (expect, label) = (&case.expect, format!("{} ({})", case.id, case.title));
    let by_name = |rows: &[(String, u32, u64, u64)]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    assert_eq!(by_name(&answer.starts), by_name(&expect.starts), "starts of {label}");
    assert_eq!(stall(&answer.starts, expect.stall.len()), expect.stall, "stall of {label}");
    assert_eq!(answer.makespan, expect.makespan, "makespan of {label}");
    assert_eq!(answer.tasks_completed, expect.tasks_completed, "tasks completed of {label}");
    assert_eq!(answer.tasks_consumed, expect.tasks_consumed, "tasks consumed of {label}");
    assert_eq!(answer.busy, expect.busy, "busy cycles of {label}");
    assert_eq!(answer.error, expect.error.as_ref().map(|lines| lines.join("\n")), "error of {label}");
    if let Some(blocked) = expect.orch_blocked {
        assert_eq!(answer.orch_blocked, blocked, "blocked cycles of the orchestrator of {label}");
    }
    if let Some(alive) = answer.last_task_alive {
        assert_eq!(alive, expect.last_task_alive, "last_task_alive of {label}");
    }
    if answer.consumed_at.is_some() && expect.consumed_at.is_some() {
        assert_eq!(answer.consumed_at, expect.consumed_at, "cycles of consumption of {label}");
    }
    if answer.ring_history.is_some() && expect.ring_history.is_some() {
        assert_eq!(answer.ring_history, expect.ring_history, "ring history of {label}");
    }
    for (key, count) in [("turns", expect.turns), ("quantum_expirations", expect.quantum_expirations)] {
        if let Some(count) = count {
            assert_eq!(answer.policy[key], count, "{key} of {label}");
        }
    }
    for (operation, &count) in expect.ops.iter().flatten() {
        let told = match operation.as_str() {
            "fanin_add" | "fanout_add" => answer.edges,
            "consumed_cas" | "advance" => answer.tasks_consumed,
            "fanout_lock" | "ready_cas" | "push" | "pop" => answer.tasks_completed,
            other => panic!("unknown operation {other} of {label}"),
        };
        assert_eq!(told, count, "{operation} of {label}");
    }
}

/// Σ(start − clock before) per worker.
fn stall(starts: &[(String, u32, u64, u64)], n_workers: usize) -> Vec<u64> {
    let mut rows: Vec<_> = starts.iter().map(|&(_, worker, start, end)| (start, end, worker as usize)).collect();
    rows.sort_unstable();
    let (mut clock, mut stall) = (vec![0; n_workers], vec![0; n_workers]);
    for (start, end, worker) in rows {
        stall[worker] += start - clock[worker];
        clock[worker] = end;
    }
    stall
}

fn by_model(case: &Case) -> Answer {
    let (program, machine, names) = read(case);
    let told = model::run(&program, &machine);
    let name = |task: usize| names[task].clone();
    assert_eq!(told.stall, case.expect.stall, "stall of {}", case.id);
    Answer {
        starts: told.rows.iter().map(|row| (name(row.task as usize), row.worker, row.start, row.end)).collect(),
        makespan: told.makespan,
        tasks_completed: told.completed,
        tasks_consumed: told.consumed_at.len() as u64,
        last_task_alive: Some(told.history.last().map_or(0, |retired| retired.last_task_alive)),
        busy: invariants::busy(&machine, &told.rows),
        error: match &told.ending {
            Ending::Completed => None,
            Ending::Deadlock(stuck) => Some(deadlock(stuck.resource.name(), stuck.current, stuck.last_task_alive)),
            Ending::Error(task) => panic!("task {task} of {} never fits", case.id),
        },
        orch_blocked: blocked(&told.orchestrator.blocked),
        edges: told.edges,
        consumed_at: Some(told.consumed_at.iter().map(|&(at, task)| (at, name(task))).collect()),
        ring_history: Some(
            told.history.iter().map(|retired| (retired.at, retired.last_task_alive, retired.heap_tail)).collect(),
        ),
        policy: Value::Null,
    }
}

/// Names, workers, starts and ends as the engine tells them.
struct Starts<'a> {
    names: &'a [String],
    rows: Vec<(String, u32, u64, u64)>,
}

impl Observer for Starts<'_> {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.rows.push((self.names[row.task.0 as usize].clone(), row.worker.0, row.start, row.end));
    }
}

fn by_engine(case: &Case) -> Answer {
    let (program, machine, names) = read(case);
    let mut starts = Starts { names: &names, rows: Vec::new() };
    let report = match ptosim::engine::run(&program, &machine, &mut starts) {
        Ok(report) => report,
        Err(error) => panic!("{}: {error}", case.id),
    };
    Answer {
        starts: starts.rows,
        makespan: report.makespan,
        tasks_completed: report.ended.completed,
        tasks_consumed: report.ended.consumed,
        last_task_alive: report.deadlock.as_ref().map(|deadlock| deadlock.last_task_alive),
        busy: report.workers.iter().map(|worker| worker.busy).collect(),
        error: report.deadlock.map(|stuck| deadlock(&stuck.resource, stuck.current, stuck.last_task_alive)),
        orch_blocked: blocked(&report.orchestrator.blocked),
        edges: report.edges,
        ..Answer::default()
    }
}

fn by_cyber(case: &Case) -> Answer {
    let policy = crate::policy_cyber::from_compact(&case.policy, &machine(case));
    by_policy(case, policy)
}

fn by_orleans(case: &Case) -> Answer {
    let mut settings = case.policy.clone();
    settings.remove("policy");
    let config = serde_json::from_value(Value::Object(settings)).expect("the keys of [orleans]");
    by_policy(case, ptosim::policy::orleans::Orleans::new(config, &machine(case)).expect("right settings"))
}

/// The engine under any policy; program and controls go through the reader of traces.
fn by_policy(case: &Case, policy: impl ptosim::policy::Policy) -> Answer {
    let ran = crate::notation::run(&trace(case), &machine(case), policy);
    let report = ran.report.unwrap_or_else(|error| panic!("{}: {error}", case.id));
    Answer {
        starts: ran.starts,
        makespan: report.makespan,
        tasks_completed: report.ended.completed,
        tasks_consumed: report.ended.consumed,
        busy: report.workers.iter().map(|worker| worker.busy).collect(),
        error: report.deadlock.map(|stuck| deadlock(&stuck.resource, stuck.current, stuck.last_task_alive)),
        orch_blocked: blocked(&report.orchestrator.blocked),
        edges: report.edges,
        policy: report.policy_report,
        ..Answer::default()
    }
}

/// The operations of a case as lines of a trace.
fn trace(case: &Case) -> Vec<Value> {
    let argument = |command: &str| match command {
        "remove_routine" | "notify" => "routine",
        "stop_activation" => "activation",
        _ => "node",
    };
    let control = |control: &Vec<Value>| {
        let command = control[1].as_str().expect("a command");
        let mut line = serde_json::json!({"op": "control", "at": control[0], "cmd": command});
        if let Some(value) = control.get(2) {
            line[argument(command)] = value.clone();
        }
        line
    };
    let operations = case.program.iter().cloned().map(Value::Object);
    case.controls.iter().map(control).chain(operations).collect()
}

pub fn deadlock(resource: &str, current: u64, last_task_alive: u64) -> String {
    format!("DEADLOCK: orchestrator blocked on {resource}, current={current} last_task_alive={last_task_alive}")
}

fn blocked(blocked: &ptosim::report::Blocked) -> u64 {
    blocked.window + blocked.heap + blocked.deps + blocked.tensors
}

/// The machine and the program of a case, and the names of its tasks.
fn read(case: &Case) -> (Program, Machine, Vec<String>) {
    let mut ids = HashMap::new();
    let mut names = Vec::new();
    let mut ops = Vec::new();
    for fields in &case.program {
        ops.push(match fields["op"].as_str() {
            Some("scope_begin") => Op::ScopeBegin,
            Some("scope_end") => Op::ScopeEnd,
            Some("submit") => {
                let submit = submit(fields, &ids);
                let name = fields["name"].as_str().expect("every task of the file has a name").to_string();
                ids.insert(name.clone(), TaskId(names.len() as u64));
                names.push(name);
                Op::Submit(Box::new(submit))
            }
            other => panic!("unknown operation {other:?} in {}", case.id),
        });
    }
    (Program { ops }, machine(case), names)
}

fn machine(case: &Case) -> Machine {
    let mut machine = Machine { workers: Workers::default(), ..Machine::default() };
    for kind in &case.machine {
        match kind.as_str() {
            "CUBE" => machine.workers.cube += 1,
            "VECTOR" => machine.workers.vector += 1,
            "ANY" => machine.workers.any += 1,
            other => panic!("unknown worker type {other} in {}", case.id),
        }
    }
    for (key, &value) in &case.pto {
        match key.as_str() {
            "window" => machine.limits.window = value,
            "heap" => machine.limits.heap = value,
            "submit" => machine.orchestrator.submit = value,
            other => panic!("unknown setting {other} in {}", case.id),
        }
    }
    machine
}

/// The fields that the machine reads; those of the other policies are theirs to add.
fn submit(fields: &Map<String, Value>, ids: &HashMap<String, TaskId>) -> Submit {
    let number = |key: &str| fields.get(key).and_then(Value::as_u64);
    let mut submit = Submit::default();
    submit.clear();
    submit.kind = TaskType::parse(fields["worker_type"].as_str().expect("a text"));
    submit.cost = number("cycles").map(Cost::Cycles);
    let deps = fields["deps"].as_array().expect("a list of names");
    submit.deps = deps.iter().map(|name| ids[name.as_str().expect("a name")]).collect();
    submit.out_bytes = number("out_bytes").unwrap_or(0);
    submit.submit_at = number("submit_at").unwrap_or(0);
    submit.fault = fields.get("fault").and_then(Value::as_bool).unwrap_or(false);
    submit
}

//! More cases of the kind of `acceptance.json`: small programs with priorities, timestamps, tokens, quanta, retries, faults and
//! controls. What they expect was computed by a naive implementation of the rules that shares nothing with this program.

use crate::policy_run::{self, control};
use crate::{notation, policy_cyber};
use ptosim::config::{Machine, Workers};
use ptosim::policy::{Pto, QueueLimit, orleans};
use ptosim::report::Report;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One case of the file.
#[derive(Deserialize)]
struct Case {
    id: String,
    machine: Vec<String>,
    policy: Map<String, Value>,
    controls: Vec<Vec<Value>>,
    program: Vec<Map<String, Value>>,
    /// Name, worker, start and end, by start and worker.
    starts: Vec<(String, u32, u64, u64)>,
    completed: u64,
    /// What `bmf` admits and `ray` fires: cycle and task.
    events: Option<Value>,
    /// Under `orleans`: turns, and those that the quantum ended.
    turns: Option<(u64, u64)>,
}

#[test]
fn the_engine_agrees_with_cases_worked_out_elsewhere() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("policy_more.json")).expect("the file has this form");
    for case in &cases {
        let (mut starts, report) = case.run();
        starts.sort_by_key(|&(_, worker, start, end)| (start, worker, end));
        assert_eq!(starts, case.starts, "starts of {}", case.id);
        assert_eq!(report.ended.completed, case.completed, "tasks completed of {}", case.id);
        if let Some(events) = &case.events {
            let told = ["admissions", "fired"].map(|key| &report.policy_report[key]);
            assert!(told.contains(&events), "events of {}: {told:?}, not {events}", case.id);
        }
        if let Some((turns, expirations)) = case.turns {
            let told = &report.policy_report;
            assert_eq!(
                (&told["turns"], &told["quantum_expirations"]),
                (&json!(turns), &json!(expirations)),
                "{}",
                case.id
            );
        }
    }
    assert_eq!(cases.len(), 72);
}

impl Case {
    /// Rows and report of a run.
    fn run(&self) -> (Vec<(String, u32, u64, u64)>, Report) {
        let (machine, lines) = (self.machine(), self.operations());
        let ran = match self.policy["policy"].as_str() {
            Some("pto") => notation::run(&lines, &machine, Pto::new(QueueLimit::of(&machine))),
            Some("classic" | "choreography") => {
                notation::run(&lines, &machine, policy_cyber::from_compact(&self.policy, &machine))
            }
            Some("orleans") => {
                let mut settings = self.policy.clone();
                settings.remove("policy");
                let config = serde_json::from_value(Value::Object(settings)).expect("the keys of [orleans]");
                notation::run(&lines, &machine, orleans::Orleans::new(config, &machine).expect("right settings"))
            }
            _ => {
                let told = policy_run::run(&Value::Object(self.policy.clone()), &machine, &lines);
                let told = told.unwrap_or_else(|error| panic!("{}: {error}", self.id));
                return (told.starts, told.report);
            }
        };
        (ran.starts, ran.report.unwrap_or_else(|error| panic!("{}: {error}", self.id)))
    }

    fn machine(&self) -> Machine {
        let count = |kind: &str| self.machine.iter().filter(|worker| *worker == kind).count() as u32;
        let workers = Workers { cube: count("CUBE"), vector: count("VECTOR"), any: count("ANY"), ..Workers::default() };
        Machine { workers, ..Machine::default() }
    }

    /// Controls and tasks as lines of a trace.
    fn operations(&self) -> Vec<Value> {
        let command = |parts: &Vec<Value>| {
            control(parts[0].as_u64().expect("a cycle"), parts[1].as_str().expect("a command"), &parts[2..])
        };
        let submit = |fields: &Map<String, Value>| {
            let mut fields = fields.clone();
            fields.insert("op".into(), json!("submit"));
            Value::Object(fields)
        };
        self.controls.iter().map(command).chain(self.program.iter().map(submit)).collect()
    }
}

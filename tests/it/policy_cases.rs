//! The cases of the acceptance file for the policies whose whole answer stands in their own report.

use crate::acceptance::Answer;
use crate::policy_run::{self, Told, control};
use ptosim::config::Machine;
use serde_json::{Value, json};

/// Runs the case with this id, and checks what only the policy's own report tells.
pub fn answer(id: &str) -> Answer {
    let cases: Vec<Value> = serde_json::from_str(include_str!("acceptance.json")).expect("the file has this form");
    let case = cases.into_iter().find(|case| case["id"] == id).expect("a case of the file");
    let mut operations: Vec<Value> = list(&case["controls"]).iter().map(command).collect();
    operations.extend(list(&case["program"]).iter().cloned());
    let told = policy_run::run(&case["policy"], &machine(&case), &operations);
    let told = told.unwrap_or_else(|error| panic!("{id}: {error}"));
    check(id, &case["expect"], &told);
    let stuck = told.report.deadlock.as_ref();
    let blocked = &told.report.orchestrator.blocked;
    Answer {
        starts: told.starts,
        makespan: told.report.makespan,
        tasks_completed: told.report.ended.completed,
        tasks_consumed: told.report.ended.consumed,
        last_task_alive: Some(told.last_task_alive),
        busy: told.report.workers.iter().map(|worker| worker.busy).collect(),
        error: stuck.map(|stuck| crate::acceptance::deadlock(&stuck.resource, stuck.current, stuck.last_task_alive)),
        orch_blocked: blocked.window + blocked.heap + blocked.deps + blocked.tensors,
        edges: told.report.edges,
        ..Answer::default()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn command(control_of_case: &Value) -> Value {
    let parts = list(control_of_case);
    control(parts[0].as_u64().expect("a cycle"), parts[1].as_str().expect("a command"), &parts[2..])
}

fn machine(case: &Value) -> Machine {
    let count = |kind: &str| list(&case["machine"]).iter().filter(|worker| *worker == kind).count() as u32;
    let mut machine = Machine::default();
    (machine.workers.cube, machine.workers.vector, machine.workers.any) =
        (count("CUBE"), count("VECTOR"), count("ANY"));
    for (key, value) in case["pto"].as_object().expect("a table") {
        let value = value.as_u64().expect("a number");
        match key.as_str() {
            "window" => machine.limits.window = value,
            "heap" => machine.limits.heap = value,
            "submit" => machine.orchestrator.submit = value,
            other => panic!("unknown setting {other}"),
        }
    }
    machine
}

/// Lists that a case does not give must be empty where that can be seen.
fn check(id: &str, expect: &Value, told: &Told) {
    for field in ["admissions", "fired"] {
        if !expect[field].is_null() {
            assert_eq!(told.policy(field), &expect[field], "{field} of {id}");
        }
    }
    for field in ["forced_admissions", "heap_left"] {
        let expected = if expect[field].is_null() { json!([]) } else { expect[field].clone() };
        let found = if told.policy(field).is_null() { json!([]) } else { told.policy(field).clone() };
        assert_eq!(found, expected, "{field} of {id}");
    }
    assert_eq!(told.policy("halt"), &expect["halt"], "halt of {id}");
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or("").to_string();
    let mut found: Vec<_> = told
        .cancelled
        .iter()
        .map(|(at, name, why)| (*at, name.clone(), if why.starts_with('[') { first_word(why) } else { why.clone() }))
        .collect();
    let mut expected: Vec<(u64, String, String)> =
        serde_json::from_value(json!(list(&expect["cancelled"]))).expect("cycle, name and reason");
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "cancelled tasks of {id}");
}

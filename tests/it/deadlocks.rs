//! What is told about runs that get stuck: who keeps what is lacking, which sizes would do, and what is no deadlock.

use ptosim::config::Machine;
use ptosim::engine::run;
use ptosim::report::{Deadlock, Report};
use ptosim::workload::Stdin;

fn machine(settings: &str) -> Machine {
    let mut machine = Machine::default();
    machine.apply(&settings.split_whitespace().collect::<Vec<_>>()).expect("they are settings");
    machine
}

/// Runs the lines of a trace, the header left out; its first line is line 2 of `t`.
fn try_run(lines: &str, machine: &Machine) -> Result<Report, String> {
    let text = format!("{{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}}\n{lines}");
    let trace = Stdin::from_reader("t", Box::new(std::io::Cursor::new(text.into_bytes())));
    run(&trace, machine, &mut ()).map_err(|error| error.to_string())
}

fn stuck(lines: &str, settings: &str) -> (Deadlock, String) {
    let mut report = try_run(lines, &machine(settings)).expect("a deadlock is a result");
    let text = ptosim::report::verdict(&report);
    (report.deadlock.take().expect("it gets stuck"), text)
}

fn is_stuck(lines: &str, settings: &str) -> bool {
    !try_run(lines, &machine(settings)).is_ok_and(|report| report.deadlock.is_none())
}

fn submit(fields: &str) -> String {
    format!("{{\"op\":\"submit\",{fields}}}\n")
}

const BEGIN: &str = "{\"op\":\"scope_begin\"}\n";

#[test]
fn the_size_needed_is_the_smallest_also_where_a_larger_one_gets_stuck() {
    // Twelve pieces go round the ring before the scope; whether its two fit together depends on where the ring ends.
    let before = submit("\"cycles\":1,\"out_bytes\":64").repeat(12);
    let last = [submit("\"cycles\":1,\"out_bytes\":64,\"submit_at\":100"), submit("\"cycles\":1,\"out_bytes\":192")];
    let lines = [before.as_str(), BEGIN, &last[0], &last[1]].concat();
    let with = |heap: u64| format!("workers.vector=1 limits.heap={heap}");
    let sizes: Vec<u64> = (3..=7).map(|pieces| pieces * 64).filter(|&heap| !is_stuck(&lines, &with(heap))).collect();
    assert_eq!(sizes, [256, 384, 448], "320 gets stuck although 256 does not");
    for heap in [192, 200, 320] {
        let (deadlock, text) = stuck(&lines, &with(heap));
        assert_eq!((deadlock.needed["limits.heap"], deadlock.is_smallest), (256, true), "heap of {heap}");
        assert!(text.contains("--set limits.heap=256; a smaller one does not do"), "{text}");
    }
}

/// A program that gets stuck with a pool in which a smaller one would do: that makes the orchestrator wait, and meanwhile
/// producers are consumed that then need no entry.
const WAITING_HELPS: &str = r#"{"op":"buffer","id":"A","bytes":7}
{"op":"buffer","id":"B","bytes":100}
{"op":"submit","cycles":1,"inout":[["A",6,1]]}
{"op":"submit","cycles":1}
{"op":"submit","cycles":1}
{"op":"submit","cycles":1}
{"op":"submit","cycles":0}
{"op":"submit","cycles":0,"deps":[1,4]}
{"op":"submit","cycles":1,"deps":[3]}
{"op":"submit","cycles":1,"inout":["A"]}
{"op":"submit","cycles":0,"deps":[6,7,5]}
{"op":"submit","cycles":1}
{"op":"submit","cycles":0,"inout":["B"]}
{"op":"submit","cycles":1}
{"op":"submit","cycles":1}
{"op":"submit","cycles":1}
{"op":"submit","cycles":0}
{"op":"submit","cycles":0}
{"op":"submit","cycles":0,"in":[["B",66,15]]}
{"op":"scope_begin"}
{"op":"submit","cycles":0}
{"op":"submit","cycles":1,"inout":[["B",78,22]]}
{"op":"submit","cycles":0,"deps":[17,18]}
{"op":"submit","cycles":0,"deps":[17]}
{"op":"submit","cycles":1,"deps":[20],"out":[["B",76,17,1,18]]}
"#;

#[test]
fn the_size_needed_may_be_smaller_than_the_one_given() {
    let with =
        |deps: u64| format!("workers.cube=0 workers.vector=0 workers.any=2 rules.hazards=full limits.deps={deps}");
    // Fewer than three, and a task asks for more than the whole pool.
    let (stuck_with, enough): (Vec<u64>, Vec<u64>) = (3..12).partition(|&deps| is_stuck(WAITING_HELPS, &with(deps)));
    assert!(stuck_with.iter().any(|&deps| deps > enough[0]), "{stuck_with:?} get stuck, {enough:?} are enough");
    for deps in stuck_with {
        let (deadlock, _) = stuck(WAITING_HELPS, &with(deps));
        assert_eq!((deadlock.needed["limits.deps"], deadlock.is_smallest), (enough[0], true), "pool of {deps}");
    }
}

#[test]
fn the_tensor_map_is_shared_so_the_oldest_task_may_live_in_another_ring() {
    let write = |name: &str| submit(&format!("\"name\":\"{name}\",\"cycles\":1,\"out\":[\"A\"]"));
    let buffer = "{\"op\":\"buffer\",\"id\":\"A\",\"bytes\":8}\n";
    let innocent = submit("\"name\":\"innocent\",\"cycles\":1");
    for between in ["", &innocent] {
        let lines = [buffer, BEGIN, &write("holder"), BEGIN, between, &write("stuck")].concat();
        let (deadlock, text) = stuck(&lines, "limits.rings=2 limits.tensors=1");
        assert_eq!((deadlock.resource.as_str(), deadlock.ring), ("tensors", 1));
        let oldest = deadlock.oldest.expect("somebody keeps the entry");
        assert_eq!((oldest.name.as_str(), oldest.line), ("holder", Some(4)));
        assert_eq!(oldest.held_by_scopes.iter().map(|scope| scope.line).collect::<Vec<_>>(), [Some(3)]);
        assert!(text.contains("The oldest task alive that keeps entries is 0 (holder, line 4)"), "{text}");
    }
}

#[test]
fn a_scope_that_encloses_others_holds_their_tasks_too() {
    let task = submit("\"cycles\":1");
    let lines = [BEGIN, &task, BEGIN, &task, &task, &task].concat();
    let holds = |rule: &str| {
        let (deadlock, _) = stuck(&lines, &format!("limits.window=2 {rule}"));
        let scopes = deadlock.oldest.expect("there is one").held_by_scopes;
        scopes.iter().map(|scope| (scope.depth, scope.tasks)).collect::<Vec<_>>()
    };
    assert_eq!(holds("rules.scope_hold=innermost"), [(1, 1)]);
    assert_eq!(holds("rules.scope_hold=enclosing"), [(1, 2)]);
    let lines = [BEGIN, BEGIN, &task, &task].concat();
    let (deadlock, _) = stuck(&lines, "limits.window=1 rules.scope_hold=enclosing");
    let scopes = deadlock.oldest.expect("there is one").held_by_scopes;
    assert_eq!(scopes.iter().map(|scope| (scope.depth, scope.tasks)).collect::<Vec<_>>(), [(1, 1), (2, 1)]);
}

#[test]
fn spare_slots_are_named_where_they_are_what_lacks() {
    let lines = [BEGIN, &submit("\"cycles\":1"), &submit("\"cycles\":1")].concat();
    let (deadlock, text) = stuck(&lines, "limits.window=2 limits.spare=1");
    assert_eq!((deadlock.size, deadlock.used, deadlock.spare), (2, 1, 1));
    assert!(text.contains("asks for 1 slot, but 1 of 2 are in use and 1 is kept free (limits.spare);"), "{text}");
}

#[test]
fn a_clock_that_runs_over_names_the_task_and_its_line() {
    let never = u64::MAX;
    let told = |lines: &str, settings: &str| try_run(lines, &machine(settings)).expect_err("the clock runs over");
    let after = |place: &str, told: &str| {
        let expected = format!("{place}: the run passes cycle 2^64 - 1; ");
        assert!(told.contains(&expected), "{expected} in {told}");
    };
    let plain = submit("\"cycles\":1");
    let child = submit(&format!("\"name\":\"child\",\"cycles\":1,\"parent\":0,\"spawn_offset\":{never}"));
    after(":3: task 1 `child`", &told(&[plain.as_str(), &child].concat(), ""));
    let endless = submit(&format!("\"name\":\"endless\",\"cycles\":{never}"));
    after(":2: task 0 `endless`", &told(&[endless.as_str(), &plain].concat(), ""));
    let late = submit(&format!("\"name\":\"late\",\"cycles\":1,\"submit_at\":{never}"));
    after(":3: task 1 `late`", &told(&[plain.as_str(), &late].concat(), ""));
    for cost in ["scheduler.complete", "scheduler.dispatch", "scheduler.admit", "orchestrator.submit", "worker.pickup"]
    {
        after(":2: task 0 `task0`", &told(&plain, &format!("{cost}={never}")));
    }
    let scope = told(&[BEGIN, &plain].concat(), &format!("orchestrator.scope={never}"));
    assert!(scope.contains(":2: the run passes cycle 2^64 - 1"), "{scope}");
}

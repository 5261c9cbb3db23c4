//! The Orleans policy: one case for each rule.

use crate::notation::{Ran, any, play, typed};
use ptosim::config::{Machine, Workers};
use ptosim::policy::orleans::{Config, Orleans};
use ptosim::report::Outcome;
use serde_json::json;

/// Runs under settings given as the inside of `[orleans]`.
fn under(settings: &str, machine: &Machine, program: &str) -> Ran {
    let config =
        Config::from_toml(&format!("[orleans]\n{settings}"), "p.toml").unwrap_or_else(|error| panic!("{error}"));
    play(program, machine, Orleans::new(config, machine).unwrap_or_else(|error| panic!("{error}")))
}

fn counter(ran: &Ran, key: &str) -> u64 {
    ran.ok().policy_report[key].as_u64().unwrap_or_else(|| panic!("no counter {key}"))
}

#[test]
fn a_quantum_is_looked_at_after_each_task_only() {
    let ran =
        under("activation_scheduling_quantum = 15\n", &any(1), "a1:10{act=A} a2:10{act=A} a3:10{act=A} b:5{act=B}");
    assert_eq!(ran.schedule(), "a1@0[0,10) a2@0[10,20) b@0[20,25) a3@0[25,35)");
    assert_eq!((counter(&ran, "turns"), counter(&ran, "quantum_expirations")), (3, 1));
}

#[test]
fn a_quantum_that_is_just_reached_is_used_up() {
    let ran = under("activation_scheduling_quantum = 10\n", &any(1), "a1:10{act=A} a2:10{act=A} b:5{act=B}");
    assert_eq!(ran.schedule(), "a1@0[0,10) b@0[10,15) a2@0[15,25)");
}

#[test]
fn spans_are_converted_by_the_clock_of_the_machine() {
    let machine = Machine { clock_mhz: 2, ..any(1) };
    let ran = under(
        "activation_scheduling_quantum = '10us'\n",
        &machine,
        "a1:10{act=A} a2:10{act=A} a3:10{act=A} b:5{act=B}",
    );
    assert_eq!(ran.schedule(), "a1@0[0,10) a2@0[10,20) b@0[20,25) a3@0[25,35)");
}

#[test]
fn a_turn_has_exactly_so_many_items() {
    let ran = under("max_work_items_per_turn = 2\n", &any(1), "a1:10{act=A} a2:10{act=A} a3:10{act=A} b:5{act=B}");
    assert_eq!(ran.schedule(), "a1@0[0,10) a2@0[10,20) b@0[20,25) a3@0[25,35)");
    assert_eq!((counter(&ran, "item_limit_expirations"), counter(&ran, "quantum_expirations")), (1, 0));
}

#[test]
fn an_expired_group_goes_behind_what_becomes_ready_at_the_same_cycle() {
    // At 10, `a1` ends, A is put back, and B becomes runnable.
    let ran = under("activation_scheduling_quantum = 10\n", &any(1), "a1:10{act=A} a2:10{act=A} b:5(a1){act=B}");
    assert_eq!(ran.schedule(), "a1@0[0,10) b@0[10,15) a2@0[15,25)");
}

#[test]
fn null_tasks_share_the_queue_and_are_not_serialised() {
    let ran = under("", &any(2), "a1:10{act=A} n1:10{act=null} n2:10 b1:10{act=B} a2:10{act=A}");
    assert_eq!(ran.schedule(), "a1@0[0,10) n1@1[0,10) a2@0[10,20) n2@1[10,20) b1@0[20,30)");
    assert_eq!((counter(&ran, "turns"), counter(&ran, "null_tasks")), (2, 2));
}

#[test]
fn a_child_inherits_the_activation_of_its_parent_unless_it_says_otherwise() {
    let program = "p:50{act=A} c:10{par=p} d:10{par=p act=null} e:10{par=p act=B} f:10{par=c} g:10{par=d}";
    let ran = under("", &any(4), program);
    assert_eq!(ran.schedule(), "p@0[0,50) d@1[0,10) e@2[0,10) g@3[0,10) c@0[50,60) f@0[60,70)");
}

#[test]
fn inheritance_does_not_depend_on_the_window() {
    let program = "p:50{act=A} x:10 y:10 z:10 w:10 c:10{par=p} d:10{act=A}";
    for window in [1, 2, 4, 16384] {
        let mut machine = any(2);
        machine.limits.window = window;
        let ran = under("", &machine, program);
        let groups = &ran.ok().policy_report["groups"];
        assert_eq!(groups[0]["processed"], json!(3), "window of {window}");
    }
}

#[test]
fn work_after_a_task_keeps_its_worker_but_not_its_dependents() {
    let ran = under("", &any(2), "a1:10{act=A post=20} a2:10{act=A} n:5(a1) m:5(n)");
    assert_eq!(ran.schedule(), "a1@0[0,10) n@1[10,15) m@1[15,20) a2@0[30,40)");
    assert_eq!((counter(&ran, "post_cycles"), counter(&ran, "turns")), (20, 1));
    let quantum =
        under("activation_scheduling_quantum = 25\n", &any(1), "a1:10{act=A post=20} a2:10{act=A} b:5{act=B}");
    assert_eq!(quantum.schedule(), "a1@0[0,10) b@0[30,35) a2@0[35,45)", "it counts for the quantum");
    let null = under("", &any(1), "n:10{post=7} m:10");
    assert_eq!(null.schedule(), "n@0[0,10) m@0[17,27)");
}

#[test]
fn typed_workers_take_the_first_entry_they_can_serve() {
    let ran = under("", &typed(1, 1), "v1:10{act=A} v2:10{act=B} c1:10{on=CUBE act=C} m1:10{act=C}");
    assert_eq!(ran.schedule(), "c1@0[0,10) v1@1[0,10) v2@1[10,20) m1@1[20,30)");
    assert_eq!(counter(&ran, "type_switches"), 1, "a vector task after a cube task ends the turn");
}

#[test]
fn inlining_runs_what_a_task_made_ready_before_the_rest_of_its_group() {
    let program = "a:10{act=A} b:10{act=A} c:10(a){act=A} d:10(a){act=A} e:10(a){act=B}";
    let plain = under("", &any(1), program);
    assert_eq!(plain.schedule(), "a@0[0,10) b@0[10,20) d@0[20,30) c@0[30,40) e@0[40,50)");
    let inline = under("inline = true\n", &any(1), program);
    assert_eq!(inline.schedule(), "a@0[0,10) d@0[10,20) c@0[20,30) b@0[30,40) e@0[40,50)");
    assert_eq!(counter(&inline, "inlined"), 2, "another context is never inlined");
    let joint = under("inline = true\n", &any(1), "a:10 j:0(a){on=NONE act=A} b:10(j){act=A}");
    assert_eq!(joint.schedule(), "a@0[0,10) b@0[10,20)", "a joint has no turn to go on with");
}

#[test]
fn system_entries_go_first_if_asked_for() {
    let program = "n:10 a:10{act=A caller=web} s:10{act=system:timer kind=request caller=web}";
    assert_eq!(under("", &any(1), program).schedule(), "n@0[0,10) a@0[10,20) s@0[20,30)");
    let first = under("prioritize_system = true\n", &any(1), program);
    assert_eq!(first.schedule(), "s@0[0,10) n@0[10,20) a@0[20,30)");
    assert_eq!(first.ok().policy_report["work_items"]["request"], 1);
    assert_eq!(first.ok().policy_report["callers"], json!({"web": 2}));
}

#[test]
fn a_bare_task_with_an_activation_is_an_invalid_operation() {
    let error = under("", &any(1), "ok:10{kind=task} bad:10{kind=task act=A}").error();
    assert_eq!(
        error,
        "case:3: task 1 `bad`: InvalidOperation: a work item of kind `task` cannot be queued to context `A`; use invoke, \
         request, response, closure or resume"
    );
    let child = under("", &any(1), "p:10{act=A} c:10{par=p kind=task}");
    assert_eq!(child.schedule(), "p@0[0,10) c@0[10,20)", "a task created inside the activation is its own");
    for kind in ["invoke", "request", "response", "closure", "resume"] {
        assert_eq!(under("", &any(1), &format!("x:10{{act=A kind={kind}}}")).ok().outcome, Outcome::Completed);
    }
}

#[test]
fn strict_contexts_must_be_registered() {
    let settings = "strict_contexts = true\ncontexts = [ 'player', 'system:timer' ]\n";
    let ran = under(settings, &any(1), "a:10{act=player} s:10{act=system:timer} n:10");
    assert_eq!(ran.ok().outcome, Outcome::Completed);
    let error = under(settings, &any(1), "a:10{act=plyer}").error();
    assert_eq!(
        error,
        "case:2: task 0 `a`: InvalidSchedulingContext: context `plyer` is not registered, and strict_contexts is set; add \
         it to `contexts`, or did you mean `player`?"
    );
    let null = under("forbid_null_context = true\n", &any(1), "j:0{on=NONE} a:10").error();
    assert_eq!(null, "case:3: task 1 `a`: has no context, and forbid_null_context asks for one; set `activation`");
}

#[test]
fn long_turns_tasks_waits_and_queues_are_counted() {
    let settings =
        "turn_warning_length_threshold = 15\ndelay_warning_threshold = 9\nmax_pending_work_items_soft_limit = 2\n";
    let ran = under(settings, &any(1), "a1:10{act=A} a2:10{act=A} a3:16{act=A} a4:5{act=A}");
    assert_eq!(counter(&ran, "long_running_turns"), 1);
    assert_eq!(counter(&ran, "long_running_tasks"), 1);
    assert_eq!(counter(&ran, "long_queue_waits"), 3);
    assert_eq!(counter(&ran, "soft_limit_warnings"), 2, "the third and the fourth find more than two");
}

#[test]
fn a_failed_task_does_not_stop_its_group() {
    let ran = under("", &any(1), "a1:10{act=A} a2:10{act=A fault=true} a3:10{act=A} n:10(a2) m:10(n)");
    assert_eq!(ran.schedule(), "a1@0[0,10) a2@0[10,20) a3@0[20,30)");
    let ended = &ran.ok().ended;
    assert_eq!((ended.completed, ended.failed, ended.cancelled, ended.consumed), (2, 1, 2, 5));
    let group = &ran.ok().policy_report["groups"][0];
    assert_eq!((&group["state"], &group["failed"], &group["processed"]), (&json!("Waiting"), &json!(1), &json!(3)));
    assert_eq!(counter(&ran, "turns"), 1);
}

#[test]
fn a_stopped_activation_finishes_its_task_and_drops_the_rest() {
    let program = "a1:20{act=A} a2:10{act=A} a3:10(b){act=A} b:30{act=B} n:5(a2)";
    let program = program.replace("a3:10(b){act=A} b:30{act=B}", "b:30{act=B} a3:10(b){act=A}");
    let ran = under(
        "",
        &any(2),
        &format!("{program} @10:stop_activation{{activation=A}} @11:stop_activation{{activation=Z}}"),
    );
    assert_eq!(ran.schedule(), "a1@0[0,20) b@1[0,30)");
    let ended = &ran.ok().ended;
    assert_eq!((ended.completed, ended.dropped, ended.cancelled, ended.consumed), (2, 2, 1, 5));
    let group = &ran.ok().policy_report["groups"][0];
    assert_eq!((&group["state"], &group["dropped"]), (&json!("Shutdown"), &json!(2)));
    assert!(ran.ok().notes.contains(&"stop_activation: there is no activation `Z`".to_string()));
    assert!(ran.ok().notes.contains(&"activation `A` was stopped: what comes later is dropped".to_string()));
}

#[test]
fn stopping_application_turns_leaves_the_system_running() {
    let program = "a1:20{act=A} a2:10{act=A} s1:10{act=system:x} s2:10{act=system:x} n:10 late:10{act=L sub=30} \
        @10:stop_application_turns";
    let ran = under("", &any(1), program);
    assert_eq!(ran.schedule(), "a1@0[0,20) s1@0[20,30) s2@0[30,40) n@0[40,50)");
    assert_eq!(ran.ok().ended.dropped, 2);
}

#[test]
fn turns_finish_after_a_shutdown_and_everything_else_is_dropped() {
    let program = "a1:20{act=A} a2:10{act=A} a3:10{act=A} s:10{act=system:x} n:10 b:10(a1){act=A} late:10{sub=30} \
        @10:shutdown @12:shutdown";
    let ran = under("", &any(1), program);
    assert_eq!(ran.schedule(), "a1@0[0,20) a2@0[20,30) a3@0[30,40)");
    assert_eq!((ran.ok().ended.dropped, ran.ok().ended.consumed), (4, 7));
    let expired = under("activation_scheduling_quantum = 30", &any(1), program);
    assert_eq!(expired.schedule(), "a1@0[0,20) a2@0[20,30)");
    assert_eq!((expired.ok().ended.dropped, expired.ok().ended.consumed), (5, 7));
    let group = &expired.ok().policy_report["groups"][0];
    assert_eq!((&group["state"], &group["dropped"]), (&json!("Shutdown"), &json!(2)));
    assert_eq!(under("", &any(1), "a:5 @10:shutdown").ok().outcome, Outcome::Completed);
}

#[test]
fn tasks_of_several_blocks_are_turns_of_their_own() {
    let ran = under("", &any(2), "a:10{act=A blocks=3} b:10{act=A} n:5");
    assert_eq!(ran.schedule(), "a@0[0,10) a@1[0,10) a@0[10,20) n@1[10,15) b@1[20,30)");
    assert_eq!((counter(&ran, "turns"), counter(&ran, "wide")), (2, 1));
    let clusters = Machine { workers: Workers { clusters: 1, ..Workers::default() }, ..Machine::default() };
    let mixed = under("", &clusters, "v:10{act=A} m:10{act=A on=MIX} w:10{act=A}");
    assert_eq!(mixed.schedule(), "v@1[0,10) m@0[10,20) m@1[10,20) m@2[10,20) w@1[20,30)");
}

#[test]
fn controls_of_other_policies_are_ignored_with_a_note() {
    let ran = under("", &any(1), "a:10 @5:pause");
    assert_eq!(ran.ok().outcome, Outcome::Completed);
    assert!(ran.ok().notes.iter().any(|note| note.contains("control `pause`") && note.contains("orleans")));
}

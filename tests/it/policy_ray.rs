//! Rules of the policy `ray` beyond the acceptance file, each worked out by hand.

use crate::policy_run::{Told, control, machine, program, run};
use ptosim::report::Outcome;
use serde_json::{Value, json};

/// One source `s` with this many tokens.
fn tokens(count: u64) -> Value {
    json!({"policy": "ray", "sources": {"s": {"concurrent_count": count}}})
}

fn told(config: &Value, workers: &str, text: &str, controls: &[Value]) -> Told {
    let operations: Vec<_> = controls.iter().cloned().chain(program(text)).collect();
    run(config, &machine(workers), &operations).unwrap_or_else(|error| panic!("{error}"))
}

fn log(told: &Told) -> Vec<String> {
    let lines = told.policy("log").as_array().expect("a list").iter();
    lines.map(|line| format!("{} {}", line[0], line[1].as_str().expect("a text"))).collect()
}

#[test]
fn tasks_that_name_no_source_share_as_many_tokens_as_there_are_workers() {
    let told = told(&json!({"policy": "ray"}), "2any", "a:10 b:10 c:10 d:10(a)", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w1[0,10) c@w0[10,20) d@w1[10,20)");
    assert_eq!(told.policy("sources")["_default"]["concurrent_count"], 2);
    assert_eq!(log(&told), ["0 Scheduler started", "20 Scheduler stopped"]);
}

#[test]
fn a_task_that_waits_for_its_token_lets_other_sources_pass() {
    let config = json!({"policy": "ray", "sources": {"s": {"concurrent_count": 1}, "t": {"concurrent_count": 1}}});
    let told = told(&config, "2any", "a:30{src=s} b:30{src=s} c:10{src=t} d:10{src=t}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,30) c@w1[0,10) d@w1[10,20) b@w1[30,60)");
}

#[test]
fn a_token_goes_to_the_first_in_line_before_tasks_fired_in_the_same_cycle() {
    let told = told(&tokens(1), "2any", "a:10{src=s at=0} b:10{src=s at=5} c:10{src=s at=10}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w1[10,20) c@w0[20,30)");
    assert_eq!(told.events("fired"), "a@0 b@5 c@10");
}

#[test]
fn at_one_cycle_the_earlier_time_fires_first_whatever_became_ready_first() {
    // Both wait for p; x became READY after y (newest consumer first), but is due earlier.
    let told = told(&tokens(1), "1any", "p:20{src=s at=0} x:5(p){src=s at=3} y:5(p){src=s at=9}", &[]);
    assert_eq!(told.schedule(), "p@w0[0,20) x@w0[20,25) y@w0[25,30)");
}

#[test]
fn a_failed_task_is_logged_and_cancels_what_depends_on_it() {
    let told = told(&tokens(1), "1any", "a:10{src=s uuid=u-1 FAULT} b:10(a){src=s} c:10{src=s}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) c@w0[10,20)");
    assert!(log(&told)[1].starts_with("10 [fail] task u-1 from s: "), "{:?}", log(&told));
    assert_eq!(told.cancelled, [(10, "b".to_string(), "upstream a".to_string())]);
    assert_eq!((told.report.outcome, told.last_task_alive), (Outcome::Failed, 3));
    assert_eq!(told.policy("task"), &json!({"started": 2, "finished": 1, "failures": 1}));
}

#[test]
fn an_unknown_source_is_dropped_with_the_task_in_the_log() {
    let told = told(&tokens(1), "1any", "a:10{src=nope at=7} b:10(a){src=s}", &[]);
    let line =
        "[drop] Unknown task source: nope {\"args\":{},\"schedule_at\":7,\"source\":\"nope\",\"uuid\":\"case-0\"}";
    assert_eq!(log(&told)[1], format!("7 {line}"));
    assert!(told.report.notes.contains(&line.to_string()));
    assert_eq!((told.report.ended.dropped, told.report.ended.cancelled, told.report.ended.consumed), (1, 1, 2));
}

#[test]
fn without_configured_sources_every_source_has_one_token() {
    let told = told(&json!({"policy": "ray"}), "4any", "a:10{src=s} b:10{src=s} c:10{src=t} d:10", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) c@w1[0,10) d@w2[0,10) b@w3[10,20)");
    assert_eq!((told.report.outcome, told.report.ended.dropped), (Outcome::Completed, 0));
}

#[test]
fn a_table_of_sources_without_any_knows_nobody_but_the_default() {
    let told = told(&json!({"policy": "ray", "sources": {}}), "4any", "a:10{src=s} b:10", &[]);
    assert_eq!(told.schedule(), "b@w0[0,10)");
    assert_eq!(told.report.ended.dropped, 1);
}

#[test]
fn a_drop_that_frees_the_window_lets_the_orchestrator_go_on() {
    let mut small = machine("1any");
    small.limits.window = 1;
    let told = run(&tokens(1), &small, &program("a:10{src=nope at=7} b:10{src=s}")).unwrap();
    assert_eq!(told.schedule(), "b@w0[7,17)");
}

#[test]
fn failed_tasks_run_again_after_a_fixed_or_a_growing_wait_and_end_as_dead_letters() {
    let config = |backoff: &str| json!({"policy": "ray", "sources": {"s": {}}, "retry": {"max_attempts": 3, "backoff": backoff, "delay": 5}});
    let text = "a:10{src=s FAULT} b:10(a){src=s} c:1{src=s at=11}";
    let fixed = told(&config("fixed"), "1any", text, &[]);
    assert_eq!(fixed.schedule(), "a@w0[0,10) c@w0[11,12) a@w0[15,25) a@w0[30,40)");
    assert_eq!(fixed.events("fired"), "a@0 c@11 a@15 a@30");
    let letters = fixed.policy("dead_letters");
    assert_eq!(
        (&letters[0]["at"], &letters[0]["attempts"], &letters[0]["task"]["uuid"]),
        (&json!(40), &json!(3), &json!("case-0"))
    );
    assert_eq!(fixed.cancelled, [(40, "b".to_string(), "upstream a".to_string())]);
    assert_eq!(fixed.report.ended.failed, 1, "a task fails once, however often it ran");
    let growing = told(&config("exponential"), "1any", text, &[]);
    assert_eq!(growing.schedule(), "a@w0[0,10) c@w0[11,12) a@w0[15,25) a@w0[35,45)");
    let once = json!({"policy": "ray", "sources": {"s": {}}, "retry": {"max_attempts": 1}});
    let letters =
        |config: &Value| self::told(config, "1any", text, &[]).policy("dead_letters").as_array().map(Vec::len);
    assert_eq!((letters(&once), letters(&tokens(1))), (Some(1), Some(0)), "one run is the last, too");
}

#[test]
fn a_moment_that_is_never_reached_is_an_error() {
    let fail = |config: &Value, operations: &[Value]| {
        run(config, &machine("1any"), operations).err().expect("the run passes the last cycle").to_string()
    };
    let task = json!({"op": "submit", "name": "a", "cycles": 10, "source": "s", "schedule_at": u64::MAX});
    let never = fail(&tokens(1), &[task]);
    assert!(never.contains("`a`: schedule_at lies past cycle 2^64 - 2"), "{never}");
    let retry = json!({"max_attempts": 100, "backoff": "exponential", "delay": 10});
    let late = fail(&json!({"policy": "ray", "retry": retry}), &program("a:10{FAULT}"));
    assert!(late.contains("policy ray waits for a moment past cycle 2^64 - 1"), "{late}");
}

#[test]
fn between_two_runs_the_token_is_free() {
    let config = json!({"policy": "ray", "sources": {"s": {}}, "retry": {"max_attempts": 2, "delay": 30}});
    let told = told(&config, "2any", "a:10{src=s FAULT} b:15{src=s}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w1[10,25) a@w0[40,50)");
}

#[test]
fn the_limit_of_all_sources_is_shared_first_come_first_served() {
    let config = json!({"policy": "ray", "global_concurrency": 2,
        "sources": {"s": {"concurrent_count": 2}, "t": {"concurrent_count": 2}}});
    let told = told(&config, "4any", "a:10{src=s} b:20{src=s} c:10{src=t} d:10{src=t} e:10{src=s}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w1[0,20) c@w2[10,20) e@w0[20,30) d@w3[20,30)");
    assert_eq!(told.policy("semaphore_available_of_all"), 2);
}

#[test]
fn a_storm_is_fired_in_batches() {
    let mut config = tokens(1);
    config["fire_batch"] = json!(2);
    let text = "a:10{src=s at=5} b:10{src=s at=5} c:10{src=s at=5} d:10{src=s at=5}";
    let batches = told(&config, "1any", text, &[]);
    assert_eq!(batches.schedule(), "a@w0[5,15) b@w0[15,25) c@w0[25,35) d@w0[35,45)");
    assert_eq!(batches.events("fired"), "a@5 b@5 c@5 d@15");
    assert_eq!(batches.policy("fired_waiting_high_water"), 2);
    assert_eq!(batches.policy("dispatch_latency")["max"], 10);
    let storm = told(&tokens(1), "1any", text, &[]);
    assert_eq!((storm.schedule(), storm.events("fired").as_str()), (batches.schedule(), "a@5 b@5 c@5 d@5"));
    assert_eq!(storm.policy("fired_waiting_high_water"), 4);
}

#[test]
fn a_stopped_scheduler_can_be_started_again() {
    let text = "a:10{src=s at=0} b:10{src=s at=20} c:10{src=s at=60}";
    let controls =
        [control(5, "stop", &[]), control(6, "stop", &[]), control(50, "start", &[]), control(51, "start", &[])];
    let told = told(&tokens(2), "1any", text, &controls);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w0[50,60) c@w0[60,70)");
    assert_eq!(
        log(&told),
        ["0 Scheduler started", "5 Scheduler stopped", "50 Scheduler started", "70 Scheduler stopped"]
    );
    assert_eq!(told.report.outcome, Outcome::Completed);
}

#[test]
fn what_a_stop_leaves_in_the_heap_is_told_and_can_be_loaded_again() {
    let text = "a:10{src=s at=0} b:10{src=s at=40} c:10{src=s at=30} d:10(a){src=s at=0} e:5(b){src=s}";
    let told = told(&tokens(2), "1any", text, &[control(5, "shutdown", &[])]);
    assert_eq!(told.policy("heap_left"), &json!(["d", "c", "b"]));
    assert_eq!(told.report.outcome, Outcome::Failed);
    assert!(told.report.notes.iter().any(|note| note.ends_with("stopped with 3 tasks in the heap")));
    let lines = told.policy("pending").as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let tasks = ptosim::policy::ray::load_pending(&lines).unwrap();
    assert_eq!(tasks.iter().map(|task| task.uuid.as_str()).collect::<Vec<_>>(), ["case-3", "case-2", "case-1"]);
}

#[test]
fn after_the_time_to_stop_what_has_not_ended_is_given_up() {
    let mut config = tokens(1);
    config["stop_timeout"] = json!(20);
    let text = "a:100{src=s} b:10{src=s} c:5(a){src=s} d:5{src=s at=500}";
    let told = told(&config, "2any", text, &[control(5, "stop", &[])]);
    assert_eq!(told.schedule(), "a@w0[0,100)");
    assert_eq!(told.events("cancelled_at_stop"), "a@25 b@25");
    assert_eq!((told.report.outcome, told.report.ended.completed), (Outcome::Timeout, 0));
    assert_eq!(told.report.ended.cancelled, 2, "what waits for a token counts like what runs");
    let quick = self::told(&config, "2any", "a:10{src=s} d:5{src=s at=500}", &[control(5, "stop", &[])]);
    assert_eq!((quick.report.outcome, quick.report.ended.completed), (Outcome::Failed, 1), "nothing was cut");
}

#[test]
fn times_of_the_day_become_cycles_since_the_earliest() {
    let text = "a:10{src=s at=2025-01-01T08:00:00.000002+08:00} b:10{src=s at=2025-01-01T00:00:00Z} \
                c:10{src=s at=2025-01-01T00:00:00.000002Z}";
    let mut clock = machine("3any");
    clock.clock_mhz = 1000;
    let told = run(&tokens(3), &clock, &program(text)).unwrap();
    assert_eq!(told.events("fired"), "b@0 a@2000 c@2000");
    let mut config = tokens(3);
    config["epoch"] = json!("2024-12-31T23:59:59.999999Z");
    let told = run(&config, &clock, &program(text)).unwrap();
    assert_eq!(told.events("fired"), "b@1000 a@3000 c@3000");
    let Err(naive) = run(&tokens(1), &clock, &program("a:1{src=s at=2025-01-01T00:00:00}")) else {
        panic!("a time without an offset is refused")
    };
    assert!(naive.to_string().contains("2025-01-01T00:00:00"), "{naive}");
}

#[test]
fn a_wrong_number_of_tokens_means_1_and_a_note() {
    let config = json!({"policy": "ray", "sources": {"s": {"concurrent_count": "x"}}});
    let told = told(&config, "2any", "a:10{src=s} b:10{src=s}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,10) b@w1[10,20)");
    assert!(told.report.notes[0].starts_with("ray.sources.s.concurrent_count = \"x\""), "{:?}", told.report.notes);
}

#[test]
fn uuids_are_not_looked_at_for_duplicates() {
    let told = told(&tokens(2), "2any", "a:10{src=s uuid=same} b:10{src=s uuid=same}", &[]);
    assert_eq!(told.report.ended.completed, 2);
}

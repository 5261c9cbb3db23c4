//! Rules of the policy `bmf` beyond the acceptance file, each worked out by hand.

use crate::policy_run::{Told, control, machine, program, run};
use ptosim::config::Machine;
use ptosim::report::Outcome;
use serde_json::{Value, json};

/// Two stages, four packets: node 0 feeds node 1.
const PIPELINE: &str = "s1:10{n=0 ts=1} s2:10{n=0 ts=2} s3:10{n=0 ts=3} s4:10{n=0 ts=4} \
    d1:20(s1){n=1 ts=1} d2:20(s2){n=1 ts=2} d3:20(s3){n=1 ts=3} d4:20(s4){n=1 ts=4}";

/// A program in which back-pressure stops everything: node 2 needs what only the last task of node 0 makes.
const STUCK: &str = "m1:10{n=0 ts=1} m2:10{n=0 ts=2} m3:10{n=0 ts=3} m4:10{n=0 ts=4} x1:10(m4){n=1 ts=1} \
    d1:10(m1,x1){n=2 ts=1} d2:10(m2,x1){n=2 ts=2} d3:10(m3,x1){n=2 ts=3} d4:10(m4,x1){n=2 ts=4}";

/// One queue a node and the same limit for all.
fn own_queues(n_nodes: u32, limit: u64) -> Value {
    let node = |node: u32| (node.to_string(), json!({"scheduler": node, "queue_length_limit": limit}));
    json!({"policy": "bmf", "nodes": (0..n_nodes).map(node).collect::<serde_json::Map<_, _>>()})
}

fn told(config: &Value, workers: &str, text: &str, controls: &[Value]) -> Told {
    let operations: Vec<_> = controls.iter().cloned().chain(program(text)).collect();
    run(config, &machine(workers), &operations).unwrap_or_else(|error| panic!("{error}"))
}

fn error(config: &Value, machine: &Machine, text: &str) -> String {
    match run(config, machine, &program(text)) {
        Err(error) => error.to_string(),
        Ok(told) => panic!("ran: {}", told.schedule()),
    }
}

#[test]
fn strict_back_pressure_that_stops_everything_is_a_deadlock_found_at_once() {
    let told = told(&own_queues(3, 2), "3any", STUCK, &[]);
    assert_eq!(told.report.outcome, Outcome::Deadlock);
    let deadlock = told.report.deadlock.as_ref().expect("a deadlock");
    assert_eq!((deadlock.resource.as_str(), deadlock.at), ("policy", 30));
    let note = "bmf: nothing can move at 30: 1 READY tasks are held back, the first of them m4 of node 0: 3 packets wait for \
                node 2";
    assert!(told.report.notes.contains(&note.to_string()), "{:?}", told.report.notes);
}

#[test]
fn a_time_out_finds_the_same_later() {
    let mut config = own_queues(3, 2);
    config["time_out"] = json!(100);
    let told = told(&config, "3any", STUCK, &[]);
    assert_eq!(told.report.outcome, Outcome::Timeout);
    assert_eq!(told.policy("halt"), "time_out at 110 (last_schedule_clk=10)");
    assert_eq!(told.report.finish, 110);
}

#[test]
fn a_relaxed_graph_does_not_wait_for_its_time_out() {
    let mut config = own_queues(3, 2);
    (config["time_out"], config["backpressure"]) = (json!(100), json!("relaxed"));
    let told = told(&config, "3any", STUCK, &[]);
    assert_eq!((told.report.outcome, told.report.makespan), (Outcome::Completed, 90));
    assert_eq!(told.events("forced_admissions"), "m4@30");
}

#[test]
fn the_watch_ends_with_the_last_task() {
    let mut config = own_queues(2, 5);
    config["time_out"] = json!(21);
    let told = told(&config, "2any", PIPELINE, &[]);
    assert_eq!(
        (told.report.outcome, told.policy("halt")),
        (Outcome::Timeout, &json!("time_out at 61 (last_schedule_clk=40)"))
    );
    config["time_out"] = json!(51);
    let told = self::told(&config, "2any", PIPELINE, &[]);
    assert_eq!((told.report.outcome, told.report.finish), (Outcome::Completed, 90));
}

#[test]
fn close_drains_the_queues_and_schedules_nothing_more() {
    let told = told(&own_queues(2, 5), "2any", PIPELINE, &[control(15, "close", &[])]);
    assert_eq!(told.schedule(), "s1@w0[0,10) s2@w0[10,20) d1@w1[10,30) s3@w0[20,30)");
    assert_eq!(told.events("admissions"), "s1@0 s2@10 d1@10 s3@10");
    assert_eq!(
        (told.report.outcome, told.policy("halt")),
        (Outcome::Failed, &json!("closed: 4 tasks were not scheduled"))
    );
}

#[test]
fn close_resumes_what_is_paused() {
    let controls = [control(15, "pause", &[]), control(25, "close", &[])];
    let told = told(&own_queues(2, 5), "2any", PIPELINE, &controls);
    assert_eq!(told.schedule(), "s1@w0[0,10) s2@w0[10,20) d1@w1[10,30) s3@w0[25,35) d2@w1[30,50) s4@w0[35,45)");
}

#[test]
fn one_queue_can_be_paused_alone() {
    let controls = [control(15, "pause", &[json!(1)]), control(45, "resume", &[json!(1)])];
    let told = told(&own_queues(2, 5), "2any", PIPELINE, &controls);
    assert_eq!(
        told.schedule(),
        "s1@w0[0,10) s2@w0[10,20) d1@w1[10,30) s3@w0[20,30) s4@w0[30,40) d2@w1[45,65) d3@w1[65,85) d4@w1[85,105)"
    );
}

#[test]
fn a_pause_without_end_is_reported() {
    let told = told(&own_queues(2, 5), "2any", PIPELINE, &[control(15, "pause", &[])]);
    assert_eq!(told.report.outcome, Outcome::Deadlock);
    assert!(told.report.notes.iter().any(|note| note.ends_with("tasks wait in queues that are paused")));
}

#[test]
fn a_paused_node_schedules_nothing_until_it_is_resumed() {
    let mut resume = control(100, "resume", &[]);
    resume["node"] = json!(1);
    let told = told(&own_queues(2, 5), "2any", PIPELINE, &[control(15, "pause_node", &[json!(1)]), resume]);
    assert_eq!(told.events("admissions"), "s1@0 s2@10 d1@10 s3@10 s4@20 d2@100 d3@120 d4@140");
    assert_eq!((told.report.outcome, told.report.makespan), (Outcome::Completed, 160));
}

#[test]
fn removing_queued_tasks_of_a_node_cancels_them_and_what_depends_on_them() {
    let text = "a:30{n=0 ts=1} b1:10{n=1 ts=1} b2:10{n=1 ts=2} c1:10(b1){n=2 ts=1} e:5(c1){n=3 ts=1} k:10{n=4 ts=9}";
    let told = told(&json!({"policy": "bmf"}), "1any", text, &[control(5, "remove_node_task", &[json!(1)])]);
    // b1 waits behind a in the only queue; with it gone, b2 of the same node is scheduled at once.
    assert_eq!(told.events("removed"), "b1@5");
    assert_eq!(told.events("admissions"), "a@0 b1@0 k@0 b2@5");
    assert_eq!(told.schedule(), "a@w0[0,30) b2@w0[30,40) k@w0[40,50)");
    let reasons: Vec<_> = told.cancelled.iter().map(|(at, name, why)| format!("{at} {name} {why}")).collect();
    assert_eq!(reasons, ["5 b1 removed from its queue (node 1)", "5 c1 upstream b1", "5 e upstream c1"]);
    assert_eq!((told.report.outcome, told.last_task_alive), (Outcome::Failed, 6));
}

#[test]
fn clearing_another_queue_removes_nothing() {
    let text = "a:30{n=0 ts=1} b1:10{n=1 ts=1} b2:10{n=1 ts=2}";
    let clear = |queue: u32| vec![control(5, "clear_task", &[json!(1), json!(queue)])];
    let told = told(&json!({"policy": "bmf"}), "2any", text, &clear(1));
    assert_eq!((told.report.outcome, told.report.makespan), (Outcome::Completed, 50));
    let told = self::told(&json!({"policy": "bmf"}), "2any", text, &clear(0));
    assert_eq!((told.events("removed").as_str(), told.report.makespan), ("b1@5", 40));
}

#[test]
fn adding_a_node_schedules_the_one_chosen_longest_ago() {
    let text = "a1:50{n=0 ts=1} a2:5{n=0 ts=2} b1:5{n=1 ts=3} b2:5{n=1 ts=4}";
    let controls = [control(1, "add_node", &[json!(1)]), control(2, "remove_node", &[json!(0)])];
    let told = told(&json!({"policy": "bmf"}), "1any", text, &controls);
    // Node 0 was chosen before node 1 at the start, so the new choice falls on it.
    assert_eq!(told.events("admissions"), "a1@0 b1@0 a2@1 b2@60");
    assert_eq!(told.report.outcome, Outcome::Completed);
}

#[test]
fn controls_about_nodes_that_are_not_there_are_ignored_with_a_note() {
    let controls = [control(1, "pause_node", &[json!(7)]), control(2, "stop", &[])];
    let told = told(&json!({"policy": "bmf"}), "1any", "a:5{n=0 ts=1}", &controls);
    assert_eq!(told.report.outcome, Outcome::Completed);
    let notes = told.report.notes.join("\n");
    assert!(notes.contains("control `pause_node` names node 7 of this graph: ignored"), "{notes}");
    assert!(notes.contains("control `stop`"), "{notes}");
}

#[test]
fn after_an_exception_running_tasks_finish_and_release_nothing_into_queues() {
    let text = "f:10{n=0 ts=1 FAULT} r:40{n=1 ts=1} c:5(r){n=2 ts=1} w:5{n=1 ts=2}";
    let told = told(&own_queues(3, 5), "3any", text, &[]);
    assert_eq!(told.schedule(), "f@w0[0,10) r@w1[0,40)");
    assert_eq!(told.policy("halt"), "exception node=0 task=f at 10");
    assert_eq!(told.events("admissions"), "f@0 r@0");
    let ended = told.report.ended;
    assert_eq!((ended.completed, ended.failed, told.report.outcome), (1, 1, Outcome::Failed));
}

#[test]
fn a_source_whose_followers_have_closed_is_cut_off_only_on_request() {
    let text = "s1:10{n=0 ts=1} s2:10{n=0 ts=2} s3:10{n=0 ts=3} s4:10{n=0 ts=4} d1:2(s1){n=1 ts=1}";
    let mut config = own_queues(2, 1);
    assert_eq!(told(&config, "2any", text, &[]).report.makespan, 40);
    config["force_close"] = json!(true);
    let told = told(&config, "2any", text, &[]);
    // d1 is the last of node 1 and ends at 12: s2 runs, s3 is scheduled because node 1 closes, s4 is not needed any more.
    assert_eq!(told.schedule(), "s1@w0[0,10) s2@w0[10,20) d1@w1[10,12) s3@w0[20,30)");
    assert_eq!(told.cancelled, [(12, "s4".to_string(), "force close".to_string())]);
}

#[test]
fn a_node_that_closes_lets_upstream_schedule_whatever_holds_it_back() {
    // From 5 on a packet waits for node 2, which waits for k, so node 0 is held back; at 15 node 1 closes, at 110 node 2.
    let text = "x1:5{n=0 ts=1} x2:5{n=0 ts=2} x3:5{n=0 ts=3} y1:10(x1){n=1 ts=1} k:100{n=3 ts=1} \
                z1:5(x1,k){n=2 ts=1} z2:5(x2,k){n=2 ts=2}";
    let told = told(&own_queues(4, 1), "4any", text, &[]);
    assert_eq!(told.events("admissions"), "x1@0 k@0 y1@5 x2@15 z1@100 z2@105 x3@110");
}

#[test]
fn a_task_ready_at_its_submission_asks_for_its_node() {
    let text = "a:10{n=0 ts=1} b:10{n=0 ts=2 sub=30} c:10(b){n=1 ts=1}";
    let told = told(&own_queues(2, 5), "2any", text, &[]);
    assert_eq!(told.events("admissions"), "a@0 b@30 c@40");
}

#[test]
fn a_child_released_by_the_start_of_its_parent_asks_for_its_node() {
    let text = "p:50{n=0 ts=1} q:10{n=1 ts=1 parent=0 spawn_offset=20}";
    let told = told(&own_queues(2, 5), "2any", text, &[]);
    assert_eq!(told.schedule(), "p@w0[0,50) q@w1[20,30)");
}

#[test]
fn every_child_released_at_once_asks_for_the_node() {
    let config = json!({"policy": "bmf", "nodes": {
        "0": {"scheduler": 0}, "1": {"scheduler": 1}, "2": {"scheduler": 2, "queue_length_limit": 1},
    }});
    let text = "p:30{n=0 ts=1} c1:10{n=1 ts=1 parent=0 spawn_offset=5} c2:10{n=1 ts=2 parent=0 spawn_offset=5} \
                d:10(p,c1){n=2 ts=1}";
    let told = told(&config, "3any", text, &[]);
    assert_eq!(told.schedule(), "p@w0[0,30) c1@w1[5,15) c2@w1[15,25) d@w2[30,40)");
}

#[test]
fn a_node_that_only_the_configuration_feeds_is_a_source() {
    let text = r#"{"nodes": [{"id": 0, "scheduler": 0, "output_streams": [{"identifier": "v"}]},
        {"id": 1, "scheduler": 1, "input_streams": [{"identifier": "v"}]}]}"#;
    let config = ptosim::policy::bmf::Config::from_graph_json(text, "g.json", 1).unwrap();
    let mut builder = ptosim::workload::Builder::new("two");
    for node in [0, 1] {
        let fields = ptosim::workload::PolicyFields { node: Some(node), ..Default::default() };
        builder.task("k").vector().cycles(10).policy(fields).submit();
    }
    let workload = builder.build().unwrap();
    let machine = machine("2any");
    let policy = ptosim::policy::bmf::Bmf::new(&config, &workload, &machine).unwrap();
    let report = ptosim::engine::simulate_under(&workload, &machine, policy, &mut ()).unwrap();
    assert_eq!((report.outcome, report.makespan), (Outcome::Completed, 10));
}

#[test]
fn special_timestamps_come_last() {
    let (eof, source) = (i64::MAX - 3, i64::MAX - 1);
    let text = format!("e:5{{n=0 ts={eof}}} i:5{{n=1 ts={source}}} x:5{{n=2 ts=99}}");
    assert_eq!(told(&json!({"policy": "bmf"}), "1any", &text, &[]).schedule(), "x@w0[0,5) e@w0[5,10) i@w0[10,15)");
    let message = error(&json!({"policy": "bmf"}), &machine("1any"), "a:5{n=0 ts=-1}");
    assert!(message.contains(".jsonl:2: task a: timestamp -1 means that there is none"), "{message}");
}

#[test]
fn a_node_on_a_queue_that_cannot_run_it_is_an_error_that_names_both() {
    let config = json!({"policy": "bmf", "nodes": {"3": {"scheduler": 0}}});
    let message = error(&config, &machine("1C+2V"), "a:5{n=3 ts=1}");
    assert_eq!(
        message,
        "bmf.nodes.3.scheduler = 0: queue 0 is a CUBE worker and cannot run the VECTOR tasks of node 3; try scheduler = 1"
    );
    let config = json!({"policy": "bmf", "nodes": {"3": {"scheduler": 5}}});
    let message = error(&config, &machine("2V"), "a:5{n=3 ts=1}");
    assert!(
        message.starts_with("bmf.nodes.3.scheduler = 5: queue 5 is worker 5, and the machine has 2 workers"),
        "{message}"
    );
}

#[test]
fn a_node_that_only_the_trace_names_goes_to_the_first_queue_that_can_run_it() {
    let told = told(&json!({"policy": "bmf"}), "1C+2V", "a:5{n=3 ts=1} b:5{n=1 ts=1 type=CUBE}", &[]);
    assert_eq!(told.schedule(), "b@w0[0,5) a@w1[0,5)");
    assert!(
        told.report.notes[0].starts_with("bmf: queue 0 is a CUBE worker and cannot run the VECTOR tasks of node 3")
    );
}

#[test]
fn a_queue_beyond_the_count_means_queue_0_and_a_warning() {
    let config =
        json!({"policy": "bmf", "scheduler_count": 2, "nodes": {"0": {"scheduler": 3}, "1": {"scheduler": 1}}});
    let told = told(&config, "4any", "a:5{n=0 ts=1} b:5{n=1 ts=1}", &[]);
    assert_eq!(told.schedule(), "a@w0[0,5) b@w1[0,5)");
    assert!(told.report.notes.contains(&"bmf: node 0 asks for queue 3 of 2 queues: it gets queue 0".to_string()));
}

#[test]
fn nodes_are_derived_from_kernel_and_level() {
    let text = "a:10{kernel=load} b:10(a){kernel=add} c:10{kernel=load} d:10(c){kernel=add} e:10(b,d){kernel=add}";
    let told = told(&json!({"policy": "bmf"}), "3V", text, &[]);
    let rows: Vec<_> = told
        .policy("nodes")
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["node"], &row["tasks"], &row["queues"]))
        .collect();
    assert_eq!(
        rows,
        [(&json!(0), &json!(2), &json!([0])), (&json!(1), &json!(2), &json!([1])), (&json!(2), &json!(1), &json!([2]))]
    );
    assert_eq!((told.policy("nodes_declared"), told.policy("backpressure")), (&json!(false), &json!("relaxed")));
    assert_eq!(told.schedule(), "a@w0[0,10) c@w0[10,20) b@w1[10,20) d@w1[20,30) e@w2[30,40)");
}

#[test]
fn tasks_of_several_workers_are_placed_where_there_is_room() {
    let text = "m:10{type=MIX kernel=x} v:10{kernel=y blocks=3} s:10{kernel=z blocks=4 SYNC}";
    let told = told(&json!({"policy": "bmf"}), "2clusters", text, &[]);
    assert_eq!(told.report.outcome, Outcome::Completed);
    let count = |name: &str| told.starts.iter().filter(|row| row.0 == name).count();
    assert_eq!((count("m"), count("v"), count("s")), (3, 3, 4));
    let of = |name: &'static str| told.starts.iter().filter(move |row| row.0 == name);
    assert!(of("v").all(|row| row.1 == of("v").next().unwrap().1), "the blocks of a pinned task share its worker");
    assert!(of("s").all(|row| row.2 == of("s").next().unwrap().2), "the others start together");
}

#[test]
fn streams_of_a_declared_graph_make_edges_that_no_task_shows() {
    let text = r#"{"nodes": [{"id": 0, "output_streams": [{"identifier": "v"}]}, {"id": 1, "input_streams": [{"identifier": "v"}]}]}"#;
    let config = ptosim::policy::bmf::Config::from_graph_json(text, "g.json", 1).unwrap();
    assert_eq!(config.streams.len(), 1);
    let mut builder = ptosim::workload::Builder::new("two");
    builder.task("k").vector().cycles(5).submit();
    let workload = builder.build().unwrap();
    let machine = machine("1V");
    let policy = ptosim::policy::bmf::Bmf::new(&config, &workload, &machine).unwrap();
    let report = ptosim::engine::simulate_under(&workload, &machine, policy, &mut ()).unwrap();
    assert_eq!(report.policy_report["streams"], json!([{"from": 0, "to": 1, "high_water": 0}]));
    assert_eq!(report.outcome, Outcome::Completed);
}

#[test]
fn derived_nodes_share_the_queues_that_are_configured() {
    let spread = told(&json!({"policy": "bmf"}), "2any", "a:10{kernel=x} b:10{kernel=y}", &[]);
    assert_eq!(spread.schedule(), "a@w0[0,10) b@w1[0,10)");
    let one = told(&json!({"policy": "bmf", "scheduler_count": 1}), "2any", "a:10{kernel=x} b:10{kernel=y}", &[]);
    assert_eq!(one.schedule(), "a@w0[0,10) b@w0[10,20)");
}

#[test]
fn tasks_without_a_name_or_kernel_are_nodes_of_their_own() {
    let task = json!({"op": "submit", "cycles": 5});
    let told = run(&json!({"policy": "bmf"}), &machine("2any"), &[task.clone(), task.clone(), task])
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((told.report.makespan, told.policy("nodes").as_array().map(Vec::len)), (10, Some(3)));
}

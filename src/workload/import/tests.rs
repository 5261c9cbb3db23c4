//! Dialects of formats, as other programs write them.

use super::{Edges, Options, open_stream};
use crate::id::{Symbol, TaskType};
use crate::workload::{Cost, Program, Workload};
use std::io::Cursor;

fn read_with(text: &str, edges: Option<Edges>) -> Program {
    let options = Options { edges, clock_mhz: 1.0, ..Options::default() };
    let workload = open_stream("input", Box::new(Cursor::new(text.to_owned())), &options);
    Program::load(workload.unwrap_or_else(|error| panic!("{error}")).as_ref()).expect("it was read before")
}

fn read(text: &str) -> Program {
    read_with(text, None)
}

/// Name, kernel, cycles and producers of every task.
fn shown(program: &Program) -> Vec<String> {
    let name = |symbol: Option<Symbol>| symbol.map_or("", |symbol| program.symbols().name(symbol));
    let tasks = program.tasks().iter().map(|task| {
        let cycles = task.cost.map_or(0, |cost| match cost {
            Cost::Cycles(cycles) => cycles,
            Cost::PerKind { cube, .. } => cube,
        });
        let producers: Vec<u64> = task.deps.iter().map(|producer| producer.0).collect();
        format!("{} {} {cycles} {producers:?}", name(task.name), name(task.kernel))
    });
    tasks.collect()
}

#[test]
fn workflows_before_version_1_5_hold_runtime_and_files_in_the_task() {
    let tasks = r#"{"name":"split","id":"ID1","children":["PARENT"],"runtimeInSeconds":1.5,"cores":2.0,
        "command":{"program":"cut","arguments":[]},"files":[{"link":"output","name":"f","sizeInBytes":10}]},
        {"name":"merge_02","id":"ID2","parents":["FIRST"],"runtime":2,"files":[{"link":"input","name":"f","size":10}]}"#;
    let workflow =
        |tasks: &str, list: &str| format!("{{\"schemaVersion\":\"1.4\",\"workflow\":{{\"{list}\":[{tasks}]}}}}");
    let by_id = tasks.replace("PARENT", "ID2").replace("FIRST", "ID1");
    assert_eq!(shown(&read(&workflow(&by_id, "tasks"))), ["ID1 cut 1500000 []", "ID2 merge 2000000 [0]"]);
    let by_name = tasks.replace("PARENT", "merge_02").replace("FIRST", "split");
    let read = read(&workflow(&by_name, "jobs"));
    assert_eq!(shown(&read), ["split cut 1500000 []", "merge_02 merge 2000000 [0]"]);
    let files = read_with(&workflow(&by_id, "tasks"), Some(Edges::Files));
    assert_eq!((files.tasks()[0].writes.len(), files.tasks()[1].reads[0].row_bytes), (1, 10));
}

#[test]
fn slices_of_two_events_are_tasks_and_flows_may_stand_in_any_order() {
    let events = r#"[{"name":"a","ph":"B","pid":1,"tid":0,"ts":1},{"ph":"f","id":1,"name":"x","pid":1,"tid":1,"ts":7},
        {"name":"b","ph":"B","pid":1,"tid":1,"ts":7},{"ph":"E","pid":1,"tid":0,"ts":6},{"ph":"E","pid":1,"tid":1,"ts":9},
        {"ph":"E","pid":1,"tid":1,"ts":10},{"ph":"s","id":1,"name":"x","pid":1,"tid":0,"ts":6}"#;
    assert_eq!(shown(&read(events)), ["t0 a 5 []", "t1 b 2 [0]"]);
    let named = events.replace("\"ts\":7},\n", "\"ts\":7},{\"ph\":\"s\",\"name\":\"dep\",\"id\":9,\"ts\":1},\n");
    assert_eq!(shown(&read(&named)), ["t0 a 5 []", "t1 b 2 []"], "only what says that it is a dependency");
}

#[test]
fn attributes_of_chakra_nodes_in_json_say_what_runs_on_the_host() {
    let nodes = r#"{"workload_graph":[{"id":"0","name":"x","type":"COMP_NODE","durationMicros":"3",
        "attr":[{"name":"num_ops","int64Val":"5"},{"name":"is_cpu_op","boolVal":true}]},
        {"id":"1","name":"y","type":"COMP_NODE","dataDeps":["0"],"attr":[{"name":"is_cpu_op","boolVal":false}]}]}"#;
    let program = read(nodes);
    assert_eq!(shown(&program), ["n0 x 3 []", "n1 y 0 [0]"]);
    let kinds: Vec<_> = program.tasks().iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [Some(TaskType::AiCpu), Some(TaskType::Vector)]);
}

#[test]
fn a_byte_order_mark_hides_no_format() {
    let mark = |text: &str| read(&format!("\u{feff}{text}")).tasks().len();
    assert_eq!(mark("1\n1 5 0\n"), 1);
    assert_eq!(mark("digraph G { a -> b }"), 2);
    assert_eq!(mark("<adag><job id='a' runtime='1'/></adag>"), 1);
    assert_eq!(mark(r#"{"workflow":{"specification":{"tasks":[{"id":"a"}]}}}"#), 1);
}

#[test]
fn a_long_description_in_front_hides_no_format() {
    let text = format!("{{\"description\":\"{}\",\"workflow\":{{\"tasks\":[{{\"id\":\"a\"}}]}}}}", "x".repeat(200_000));
    assert_eq!(shown(&read(&text)), ["a a 0 []"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("unknown.json");
    std::fs::write(&path, text).expect("a file");
    let workload = super::open_file(&path, &Options::default()).expect("recognised");
    assert_eq!(Program::load(workload.as_ref()).expect("it was read before").tasks().len(), 1);
}

#[test]
fn what_is_null_is_not_there() {
    let workflow = r#"{"name":null,"schemaVersion":null,"workflow":{"execution":{"tasks":[{"id":"b","runtimeInSeconds":null,
        "coreCount":null,"command":{"program":null,"arguments":null}}],"machines":null},"specification":{"files":null,"tasks":[
        {"id":"a","name":null,"parents":null,"children":["b"],"inputFiles":null},{"id":"b"}]}}}"#;
    assert_eq!(shown(&read(workflow)), ["a a 0 []", "b b 0 [0]"]);
    let topology = r#"[{"taskId":3,"execTime":2.5,"coreType":null,"funcName":null,"successors":[4]},
        {"taskId":4,"execTime":null,"successors":null}]"#;
    assert_eq!(shown(&read(topology)), ["t3 unknown 3 []", "t4 unknown 0 [0]"]);
    let chakra = r#"{"workload_graph":[{"Id":0,"Name":null,"NodeType":4.0,"data_deps":null,"runtime":null,"is_cpu_op":1},
        {"Id":1,"NodeType":null,"ctrlDeps":null,"data_deps":[0],"attr":null,"is_cpu_op":"false"}]}"#;
    assert_eq!(shown(&read(chakra)), ["n0  0 []", "n1  0 [0]"]);
    let chrome = r#"[{"ph":"X","name":"a","cat":null,"pid":null,"tid":1,"ts":1,"dur":2,"id":null,"args":null}]"#;
    assert_eq!(shown(&read(chrome)), ["t0 a 2 []"]);
    let simpler = r#"{"tasks":[{"task_id":"0","scope":null,"kernel_ids":[-1,1,-1],"block_num":null,"args":null},
        {"task_id":1,"early_dispatch":1,"kernel_ids":[0,-1,-1]},
        {"task_id":2,"kernel_ids":null}],"tensors":null,"edges":[{"pred":0,"succ":"1","flags":null}]}"#;
    assert_eq!(shown(&read(simpler)), ["t0 kernel_1 0 []", "t1 kernel_0 0 [0]", "t2 dummy 0 []"]);
}

#[test]
fn kernels_of_simpler_that_are_no_triple_are_refused() {
    for kernels in ["[0]", "[0,1]", "[0,1,2,3]", "[-2,1,-1]"] {
        let deps = format!(r#"{{"tasks":[{{"task_id":"4294967297","kernel_ids":{kernels}}}],"edges":[]}}"#);
        let options = Options::default();
        let refused = open_stream("input", Box::new(Cursor::new(deps)), &options).err().expect("no triple").to_string();
        let told = format!("input: task r1t1: kernel_ids {}; give three numbers", kernels.replace(',', ", "));
        assert!(refused.starts_with(&told), "{refused}");
    }
}

#[test]
fn execution_may_stand_before_the_tasks_and_in_another_order() {
    let workflow = r#"{"workflow":{"execution":{"tasks":[{"id":"b","runtimeInSeconds":"2"},{"id":"gone"},{"id":"a",
        "runtimeInSeconds":1,"command":{"program":"cut","arguments":["--worker-type=CUBE","--blocks=3"]}}]},
        "specification":{"tasks":[{"id":"b","children":[],"parents":["a","a"],"name":"merge_ID07"},
        {"children":["b"],"id":"a"}]}},"name":"late"}"#;
    let program = read(workflow);
    assert_eq!(shown(&program), ["a cut 1000000 []", "b merge 2000000 [0]"]);
    assert_eq!((program.tasks()[0].kind, program.tasks()[0].blocks), (Some(TaskType::Cube), 3));
}

#[test]
fn a_runtime_of_a_dax_profile_may_be_character_data() {
    let dax = "<adag><job id='a' name='k'><profile key='runtime'><![CDATA[2]]></profile></job></adag>";
    assert_eq!(shown(&read(dax)), ["a k 2000000 []"]);
}

#[test]
fn costs_with_a_fraction_do_not_hide_a_task_graph() {
    assert_eq!(shown(&read("2\n1 9.5 0\n2 4 1 1\n")), ["t1 stg 10 []", "t2 stg 4 [0]"]);
}

#[test]
fn edges_of_dot_may_lead_from_and_to_groups() {
    let graph = "digraph { a -> {b; c} -> d; subgraph s { e f } -> {g} [size=1]; {rank=same; a b} }";
    let tasks = shown(&read(graph));
    let expected = ["a", "b", "c", "d", "e", "f", "g"].map(|name| format!("{name} task 0 "));
    let producers = ["[]", "[0]", "[0]", "[1, 2]", "[]", "[]", "[4, 5]"];
    let expected: Vec<String> =
        expected.iter().zip(producers).map(|(task, producers)| format!("{task}{producers}")).collect();
    assert_eq!(tasks, expected);
}

#[test]
fn defaults_of_dot_hold_for_what_comes_into_being_behind_them_in_their_group() {
    let graph = "digraph { early; node [size=9, worker_type=CUBE]; a; b [size=2]; a -> b -> c
        subgraph s { node [cycles=3 kernel=k] d; { Node [size=7] [blocks=2] e a } f } -> g; edge [size=1]; g -> h -> {i j}
        {edge [size=2] i -> k} j -> l [size=3] }";
    let program = read(graph);
    let tasks = shown(&program);
    let costs = ["early task 0 []", "a task 9 []", "b task 2 [1]", "c task 9 [2]", "d k 3 []", "e k 3 []", "f k 3 []"];
    assert_eq!(tasks[..7], costs);
    assert!(tasks[7..].iter().all(|task| task.contains(" task 9 ")), "{tasks:?}");
    let kinds: Vec<_> = program.tasks().iter().map(|task| task.kind.expect("known")).collect();
    assert_eq!(kinds, [&[TaskType::None][..], &[TaskType::Cube; 12]].concat());
    let blocks: Vec<u32> = program.tasks().iter().map(|task| task.blocks).collect();
    assert_eq!(blocks, [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1]);
    let told = "5 edges have sizes, which were left out: transfers take no time";
    assert!(program.notes().iter().any(|note| note == told), "{:?}", program.notes());
}

#[test]
fn a_chakra_trace_may_be_a_bare_list_of_nodes() {
    let node = r#"{"id":1,"name":"a","type":4,"duration_micros":5}"#;
    let other = r#"{"Id":2,"Name":"b","NodeType":"COMP_NODE","data_deps":[1],"runtime":6}"#;
    assert_eq!(shown(&read(&format!(" \n[{node}]"))), ["n1 a 5 []"]);
    assert_eq!(shown(&read(&format!("[ {other},{node}]\n"))), ["n1 a 5 []", "n2 b 6 [0]"]);
    // A name says what the content does not.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("one.et");
    std::fs::write(&path, r#" [{"id":7,"name":"only"}]"#).expect("a file");
    let workload = super::open_file(&path, &Options::default()).expect("a list");
    assert_eq!(shown(&Program::load(workload.as_ref()).expect("a list")), ["n7 only 0 []"]);
}

#[test]
fn files_that_belong_to_no_format_or_to_none_any_more_are_refused() {
    let refused = |text: &str, with: &[&str]| {
        let options = Options { with: with.iter().map(Into::into).collect(), ..Options::default() };
        open_stream("input", Box::new(Cursor::new(text.to_owned())), &options).err().expect("refused").to_string()
    };
    let stg = "1\n1 5 0\n";
    let told = "input: --with x.json: files of format stg have no others that belong to them; leave it out";
    assert_eq!(refused(stg, &["x.json"]), told);
    let topology = r#"[{"taskId":3,"execTime":2,"successors":[]}]"#;
    let told = "input: --with y.json: at most 1 belong to a file of format hicann; leave it out";
    assert_eq!(refused(topology, &["x.json", "y.json"]), told);
}

#[test]
fn what_was_not_understood_is_told() {
    let workflow = r#"{"workflow":{"specification":{"tasks":[{"id":"a"}]},"execution":{"tasks":[{"id":"b","runtimeInSeconds":1}]}}}"#;
    let notes = read(workflow).notes();
    assert!(notes.contains(&"1 runtimes of unknown tasks were left out; the first is that of b".into()), "{notes:?}");
    let simpler = r#"{"tasks":[{"task_id":"0","scope":"odd","kernel_ids":[-1,1,-1]}],"edges":[]}"#;
    let notes = read(simpler).notes();
    let told = "1 tasks are in scopes that are neither auto nor manual; they were taken as auto";
    assert!(notes.contains(&told.into()), "{notes:?}");
}

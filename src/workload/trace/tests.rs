//! What the reader makes of right and wrong traces.

use super::*;
use crate::id::{BufferId, TaskId, TaskType};
use crate::workload::{Cost, NewBuffer, Operation, PolicyFields, Region, ScheduleAt, Submit, Units, WorkItem};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

const HEADER: &str = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"t\"}\n";

/// All operations of a text; submissions with their data.
fn read(text: impl Into<Vec<u8>>) -> Result<Vec<(Operation, Submit)>, WorkloadError> {
    let mut reader = Reader::new(Box::new(Cursor::new(text.into())), "t.jsonl")?;
    let mut operations = Vec::new();
    let mut task = Submit::default();
    while let Some(operation) = reader.next(&mut task)? {
        let data = if operation == Operation::Submit { task.clone() } else { Submit::default() };
        operations.push((operation, data));
    }
    Ok(operations)
}

/// The tasks of a program without header.
fn tasks(program: &str) -> Vec<Submit> {
    let operations = read(format!("{HEADER}{program}")).unwrap_or_else(|error| panic!("{error}"));
    operations.into_iter().filter(|(operation, _)| *operation == Operation::Submit).map(|(_, task)| task).collect()
}

/// The message of a wrong program without header.
fn fault(program: &str) -> String {
    read(format!("{HEADER}{program}")).expect_err("a wrong program").to_string()
}

/// Deps of every task, `a b` for each.
fn deps(program: &str) -> Vec<Vec<u64>> {
    tasks(program).iter().map(|task| task.deps.iter().map(|id| id.0).collect()).collect()
}

#[test]
fn every_field_arrives() {
    let program = r#"{"op":"buffer","id":"A","bytes":4096}
{"op":"submit","id":0,"name":"first","worker_type":"cube","cycles":7,"out_bytes":100,"new":[["P",256]]}
{"op":"submit","kernel":"k\u0041","deps":[0,"first"],"in":["A",["P",64,64]],"out":[["A",0,16,4,32]],"inout":[["A",8,8,4,8]],"blocks":3,"sync_start":true,"submit_at":9,"fault":true,"parent":"first","spawn_offset":5,"params":{"m":16,"x":-1.5e0}}
{"op":"submit","worker_type":"Mix","cycles":{"CUBE":5,"vector":6},"units":{"CUBE":1,"VECTOR":1}}"#;
    let found = tasks(program);
    let (a, p) = (BufferId(0), BufferId(1));
    assert_eq!(found[0].kernel, found[0].name);
    assert_eq!((found[0].kind, found[0].cost), (Some(TaskType::Cube), Some(Cost::Cycles(7))));
    assert_eq!((found[0].out_bytes, &found[0].allocates[..]), (100, &[NewBuffer { buffer: p, bytes: 256 }][..]));
    assert_eq!(found[1].deps, [TaskId(0), TaskId(0)]);
    assert_eq!(found[1].reads, [Region::range(a, 0, 4096), Region::range(p, 64, 64)]);
    assert_eq!(found[1].writes, [Region { buffer: a, offset: 0, row_bytes: 16, rows: 4, stride: 32 }]);
    assert_eq!(found[1].updates, [Region::range(a, 8, 32)]);
    assert_eq!((found[1].blocks, found[1].sync_start, found[1].submit_at, found[1].fault), (3, true, 9, true));
    assert_eq!(found[1].parent, Some((TaskId(0), 5)));
    assert_eq!(found[1].params.iter().map(|&(_, value)| value).collect::<Vec<_>>(), [16.0, -1.5]);
    assert_eq!(found[2].cost, Some(Cost::PerKind { cube: 5, vector: 6 }));
    assert_eq!(found[2].units, Units { cube: 1, vector: 1 });
    assert_eq!((found[2].blocks, found[2].name, found[2].kernel, &found[2].policy), (1, None, None, &None));
}

#[test]
fn policy_fields_arrive() {
    let program = r#"{"op":"submit","routine":"r","prio":3,"group":"g","processor":-1,"activation":null,"work_item":"resume","caller":"c","post_cycles":4,"node":-2,"timestamp":-9,"source":"s","schedule_at":"1970-01-01T00:00:01Z","uuid":"u","args":{"a":[1]}}
{"op":"submit","activation":"A","schedule_at":25}"#;
    let found = tasks(program);
    let expected = PolicyFields {
        routine: Some("r".into()),
        prio: Some(3),
        group: Some("g".into()),
        processor: Some(-1),
        activation: Some(None),
        work_item: Some(WorkItem::Resume),
        caller: Some("c".into()),
        post_cycles: 4,
        node: Some(-2),
        timestamp: Some(-9),
        source: Some("s".into()),
        schedule_at: Some(ScheduleAt::UtcMicros(1_000_000)),
        uuid: Some("u".into()),
        args: Some(serde_json::json!({"a": [1]})),
    };
    assert_eq!(found[0].policy.as_deref(), Some(&expected));
    let second = found[1].policy.as_deref().expect("policy fields");
    assert_eq!(second.activation, Some(Some("A".into())));
    assert_eq!(second.schedule_at, Some(ScheduleAt::Cycle(25)));
}

#[test]
fn op_may_stand_anywhere_and_aliases_mean_the_same() {
    let program = r#"{"id":"A","bytes":8,"op":"buffer"}

  {"inputs":"A","outputs":["A",0,4],"inouts":["A"],"op":"submit","new":["B",64]}
{"op":"submit","in":["B",["B",8,8]]}
{"op":"done"}
"#;
    let found = tasks(program);
    assert_eq!(found[0].reads, [Region::range(BufferId(0), 0, 8)]);
    assert_eq!(found[0].writes, [Region::range(BufferId(0), 0, 4)]);
    assert_eq!(found[0].updates, found[0].reads);
    assert_eq!(found[1].reads, [Region::range(BufferId(1), 0, 64), Region::range(BufferId(1), 8, 8)]);
}

#[test]
fn a_name_means_the_latest_earlier_task_of_that_name() {
    let program = r#"{"op":"submit","name":"x"}
{"op":"submit","name":"task3"}
{"op":"submit","name":"x","deps":["x","task3"]}
{"op":"submit","deps":["x","task3"]}
{"op":"submit","deps":["task3"]}
{"op":"submit","name":"x","deps":["x"]}
{"op":"submit","deps":["x","task4"]}"#;
    assert_eq!(deps(program), [vec![], vec![], vec![0, 1], vec![2, 1], vec![3], vec![2], vec![5, 4]]);
    let named = "{\"op\":\"submit\",\"name\":\"x\"}\n{\"op\":\"submit\",\"deps\":[\"task0\"]}";
    assert_eq!(
        fault(named),
        "t.jsonl:3: field \"deps\": no earlier task is called \"task0\"; name an earlier task or use its number"
    );
}

#[test]
fn new_buffers_are_bound_behind_the_other_arguments() {
    let program = r#"{"op":"buffer","id":"A","bytes":8}
{"op":"submit","new":[["A",64]],"in":["A"]}
{"op":"submit","in":["A"]}"#;
    let found = tasks(program);
    assert_eq!((found[0].reads[0].row_bytes, found[1].reads[0].row_bytes), (8, 64));
    let early = r#"{"op":"submit","new":[["A",64]],"in":["A"]}"#;
    assert!(fault(early).contains("unknown buffer \"A\""));
}

#[test]
fn empty_regions_stay_inside_their_buffer() {
    let program = r#"{"op":"buffer","id":"A","bytes":8}
{"op":"submit","in":[["A",8,0],["A",0,4,0,0],["A",2,0,9,0]],"new":[["Z",0]]}"#;
    let ranges: Vec<_> = tasks(program)[0].reads.iter().map(|region| (region.offset, region.row_bytes)).collect();
    assert_eq!(ranges, [(8, 0), (0, 0), (2, 0)]);
    assert!(
        fault("{\"op\":\"buffer\",\"id\":\"A\",\"bytes\":8}\n{\"op\":\"submit\",\"in\":[[\"A\",9,0]]}")
            .contains("ends at byte 9")
    );
}

#[test]
fn open_scopes_are_closed_at_the_end() {
    let text = format!("{HEADER}{{\"op\":\"scope_begin\"}}\n{{\"op\":\"scope_begin\"}}\n{{\"op\":\"submit\"}}");
    let found: Vec<_> = read(text).expect("valid").into_iter().map(|(operation, _)| operation).collect();
    let [begin, end] = [Operation::ScopeBegin, Operation::ScopeEnd];
    assert_eq!(found, [begin, begin, Operation::Submit, end, end]);
}

#[test]
fn controls_are_found_ahead_and_skipped_in_the_stream() {
    let mut file = tempfile::NamedTempFile::new().expect("file");
    let program = r#"{"op":"submit","kernel":"control"}
{"at":15,"op":"control","cmd":"pause"}
{"op":"control","at":3,"cmd":"clear_task","node":1,"queue":0}"#;
    write!(file, "{HEADER}{program}").expect("write");
    let trace = TraceFile::new(file.path());
    let controls = trace.controls().expect("valid");
    let found: Vec<_> = controls.iter().map(|c| (c.at, c.command.as_str(), c.arguments.len(), c.line)).collect();
    assert_eq!(found, [(15, "pause", 0, Some(3)), (3, "clear_task", 2, Some(4))]);
    assert_eq!(tasks(program).len(), 1);
    assert_eq!(trace.name(), "t");
}

/// Wrong lines and a part of what is said about each.
const WRONG: &[(&str, &str)] = &[
    (r#"{"op":"sumbit"}"#, "unknown op \"sumbit\"; did you mean \"submit\"?"),
    (r#"{"op":"\u0073ubmit"}"#, "unknown op"),
    (r#"{"op":"submit","cylces":1}"#, "unknown field \"cylces\" of submit; did you mean \"cycles\"?"),
    (r#"{"op":"submit","zzzzzzzz":1}"#, "known are kernel, worker_type, cycles"),
    (r#"{"op":"scope_begin","name":"s"}"#, "unknown field \"name\" of scope_begin"),
    (r#"{"kernel":"x"}"#, "no field \"op\""),
    (r#"{"op":"submit","op":"submit"}"#, "field \"op\" stands twice"),
    (r#"{"kernel":"x","op":"submit","op":"submit"}"#, "field \"op\" stands twice"),
    (r#"{"op":"submit","in":[],"inputs":[]}"#, "field \"inputs\" stands twice in one line (aliases count); keep one"),
    (r#"{"op":"submit","cycles":-1}"#, "field \"cycles\": -1 is negative; use a whole number from 0"),
    (r#"{"op":"submit","cycles":18446744073709551616}"#, "is too large; the largest is 18446744073709551615"),
    (r#"{"op":"submit","cycles":1.5}"#, "field \"cycles\": 1.5 is not a whole number; write it without fraction"),
    (r#"{"op":"submit","cycles":"7"}"#, "field \"cycles\": expected a whole number, found \"7\""),
    (r#"{"op":"submit","cycles":{"CUBE":1}}"#, "cycles per kind are for MIX tasks only"),
    (r#"{"op":"submit","worker_type":"MIX","cycles":{"CUBE":1}}"#, "no cycles for VECTOR, of which a block takes 2"),
    (r#"{"op":"submit","worker_type":"MIX","cycles":{"CUB":1}}"#, "unknown kind \"CUB\""),
    (r#"{"op":"submit","worker_type":"MIX","cycles":{"CUBE":1,"cube":2}}"#, "field \"cube\" stands twice"),
    (r#"{"op":"submit","units":{"CUBE":1}}"#, "units are for MIX tasks only"),
    (r#"{"op":"submit","worker_type":"MIX","units":{"CUBE":2}}"#, "2 CUBE and 0 VECTOR are more than a cluster has"),
    (r#"{"op":"submit","worker_type":"MIX","units":{"VECTOR":3}}"#, "take at most 1 CUBE and 2 VECTOR"),
    (r#"{"op":"submit","worker_type":"MIX","units":{}}"#, "a block without units"),
    (r#"{"op":"submit","worker_type":"CUBA"}"#, "unknown worker type \"CUBA\"; did you mean \"CUBE\"?"),
    (r#"{"op":"submit","worker_type":"ANY"}"#, "unknown worker type \"ANY\""),
    (r#"{"op":"submit","blocks":0}"#, "field \"blocks\": 0 blocks; a task has at least 1"),
    (r#"{"op":"submit","blocks":4294967296}"#, "4294967296 is too large; the largest is 4294967295"),
    (r#"{"op":"submit","id":1}"#, "1 is not the number of this task; tasks are numbered in file order, so write 0"),
    (r#"{"op":"submit","deps":[0]}"#, "task 0 cannot wait for itself; the first task can depend on nothing"),
    (r#"{"op":"submit","deps":["task0"]}"#, "task 0 cannot wait for itself"),
    (r#"{"op":"submit","deps":[3]}"#, "task 0 cannot wait for task 3, which comes later"),
    (r#"{"op":"submit","deps":["nobody"]}"#, "no earlier task is called \"nobody\""),
    (r#"{"op":"submit","deps":[true]}"#, "expected the number or name of an earlier task, found true"),
    (r#"{"op":"submit","deps":3}"#, "field \"deps\": expected a list […], found 3"),
    (r#"{"op":"submit","parent":0}"#, "field \"parent\": task 0 cannot wait for itself"),
    (r#"{"op":"submit","spawn_offset":1}"#, "field \"spawn_offset\": it needs a \"parent\""),
    (r#"{"op":"submit","in":["X"]}"#, "unknown buffer \"X\"; declare it before with {\"op\":\"buffer\",\"id\":\"X\""),
    (r#"{"op":"submit","in":[5]}"#, "expected a text in quotes, found 5; a region is"),
    (r#"{"op":"submit","new":[["P"]]}"#, "no size for \"P\""),
    (r#"{"op":"submit","new":[["P",1,2]]}"#, "more than a name and a size"),
    (r#"{"op":"submit","sync_start":1}"#, "expected true or false, found 1"),
    (r#"{"op":"submit","params":{"m":"x"}}"#, "field \"params\": \"m\": expected a number, found \"x\""),
    (r#"{"op":"submit","params":{"m":1,"m":2}}"#, "field \"m\" stands twice"),
    (r#"{"op":"submit","params":{"m":1e999}}"#, "1e999 is too large"),
    (r#"{"op":"submit","schedule_at":"2026-03-01T09:30:00"}"#, "has no offset from UTC; add an offset such as Z"),
    (r#"{"op":"submit","work_item":"invokee"}"#, "did you mean \"invoke\"?"),
    (r#"{"op":"submit","prio":-1}"#, "field \"prio\": -1 is negative"),
    (r#"{"op":"submit","node":3000000000}"#, "3000000000 is out of range; use a 32-bit number"),
    (r#"{"op":"submit","routine":7}"#, "field \"routine\": expected a text in quotes, found 7"),
    (r#"{"op":"scope_end"}"#, "scope_end without scope_begin; remove it or open a scope before"),
    (r#"{"op":"buffer","bytes":1}"#, "buffer without \"id\""),
    (r#"{"op":"buffer","id":"A"}"#, "buffer \"A\" without \"bytes\""),
    (r#"{"op":"buffer","id":"A","size":1}"#, "unknown field \"size\" of buffer; "),
    (r#"{"op":"control","at":1,"cmd":"puase"}"#, "unknown command \"puase\"; did you mean \"pause\"?"),
    (r#"{"op":"control","cmd":"pause"}"#, "control without \"at\""),
    (r#"{"op":"control","at":1,"cmd":"notify"}"#, "command \"notify\" needs the field \"routine\""),
    (r#"{"op":"header","format":"ptosim-trace","version":1}"#, "a second header"),
    (r#"{"op":"submit"} {"op":"submit"}"#, "not valid JSON at column 17: one operation a line, but more text follows"),
    (r#"{"op":"submit","kernel":"x""#, "not valid JSON: expected ',' or '}', but the text ends; is it cut off?"),
    (r#"{"op":"submit","kernel":"x"#, "text without closing quote"),
    (r#"{"op":"submit",}"#, "not valid JSON at column 16: expected a value, found '}'"),
    (r#"{"op":"submit" "kernel":"x"}"#, "expected ',' or '}', found '\"'"),
    ("submit", "not valid JSON at column 1: expected a value"),
    ("[1]", "expected an operation {\"op\":…}, found [1]"),
];

#[test]
fn every_mistake_is_named_with_its_place_and_remedy() {
    for (line, expected) in WRONG {
        let message = fault(line);
        assert!(message.starts_with("t.jsonl:2: "), "{line}\n{message}");
        assert!(message.contains(expected), "{line}\n{message}\n{expected}");
    }
}

#[test]
fn regions_outside_their_buffer_are_refused() {
    let outside = |region: &str| {
        fault(&format!("{{\"op\":\"buffer\",\"id\":\"A\",\"bytes\":100}}\n{{\"op\":\"submit\",\"out\":[{region}]}}"))
    };
    let expected = "t.jsonl:3: field \"out\": region of \"A\" ends at byte 101, but the buffer has 100 bytes; \
                    make the buffer larger or the region smaller";
    assert_eq!(outside("[\"A\",1,100]"), expected);
    assert_eq!(outside("[\"A\",1,10,10,10]"), expected);
    assert!(outside("[\"A\",18446744073709551615,1]").contains("ends beyond 2^64"));
    assert!(outside("[\"A\",0,10,2,5]").contains("stride 5 is less than row_bytes 10; use a stride of at least 10"));
    assert!(outside("[\"A\",0,10,2]").contains("a region is"));
    assert!(outside("[\"A\",0,10,2,10,1]").contains("a region is"));
    assert!(outside("\"AA\"").contains("unknown buffer \"AA\"; did you mean \"A\"?"));
}

#[test]
fn the_first_line_must_be_a_header_of_ours() {
    let message = |text: &str| read(text).expect_err("no header").to_string();
    assert!(message("").starts_with("t.jsonl:1: the trace is empty; it begins with {\"op\":\"header\""));
    assert!(message("\n \n").starts_with("t.jsonl:2: the trace is empty"));
    assert!(message("{\"op\":\"submit\"}").contains("no header before the first operation; a trace begins with"));
    assert!(message("hello").contains("a trace begins with"));
    assert!(message("{\"op\":\"header\",\"version\":1}").contains("header without \"format\""));
    assert!(message("{\"op\":\"header\",\"format\":\"x\",\"version\":1}").contains("\"x\" is not \"ptosim-trace\""));
    let version = message("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":2}");
    assert!(version.contains("field \"version\": 2 is unknown; this program reads 1"));
    let mark = format!("\u{feff}{HEADER}");
    assert!(read(mark).expect("valid").is_empty());
    assert!(fault("{\"op\":\"done\"}\n{\"op\":\"submit\"}").contains("the program ended with \"done\" before"));
}

#[test]
fn at_most_64_scopes_are_open() {
    let begins = "{\"op\":\"scope_begin\"}\n".repeat(64);
    assert_eq!(read(format!("{HEADER}{begins}")).expect("valid").len(), 128);
    assert!(fault(&"{\"op\":\"scope_begin\"}\n".repeat(65)).starts_with("t.jsonl:66: scope_begin: 64 scopes are open"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut text = format!("{HEADER}{{\"op\":\"submit\",\"kernel\":\"").into_bytes();
    text.extend(b"\xff\"}\n");
    let message = read(text).expect_err("not UTF-8").to_string();
    assert_eq!(message, "t.jsonl:2: not valid UTF-8 at byte 26 of the line; save the file as UTF-8");
}

#[test]
fn a_mistake_in_line_1_000_000_is_found_there() {
    let mut text = String::from(HEADER);
    for _ in 0..999_998 {
        text.push_str("{\"op\":\"submit\"}\n");
    }
    text.push_str("{\"op\":\"submit\",\n");
    let message = read(text).expect_err("broken").to_string();
    assert!(message.starts_with("t.jsonl:1000000: not valid JSON"), "{message}");
}

#[test]
fn gzip_is_recognised_by_content_and_a_cut_file_is_told() {
    let mut text = String::from(HEADER);
    for id in 0..5000 {
        writeln!(text, "{{\"op\":\"submit\",\"cycles\":{}}}", id * 7919 % 1013).expect("write");
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("write");
    let packed = encoder.finish().expect("finish");
    assert_eq!(read(packed.clone()).expect("valid").len(), 5000);
    let message = read(&packed[..packed.len() / 2]).expect_err("cut").to_string();
    assert!(message.contains("the gzip data end too early"), "{message}");
    let mut damaged = packed;
    let middle = damaged.len() - 6;
    damaged[middle] ^= 0xff;
    assert!(read(damaged).expect_err("damaged").to_string().contains("the gzip data are damaged"));
}

#[test]
fn a_missing_file_is_named() {
    let error = TraceFile::new("no/such/file.jsonl").open().err().expect("missing").to_string();
    assert!(error.starts_with("no/such/file.jsonl: "), "{error}");
    assert_eq!(TraceFile::new("no/such/file.jsonl.gz").name(), "file");
}

#[test]
fn example_traces_are_valid_and_described() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let readme = std::fs::read_to_string(folder.join("README.md")).expect("README of the examples");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("example traces") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let program =
                crate::workload::Program::load(&TraceFile::new(&path)).unwrap_or_else(|error| panic!("{error}"));
            assert!(!program.tasks().is_empty());
            assert_eq!(crate::workload::Workload::name(&program), file_name(&path));
            assert!(readme.contains(&format!("`{}.jsonl`", file_name(&path))), "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 5);
}

#[test]
fn real_traces_have_the_tasks_that_their_description_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/traces");
    let expected = [
        ("vector_example", 5),
        ("mixed_example_case1", 20),
        ("dummy_dense_fanout_fanin", 20),
        ("spmd_sync_start_stress", 54),
        ("fanin64x64", 128),
        ("bgemm_case0", 1000),
        ("pa_unroll_case1", 1280),
        ("qwen3_14b_decode_40layer", 11166),
        ("qwen3_tier3", 678),
        ("qwen3_tier4", 522),
    ];
    if !folder.is_dir() {
        eprintln!("SKIPPED: no recorded traces in {}", folder.display());
        return;
    }
    for (name, count) in expected {
        let trace = TraceFile::new(folder.join(format!("{name}.jsonl.gz")));
        let mut source = trace.open().unwrap_or_else(|error| panic!("{error}"));
        let (mut task, mut tasks) = (Submit::default(), 0);
        while let Some(operation) = source.next(&mut task).unwrap_or_else(|error| panic!("{error}")) {
            tasks += u64::from(operation == Operation::Submit);
        }
        assert_eq!((trace.name().as_str(), tasks), (name, count));
        assert_eq!(trace.controls().expect("valid"), []);
    }
}

/// A program with every kind of operation and field, many times.
fn long_program() -> String {
    let mut text = String::from(HEADER);
    for number in 0..3000_u64 {
        let lines = [
            format!("{{\"op\":\"buffer\",\"id\":\"b{number}\",\"bytes\":4096}}"),
            "{\"op\":\"scope_begin\"}".into(),
            format!(
                "{{\"op\":\"submit\",\"kernel\":\"k{}\",\"worker_type\":\"CUBE\",\"in\":[[\"b{number}\",0,64],[\"b0\",64,8,2,99]],\
                 \"new\":[[\"P\",256]],\"params\":{{\"m\":{number},\"n\":8}}}}",
                number % 7
            ),
            format!(
                "{{\"op\":\"submit\",\"name\":\"n{number}\",\"cycles\":{},\"deps\":[{}],\"out\":[[\"P\",0,256]],\"out_bytes\":5,\
                 \"blocks\":2}}",
                number * 1_234_567,
                number * 3
            ),
            String::new(),
            format!("{{\"op\":\"submit\",\"kernel\":\"k\\u0041\",\"routine\":\"r{number}\",\"parent\":{number}}}"),
            "{\"op\":\"scope_end\"}".into(),
        ];
        lines.iter().for_each(|line| writeln!(text, "{line}").expect("memory"));
    }
    text
}

/// Everything that a source says, operation by operation.
fn told(source: &mut dyn Source) -> Result<Vec<(Operation, Submit, Option<u64>)>, WorkloadError> {
    let (mut found, mut task) = (Vec::new(), Submit::default());
    while let Some(operation) = source.next(&mut task)? {
        let data = if operation == Operation::Submit { task.clone() } else { Submit::default() };
        found.push((operation, data, source.line()));
    }
    Ok(found)
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn reading_ahead_gives_the_same_as_reading_along() {
    let text = long_program();
    let mut along = Reader::new(Box::new(Cursor::new(text.clone().into_bytes())), "t.jsonl").expect("a header");
    let expected = told(&mut along).expect("valid");
    for bytes in [packed(&text), text.into_bytes()] {
        let mut ahead = Ahead::new(Box::new(Cursor::new(bytes)), "t.jsonl").expect("a header");
        assert_eq!(told(&mut ahead).expect("valid"), expected);
        let names =
            |symbols: &crate::workload::Symbols| symbols.iter().map(|(_, name)| name.into()).collect::<Vec<String>>();
        assert_eq!(names(ahead.symbols()), names(along.symbols()));
        assert_eq!(names(ahead.buffers()), names(along.buffers()));
        assert_eq!(ahead.next(&mut Submit::default()).expect("the end stays the end"), None);
    }
}

#[test]
fn reading_ahead_tells_mistakes_where_they_stand() {
    let text = long_program() + "{\"op\":\"submit\",\"deps\":[9000]}\n";
    let along = Reader::new(Box::new(Cursor::new(text.clone().into_bytes())), "t.jsonl").expect("a header");
    let expected = told(&mut { along }).expect_err("a mistake").to_string();
    assert!(expected.starts_with("t.jsonl:21002: field \"deps\": task 9000 cannot wait for itself"), "{expected}");
    let mut ahead = Ahead::new(Box::new(Cursor::new(packed(&text))), "t.jsonl").expect("a header");
    assert_eq!(told(&mut ahead).expect_err("the same mistake").to_string(), expected);
    assert_eq!(ahead.line(), Some(21_001), "everything before it was given out");
    let mut cut = packed(&text);
    cut.truncate(cut.len() / 2);
    let mut ahead = Ahead::new(Box::new(Cursor::new(cut)), "t.jsonl").expect("a header");
    assert!(told(&mut ahead).expect_err("cut off").to_string().contains("the gzip data end too early"));
    drop(Ahead::new(Box::new(Cursor::new(text.into_bytes())), "t.jsonl").expect("nobody waits for the rest"));
}

#[test]
fn lines_mean_the_same_however_they_are_written() {
    let text = long_program();
    let usual = told(&mut Reader::new(Box::new(Cursor::new(text.clone())), "t.jsonl").expect("a header"));
    let spaced = text.replace("{\"op\":\"submit\"", "{ \"op\" : \"submit\" ");
    let other = told(&mut Reader::new(Box::new(Cursor::new(spaced)), "t.jsonl").expect("a header"));
    assert_eq!(usual.expect("valid"), other.expect("valid"));
    let mistakes = [
        r#""deps":[0]"#,
        r#""deps":[01]"#,
        r#""deps":[1.5]"#,
        r#""cycles":18446744073709551616"#,
        r#""cycles":-1"#,
        r#""in":[["A",0,101]]"#,
        r#""in":[["A",18446744073709551615,2]]"#,
        r#""in":[["B",0,1]]"#,
        r#""in":[["A",0,8,2,4]]"#,
        r#""blocks":0"#,
        r#""blocks":4294967296"#,
        r#""params":{"m":1,"m":2}"#,
        r#""worker_type":"CUBES""#,
        "\"kernel\":\"a\u{1}\"",
        r#""kernel":"a","kernel":"b""#,
        r#""in":[["A",0,1]],"in":[]"#,
    ];
    let declared = format!("{HEADER}{{\"op\":\"buffer\",\"id\":\"A\",\"bytes\":100}}\n");
    for mistake in mistakes {
        let line = format!("{declared}{{\"op\":\"submit\",{mistake}}}");
        let message = |end: &str| read(format!("{line}{end}")).expect_err(mistake).to_string();
        assert_eq!(message("\n"), message(" \n"), "{mistake}");
    }
}

#[test]
fn a_header_may_count_the_timed_commands() {
    let header = |count: u32| HEADER.replace("}\n", &format!(",\"controls\":{count}}}\n"));
    let (control, task) = ("{\"op\":\"control\",\"at\":3,\"cmd\":\"pause\"}\n", "{\"op\":\"submit\"}\n");
    let found = |text: String| {
        let stdin = Stdin::from_reader("t.jsonl", Box::new(Cursor::new(text.into_bytes())));
        let controls = stdin.controls()?.len();
        told(stdin.open()?.as_mut()).map(|operations| (controls, operations.len()))
    };
    assert_eq!(found(format!("{}\n{control}{control}{task}", header(2))).expect("right"), (2, 1));
    assert_eq!(found(format!("{}{task}", header(0))).expect("right"), (0, 1));
    assert_eq!(found(format!("{HEADER}{control}{task}{control}")).expect("anywhere"), (2, 1));
    let wrong = |text: String| found(text).expect_err("a wrong number").to_string();
    assert!(wrong(format!("{}{control}{task}", header(2))).starts_with("t.jsonl:3: fewer controls"));
    assert!(wrong(format!("{}{control}", header(2))).starts_with("t.jsonl:2: fewer controls"));
    assert!(wrong(format!("{}{control}{task}{control}", header(1))).starts_with("t.jsonl:4: a control that"));
}

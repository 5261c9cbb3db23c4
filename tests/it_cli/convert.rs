//! `ptosim convert` and the choices about formats.

use crate::program::{in_folder, refuses};
use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn what_cannot_be_written_is_refused_with_a_remedy() {
    refuses("convert chain:n=5 - --to simpler", "it has several files; name a folder instead of -");
    refuses("convert chain:n=5 x.unknown", "its ending tells no format; name it with --to");
    refuses("convert chain:n=5 x.json --to bogus", "--to bogus: unknown format; known are native");
    #[cfg(not(feature = "parquet"))]
    refuses("convert chain:n=5 x --to parquet", "build one with `cargo build --release --features parquet`");
    refuses("stat chain:n=5 --edges files", "chain:n=5: --edges is for traces of other programs");
    refuses("stat .", "\".\" is a folder without deps.json; name a file in it");
}

#[test]
fn what_is_wrong_leaves_the_output_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("bad.stg"), "2\n0 1 0\n1 2 1 9\n").expect("a file");
    fs::write(folder.path().join("out.jsonl"), "old").expect("a file");
    let ended = in_folder(folder.path(), "convert bad.stg out.jsonl", "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("bad.stg:3: \"t1\" names task 9, which the file does not have"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("out.jsonl")).expect("the old file"), "old");
}

#[test]
fn a_file_of_no_known_format_is_told_how_to_name_one() {
    let ended = in_folder(std::path::Path::new("."), "stat -", "id,name\n0,a\n");
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("<stdin>:1: no format begins like this; name it with --from"), "{}", ended.stderr);
}

#[test]
fn losses_and_large_pictures_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = in_folder(folder.path(), "convert bgemm:batch=8,m=4,n=4,k=9 big.dot", "");
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = |words: &str| assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    told("lost: ");
    told("tasks; Graphviz draws up to about 2000 in good time");
}

const HEADER: &str = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"s"}"#;

/// What `stat` says of a number of a workload.
fn counted(folder: &std::path::Path, workload: &str, what: &str) -> String {
    let ended = in_folder(folder, &format!("stat {workload}"), "");
    assert_eq!(ended.code, 0, "{workload}: {ended:?}");
    let value = ended.stdout.lines().find_map(|line| line.strip_prefix(what));
    value.and_then(|value| value.split_whitespace().next()).expect("a number").into()
}

#[test]
fn timelines_have_all_tasks_of_programs_that_do_not_run_to_their_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks = [
        r#"{"op":"submit","name":"a","cycles":10,"fault":true}"#,
        r#"{"op":"submit","name":"b","cycles":5,"deps":["a"]}"#,
        r#"{"op":"submit","name":"n","worker_type":"NONE","deps":["b"]}"#,
    ];
    let failing = [&[HEADER], &tasks[..]].concat().join("\n");
    let control = r#"{"op":"control","at":1,"cmd":"shutdown"}"#;
    let stopped = [&[HEADER, control], &tasks[..]].concat().join("\n").replace(r#","fault":true"#, "");
    for (name, trace, loss) in
        [("failing", failing, "lost: 1 tasks' faults"), ("stopped", stopped, "lost: 1 timed commands")]
    {
        fs::write(folder.path().join(format!("{name}.jsonl")), trace).expect("a trace");
        for (to, output) in [("chrome", format!("{name}.json")), ("simpler", name.into())] {
            let ended = in_folder(folder.path(), &format!("convert {name}.jsonl {output} --to {to}"), "");
            assert!(ended.code == 0 && ended.stderr.contains(loss), "{name} {to}: {ended:?}");
            assert!(ended.stderr.contains("the timeline is that of a run without faults"), "{name} {to}: {ended:?}");
            assert_eq!(counted(folder.path(), &output, "tasks"), "3", "{name} {to}");
            assert_eq!(counted(folder.path(), &output, "dependencies"), "2", "{name} {to}");
            assert_eq!(counted(folder.path(), &output, "critical path"), "15", "{name} {to}");
        }
    }
}

#[test]
fn what_simpler_does_not_hold_of_types_and_kernels_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks = [
        r#"{"op":"submit","kernel":"k","worker_type":"MIX","cycles":5,"units":{"CUBE":1,"VECTOR":0}}"#,
        r#"{"op":"submit","kernel":"k","worker_type":"MIX","cycles":5,"units":{"CUBE":0,"VECTOR":1}}"#,
        r#"{"op":"submit","kernel":"k","worker_type":"MIX","cycles":5,"units":{"CUBE":0,"VECTOR":2}}"#,
        r#"{"op":"submit","kernel":"join","worker_type":"NONE"}"#,
        r#"{"op":"submit","worker_type":"NONE"}"#,
    ];
    fs::write(folder.path().join("t.jsonl"), [&[HEADER], &tasks[..]].concat().join("\n")).expect("a trace");
    let ended = in_folder(folder.path(), "convert t.jsonl run --to simpler --machine a2a3", "");
    assert_eq!(ended.code, 0, "{ended:?}");
    let lost: Vec<&str> = ended.stderr.lines().filter_map(|line| line.strip_prefix("lost: ")).collect();
    let expected = [
        "the type of 1 MIX tasks that take one CUBE; they become CUBE tasks",
        "the type of 1 MIX tasks that take one VECTOR; they become VECTOR tasks",
        "the kernels of 1 NONE tasks; \"dummy\" stands for them",
    ];
    assert_eq!(lost, expected);
    let again = in_folder(folder.path(), "convert run -", "").stdout;
    let has = |words: &str| again.lines().filter(|line| line.contains(words)).count();
    assert_eq!(
        (has(r#""worker_type":"MIX""#), has(r#""units":{"CUBE":0,"VECTOR":2}"#), has("dummy")),
        (1, 1, 2),
        "{again}"
    );
}

#[test]
fn timelines_of_runs_are_read_as_the_programs_under_every_policy() {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks = [
        r#"{"op":"submit","name":"a","kernel":"k","worker_type":"MIX","cycles":{"CUBE":30,"VECTOR":20},"blocks":3}"#,
        r#"{"op":"submit","worker_type":"MIX","cycles":7,"units":{"CUBE":0,"VECTOR":2},"deps":[0],"blocks":2}"#,
        r#"{"op":"submit","kernel":"one","worker_type":"MIX","cycles":9,"units":{"CUBE":1,"VECTOR":1},"deps":[0,1]}"#,
        r#"{"op":"submit","name":"z","kernel":"z","worker_type":"VECTOR","cycles":1,"deps":[0,2],"blocks":70}"#,
        r#"{"op":"submit","worker_type":"CUBE","cycles":1000,"deps":[3]}"#,
    ];
    fs::write(folder.path().join("t.jsonl"), [&[HEADER], &tasks[..]].concat().join("\n")).expect("a trace");
    let body =
        |text: &str| text.split_once('\n').map_or(String::new(), |(_, body)| body.replace(r#","kernel":"z""#, ""));
    let expected = body(&in_folder(folder.path(), "convert t.jsonl -", "").stdout);
    let policies = "pto cyber_classic cyber_choreography orleans bmf ray per_worker steal predictive heft static lifo random shortest";
    for policy in policies.split(' ') {
        for machine in ["a2a3", "ideal --set workers.clusters=4"] {
            let run = format!("run t.jsonl --policy {policy} --machine {machine} --flows --chrome run.json -q");
            let ended = in_folder(folder.path(), &run, "");
            assert_eq!(ended.code, 0, "{run}: {ended:?}");
            let again = in_folder(folder.path(), "convert run.json -", "");
            assert_eq!(body(&again.stdout), expected, "{run}: {}", again.stderr);
        }
    }
}

#[test]
fn sums_that_are_too_large_are_told() {
    let task = r#"{"op":"submit","cycles":9223372036854775807,"blocks":4294967295}"#;
    let ended = in_folder(std::path::Path::new("."), "stat -", &format!("{HEADER}\n{task}\n"));
    let told = "the work is at least 2^64 - 1 cycles, and the parallelism at least what is shown";
    assert!(ended.code == 0 && ended.stdout.contains(told), "{ended:?}");
    let twice = in_folder(std::path::Path::new("."), "stat - --json", &format!("{HEADER}\n{}\n", [task; 2].join("\n")));
    assert!(twice.stdout.contains(told), "{twice:?}");
    let chain =
        ["", "0", "1"].map(|producer| format!(r#"{{"op":"submit","cycles":9223372036854775807,"deps":[{producer}]}}"#));
    let ended = in_folder(std::path::Path::new("."), "stat -", &format!("{HEADER}\n{}\n", chain.join("\n")));
    let told = "critical path and work are at least 2^64 - 1 cycles, so that the parallelism is unknown";
    assert!(ended.code == 0 && ended.stdout.contains(told), "{ended:?}");
}

#[test]
fn dependencies_are_compared_where_a_format_has_two_kinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_none = "(wfformat, simpler, dax, chakra), and this is none; leave it out";
    fs::write(folder.path().join("x.dot"), "digraph { a -> b }").expect("a file");
    for workload in ["x.dot", "chain:n=5"] {
        let ended = in_folder(folder.path(), &format!("stat {workload} --compare-edges"), "");
        let told = format!("{workload}: --compare-edges is for formats that give dependencies in two ways {is_none}");
        assert!(ended.code == 2 && ended.stderr.contains(&told), "{ended:?}");
    }
    refuses("stat - --compare-edges", "--compare-edges reads the workload twice; save standard input as a file");
    let nodes = r#"[{"id":1,"name":"a","type":4},{"id":2,"name":"b","type":4,"ctrl_deps":[1]}]"#;
    fs::write(folder.path().join("x.et"), nodes).expect("a file");
    let ended = in_folder(folder.path(), "stat x.et --compare-edges", "");
    let told = "0 recorded dependencies, 1 by --edges all, 0 in both\nonly by --edges all: 1\n  n1 -> n2\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (0, told), "{ended:?}");
}

#[test]
fn a_deadlock_names_the_file_to_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = [HEADER, r#"{"op":"scope_begin"}"#, r#"{"op":"submit","cycles":1}"#, r#"{"op":"submit","cycles":1}"#];
    fs::write(folder.path().join("stuck.jsonl"), trace.join("\n")).expect("a trace");
    let ended = in_folder(folder.path(), "convert stuck.jsonl x.json --to chrome --set limits.window=1", "");
    assert!(ended.code == 2 && ended.stderr.contains("`ptosim run stuck.jsonl` on the same machine"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error_for_any_format() {
    for format in ["native", "ptob", "csv", "dot", "wfformat", "chrome", "perfetto"] {
        let mut command = Command::new(cargo_bin("ptosim"));
        let command = command.args(["convert", "bgemm:m=4", "-", "--to", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[cfg(unix)]
#[test]
fn a_folder_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    // No file may have more than a block: as on a full disk.
    let program = cargo_bin("ptosim");
    let full = format!("trap '' XFSZ; ulimit -f 1; exec {} convert bgemm:m=4 new/run --to simpler", program.display());
    let output = Command::new("sh").args(["-c", &full]).current_dir(folder.path()).output().expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("cannot write new/run/deps.json"), "{told}");
    assert!(!folder.path().join("new").exists());
    // Nor is there one file when another cannot be written.
    fs::create_dir_all(folder.path().join("run/name_map.json")).expect("a folder in its place");
    let ended = in_folder(folder.path(), "convert bgemm:m=4 run --to simpler", "");
    assert!(ended.code == 2 && ended.stderr.contains("cannot write run/name_map.json"), "{ended:?}");
    assert!(!folder.path().join("run/deps.json").exists());
}

#[test]
fn a_kind_of_a_mix_task_that_was_not_recorded_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let deps = r#"{"tasks":[{"task_id":"0","kernel_ids":[3,4,5]},{"task_id":"1","kernel_ids":[3,4,5]}],"edges":[]}"#;
    let records = r#"{"metadata":{"clock_freq_hz":50000000,"core_types":["aic","aiv"]},
        "aicore_tasks":[[0,0,1,5,15,0],[0,1,2,20,30,0],[1,1,1,20,40,0]]}"#;
    fs::write(folder.path().join("deps.json"), deps).expect("a file");
    fs::write(folder.path().join("chip_swimlane_records.json"), records).expect("a file");
    let ended = in_folder(folder.path(), "convert deps.json -", "");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains(r#""cycles":{"CUBE":370,"VECTOR":0}"#), "{}", ended.stdout);
    let told = "1 MIX tasks have no record on one of their kinds of workers, which takes no time";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn the_page_about_formats_lists_every_key_and_command_of_native_traces() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/formats.md");
    let page = fs::read_to_string(page).expect("the page");
    let lines = [
        r#"{"op":"zzzzzzzz"}"#,
        r#"{"op":"submit","zzzzzzzz":1}"#,
        r#"{"op":"buffer","zzzzzzzz":1}"#,
        r#"{"op":"control","zzzzzzzz":1}"#,
        r#"{"op":"control","cmd":"zzzzzzzz"}"#,
    ];
    for line in lines {
        let ended = in_folder(std::path::Path::new("."), "stat -", &format!("{HEADER}\n{line}\n"));
        let (_, known) = ended.stderr.trim_end().split_once("known are ").expect("a list");
        for word in known.split(", ") {
            assert!(page.contains(&format!("`{word}`")), "{line}: {word} is not in docs/formats.md");
        }
    }
}

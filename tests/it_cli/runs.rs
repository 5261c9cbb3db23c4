//! Whole runs through the program: reports, files, exit codes, deadlocks.

use crate::program::{Ended, in_folder, ptosim};
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const HEADER: &str = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"tiny\"}\n";

/// A folder with a trace of two dependent tasks, and one with an open scope of three tasks.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let chain = "{\"op\":\"submit\",\"name\":\"a\",\"worker_type\":\"CUBE\",\"cycles\":100}\n\
                 {\"op\":\"submit\",\"name\":\"b\",\"cycles\":50,\"deps\":[\"a\"]}\n";
    let task = "{\"op\":\"submit\",\"cycles\":10}\n";
    let scope = format!("{{\"op\":\"scope_begin\"}}\n{}{{\"op\":\"scope_end\"}}\n", task.repeat(3));
    fs::write(folder.path().join("chain.jsonl"), format!("{HEADER}{chain}")).expect("room on the disk");
    fs::write(folder.path().join("scope.jsonl"), format!("{HEADER}{scope}")).expect("room on the disk");
    folder
}

fn call(folder: &Path, arguments: &str) -> Ended {
    in_folder(folder, arguments, "")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_good_run_prints_its_report_without_colours_and_ends_with_0() {
    let folder = folder();
    let ended = call(folder.path(), "run chain.jsonl");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("tiny on ideal: completed in 150 cycles"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\u{1b}'));
    assert_eq!(call(folder.path(), "run chain.jsonl --quiet").stdout, "");
}

#[test]
fn progress_is_told_every_so_many_cycles() {
    let folder = folder();
    let plain = call(folder.path(), "run chain.jsonl --json -");
    let told = call(folder.path(), "run chain.jsonl --json - --progress-cycles 50 --set limits.rings=2");
    // Task 0 ends at 100 and task 1, on which nothing depends, at 150.
    assert_eq!(
        told.stderr,
        "cycle 50: submitted 2, completed 0, consumed 0, last_task_alive 0/0 STUCK\n\
         cycle 100: submitted 2, completed 1, consumed 0, last_task_alive 0/0\n\
         cycle 150: submitted 2, completed 2, consumed 2, last_task_alive 2/0\n"
    );
    let told = call(folder.path(), "run chain.jsonl --json - --progress-cycles 60 --schedule a.csv");
    assert_eq!(told.stdout, plain.stdout, "nothing else changes");
    assert_eq!(told.stderr.lines().count(), 2, "{}", told.stderr);
    let schedule = fs::read_to_string(folder.path().join("a.csv")).expect("it is there");
    assert_eq!(schedule, "task,block,worker,submit,ready,start,end\n0,0,0,0,0,0,100\n1,0,24,0,100,100,150\n");
    let stuck = call(folder.path(), "run scope.jsonl --set limits.window=2 --quiet --progress-cycles 5");
    let lines = stuck.stderr.lines().filter(|line| line.starts_with("cycle "));
    assert_eq!((stuck.code, lines.count()), (1, 2), "{}", stuck.stderr);
    for policy in ["lifo", "ray", "predictive"] {
        let told = call(folder.path(), &format!("run chain.jsonl --quiet --progress-cycles 100 --policy {policy}"));
        let last = "cycle 100: submitted 2, completed 1, consumed 0, last_task_alive 0\n";
        assert_eq!((told.code, told.stderr.as_str()), (0, last), "{policy}");
    }
}

#[test]
fn on_threads_progress_is_told_every_so_many_seconds() {
    let folder = folder();
    // Task 0 takes 300 ms.
    let slow = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"slow\"}\n\
                {\"op\":\"submit\",\"cycles\":300000}\n{\"op\":\"submit\",\"cycles\":1,\"deps\":[0]}\n";
    fs::write(folder.path().join("slow.jsonl"), slow).expect("room on the disk");
    let arguments = "--engine threads --kernel spin --set clock_mhz=1 --quiet --progress-seconds 0.1";
    let told = call(folder.path(), &format!("run slow.jsonl {arguments}"));
    let while_it_runs = " s: submitted 2, completed 0, consumed 0, last_task_alive 0 STUCK";
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stderr.lines().any(|line| line.ends_with(while_it_runs)), "{}", told.stderr);
    assert!(told.stderr.lines().all(|line| line.contains(" s: submitted ")), "{}", told.stderr);
}

#[test]
fn whom_a_task_wakes_changes_no_result() {
    let folder = folder();
    let program = "run bgemm:batch=2,m=2,n=2,k=4 --quiet --schedule a.csv";
    let schedule = |options: &str| {
        let ended = call(folder.path(), &format!("{program} {options}"));
        assert_eq!(ended.code, 0, "{options}: {}", ended.stderr);
        fs::read_to_string(folder.path().join("a.csv")).expect("it is there")
    };
    let expected = schedule("");
    for wake in ["min_clock", "broadcast"] {
        assert_eq!(schedule(&format!("--set rules.wake={wake}")), expected);
        let on_threads = format!("--set rules.wake={wake} --engine threads --executors 3");
        assert_eq!(schedule(&format!("{on_threads} --mode deterministic")), expected);
        assert_eq!(schedule(&on_threads).lines().count(), expected.lines().count());
    }
    let ended = call(folder.path(), &format!("{program} --set rules.wake=all"));
    assert!(ended.code == 2 && ended.stderr.contains("expected `min_clock` or `broadcast`"), "{}", ended.stderr);
}

#[test]
fn a_kernel_that_fails_is_told_with_its_line() {
    let folder = folder();
    let header = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"misfit"}"#;
    let buffers = "{\"op\":\"buffer\",\"id\":\"A\",\"bytes\":64}\n{\"op\":\"buffer\",\"id\":\"B\",\"bytes\":16}";
    let copy = r#"{"op":"submit","kernel":"copy","worker_type":"VECTOR","in":["A"],"out":["B"]}"#;
    fs::write(folder.path().join("misfit.jsonl"), format!("{header}\n{buffers}\n{copy}\n")).expect("a file");
    let ended = call(folder.path(), "run misfit.jsonl --engine execute");
    let said =
        "misfit.jsonl:4: task 0 `task0`, kernel `copy`: made 64 bytes for a region of 16; give it a region of 64";
    assert!(ended.code == 1 && ended.stderr.contains(said), "{ended:?}");
}

#[test]
fn free_threads_tell_which_rules_they_do_not_follow() {
    let rules = "--set rules.on_ready_queue_full=drop --set rules.adaptive_window=4";
    let ended = ptosim(&format!("run chain:n=9 --engine threads {rules}"));
    assert!(ended.stdout.contains("rules.on_ready_queue_full = \"drop\" had no effect"), "{ended:?}");
    assert!(ended.stdout.contains("rules.adaptive_window had no effect"), "{ended:?}");
}

#[test]
fn json_and_schedule_are_written_and_say_the_same_every_time() {
    let folder = folder();
    let ended = call(folder.path(), "run chain.jsonl --json a.json --schedule a.csv");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let schedule = fs::read_to_string(folder.path().join("a.csv")).expect("it is there");
    assert_eq!(schedule, "task,block,worker,submit,ready,start,end\n0,0,0,0,0,0,100\n1,0,24,0,100,100,150\n");
    let again = call(folder.path(), "run chain.jsonl --json -");
    assert_eq!(again.stdout, fs::read_to_string(folder.path().join("a.json")).expect("it is there"));
    let result: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&result["makespan"], &result["outcome"]), (&150.into(), &"completed".into()));
    assert!(!result["verdict"].as_str().expect("a text").is_empty());
    assert_eq!(names(folder.path()), ["a.csv", "a.json", "chain.jsonl", "scope.jsonl"]);
}

#[test]
fn a_trace_may_come_from_standard_input() {
    let folder = folder();
    let trace = fs::read_to_string(folder.path().join("chain.jsonl")).expect("it is there");
    let ended = in_folder(folder.path(), "run -", &trace);
    assert!(ended.code == 0 && ended.stdout.contains("completed in 150 cycles"), "{ended:?}");
}

#[test]
fn a_deadlock_ends_with_1_and_names_sizes_that_are_needed_and_enough() {
    let folder = folder();
    let ended = call(folder.path(), "run scope.jsonl --set limits.window=2 --json a.json");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("deadlock") && ended.stdout.contains("--set limits.window=4"), "{}", ended.stdout);
    let result = fs::read_to_string(folder.path().join("a.json")).expect("a deadlock is a result");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(result["deadlock"]["needed"]["limits.window"], 4);
    assert_eq!(result["deadlock"]["line"], 5);
    assert_eq!(call(folder.path(), "run scope.jsonl --set limits.window=4").code, 0);
    let quiet = call(folder.path(), "run scope.jsonl --set limits.window=2 --quiet");
    assert_eq!((quiet.code, quiet.stdout.as_str()), (1, ""));
    assert!(quiet.stderr.starts_with("Stuck at cycle 10:"), "{}", quiet.stderr);
}

#[test]
fn bad_input_writes_nothing_and_keeps_the_old_file() {
    let folder = folder();
    fs::write(folder.path().join("bad.jsonl"), format!("{HEADER}{{\"op\":\"submit\",\"cycels\":1}}\n")).expect("room");
    fs::write(folder.path().join("a.json"), "old").expect("room on the disk");
    let ended = call(folder.path(), "run bad.jsonl --json a.json --schedule a.csv");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("bad.jsonl:2:") && ended.stderr.contains("cycles"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("a.json")).expect("it is there"), "old");
    assert_eq!(names(folder.path()), ["a.json", "bad.jsonl", "chain.jsonl", "scope.jsonl"]);
}

#[test]
fn an_unwritable_place_is_found_before_the_run() {
    let folder = folder();
    for arguments in ["run chain.jsonl --json no/a.json", "run chain.jsonl --json . --schedule a.csv"] {
        let ended = call(folder.path(), arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments}");
        assert!(ended.stderr.starts_with("error: cannot write "), "{}", ended.stderr);
    }
    assert_eq!(names(folder.path()), ["chain.jsonl", "scope.jsonl"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_old_files() {
    let folder = folder();
    fs::write(folder.path().join("a.json"), "old").expect("room on the disk");
    for arguments in ["run chain.jsonl --json a.json --schedule /dev/full", "run chain.jsonl --json /dev/full"] {
        let ended = call(folder.path(), arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments}");
        assert!(ended.stderr.starts_with("error: cannot write /dev/full: No space left"), "{}", ended.stderr);
        assert_eq!(fs::read_to_string(folder.path().join("a.json")).expect("it is there"), "old");
    }
    assert_eq!(names(folder.path()), ["a.json", "chain.jsonl", "scope.jsonl"]);
}

#[test]
fn a_closed_pipe_ends_quietly_and_files_are_still_written() {
    let folder = folder();
    let mut command = Command::new(cargo_bin("ptosim"));
    let command = command.current_dir(folder.path()).args("run chain.jsonl --json - --schedule a.csv".split(' '));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    assert!(folder.path().join("a.csv").exists());
}

#[test]
fn a_long_name_of_a_workload_is_cut_in_texts_and_whole_in_files() {
    let folder = folder();
    let name = "w".repeat(5000);
    let trace = HEADER.replace("tiny", &name) + "{\"op\":\"submit\",\"cycles\":10}\n";
    for command in ["run -", "compare - --policies pto"] {
        let ended = in_folder(folder.path(), &format!("{command} --json r.json"), &trace);
        let first = ended.stdout.lines().next().expect("a headline");
        assert!(first.starts_with(&format!("{}… on ideal", "w".repeat(47))), "{first}");
        let result: Value =
            serde_json::from_slice(&fs::read(folder.path().join("r.json")).expect("it was written")).expect("JSON");
        assert_eq!(result["workload"], name.as_str());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_window_that_memory_has_no_room_for_is_refused() {
    for engine in ["virtual", "threads"] {
        let command = format!(
            "ulimit -v 1000000; exec '{}' run chain:n=3 --engine {engine} --set limits.window=16777216",
            cargo_bin!("ptosim").display()
        );
        let ended = Command::new("sh").args(["-c", &command]).output().expect("a shell");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{told}");
        assert!(told.contains("takes more memory than this host gives; lower limits.window"), "{told}");
    }
}

#[test]
fn tasks_without_regions_have_nothing_to_verify() {
    let ended = ptosim("run chain:n=10 --engine execute --verify");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("verified: all 0 bytes of 0 device buffers"), "{ended:?}");
}

#[test]
fn a_child_that_does_not_wait_because_the_start_of_its_parent_is_forgotten_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = |rest: &str| format!("{{\"op\":\"submit\",\"cycles\":1{rest}}}\n");
    let child = task(",\"parent\":0,\"spawn_offset\":100");
    fs::write(folder.path().join("t.jsonl"), [HEADER, &task(""), &task(""), &child].concat()).expect("a trace");
    let told = |window: u32, mode: &str| {
        let ended = call(folder.path(), &format!("run t.jsonl --json - --set limits.window={window} {mode}"));
        let result: Value = serde_json::from_str(&ended.stdout).expect("a result");
        let notes =
            result["notes"].as_array().expect("a list").iter().map(|note| note.as_str().expect("a text").into());
        (result["makespan"].as_u64().expect("a number"), notes.collect::<Vec<String>>())
    };
    let note = "1 task did not wait for the start of its parent plus spawn_offset: the start is known until another task \
                takes the parent's slot; a larger limits.window keeps it longer";
    for mode in ["", "--engine threads --mode deterministic"] {
        assert_eq!(told(1, mode), (3, vec![note.into()]), "{mode}");
        assert_eq!(told(2, mode), (101, Vec::new()), "{mode}");
    }
    let text = call(folder.path(), "run t.jsonl --set limits.window=1").stdout.replace('\n', " ");
    assert!(text.contains("1 task did not wait for the start of its parent"), "{text}");
}

//! The reports that people look at, through the program: files, messages, exit codes.

use crate::program::{Ended, in_folder, refuses};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn call(folder: &Path, arguments: &str) -> Ended {
    in_folder(folder, arguments, "")
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("it was written")
}

#[test]
fn every_form_is_written_by_one_run_and_is_the_same_every_time() {
    let folder = folder();
    let files = ["a.html", "a.json", "a.chrome.json", "a.pftrace", "a.dot", "a.csv"];
    let options =
        "--html a.html --json a.json --chrome a.chrome.json --perfetto a.pftrace --dot a.dot --critical-path a.csv";
    let command = format!("run bgemm:batch=1,m=2,n=2,k=2 --machine a2a3 --flows --quiet {options}");
    let first = call(folder.path(), &command);
    assert_eq!((first.code, first.stdout.as_str(), first.stderr.as_str()), (0, "", ""));
    let content = || files.map(|name| fs::read(folder.path().join(name)).expect("it was written"));
    let before = content();
    assert_eq!(call(folder.path(), &command).code, 0);
    assert!(before == content(), "the same bytes every time");
    assert!(read(folder.path(), "a.html").starts_with("<!doctype html>"));
    assert!(read(folder.path(), "a.dot").starts_with("digraph \"bgemm"));
}

#[test]
fn the_critical_path_adds_up_to_the_makespan() {
    let folder = folder();
    let ended = call(folder.path(), "run bgemm:batch=1,m=2,n=2,k=4 --machine a2a3 --critical-path p.csv --json a.json");
    assert!(ended.code == 0 && ended.stdout.contains("Critical path"), "{ended:?}");
    let result: Value = serde_json::from_str(&read(folder.path(), "a.json")).expect("JSON");
    let text = read(folder.path(), "p.csv");
    let sum = |path: &str| -> u64 {
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[0] == path);
        rows.map(|row| row[2].parse::<u64>().expect("cycles")).sum()
    };
    assert_eq!(sum("observed"), result["makespan"].as_u64().expect("a number"));
    let blame = result["path"]["blame"].as_object().expect("causes");
    let blamed: u64 = blame.values().map(|cycles| cycles.as_u64().expect("a number")).sum();
    assert_eq!(blamed, result["makespan"].as_u64().expect("a number"));
    // Four products, one after the other, and the sums between them.
    assert_eq!(sum("static"), 100 + 4 * 50);
}

#[test]
fn what_if_ranks_what_would_help() {
    let folder = folder();
    let ended = call(folder.path(), "run fanout:n=100 --set limits.window=4 --what-if --json a.json");
    assert!(ended.code == 0 && ended.stdout.contains("What if"), "{ended:?}");
    let result: Value = serde_json::from_str(&read(folder.path(), "a.json")).expect("JSON");
    let answers = result["what_if"].as_array().expect("a list");
    let gains: Vec<i64> = answers.iter().map(|answer| answer["gain"].as_i64().expect("a number")).collect();
    assert!(gains.is_sorted_by(|a, b| a >= b) && gains[0] > 0, "{gains:?}");
    let best: Vec<&str> = answers[0]["settings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(best.iter().any(|setting| setting.starts_with("limits.window=")), "{best:?}");
    let settings: Vec<String> = best.iter().map(|setting| format!("--set {setting}")).collect();
    let again = call(folder.path(), &format!("run fanout:n=100 --set limits.window=4 {} --json -", settings.join(" ")));
    let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(again["makespan"], answers[0]["makespan"], "the settings do what the answer says");
}

#[test]
fn what_if_helps_with_a_deadlock_and_respects_the_settings_of_a_policy() {
    let folder = folder();
    let tasks = r#"{"op":"submit","cycles":5}"#;
    let header = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"stuck"}"#;
    let trace = format!("{header}\n{{\"op\":\"scope_begin\"}}\n{tasks}\n{tasks}\n{tasks}\n");
    std::fs::write(folder.path().join("stuck.jsonl"), trace).expect("a file");
    let ended = call(folder.path(), "run stuck.jsonl --set limits.window=2 --what-if --json a.json");
    assert_eq!(ended.code, 1, "{ended:?}");
    let result: Value = serde_json::from_str(&read(folder.path(), "a.json")).expect("JSON");
    let answers = result["what_if"].as_array().expect("a list");
    let window = answers.iter().find(|answer| answer["change"] == "window without limit").expect("an answer");
    assert_eq!((&window["outcome"], &window["makespan"]), (&"completed".into(), &5.into()));
    assert_eq!(window["gain"], 0, "nothing completed that could be compared");
    assert!(ended.stdout.contains("5  completes "), "{ended:?}");

    let conf = "[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 2\n";
    std::fs::write(folder.path().join("policy.toml"), conf).expect("a file");
    let ended = call(
        folder.path(),
        "run random:n=20 --policy cyber_classic --policy-config policy.toml --what-if --json b.json",
    );
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn what_if_of_workers_that_a_policy_counts_can_be_tried() {
    let folder = folder();
    let nodes = r#"{"nodes":[{"id":0,"scheduler":0},{"id":1,"scheduler":1}]}"#;
    std::fs::write(folder.path().join("bmf.json"), nodes).expect("a file");
    let run = "run random:n=50 --policy-config bmf.json";
    let ended = call(folder.path(), &format!("{run} --what-if --json a.json"));
    let result: Value = serde_json::from_str(&read(folder.path(), "a.json")).expect("JSON");
    let answers = result["what_if"].as_array().unwrap_or_else(|| panic!("{ended:?}"));
    for answer in answers {
        let settings = answer["settings"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let settings: Vec<String> = settings.map(|setting| format!("--set {setting}")).collect();
        let again = call(folder.path(), &format!("{run} {} --json -", settings.join(" ")));
        let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
        assert_eq!(again["makespan"], answer["makespan"], "{settings:?}");
    }
    let classic = "[[scheduler_conf.classic_conf.groups]]\nname = \"g\"\nprocessor_num = 2\n";
    std::fs::write(folder.path().join("classic.toml"), classic).expect("a file");
    let ended = call(folder.path(), "run random:n=50 --policy cyber_classic --policy-config classic.toml --what-if");
    assert!(ended.stdout.contains("--what-if: the configuration of the policy allows none"), "{ended:?}");
}

#[test]
fn files_whose_names_end_in_gz_are_packed_and_results_are_read_so() {
    let folder = folder();
    assert_eq!(
        call(folder.path(), "run chain:n=100 --quiet --json a.json --schedule a.csv --chrome a.chrome.json").code,
        0
    );
    let packed = "run chain:n=100 --quiet --json b.json.gz --schedule b.csv.gz --chrome b.chrome.json.gz";
    assert_eq!(call(folder.path(), packed).code, 0);
    for (plain, packed) in [("a.json", "b.json.gz"), ("a.csv", "b.csv.gz"), ("a.chrome.json", "b.chrome.json.gz")] {
        let mut unpacked = String::new();
        let file = std::fs::File::open(folder.path().join(packed)).expect("a file");
        flate2::read::GzDecoder::new(file).read_to_string(&mut unpacked).expect("gzip");
        assert!(unpacked == read(folder.path(), plain), "{packed}");
    }
    let ended = call(folder.path(), "diff a.json b.json.gz --fail-over 0%");
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = call(folder.path(), "report b.json.gz --schedule b.csv.gz --html page.html");
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn free_threads_say_that_they_observe_no_path() {
    let folder = folder();
    let ended = call(folder.path(), "run chain:n=9 --engine threads --critical-path a.csv");
    assert!(ended.code == 0 && ended.stdout.contains("observe no path in cycles"), "{ended:?}");
    assert!(read(folder.path(), "a.csv").contains("static,"), "{ended:?}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    refuses("run chain --html a --chrome a", "--html and --chrome both write a");
    refuses("run chain --flows", "--flows draws arrows in --perfetto or --chrome");
    refuses("run chain:n=3000 --dot /dev/null", "3000 tasks are too many to draw");
    for reads_all in
        ["--dot /dev/null", "--critical-path /dev/null", "--policy bmf", "--policy static", "--policy heft"]
    {
        refuses(&format!("run chain:n=5G {reads_all}"), "5000000000 tasks");
    }
    refuses("run chain --html no/such/folder/a.html", "cannot write no/such/folder/a.html");
}

#[test]
fn a_difference_is_told_and_fails_only_beyond_the_limit() {
    let folder = folder();
    assert_eq!(call(folder.path(), "run chain:n=100 --quiet --json a.json --critical-path a.csv").code, 0);
    assert_eq!(
        call(folder.path(), "run chain:n=100 --set worker.pickup=2 --quiet --json b.json --critical-path b.csv").code,
        0
    );
    let same = call(folder.path(), "diff a.json a.json --fail-over 0%");
    assert!(same.code == 0 && same.stdout.starts_with("The makespan is the same"), "{same:?}");
    let slower = call(folder.path(), "diff a.json b.json");
    assert!(slower.code == 0 && slower.stdout.starts_with("Slower by 200 cycles (2.7 %"), "{slower:?}");
    assert!(slower.stdout.contains("worker.pickup from 0 to 2"), "{}", slower.stdout);
    assert!(slower.stdout.contains("200 more cycles of pickup"), "{}", slower.stdout);
    assert_eq!(call(folder.path(), "diff a.json b.json --fail-over 2%").code, 1);
    assert_eq!(call(folder.path(), "diff a.json b.json --fail-over 3").code, 0);
    assert_eq!(call(folder.path(), "diff b.json a.json --fail-over 0").code, 0);
}

#[test]
fn folders_of_results_are_compared_by_name() {
    let folder = folder();
    for (name, settings) in [("old", ""), ("new", " --set worker.pickup=1")] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        for workload in ["chain:n=10", "fanout:n=9"] {
            let kind = workload.split(':').next().expect("a name");
            let command = format!("run {workload}{settings} --quiet --json {name}/{kind}.json");
            assert_eq!(call(folder.path(), &command).code, 0);
        }
    }
    let ended = call(folder.path(), "diff old new --fail-over 50%");
    assert!(ended.code == 0 && ended.stdout.contains("2 compared: 2 slower, 0 faster, 0 the same"), "{ended:?}");
    assert_eq!(call(folder.path(), "diff old new --fail-over 0.1%").code, 1);
    fs::remove_file(folder.path().join("new/chain.json")).expect("it is there");
    let missing = call(folder.path(), "diff old new --fail-over 50%");
    assert!(missing.code == 1 && missing.stdout.contains("only in old: chain.json"), "{missing:?}");
    // A file that is no result is told and passed over; a result that became one is missing.
    fs::write(folder.path().join("old/trace.json"), "{\"traceEvents\":[]}").expect("room on the disk");
    let foreign = call(folder.path(), "diff old new --fail-over 50%");
    assert!(foreign.stdout.contains("1 compared") && foreign.stdout.contains("only in old: chain.json"), "{foreign:?}");
    assert!(foreign.stdout.contains("skipped old/trace.json: not a result of `run --json`"), "{foreign:?}");
    assert!(!foreign.stdout.contains("only in old: trace.json"), "{foreign:?}");
    fs::remove_file(folder.path().join("new/fanout.json")).expect("it is there");
    let empty = call(folder.path(), "diff old new --fail-over 50%");
    assert!(empty.code == 1 && empty.stdout.contains("only in old: fanout.json"), "{empty:?}");
    let nothing = call(folder.path(), "diff old new");
    assert!(nothing.code == 2 && nothing.stderr.contains("have no result file of the same name"), "{nothing:?}");
    assert_eq!(call(folder.path(), "diff new old --fail-over 50%").code, 2);
    refuses("diff src Cargo.toml", "compare two results or two folders");
    refuses("diff Cargo.toml Cargo.toml", "Cargo.toml: not a result of `run --json`");
    refuses("diff a b --fail-over much", "must be a percentage from 0; try 2%");
    refuses("diff a b --fail-over -1%", "must be a percentage from 0; try 2%");
}

#[test]
fn a_result_becomes_a_page() {
    let folder = folder();
    assert_eq!(call(folder.path(), "run chain:n=20 --quiet --json a.json --schedule a.csv").code, 0);
    assert_eq!(call(folder.path(), "report a.json --html plain.html").code, 0);
    assert_eq!(call(folder.path(), "report a.json --schedule a.csv --html full.html").code, 0);
    assert!(!read(folder.path(), "plain.html").contains("id=\"ptosim-bytes\""));
    assert!(read(folder.path(), "full.html").contains("id=\"ptosim-bytes\""));
    fs::write(folder.path().join("bad.csv"), "task,block,worker,submit,ready,start,end\n0,0,99,0,0,0,1\n")
        .expect("room");
    let ended = call(folder.path(), "report a.json --schedule bad.csv --html bad.html");
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (2, "error: bad.csv:2: worker 99: the machine of the result has 72 workers\n")
    );
    assert!(!folder.path().join("bad.html").exists());
}

#[test]
fn a_schedule_of_another_run_is_refused() {
    let folder = folder();
    let run = |workload: &str, options: &str, name: &str| {
        let ended =
            call(folder.path(), &format!("run {workload} --quiet {options} --json {name}.json --schedule {name}.csv"));
        assert!(ended.code < 2, "{ended:?}");
    };
    let report = |result: &str, schedule: &str| {
        call(folder.path(), &format!("report {result}.json --schedule {schedule}.csv --html page.html"))
    };
    run("chain:n=20", "", "a");
    run("chain:n=21", "", "b");
    run("chain:n=20", "--set worker.pickup=2", "c");
    let more = report("a", "b");
    assert_eq!(more.code, 2);
    assert!(more.stderr.contains("b.csv: blocks of all workers: 21 here and 20 in the result"), "{}", more.stderr);
    run("fanout:n=19", "--set workers.vector=9", "e");
    run("fanout:n=19", "--set workers.vector=8", "f");
    let elsewhere = report("e", "f");
    assert!(elsewhere.code == 2 && elsewhere.stderr.contains("f.csv: blocks of worker "), "{elsewhere:?}");
    let later = report("a", "c");
    assert_eq!(later.code, 2);
    let told = "c.csv: the last block ends at cycle 1540 here and at 1500 in the result";
    assert!(later.stderr.contains(told), "{}", later.stderr);
    assert!(!folder.path().join("page.html").exists());
    // MIX blocks have a row for each worker; runs on threads and those that end badly fit too.
    let mix = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}\n\
               {\"op\":\"submit\",\"worker_type\":\"MIX\",\"cycles\":9,\"blocks\":3}\n";
    fs::write(folder.path().join("mix.jsonl"), mix).expect("room on the disk");
    run("mix.jsonl", "--machine a2a3", "m");
    run("bgemm:batch=1,m=2,n=2,k=2", "--engine threads", "t");
    run("bgemm:batch=1,m=2,n=2,k=2", "--policy steal", "s");
    run("stencil:n=100", "--set limits.window=4", "d");
    for name in ["m", "t", "s", "d"] {
        let ended = report(name, name);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{name}");
    }
}

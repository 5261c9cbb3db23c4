//! `sweep` as its users meet it: killed and resumed, in parts and merged, and with wrong specifications.

use assert_cmd::cargo::cargo_bin;
use ptosim::sweep::Spec;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const FILES: [&str; 4] = ["results.jsonl", "results.csv", "summary.txt", "report.html"];

const SPEC: &str = "\
workload = ['bgemm:batch=2,m=4,n=4', 'stencil:n=600']
policy = ['pto', 'lifo']
[set]
'limits.window' = { from = 4, to = 1024, times = 2 }
'workers.cube' = { from = 1, to = 6, step = 1 }
'limits.heap' = ['64KiB', '1MiB']
";

fn folder(spec: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.toml"), spec).expect("room on the disk");
    folder
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(cargo_bin("ptosim"));
    command.current_dir(folder).arg("sweep").args(arguments.split_whitespace());
    command
}

fn call(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().expect("the program starts")
}

/// Runs a sweep that must go well.
fn sweep(folder: &Path, arguments: &str) {
    let output = call(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("it is there")
}

fn same_files(folder: &Path, a: &str, b: &str) {
    for name in FILES {
        assert_eq!(read(&folder.join(a), name), read(&folder.join(b), name), "{name} of {a} and {b}");
    }
}

#[test]
fn a_sweep_killed_ten_times_and_resumed_has_the_same_bytes() {
    let folder = folder(SPEC);
    sweep(folder.path(), "s.toml --out whole");
    let whole = read(&folder.path().join("whole"), "results.jsonl").lines().count();
    assert_eq!(whole, 2 * 2 * 9 * 6 * 2);
    let (mut kills, mut seed) = (0, 11_u64);
    for _ in 0..10 {
        let mut child = command(folder.path(), "s.toml --out killed")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Wait until it has something to lose, then any moment will do.
        let file = folder.path().join("killed/results.jsonl");
        let lines = || fs::read_to_string(&file).map_or(0, |text| text.matches('\n').count());
        let before = lines();
        while lines() <= before && child.try_wait().expect("a child").is_none() {
            sleep(Duration::from_micros(200));
        }
        sleep(Duration::from_micros((seed >> 33) % 12_000));
        child.kill().expect("it may have ended before");
        let ended = child.wait().expect("a child");
        kills += usize::from(!ended.success());
    }
    let left = read(&folder.path().join("killed"), "results.jsonl");
    assert!(kills >= 3, "only {kills} of ten were killed in time, with {} of {whole} results", left.lines().count());
    sweep(folder.path(), "s.toml --out killed");
    same_files(folder.path(), "whole", "killed");
    sweep(folder.path(), "s.toml --out killed");
    same_files(folder.path(), "whole", "killed");
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_says_so_and_goes_on_later() {
    let folder = folder(SPEC);
    sweep(folder.path(), "s.toml --out whole");
    let child = command(folder.path(), "s.toml --out stopped").stdout(Stdio::piped()).spawn().expect("it starts");
    let file = folder.path().join("stopped/results.jsonl");
    while fs::metadata(&file).map_or(0, |file| file.len()) == 0 {
        sleep(Duration::from_micros(200));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let output = child.wait_with_output().expect("a child");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("stopped before the end: ") && told.contains("start it again to go on"), "{told}");
    let stopped = folder.path().join("stopped");
    assert!(read(&stopped, "summary.txt").contains("still missing") && stopped.join("report.html").is_file());
    let found = read(&stopped, "results.jsonl").lines().count();
    assert_eq!(read(&stopped, "results.csv").lines().count(), found + 1);
    sweep(folder.path(), "s.toml --out stopped");
    same_files(folder.path(), "whole", "stopped");
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_sweep_and_keeps_what_was_stored() {
    let folder = folder(SPEC);
    sweep(folder.path(), "s.toml --out whole");
    let script = format!("trap '' XFSZ; ulimit -f 16; exec {} sweep s.toml --out full", cargo_bin("ptosim").display());
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().expect("sh is there");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("cannot write full/results.jsonl: File too large"), "{told}");
    let stored = read(&folder.path().join("full"), "results.jsonl");
    assert!(stored.lines().count() > 10 && stored.ends_with('\n'), "whole lines, and some of them");
    sweep(folder.path(), "s.toml --out full");
    same_files(folder.path(), "whole", "full");
}

#[test]
fn a_torn_line_is_run_again() {
    let folder = folder("workload = 'chain:n=50'\n[set]\n'workers.cube' = [1, 2, 3]\n");
    sweep(folder.path(), "s.toml --out whole");
    let lines = read(&folder.path().join("whole"), "results.jsonl");
    let second = lines.match_indices('\n').nth(1).expect("three lines").0;
    for torn in [second + 1, second + 40, lines.len() - 1] {
        fs::create_dir_all(folder.path().join("torn")).expect("room");
        fs::write(folder.path().join("torn/results.jsonl"), &lines[..torn]).expect("room");
        fs::write(folder.path().join("torn/results.csv"), "torn").expect("room");
        sweep(folder.path(), "s.toml --out torn");
        same_files(folder.path(), "whole", "torn");
    }
}

#[test]
fn shards_merged_equal_the_whole() {
    let folder = folder(SPEC);
    sweep(folder.path(), "s.toml --out whole");
    for part in 1..=3 {
        sweep(folder.path(), &format!("s.toml --shard {part}/3 --out part{part}"));
        assert!(read(&folder.path().join(format!("part{part}")), "summary.txt").contains("runs still missing"));
    }
    let early = call(folder.path(), "merge s.toml part1 part3 --out merged");
    assert_eq!(early.status.code(), Some(1), "a part is missing");
    sweep(folder.path(), "merge s.toml part1 part2 part3 --out merged");
    same_files(folder.path(), "whole", "merged");
}

#[test]
fn a_random_sample_is_the_same_every_time_and_another_with_another_seed() {
    let sample = |seed: u64| {
        let folder = folder(&format!("samples = 20\nseed = {seed}\n{}", SPEC.replace("n=600", "n=60")));
        sweep(folder.path(), "s.toml --out r");
        read(&folder.path().join("r"), "results.csv")
    };
    let first = sample(1);
    assert_eq!(first, sample(1));
    assert_ne!(first, sample(2));
    assert!(first.lines().count() <= 21);
}

#[test]
fn runs_that_go_wrong_are_results_and_a_list_is_what_it_says() {
    let folder = folder(
        "workload = 'bgemm:batch=1,m=2,n=2'\n[generator]\nk = 4\n\
         [[list]]\n'limits.window' = 2\n[[list]]\n'limits.heap' = 64\n[[list]]\n'limits.spare' = 999999\n[[list]]\n'generator.k' = 2\n",
    );
    sweep(folder.path(), "s.toml");
    let csv = read(&folder.path().join("s"), "results.csv");
    for word in ["deadlock", "error", "completed", "asks for", "leaves none to use", "\"bgemm:batch=1,m=2,n=2,k=2\""] {
        assert!(csv.contains(word), "{word}: {csv}");
    }
    assert_eq!(csv.lines().count(), 5);
}

#[test]
fn wrong_specifications_are_refused_with_code_2() {
    let axis = "'scheduler.admit' = { from = 1, to = 1000, step = 1 }\n'scheduler.edge' = { from = 1, to = 1000, step = 1 }\n\
                'scheduler.dispatch' = { from = 1, to = 1000, step = 1 }\n";
    for (spec, arguments, message) in [
        (
            "workload = 'chain'\n[set]\n'limits.windoww' = 4\n",
            "s.toml",
            "s.toml:3: unknown key `limits.windoww`; did you mean `limits.window`?",
        ),
        ("workload = 'chain'\n[set]\n'limits.window' = []\n", "s.toml", "s.toml:3: limits.window has no values"),
        (&format!("workload = 'chain'\n[set]\n{axis}"), "s.toml", "a sweep of 1 000 000 000 runs; --yes starts it"),
        ("workload = 'chain'\n", "s.toml --out /proc/nowhere", "cannot write /proc/nowhere"),
        ("workload = 'chain'\n", "s.toml --out s.toml", "cannot write s.toml"),
        ("workload = 'chainn'\n", "s.toml", "nearest: \"chain\""),
        ("workload = 'chain'\npolicy = 'hef'\n", "s.toml", "did you mean `heft`?"),
        ("workload = 'chain'\n", "s.toml --shard 3/2", "is not a shard"),
        ("workload = 'chain'\n", "merge s.toml nowhere --out m", "no such results"),
        ("workload = 'chain'\n", "missing.toml", "missing.toml: "),
        ("workload = \n", "s.toml", "s.toml:1: "),
        (
            "[[list]]\nworkload = 'chain'\n[[list]]\n'limits.window' = 64\n",
            "s.toml",
            "s.toml:3: point 2 of the list has no workload",
        ),
    ] {
        let folder = folder(spec);
        let output = call(folder.path(), arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{spec}: {told}");
        assert!(told.contains(message), "{message}: {told}");
    }
}

#[test]
fn a_folder_of_another_sweep_is_left_alone() {
    let folder = folder("workload = 'chain:n=20'\n");
    sweep(folder.path(), "s.toml --out r");
    let before = read(&folder.path().join("r"), "results.jsonl");
    fs::write(folder.path().join("s.toml"), "workload = 'chain:n=30'\n").expect("room");
    let output = call(folder.path(), "s.toml --out r");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not part of this sweep"));
    assert_eq!(read(&folder.path().join("r"), "results.jsonl"), before);
    fs::write(folder.path().join("s.toml"), "workload = ['chain:n=20', 'chain:n=30']\n").expect("room");
    sweep(folder.path(), "s.toml --out r");
    assert!(read(&folder.path().join("r"), "results.jsonl").starts_with(before.trim_end()), "what was there is kept");
}

#[test]
fn what_keeps_runs_from_beginning_is_told_once_and_nothing_is_compared() {
    let folder = folder("workload = 'chain:n=10'\npolicy = ['pto', 'lifo']\n[set]\n'limits.window' = [3, 5]\n");
    let told = String::from_utf8(call(folder.path(), "s.toml").stdout).expect("the program writes UTF-8");
    for (window, remedy) in [(3, 4), (5, 8)] {
        let reason = format!("limits.window: window of {window} slots: must be a positive power of 2; try {remedy}");
        assert!(told.contains(&format!("\nerror in 2 runs: {reason}\n")), "{told}");
    }
    assert_eq!((told.matches("must be").count(), told.contains('÷')), (2, false), "{told}");
    assert!(told.starts_with("s: 4 runs: 4 error\n"), "{told}");
    fs::write(folder.path().join("s.toml"), "workload = 'chain'\n[set]\n'limits.window' = [3, 4]\n").expect("room");
    let told = String::from_utf8(call(folder.path(), "s.toml --out one").stdout).expect("the program writes UTF-8");
    assert!(told.contains("limits.window: runs completed with one value only\n"), "{told}");
}

#[test]
fn files_beside_a_workload_decide_its_result_too() {
    let folder = folder("workload = 'topo.json'\n");
    let at = |name: &str| folder.path().join(name);
    let topology = "[{\"taskId\":0,\"funcName\":\"f\",\"successors\":[]}]";
    let profile = "[{\"coreType\":\"AIV\",\"tasks\":[{\"taskId\":0,\"execStart\":0,\"execEnd\":7}]}]";
    let names = "{\"callable_id_to_name\":{}}";
    let convert = ["convert", "chain:n=6", "recording", "--to", "simpler"];
    let converted = Command::new(cargo_bin("ptosim")).current_dir(folder.path()).args(convert).output();
    assert!(converted.expect("the program starts").status.success());
    let records = fs::read_to_string(at("recording/chip_swimlane_records.json")).expect("it was written");
    for (workload, beside, old, new) in [
        ("recording", "recording/chip_swimlane_records.json", records.clone(), records.replace("_hz\":1", "_hz\":2")),
        ("recording/deps.json", "recording/name_map.json", names.into(), names.replace("{}", "{\"0\":\"f\"}")),
        ("topo.json", "tilefwk_prof_data.json", profile.into(), profile.replace('7', "9")),
    ] {
        assert_ne!(old, new, "{beside}");
        fs::write(at("topo.json"), topology).expect("room");
        fs::write(at(beside), old).expect("room");
        fs::write(at("s.toml"), format!("workload = '{workload}'\n")).expect("room");
        let out = format!("out-{}", workload.replace('/', "-"));
        sweep(folder.path(), &format!("s.toml --out {out}"));
        sweep(folder.path(), &format!("s.toml --out {out}"));
        fs::write(at(beside), new).expect("room");
        let output = call(folder.path(), &format!("s.toml --out {out}"));
        assert_eq!(output.status.code(), Some(2), "{beside} changed, so the result is that of another sweep");
        assert!(String::from_utf8_lossy(&output.stderr).contains("not part of this sweep"), "{output:?}");
    }
}

#[test]
fn the_specifications_in_documentation_and_help_are_right() {
    let help = call(Path::new("."), "--help").stdout;
    let help = String::from_utf8(help).expect("the program writes UTF-8");
    for (text, start, end) in [(include_str!("../../docs/sweep.md"), "```toml\n", "```"), (&help, "is run:\n", "\n\n")]
    {
        let specification = text.split(start).nth(1).and_then(|rest| rest.split(end).next()).expect("an example");
        let spec = Spec::parse(specification, "s.toml").unwrap_or_else(|error| panic!("{error}: {specification}"));
        assert_eq!(spec.n_points(), 2 * 2 * 2 * 7 * 6, "workloads, policies, k, windows, clusters");
    }
}

//! What may be typed, and what is said about the rest.

use crate::program::{ptosim, refuses};
use std::fs;

#[test]
fn help_shows_commands_examples_and_exit_codes() {
    let help = ptosim("--help");
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for word in ["run", "machines", "Examples:", "ptosim run bgemm", "Exit codes:", "deadlock"] {
        assert!(help.stdout.contains(word), "{word} is missing in\n{}", help.stdout);
    }
    let help = ptosim("run --help");
    for word in ["--machine", "--set", "--policy", "--engine", "--json", "--schedule", "--quiet", "Examples:"] {
        assert!(help.stdout.contains(word), "{word} is missing in\n{}", help.stdout);
    }
    assert!(ptosim("--version").stdout.starts_with("ptosim "));
}

#[test]
fn no_command_gets_help_and_exit_code_2() {
    let ended = ptosim("");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("Usage: ptosim <COMMAND>"));
}

#[test]
fn a_mistyped_word_is_answered_with_the_nearest_one() {
    refuses("rum bgemm", "similar subcommand exists: 'run'");
    refuses("run bgemm --polcy pto", "a similar argument exists: '--policy'");
    refuses("run bgemm --engine treads", "a similar value exists: 'threads'");
    refuses("run bgemm --machine idael", "did you mean `ideal`?");
    refuses("run bgemm --set limits.windw=64", "unknown key `limits.windw`; did you mean `limits.window`?");
}

#[test]
fn a_bad_setting_names_value_and_remedy() {
    refuses("run bgemm --set limits.window=48", "window of 48 slots: must be a positive power of 2; try 64");
    refuses("run bgemm --set limits.window=-1", "window of -1 slots: must be a positive power of 2; try 1");
    refuses("run bgemm --set limits.window", "must be KEY=VALUE");
    refuses("run bgemm --set limits.heap=lots", "`lots` is not a size; write 1048576, 1024KiB or 1MiB");
    refuses("run bgemm --machine a2a3 --set workers.cube=4", "set workers.clusters=0 too");
    refuses(
        "run bgemm --set workers.cube=0 --set workers.vector=0",
        "no workers: set at least one of workers.clusters",
    );
    refuses("run bgemm --machine nowhere.toml", "nowhere.toml: No such file");
}

#[test]
fn a_bad_machine_file_names_file_line_value_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let path = file.to_str().expect("a plain path").to_owned();
    let cases = [
        (
            "[limits]\nwindow = 1000\n",
            "2: limits.window: window of 1000 slots: must be a positive power of 2; try 1024",
        ),
        ("[limits]\nrings = 65\n", "2: limits.rings = 65: must be from 1 to 64; try 64"),
        ("[workers]\nclusters = 1\nvector = 2\n", "3: workers.vector = 2 beside workers.clusters = 1"),
        ("name = \"x\"\n[scheduler]\nthreads = 0\n", "3: scheduler.threads = 0: virtual time needs at least one"),
    ];
    for (text, message) in cases {
        fs::write(&file, text).expect("room on the disk");
        for command in ["run chain", "compare chain", "size chain"] {
            refuses(&format!("{command} --machine {path}"), &format!("error: {path}:{message}"));
        }
    }
    fs::write(&file, "[limits]\nwindow = 1000\n").expect("room on the disk");
    refuses(&format!("machines {path}"), &format!("{path}:2: limits.window: window of 1000 slots"));
    let setting = format!("run chain --machine {path} --set limits.window=48");
    refuses(&setting, "error: limits.window: window of 48 slots: must be a positive power of 2; try 64");
}

#[test]
fn what_this_build_cannot_do_says_so() {
    refuses("run bgemm --mode deterministic", "--mode deterministic needs host threads; add --engine threads");
    refuses(
        "run bgemm --engine threads --progress-cycles 9",
        "--progress-cycles counts virtual cycles; on threads use --progress-seconds",
    );
    refuses("run bgemm --progress-cycles 0", "invalid value '0' for '--progress-cycles <N>'");
    refuses("run bgemm --progress-seconds 2", "--progress-seconds needs host threads; add --engine threads");
    refuses(
        "run bgemm --engine threads --mode deterministic --progress-seconds 2",
        "--progress-seconds looks at the window of free mode; leave --mode out",
    );
    refuses("run bgemm --engine threads --progress-seconds 0", "must be a time from 0.001 to 1e18; try 2");
    refuses("run bgemm --engine threads --progress-seconds nan", "must be a time from 0.001 to 1e18; try 2");
    refuses("run bgemm --engine threads --executors 0", "must be a number from 1; try 1");
    refuses("device --window-file no/such/window --executors 0", "must be a number from 1; try 1");
    refuses("run bgemm --engine threads --verify", "--verify compares numbers that only --engine execute computes");
    refuses("run lu:tiles=2,tile=8 --engine execute", "kernel `getrf`: no such function; known are add, ");
    refuses("run chain:n=10 --from stg", "--from names the format of a file, and this is a generator; leave it out");
    refuses(
        "run bgemm --engine threads --what-if",
        "--what-if compares virtual cycles, which free threads do not have",
    );
    refuses("run bgemm --engine threads --inject slow", "fault `slow`: must be one of slow_worker");
}

//! What may be typed, and what is said about the rest.

use crate::program::{ptosim, refuses};

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
    refuses("run bgemm --set limits.window=48", "window of 48 slots: must be a power of two; try 64");
    refuses("run bgemm --set limits.window=-1", "window of -1 slots: must be a power of two; try 1");
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
fn what_this_build_cannot_do_says_so() {
    refuses("run bgemm --mode deterministic", "--mode deterministic needs host threads; add --engine threads");
    refuses("run bgemm --engine threads --verify", "--verify compares numbers that only --engine execute computes");
    refuses("run bgemm --engine threads --inject slow", "fault `slow`: must be one of slow_worker");
}

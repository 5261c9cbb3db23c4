//! Machine files and settings, right and wrong; the cases are text.

use super::*;
use crate::id::WorkerType;

/// The message of the first thing that is wrong with these settings on this machine; empty when nothing is.
fn check(machine: &str, settings: &str) -> String {
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let mut machine = Machine::load(machine).expect("a built-in machine");
    let result = machine.apply(&settings).and_then(|()| machine.validate());
    result.err().map_or(String::new(), |error| error.to_string())
}

fn parse_error(text: &str) -> String {
    Machine::parse(text, "my.toml").expect_err("the text is wrong").to_string()
}

#[test]
fn built_in_machines_are_valid_and_have_the_published_sizes() {
    for builtin in BUILTINS {
        let machine = Machine::load(builtin.name).expect("it loads");
        assert_eq!(machine.name, builtin.name);
        machine.validate().expect("it is valid");
        assert!(!builtin.summary().is_empty());
        assert_eq!(machine.notes(), Vec::<String>::new());
    }
    let a2a3 = Machine::load("a2a3").expect("it loads");
    assert_eq!((a2a3.workers.count(WorkerType::Cube), a2a3.workers.count(WorkerType::Vector)), (24, 48));
    assert_eq!((a2a3.limits.rings, a2a3.limits.spare, a2a3.limits.heap, a2a3.limits.deps), (4, 1, 256 << 20, 16384));
    assert_eq!(Machine::load("ideal").expect("it loads"), Machine::default());
}

#[test]
fn published_nanoseconds_are_rounded_to_the_nearest_cycle() {
    for (name, threads, dispatch_ns) in [("a2a3", 3, 140.0), ("a5", 4, 1460.0)] {
        let machine = Machine::load(name).expect("it loads");
        let cycles = |ns: f64| (ns * machine.clock_mhz as f64 / 1000.0).round() as u64;
        assert_eq!(machine.scheduler.threads, threads);
        assert_eq!(machine.scheduler.dispatch, cycles(dispatch_ns));
        assert_eq!(machine.scheduler.complete, cycles(600.0));
        assert_eq!(machine.worker.pickup, cycles(349.0));
        assert_eq!(machine.orchestrator.submit, cycles(580.0));
        assert_eq!(machine.orchestrator.per_edge, cycles(290.0 / 3.0));
    }
}

#[test]
fn settings_reach_their_fields() {
    let mut machine = Machine::default();
    machine
        .apply(&["workers.cube=4", "limits.heap=1MiB", "limits.deps=7", "rules.hazards=full", "name=48", "kernels=a=b"])
        .expect("all are right");
    assert_eq!(machine.workers.cube, 4);
    assert_eq!(machine.limits.heap, 1 << 20);
    assert_eq!(machine.limits.deps, 7);
    assert_eq!(machine.rules.hazards, Hazards::Full);
    assert_eq!(machine.name, "48");
    assert_eq!(machine.kernels, "a=b");
    machine.set("limits.heap", "4096").expect("bytes without a unit");
    assert_eq!(machine.limits.heap, 4096);
}

#[test]
fn quotes_around_a_value_are_those_of_a_machine_file() {
    let settings = r#"rules.hazards="full" limits.heap='1MiB' workers.cube="3""#;
    assert_eq!(check("ideal", settings), "");
    assert!(
        check("ideal", "rules.hazards=\"full").contains("unknown variant `\"full`"),
        "one quote is part of the value"
    );
}

#[test]
fn every_key_can_be_set_to_what_it_is() {
    let machine = Machine::load("a2a3").expect("it loads");
    let tree = serde_json::to_value(&machine).expect("plain data");
    for key in machine.keys() {
        let value = tree.pointer(&format!("/{}", key.replace('.', "/"))).expect("a key has a value");
        let text = value.as_str().map_or(value.to_string(), str::to_owned);
        let mut copy = machine.clone();
        copy.set(&key, &text).expect("its own value");
        assert_eq!(copy, machine, "{key}");
    }
    assert_eq!(machine.keys().len(), 32);
}

#[test]
fn a_window_that_is_no_power_of_two_names_the_next_one() {
    let window = |value: &str| check("ideal", &format!("limits.window={value}"));
    assert_eq!(window("48"), "limits.window: window of 48 slots: must be a positive power of 2; try 64");
    assert_eq!(window("1000"), "limits.window: window of 1000 slots: must be a positive power of 2; try 1024");
    assert_eq!(window("0"), "limits.window: window of 0 slots: must be a positive power of 2; try 1");
    assert_eq!(window("-5"), "limits.window: window of -5 slots: must be a positive power of 2; try 1");
    assert_eq!(
        window("18446744073709551615"),
        "limits.window: window of 18446744073709551615 slots: must be a positive power of 2; try 1073741824"
    );
    assert_eq!(window("1"), "");
}

#[test]
fn limits_that_contradict_each_other_are_refused_with_a_remedy() {
    assert_eq!(check("a2a3", "limits.window=1"), "limits.spare = 1 of a window of 1 slots leaves none to use; try 0");
    assert_eq!(check("ideal", "limits.rings=0"), "limits.rings = 0: must be from 1 to 64; try 1");
    assert_eq!(check("ideal", "limits.rings=65"), "limits.rings = 65: must be from 1 to 64; try 64");
    assert_eq!(
        check("ideal", "limits.rings=3 limits.window=1073741824"),
        "3 rings of 1073741824 slots: must be below 2^31 together; try limits.window=536870912"
    );
    assert_eq!(check("ideal", "limits.ready=0"), "limits.ready = 0: must be at least 1; try 65536");
    assert_eq!(check("ideal", "limits.deps=0 limits.tensors=0 limits.heap=0"), "");
    assert_eq!(check("ideal", "scheduler.threads=0"), "", "threads do without; virtual time refuses it itself");
    assert_eq!(check("ideal", "clock_mhz=0"), "clock_mhz = 0: must be at least 1; try 1850");
    assert_eq!(check("ideal", "clock_mhz=-5"), "clock_mhz = -5: must not be negative; try 1850");
    assert_eq!(check("ideal", "workers.cube=4294967296"), "workers.cube = 4294967296: must be below 2^32");
    assert_eq!(
        check("ideal", "scheduler.threads=65537"),
        "scheduler.threads = 65537: must be at most 65536; try 65536"
    );
}

#[test]
fn clusters_replace_cubes_and_vectors_but_not_the_other_way_round() {
    assert_eq!(check("ideal", "workers.clusters=8"), "");
    assert_eq!(check("a2a3", "workers.cube=4 workers.vector=8 workers.clusters=0"), "");
    let contradiction = "workers.cube = 4 beside workers.clusters = 24: clusters bring their own cube and vector \
                         workers; set workers.clusters=0 too, or leave workers.cube out";
    assert_eq!(check("a2a3", "workers.cube=4"), contradiction);
    let both_orders = ["workers.cube=4 workers.clusters=24", "workers.clusters=24 workers.cube=4"];
    for order in both_orders {
        assert_eq!(check("ideal", order), contradiction);
    }
    let mut machine = Machine::default();
    machine.set("workers.clusters", "8").expect("it just works");
    assert_eq!(machine.workers, Workers { clusters: 8, ..Workers::default() });
}

#[test]
fn some_worker_is_needed_and_hundreds_are_fine() {
    assert_eq!(
        check("a5", "workers.clusters=0"),
        "no workers: set at least one of workers.clusters, workers.cube, workers.vector, workers.ai_cpu, \
         workers.accelerator, workers.any"
    );
    assert_eq!(check("ideal", "workers.cube=500 workers.vector=1000"), "");
    assert_eq!(
        check("ideal", "workers.any=4294967295"),
        "4294967367 workers: must be at most 1048576; lower workers.any"
    );
}

#[test]
fn a_wrong_setting_names_key_value_and_remedy() {
    assert_eq!(check("ideal", "limits.windw=64"), "unknown key `limits.windw`; did you mean `limits.window`?");
    assert_eq!(check("ideal", "heap=64"), "unknown key `heap`; did you mean `limits.heap`?");
    assert!(check("ideal", "qqq=1").starts_with("unknown key `qqq`; the keys are clock_mhz, kernels, limits.deps, "));
    assert!(check("ideal", "limits=1").starts_with("unknown key `limits`"));
    assert_eq!(check("ideal", "limits.window=many"), "limits.window = many: must be a whole number");
    assert_eq!(check("ideal", "scheduler.admit=-1"), "scheduler.admit = -1: must not be negative; try 0");
    assert_eq!(check("ideal", "limits.heap=1MB"), "limits.heap: `1MB`: unknown unit `MB`; use B, KiB, MiB, GiB or TiB");
    assert_eq!(
        check("ideal", "limits.window"),
        "setting `limits.window`: must be KEY=VALUE, for example limits.window=1024"
    );
    assert_eq!(
        check("ideal", "rules.hazards=war"),
        "rules.hazards: unknown variant `war`, expected one of `raw`, `raw_waw`, `full`"
    );
}

#[test]
fn a_machine_file_may_leave_things_out() {
    let machine = Machine::parse("[workers]\nany = 2\n[limits]\nheap = 0x40\nwindow = 1_024\n", "dir/tiny.toml");
    let machine = machine.expect("it is right");
    assert_eq!(machine.name, "tiny");
    assert_eq!(machine.workers, Workers { any: 2, ..Workers::default() });
    assert_eq!((machine.limits.heap, machine.limits.window, machine.limits.deps), (64, 1024, 65536));
    assert_eq!(Machine::parse("", "ideal.toml").expect("an empty file"), Machine::default());
}

#[test]
fn a_wrong_machine_file_names_its_line() {
    assert_eq!(
        parse_error("name = \"x\"\n[limits]\nwindo = 4\n"),
        "my.toml:3: unknown key `limits.windo`; did you mean `limits.window`?"
    );
    assert_eq!(
        parse_error("[limit]\nwindow = 4\n"),
        "my.toml:2: unknown key `limit.window`; did you mean `limits.window`?"
    );
    assert_eq!(
        parse_error("\n[limits]\nwindow = 4.5\n"),
        "my.toml:3: limits.window: must be a whole number or a text, not float"
    );
    assert_eq!(parse_error("[limits]\nwindow = \"4\"\n"), "my.toml:2: limits.window = 4: must be a whole number");
    assert_eq!(
        parse_error("[limits]\nheap = \"4X\"\n"),
        "my.toml:2: limits.heap: `4X`: unknown unit `X`; use B, KiB, MiB, GiB or TiB"
    );
    assert_eq!(parse_error("name = 4\n"), "my.toml:1: name = 4: must be a text in quotes");
    assert_eq!(parse_error("limits = 4\n").split(';').next(), Some("my.toml:1: unknown key `limits`"));
    assert!(parse_error("[limits]\nwindow 4\n").starts_with("my.toml:2: "));
}

/// The message about a machine file that can be read but not used, after these settings.
fn refusal(text: &str, settings: &str) -> String {
    let mut machine = Machine::parse(text, "my.toml").expect("it can be read");
    let settings: Vec<&str> = settings.split_whitespace().collect();
    machine.apply(&settings).expect("they are right");
    machine.validate().expect_err("it cannot be used").to_string()
}

#[test]
fn values_of_a_machine_file_that_cannot_be_used_name_their_line() {
    let begins = |text: &str, begin: &str| {
        let told = refusal(text, "");
        assert!(told.starts_with(begin), "{text}: {told}");
    };
    for (window, next) in [(0, 1), (3, 4), (1000, 1024)] {
        let told = refusal(&format!("name = \"x\"\n\n[limits]\nheap = 64\nwindow = {window}\n"), "");
        let message = format!("limits.window: window of {window} slots: must be a positive power of 2; try {next}");
        assert_eq!(told, format!("my.toml:5: {message}"));
    }
    assert!(parse_error("[limits]\nwindow = -4\n").starts_with("my.toml:2: limits.window: window of -4 slots: "));
    begins(
        "[limits]\nwindow = 4\nspare = 4\n",
        "my.toml:3: limits.spare = 4 of a window of 4 slots leaves none to use; try 3",
    );
    begins("[limits]\n\nrings = 65\n", "my.toml:3: limits.rings = 65: ");
    begins("limits = { rings = 0 }\n", "my.toml:1: limits.rings = 0: ");
    begins("\nlimits.ready = 0\n", "my.toml:2: limits.ready = 0: must be at least 1; try 65536");
    begins("clock_mhz = 0", "my.toml:1: clock_mhz = 0: ");
    begins("[limits]\nheap = \"8388608TiB\"", "my.toml:2: limits.heap = ");
    begins("[limits]\nwindow = 16\n[rules]\nadaptive_window = 32", "my.toml:4: rules.adaptive_window = 32: ");
    begins("[limits]\nwindow = 1073741824\nrings = 2", "my.toml:2: 2 rings of 1073741824 slots: ");
    begins("[workers]\nclusters = 2\nvector = 4", "my.toml:3: workers.vector = 4 beside workers.clusters = 2: ");
    begins("[workers]\nany = 2000000", "my.toml:2: 2000000 workers: must be at most 1048576; lower workers.any");
    begins("\n[workers]\n", "my.toml:2: no workers: ");
    begins("[workers]\ncube = 0\n", "my.toml:2: no workers: ");
}

#[test]
fn what_was_set_later_is_no_mistake_of_the_file() {
    let text = "[limits]\nwindow = 3\nspare = 1\n";
    let told = refusal(text, "limits.window=48");
    assert_eq!(told, "limits.window: window of 48 slots: must be a positive power of 2; try 64");
    let told = refusal(text, "limits.window=1");
    assert_eq!(told, "limits.spare = 1 of a window of 1 slots leaves none to use; try 0");
    assert!(refusal(text, "limits.rings=2").starts_with("my.toml:2: limits.window: window of 3 slots: "));
}

#[test]
fn an_unknown_machine_names_the_nearest_and_all() {
    let error = Machine::load("idael").expect_err("there is none").to_string();
    assert_eq!(
        error,
        "no machine and no file is called `idael`; did you mean `ideal`? (built in: ideal, reference, a2a3, a5)"
    );
    let error = Machine::load("nowhere/x.toml").expect_err("there is none").to_string();
    assert!(error.starts_with("nowhere/x.toml: No such file"), "{error}");
}

#[test]
fn a_ready_queue_smaller_than_the_window_is_worth_a_note() {
    let mut machine = Machine::default();
    machine.set("limits.ready", "16").expect("it is right");
    machine.validate().expect("a note, not an error");
    assert_eq!(
        machine.notes(),
        ["ready queues of 16 entries are smaller than the 16384 slots of the window and may fill up"]
    );
}

//! Two processes and one window: `device`, `submit`, `inspect`, also when one of them is killed or the file is spoilt.

use crate::program::{Ended, ptosim};
use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts the program.
fn start(arguments: &str) -> Child {
    let mut command = Command::new(cargo_bin!("ptosim"));
    let command = command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Starts a device and waits until its window is there.
fn start_device(window: &Path, more: &str) -> Child {
    let device = start(&format!("device --window-file {} {more}", window.display()));
    let deadline = Instant::now() + Duration::from_secs(30);
    while ptosim(&format!("inspect {}", window.display())).code != 0 {
        assert!(Instant::now() < deadline, "the device makes its window");
        std::thread::yield_now();
    }
    device
}

/// Waits for its end.
fn end(mut child: Child) -> Ended {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("UTF-8");
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("UTF-8");
    let code = child.wait().expect("an exit code").code().unwrap_or(-1);
    Ended { code, stdout, stderr }
}

#[test]
fn a_device_runs_what_another_process_submits() {
    let folder = tempfile::tempdir().expect("a folder");
    for threads in [0, 1] {
        let window = folder.path().join(format!("window{threads}"));
        let settings = format!("--set limits.window=16 --set scheduler.threads={threads}");
        let device = start_device(&window, &settings);
        let submitted = ptosim(&format!("submit --window-file {} bgemm:batch=1,scope=step", window.display()));
        assert_eq!(submitted.code, 0, "{submitted:?}");
        assert!(submitted.stdout.contains("submitted 2048 tasks"), "{submitted:?}");
        let device = end(device);
        assert_eq!((device.code, device.stdout.as_str()), (0, "ran 2048 tasks\n"), "{device:?}");
        let seen = ptosim(&format!("inspect {}", window.display()));
        assert!(seen.stdout.contains("device: done") && seen.stdout.contains("2048"), "{seen:?}");
    }
}

#[test]
fn a_submitter_tells_that_a_device_follows_no_timed_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let (window, trace) = (folder.path().join("window"), folder.path().join("trace.jsonl"));
    let header = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"stopped"}"#;
    let control = r#"{"op":"control","at":5,"cmd":"shutdown"}"#;
    std::fs::write(&trace, format!("{header}\n{control}\n{{\"op\":\"submit\",\"cycles\":5}}\n")).expect("a file");
    let device = start_device(&window, "");
    let submitted = ptosim(&format!("submit --window-file {} {}", window.display(), trace.display()));
    assert!(submitted.code == 0 && submitted.stdout.contains("1 timed command of the program had no"), "{submitted:?}");
    assert_eq!(end(device).code, 0);
}

#[test]
fn a_scope_that_fills_the_window_is_a_deadlock_for_two_processes_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--set limits.window=8");
    let submitted = ptosim(&format!("submit --window-file {} bgemm:scope=tile", window.display()));
    assert_eq!(submitted.code, 1, "{submitted:?}");
    assert!(submitted.stderr.contains("deadlock: the window is full, current 8"), "{submitted:?}");
    assert_eq!(end(device).code, 1);
}

/// As much as other engines tell: who waits, who keeps what is full, and which size would do.
#[test]
fn a_deadlock_of_two_processes_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let (window, trace) = (folder.path().join("window"), folder.path().join("t.jsonl"));
    let header = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"s"}"#;
    let task = |name: &str| format!(r#"{{"op":"submit","name":"{name}","cycles":1}}"#);
    let lines = [header, r#"{"op":"scope_begin"}"#, &task("a"), &task("b"), &task("c"), r#"{"op":"scope_end"}"#];
    fs::write(&trace, lines.join("\n")).expect("a trace");
    let device = start_device(&window, "--set limits.window=2");
    let submitted = ptosim(&format!("submit --window-file {} {}", window.display(), trace.display()));
    assert_eq!((submitted.code, end(device).code), (1, 1), "{submitted:?}");
    for told in [
        "t.jsonl:5: task 2 `c`: deadlock: the window is full, current 2, last_task_alive 0, size 2",
        "Task 2 (c, line 5) asks for 1 slot, but 2 of 2 are in use; 2 tasks have entered this ring and 0 are retired.",
        "The oldest task alive there is 0 (a, line 3), which is COMPLETED and cannot be retired: the scope opened in line 2, \
         which holds 2 tasks, is still open.",
        "The run finishes with --set limits.window=4; a smaller one does not do",
    ] {
        assert!(submitted.stderr.contains(told), "{told}: {submitted:?}");
    }
    // What is wrong behind the deadlock comes first, as for every run.
    fs::write(&trace, [&lines[..5], &["{}"]].concat().join("\n")).expect("a trace");
    let window = folder.path().join("another");
    let device = start_device(&window, "--set limits.window=2");
    let submitted = ptosim(&format!("submit --window-file {} {}", window.display(), trace.display()));
    assert_eq!((submitted.code, end(device).code), (2, 1), "{submitted:?}");
    assert!(submitted.stderr.contains("t.jsonl:6: "), "{submitted:?}");
}

#[test]
fn a_second_submitter_is_refused_and_a_killed_one_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    // One worker at 1 MHz: this takes minutes.
    let slow = "--spin --set limits.window=64 --set clock_mhz=1 --set workers.vector=1 --set workers.cube=1";
    let device = start_device(&window, slow);
    let mut first = start(&format!("submit --window-file {} chain:n=10M", window.display()));
    while !ptosim(&format!("inspect {}", window.display())).stdout.contains("submitter: working") {
        std::thread::yield_now();
    }
    let second = ptosim(&format!("submit --window-file {} chain:n=3", window.display()));
    assert_eq!(second.code, 2, "{second:?}");
    assert!(second.stderr.contains("has a submitter already"), "{second:?}");
    first.kill().expect("it runs");
    let killed = Instant::now();
    let device = end(device);
    assert_eq!(device.code, 1, "{device:?}");
    assert!(device.stderr.contains("the submitter") && device.stderr.contains("died"), "{device:?}");
    assert!(
        killed.elapsed() < Duration::from_secs(10),
        "a loaded host may take longer than a second, but not this long"
    );
    first.wait().expect("it was killed");
    let seen = ptosim(&format!("inspect {}", window.display()));
    assert!(seen.stdout.contains("submitter: dead") && seen.stdout.contains("oldest task alive"), "{seen:?}");
}

#[test]
fn a_killed_device_is_noticed_and_its_window_can_be_inspected() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let slow = "--spin --set limits.window=64 --set clock_mhz=1 --set workers.vector=1 --set workers.cube=1";
    let mut device = start_device(&window, slow);
    let submitter = start(&format!("submit --window-file {} chain:n=10M", window.display()));
    while !ptosim(&format!("inspect {}", window.display())).stdout.contains("submitter: working") {
        std::thread::yield_now();
    }
    device.kill().expect("it runs");
    let submitter = end(submitter);
    assert_eq!(submitter.code, 1, "{submitter:?}");
    assert!(submitter.stderr.contains("the device") && submitter.stderr.contains("died"), "{submitter:?}");
    device.wait().expect("it was killed");
    let seen = ptosim(&format!("inspect {}", window.display()));
    assert!(seen.code == 0 && seen.stdout.contains("device: dead"), "{seen:?}");
}

#[test]
fn spoilt_files_are_told_and_never_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--set limits.window=8 --set limits.deps=64");
    assert_eq!(ptosim(&format!("submit --window-file {} chain:n=20", window.display())).code, 0);
    assert_eq!(end(device).code, 0);
    let bytes = fs::read(&window).expect("the window");
    let spoilt = folder.path().join("spoilt");
    let check = |content: &[u8], message: &str| {
        fs::write(&spoilt, content).expect("a file");
        let ended = ptosim(&format!("inspect {}", spoilt.display()));
        assert!(ended.code == 2 && ended.stderr.contains(message), "{message}: {ended:?}");
    };
    check(b"short", "are no window");
    check(&bytes[..bytes.len() - 1], "truncated");
    check(&[0; 8192], "is no window");
    let with = |at: usize, value: u64| {
        let mut content = bytes.clone();
        content[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
        content
    };
    check(&with(1, 1), "window of version 1");
    check(&with(2, 64), "another build");
    check(&with(5, 12), "corrupt");
    check(&with(5, 1 << 40), "corrupt");
    check(&with(6, u64::MAX), "corrupt");
    check(&with(7, u64::MAX), "corrupt");
    check(&with(12, 4096), "corrupt");
    // Whatever the numbers behind the header say, nobody looks outside the file.
    for step in [61, 127, 1021] {
        let mut content = bytes.clone();
        content.iter_mut().skip(4096).step_by(step).for_each(|byte| *byte ^= 0xa5);
        fs::write(&spoilt, &content).expect("a file");
        let ended = ptosim(&format!("inspect {}", spoilt.display()));
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let ended = ptosim(&format!("submit --window-file {} chain", window.display()));
    assert!(ended.code == 2 && ended.stderr.contains("no device works on this window"), "{ended:?}");
}

/// Rings, queue, slots and entries are overwritten while a device waits for its submitter.
#[test]
fn a_window_spoilt_in_use_ends_both_sides() {
    for byte in [0x01, 0x7f, 0xff] {
        let folder = tempfile::tempdir().expect("a folder");
        let window = folder.path().join("window");
        let device = start_device(&window, "--set limits.window=8 --set limits.deps=64");
        let size = fs::metadata(&window).expect("the window").len() as usize;
        let mut file = fs::OpenOptions::new().write(true).open(&window).expect("the window");
        file.seek(SeekFrom::Start(4096)).expect("a place behind the header");
        file.write_all(&vec![byte; size - 4096]).expect("a file");
        let submitter = ptosim(&format!("submit --window-file {} random:n=1000", window.display()));
        let device = end(device);
        assert_eq!(device.code, 1, "{byte:#x}: {device:?}");
        // A device that was quick to see it is gone before the submitter comes.
        let is_alone = submitter.code == 2 && submitter.stderr.contains("no device works on this window");
        assert!(submitter.code == 1 || is_alone, "{byte:#x}: {submitter:?}");
        for side in [submitter, device] {
            assert!(!side.stderr.contains("panicked at"), "{byte:#x}: {side:?}");
        }
    }
}

/// A trace of two tasks; the first keeps its worker busy for this many cycles.
fn long_task(folder: &Path, cycles: u64) -> String {
    let path = folder.join("long.jsonl");
    let header = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"long"}"#;
    let first = format!(r#"{{"op":"submit","kernel":"long","cycles":{cycles}}}"#);
    let second = r#"{"op":"submit","kernel":"short","cycles":1,"deps":[0]}"#;
    fs::write(&path, [header, &first, second].join("\n")).expect("a trace");
    path.display().to_string()
}

/// Waits until everything is submitted.
fn wait_for_submitted(window: &Path) {
    while !ptosim(&format!("inspect {}", window.display())).stdout.contains("submitter: done") {
        std::thread::yield_now();
    }
}

/// The number of a kernel, 56 bytes into each slot of 128, is overwritten while the task before it runs.
#[test]
fn a_kernel_that_does_not_exist_costs_a_device_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--spin --set limits.window=8 --set limits.deps=64");
    let trace = long_task(folder.path(), 500_000_000);
    let submitter = start(&format!("submit --window-file {} {trace}", window.display()));
    wait_for_submitted(&window);
    let size = fs::metadata(&window).expect("the window").len();
    let mut file = fs::OpenOptions::new().write(true).open(&window).expect("the window");
    for place in (4096 + 56..size - 4).step_by(128) {
        file.seek(SeekFrom::Start(place)).expect("a place in the file");
        file.write_all(&0x7fff_fff0_u32.to_le_bytes()).expect("a file");
    }
    let (submitter, device) = (end(submitter), end(device));
    assert_eq!((submitter.code, device.code), (0, 0), "{submitter:?} {device:?}");
}

/// Where in the file of a window the cycles of a task stand.
fn place_of_cycles(window: &Path, cycles: u64) -> Option<usize> {
    let bytes = fs::read(window).expect("the window");
    (4096..bytes.len() - 8).step_by(8).find(|&place| bytes[place..place + 8] == cycles.to_le_bytes())
}

/// Spoils a window.
fn overwrite(window: &Path, place: usize, number: u32) {
    let mut file = fs::OpenOptions::new().write(true).open(window).expect("the window");
    file.seek(SeekFrom::Start(place as u64)).expect("a place in the file");
    file.write_all(&number.to_le_bytes()).expect("a file");
}

/// The number of producers of a task, 16 bytes before its cycles, is overwritten while it runs: the device must not look for 2^32.
#[test]
fn a_count_of_producers_that_cannot_be_ends_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--spin --set limits.window=8 --set limits.deps=64");
    let cycles = 2_000_000_007_u64;
    let trace = long_task(folder.path(), cycles);
    let submitter = start(&format!("submit --window-file {} {trace}", window.display()));
    wait_for_submitted(&window);
    overwrite(&window, place_of_cycles(&window, cycles).expect("the task runs") - 16, u32::MAX);
    let (submitter, device) = (end(submitter), end(device));
    assert_eq!((submitter.code, device.code), (1, 1), "{submitter:?} {device:?}");
    assert!(device.stderr.contains("a task is linked to more producers than there are entries"), "{device:?}");
    assert!(!device.stderr.contains("panicked at"), "{device:?}");
}

/// The type of the second task, 12 bytes behind its cycles, is overwritten while the first one runs: a thread of the device finds a
/// task that no worker of the machine can run.
#[test]
fn what_stops_another_thread_of_the_device_is_told_as_a_spoilt_window_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--spin --set limits.window=8 --set limits.deps=64");
    let cycles = 2_000_000_007_u64;
    let trace = long_task(folder.path(), cycles);
    let submitter = start(&format!("submit --window-file {} {trace}", window.display()));
    wait_for_submitted(&window);
    overwrite(&window, place_of_cycles(&window, cycles).expect("the first task runs") + 128 + 12, 3 << 8);
    let (submitter, device) = (end(submitter), end(device));
    assert_eq!((submitter.code, device.code), (1, 1), "{submitter:?} {device:?}");
    let told = "window: corrupt, or a fault of the runtime: panicked: a task without workers";
    assert!(device.stderr.contains(told), "{device:?}");
    assert!(submitter.stderr.contains("window: the device ended with an error"), "{submitter:?}");
}

/// The references to a task, 24 bytes before its cycles, are made one more while it runs, so that it never leaves a window of one slot.
#[test]
fn a_task_that_nothing_keeps_is_no_deadlock_but_a_spoilt_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--spin --set limits.window=1 --set limits.deps=64");
    let cycles = 2_000_000_007_u64;
    let trace = long_task(folder.path(), cycles);
    let submitter = start(&format!("submit --window-file {} {trace}", window.display()));
    let deadline = Instant::now() + Duration::from_secs(30);
    let references = loop {
        assert!(Instant::now() < deadline, "the task runs");
        if let Some(place) = place_of_cycles(&window, cycles)
            && fs::read(&window).expect("the window")[place - 24] == 1
        {
            break place - 24;
        }
    };
    overwrite(&window, references, 2);
    let (submitter, device) = (end(submitter), end(device));
    assert_eq!((submitter.code, device.code), (1, 1), "{submitter:?} {device:?}");
    let told = "window: corrupt, or a fault of the runtime: nothing keeps task 0, which is COMPLETED";
    assert!(submitter.stderr.contains(told), "{submitter:?}");
}

#[test]
fn a_device_whose_kernels_never_end_notices_a_killed_submitter() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = folder.path().join("window");
    let device = start_device(&window, "--spin --set limits.window=8");
    let trace = long_task(folder.path(), u64::MAX / 2);
    let mut submitter = start(&format!("submit --window-file {} {trace}", window.display()));
    wait_for_submitted(&window);
    submitter.kill().expect("it lives");
    submitter.wait().expect("it is dead");
    let device = end(device);
    assert_eq!(device.code, 1, "{device:?}");
    assert!(device.stderr.contains("the submitter") && device.stderr.contains("died"), "{device:?}");
}

#[test]
fn a_device_does_not_replace_what_is_no_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("letter");
    fs::write(&file, "dear reader").expect("a file");
    let refused = ptosim(&format!("device --window-file {}", file.display()));
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("is a file but no window; remove it or take another name"), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).expect("still there"), "dear reader");
    // Nor what begins with zeros, a link to something else, or what is no file at all.
    fs::write(&file, [&[0; 8][..], b"an image"].concat()).expect("a file");
    let empty = folder.path().join("empty");
    fs::write(&empty, "").expect("a file");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&empty, &link).expect("a link");
    for (path, why) in [(&file, "is a file but no window"), (&link, "is no regular file")] {
        let refused = ptosim(&format!("device --window-file {}", path.display()));
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    assert_eq!(fs::read(&file).expect("still there").len(), 16);
    assert!(link.is_symlink() && fs::read(&empty).expect("still there").is_empty());
}

//! Places that cannot be written, as far as they show without a run.

use crate::program::refuses;
use assert_cmd::cargo::cargo_bin;
use std::fs::{self, File};
use std::process::{Command, Stdio};

#[test]
fn one_file_cannot_take_two_outputs() {
    refuses("run bgemm --json out --schedule out", "--json and --schedule both write out; give them different files");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
    let output = Command::new(cargo_bin("ptosim")).arg("machines").stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("error: cannot write standard output: No space left"), "{message}");
}

#[test]
fn a_reader_that_has_gone_is_no_reason_to_complain() {
    let mut command = Command::new(cargo_bin("ptosim"));
    let mut child = command
        .args(["machines", "a2a3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_ends_the_run_and_all_old_files_stay() {
    for option in ["--html", "--chrome", "--perfetto", "--critical-path", "--json"] {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("schedule.csv");
        fs::write(&kept, "old").expect("room on the disk");
        let mut command = Command::new(cargo_bin("ptosim"));
        command.args(["run", "random:n=20k,fanin=3", "--quiet", option, "/dev/full", "--schedule"]).arg(&kept);
        let output = command.output().expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{option}: {message}");
        assert!(message.starts_with("error: cannot write /dev/full: No space left"), "{option}: {message}");
        assert_eq!(fs::read_to_string(&kept).expect("it is there"), "old", "{option}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{option}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_open_file_is_written_to_and_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("all.txt");
    std::os::unix::fs::symlink("/dev/stdout", folder.path().join("link")).expect("links work");
    let schedule = "task,block,worker,submit,ready,start,end\n";
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"] {
        let file = File::create(&place).expect("room on the disk");
        let mut command = Command::new(cargo_bin("ptosim"));
        command.current_dir(&folder).args(["run", "chain:n=2", "--schedule", path]).stdout(file);
        assert!(command.status().expect("the program starts").success(), "{path}");
        let text = fs::read_to_string(&place).expect("it is there");
        assert!(text.starts_with(schedule), "{path}: {text}");
        assert!(text.contains("completed in"), "the report comes behind it, {path}: {text}");
    }
    let file = File::create(&place).expect("room on the disk");
    let mut command = Command::new(cargo_bin("ptosim"));
    command.args(["run", "chain:n=2", "--quiet", "--progress-cycles", "9", "--schedule", "/dev/stderr"]).stderr(file);
    assert!(command.status().expect("the program starts").success());
    let text = fs::read_to_string(&place).expect("it is there");
    assert!(text.contains(schedule) && text.contains("cycle 9: "), "{text}");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2, "nothing else is left behind");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_with_a_name_is_written_directly() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("every Linux has it").success());
    let mut command = Command::new(cargo_bin("ptosim"));
    command.args(["run", "chain:n=2", "--quiet", "--schedule"]).arg(&pipe);
    let mut child = command.spawn().expect("the program starts");
    let text = fs::read_to_string(&pipe).expect("the program writes");
    assert!(child.wait().expect("the program ends").success());
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn all_reports_at_once_are_the_same_as_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--html", "--chrome", "--perfetto", "--critical-path", "--schedule"];
    let file = |way: &str, option: &str| folder.path().join(format!("{way}{option}"));
    let run = |way: &str, options: &[&str]| {
        let mut command = Command::new(cargo_bin("ptosim"));
        command.args(["run", "random:n=20k,fanin=3", "--machine", "a2a3", "--quiet"]);
        for option in options {
            command.arg(option).arg(file(way, option));
        }
        assert!(command.status().expect("the program starts").success());
    };
    run("all", &options);
    for option in options {
        run("one", &[option]);
        let [all, one] = ["all", "one"].map(|way| fs::read(file(way, option)).expect("it was written"));
        assert!(all == one, "{option} differs");
    }
}

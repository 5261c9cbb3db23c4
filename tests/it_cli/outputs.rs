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

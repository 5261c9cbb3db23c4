//! Places that cannot be written, as far as they show without a run.

use crate::program::refuses;
use assert_cmd::cargo::cargo_bin;
use std::fs::File;
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

//! One call of the program, and what came of it.

use assert_cmd::cargo::cargo_bin_cmd;
use std::path::Path;

/// What a call left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Calls the program with arguments separated by blanks.
pub fn ptosim(arguments: &str) -> Ended {
    in_folder(Path::new("."), arguments, "")
}

/// The same in another folder, with something on standard input.
pub fn in_folder(folder: &Path, arguments: &str, stdin: &str) -> Ended {
    let mut command = cargo_bin_cmd!("ptosim");
    let command = command.current_dir(folder).args(arguments.split_whitespace()).write_stdin(stdin);
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ended { code: output.status.code().expect("no signal"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Asserts that a call is refused with exit code 2, this message and nothing on standard output.
pub fn refuses(arguments: &str, message: &str) {
    let ended = ptosim(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments}: {ended:?}");
    assert!(ended.stderr.contains(message), "{arguments}: {}", ended.stderr);
}

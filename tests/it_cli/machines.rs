//! `ptosim machines`.

use crate::program::{in_folder, ptosim, refuses};
use std::fs;

#[test]
fn all_built_in_machines_are_listed_with_their_sizes() {
    let ended = ptosim("machines");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let row = |name: &str| {
        let line = ended.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("ideal"), "ideal 1850 24 48 16384 1 64 MiB 65536 1 0 0 0 0");
    assert_eq!(row("reference"), "reference 1850 24 48 16384 1 64 MiB 65536 1 0 0 0 0");
    assert_eq!(row("a2a3"), "a2a3 1850 24 48 16384 4 256 MiB 16384 3 1073 259 1110 646");
    assert_eq!(row("a5"), "a5 1650 36 72 16384 4 256 MiB 16384 4 957 2409 990 576");
}

#[test]
fn a_printed_machine_is_a_machine_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = ptosim("machines a2a3").stdout;
    fs::write(folder.path().join("mine.toml"), &printed).expect("room on the disk");
    let again = in_folder(folder.path(), "machines mine.toml", "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        again.stdout.contains("dispatch = 259\n") && again.stdout.contains("heap = 268435456\n"),
        "{}",
        again.stdout
    );
}

#[test]
fn memory_is_reported_part_by_part() {
    let ended = ptosim("machines reference --memory");
    assert_eq!(
        ended.stdout,
        "reference: 6.81 MiB and a heap of 64 MiB a ring\n                  \
         entries  bytes each      bytes\n\
         task descriptors   16 384         340  5 570 560\n\
         dependency pool    65 536           8    524 288\n\
         ready queues      262 144           4  1 048 576\n\
         total                                  7 143 424\n"
    );
    assert_eq!(ptosim("machines --memory").stdout.matches("total").count(), 4);
}

#[test]
fn a_wrong_machine_file_names_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.toml");
    fs::write(&path, "name = \"bad\"\n[limits]\nwindow = 16\nheep = 4\n").expect("room on the disk");
    refuses(
        &format!("machines {}", path.display()),
        "bad.toml:4: unknown key `limits.heep`; did you mean `limits.heap`?",
    );
    refuses(&format!("run bgemm --machine {}", path.display()), "bad.toml:4: unknown key");
    refuses("machines a2a", "did you mean `a2a3`?");
}

//! `ptosim convert` and the choices about formats.

use crate::program::{in_folder, refuses};
use std::fs;

#[test]
fn what_cannot_be_written_is_refused_with_a_remedy() {
    refuses("convert chain:n=5 - --to simpler", "it has several files; name a folder instead of -");
    refuses("convert chain:n=5 x.unknown", "its ending tells no format; name it with --to");
    refuses("convert chain:n=5 x.json --to bogus", "--to bogus: unknown format; known are native");
    refuses("stat chain:n=5 --edges files", "chain:n=5: --edges is for traces of other programs");
    refuses("stat .", "\".\" is a folder without deps.json; name a file in it");
}

#[test]
fn what_is_wrong_leaves_the_output_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("bad.stg"), "2\n0 1 0\n1 2 1 9\n").expect("a file");
    fs::write(folder.path().join("out.jsonl"), "old").expect("a file");
    let ended = in_folder(folder.path(), "convert bad.stg out.jsonl", "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("bad.stg:3: \"t1\" names task 9, which the file does not have"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("out.jsonl")).expect("the old file"), "old");
}

#[test]
fn a_file_of_no_known_format_is_told_how_to_name_one() {
    let ended = in_folder(std::path::Path::new("."), "stat -", "id,name\n0,a\n");
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("<stdin>:1: no format begins like this; name it with --from"), "{}", ended.stderr);
}

#[test]
fn losses_and_large_pictures_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = in_folder(folder.path(), "convert bgemm:batch=8,m=4,n=4,k=9 big.dot", "");
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = |words: &str| assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    told("lost: ");
    told("tasks; Graphviz draws up to about 2000 in good time");
}

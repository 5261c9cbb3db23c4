//! `ptosim gen` and `ptosim kernels`.

use crate::program::{in_folder, ptosim, refuses};
use std::fs;
use std::path::Path;

/// The JSON result of a run without the name of its workload.
fn result(folder: &Path, workload: &str) -> String {
    let ended = in_folder(folder, &format!("run {workload} --json -"), "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.lines().filter(|line| !line.starts_with("  \"workload\"")).collect()
}

#[test]
fn a_written_workload_runs_like_the_generated_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, file) in [("bgemm batch=1 m=2 n=2 k=2", "a.jsonl"), ("bgemm:batch=1,m=2 n=2 k=2", "b.jsonl.gz")] {
        let ended = in_folder(folder.path(), &format!("gen {arguments} -o {file}"), "");
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
        assert_eq!(result(folder.path(), file), result(folder.path(), "bgemm:batch=1,m=2,n=2,k=2"), "{arguments}");
    }
    let compressed = fs::read(folder.path().join("b.jsonl.gz")).expect("it is there");
    assert_eq!(compressed[..2], [0x1f, 0x8b]);
}

#[test]
fn a_trace_may_go_to_standard_output() {
    let ended = ptosim("gen chain n=3");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1"),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.stdout.matches("\"op\":\"submit\"").count(), 3);
}

#[test]
fn generators_are_listed_with_their_parameters() {
    let all = ptosim("gen --list").stdout;
    for name in ["bgemm", "chain", "fanout", "random", "stencil", "wavefront", "cholesky", "transformer", "moe"] {
        assert!(all.lines().any(|line| line.starts_with(&format!("{name}: "))), "{name} is missing in\n{all}");
    }
    assert!(all.contains("batch=") && all.contains("seed="));
    let one = ptosim("gen --list chain").stdout;
    assert!(one.starts_with("chain: ") && !one.contains("bgemm: "), "{one}");
}

#[test]
fn a_wrong_generator_or_parameter_is_refused_with_the_nearest() {
    refuses("gen bgem", "bgemm");
    refuses("gen chain m=3", "\"m\"");
    refuses("gen chain n=-1", "-1");
    refuses("gen", "required arguments were not provided");
    refuses("run bgem", "bgemm");
}

#[test]
fn a_place_that_cannot_be_written_is_refused_and_nothing_appears() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = in_folder(folder.path(), "gen chain n=3 -o no/chain.jsonl", "");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.starts_with("error: cannot write no/chain.jsonl: "), "{}", ended.stderr);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    refuses("gen chain n=100000 -o /dev/full", "cannot write /dev/full: No space left");
}

#[test]
fn kernel_tables_are_shown_rule_by_rule() {
    let ended = ptosim("kernels");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rule = ended.stdout.lines().find(|line| line.starts_with("gemm, matmul, conv")).unwrap_or_default();
    assert!(rule.ends_with("100 + bytes/1024"), "{}", ended.stdout);
    refuses("kernels refrence", "reference");
}

//! Every kind of finding, each in a small trace: text, JSON, level and exit code.

use crate::program::in_folder;
use serde_json::Value;
use std::path::Path;

const HEADER: &str = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"by hand\"}\n\
                      {\"op\":\"buffer\",\"id\":\"A\",\"bytes\":4096}\n";

/// A trace without its first two lines, the settings, and the finding that must come of it.
struct Case {
    trace: &'static str,
    settings: &'static str,
    kind: &'static str,
    /// The lines of the text that tell it.
    told: &'static str,
    /// Task, kernel, line and regions of everybody in it.
    tasks: &'static [(u64, &'static str, u64, &'static [&'static str])],
}

const CASES: &[Case] = &[
    Case {
        trace: r#"{"op":"submit","name":"load","kernel":"gemm","cycles":9,"in":["A"]}
                  {"op":"submit","name":"store","kernel":"add","cycles":1,"out":[["A",0,64]]}"#,
        settings: "",
        kind: "write_after_read",
        told: "error: task 1 `store` (line 4) writes A[0..64), which task 0 `load` (line 3) may still read
    task 0 (gemm): in A[0..4096)
    task 1 (add): out A[0..64)
    make task 1 depend on task 0, or let task 0 take `A` as inout, or set rules.hazards=full",
        tasks: &[(0, "gemm", 3, &["in A[0..4096)"]), (1, "add", 4, &["out A[0..64)"])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"gemm","cycles":9,"out":[["A",0,64,4,1024]]}
                  {"op":"submit","kernel":"add","cycles":1,"out":[["A",1024,2048]]}"#,
        settings: "--set rules.hazards=raw",
        kind: "write_after_write",
        told: "error: task 1 `add` (line 4) writes A[1024..1088), which task 0 `gemm` (line 3) may still write
    task 0 (gemm): out A[0..64) × 4 every 1024
    task 1 (add): out A[1024..3072)
    make task 1 depend on task 0, or let task 1 take `A` as inout, or set rules.hazards=raw_waw",
        tasks: &[(0, "gemm", 3, &["out A[0..64) × 4 every 1024"]), (1, "add", 4, &["out A[1024..3072)"])],
    },
    Case {
        trace: r#"{"op":"scope_begin"}
                  {"op":"submit","kernel":"make","cycles":9,"new":[["T",1024]]}
                  {"op":"scope_end"}
                  {"op":"submit","kernel":"use","cycles":1,"in":["T"],"inout":["A"]}"#,
        settings: "",
        kind: "use_after_scope",
        told: "error: task 1 `use` (line 6) uses `T` of task 0 `make` (line 4) after the scope of line 3 to 5 that holds it has closed
    task 0 (make): new T[0..1024)
    task 1 (use): in T[0..1024)
    submit task 1 before the scope closes, or make `T` in an outer scope",
        tasks: &[(0, "make", 4, &["new T[0..1024)"]), (1, "use", 6, &["in T[0..1024)"])],
    },
    Case {
        trace: r#"{"op":"scope_begin"}
                  {"op":"submit","kernel":"a","cycles":9}
                  {"op":"submit","kernel":"b","cycles":9}
                  {"op":"submit","kernel":"c","cycles":9}
                  {"op":"scope_end"}"#,
        settings: "--set limits.window=2",
        kind: "never_fits",
        told: "error: the scope of line 3 to 7 keeps more than the 2 slots of ring 0: task 2 `c` (line 6) can never be submitted
    set limits.window=4 or more, or close the scope earlier",
        tasks: &[(2, "c", 6, &[])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"a","cycles":9,"out_bytes":300}"#,
        settings: "--set limits.heap=128",
        kind: "never_fits",
        told: "error: task 0 `a` (line 3) needs more than the 128 B of ring 0\n    set limits.heap=320 or more",
        tasks: &[(0, "a", 3, &[])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"make","cycles":9,"new":[["T",1024]]}
                  {"op":"submit","kernel":"use","cycles":1,"in":["T"]}"#,
        settings: "",
        kind: "unheld",
        told: "warning: task 1 `use` (line 4) uses `T` of task 0 `make` (line 3), which no scope holds: it may be recycled before task 1 is submitted
    task 0 (make): new T[0..1024)
    task 1 (use): in T[0..1024)
    put tasks 0 and 1 into one scope",
        tasks: &[(0, "make", 3, &["new T[0..1024)"]), (1, "use", 4, &["in T[0..1024)"])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"both","cycles":9,"out":[["A",0,64]],"inout":[["A",32,64]]}"#,
        settings: "",
        kind: "overlapping_outputs",
        told: "warning: task 0 `both` (line 3) writes A[32..64) through two of its outputs
    task 0 (both): out A[0..64), inout A[32..96)
    give its outputs bytes of their own",
        tasks: &[(0, "both", 3, &["out A[0..64)", "inout A[32..96)"])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"make","cycles":9,"out":["A"],"new":[["T",64]]}"#,
        settings: "",
        kind: "never_read",
        told: "warning: task 0 `make` (line 3) makes `T`, which nobody reads
    task 0 (make): new T[0..64)
    read it, or do not allocate it",
        tasks: &[(0, "make", 3, &["new T[0..64)"])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"lost","cycles":9,"out":["A"]}
                  {"op":"submit","kernel":"last","cycles":9,"out":["A"]}"#,
        settings: "",
        kind: "not_needed",
        told: "warning: nobody needs task 0 `lost` (line 3): its outputs are overwritten or dropped before a needed task reads them
    remove it, or let the task that needs it read its output or name it in deps",
        tasks: &[(0, "lost", 3, &[])],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"other","cycles":9}"#,
        settings: "",
        kind: "unused",
        told: "note: buffer `A` (line 2) is declared and never used\n    remove the declaration",
        tasks: &[],
    },
    Case {
        trace: r#"{"op":"submit","kernel":"a","cycles":9}
                  {"op":"submit","kernel":"b","cycles":9,"deps":[0]}
                  {"op":"submit","kernel":"c","cycles":9,"deps":[0,1]}"#,
        settings: "",
        kind: "redundant",
        told: "note: task 2 `c` (line 5) depends on task 0 `a` (line 3), which comes before it anyway by way of task 1 `b` (line 4)
    leave 0 out of the deps of task 2",
        tasks: &[(0, "a", 3, &[]), (1, "b", 4, &[]), (2, "c", 5, &[])],
    },
];

#[test]
fn every_kind_of_finding_tells_lines_kernels_regions_and_remedy() {
    for case in CASES {
        let lines: Vec<&str> = case.trace.lines().map(str::trim).collect();
        let trace = format!("{HEADER}{}\n", lines.join("\n"));
        let check = |more: &str| in_folder(Path::new("."), &format!("check - {} {more}", case.settings), &trace);
        let text = check("");
        assert!(text.stdout.contains(&format!("{}\n", case.told)), "{}: {}", case.kind, text.stdout);
        let level = case.told.split(':').next().expect("a level comes first");
        assert_eq!(text.code, i32::from(level == "error"), "{}: {}", case.kind, text.stdout);

        let json: Value = serde_json::from_str(&check("--json -").stdout).expect("JSON");
        assert_eq!(json["counts"][case.kind], 1, "{json}");
        let findings = json["findings"].as_array().expect("a list");
        let finding = findings.iter().find(|finding| finding["kind"] == case.kind).expect("it is there");
        assert_eq!(finding["level"], level);
        let told = case.told.lines();
        let (first, last) = (told.clone().next().expect("a line"), told.last().expect("a line"));
        assert_eq!(format!("{level}: {}", finding["message"].as_str().expect("a text")), first);
        assert_eq!(finding["remedy"], last.trim());
        let tasks = finding["tasks"].as_array().expect("a list");
        assert_eq!(tasks.len(), case.tasks.len(), "{finding}");
        for (told, (task, kernel, line, regions)) in tasks.iter().zip(case.tasks) {
            assert_eq!(
                (&told["task"], &told["kernel"], &told["line"]),
                (&(*task).into(), &(*kernel).into(), &(*line).into())
            );
            let found: Vec<&str> = told["regions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert_eq!(found, *regions, "{finding}");
        }
    }
}

#[test]
fn a_limit_cuts_the_findings_but_not_their_counts() {
    let tasks = "{\"op\":\"submit\",\"kernel\":\"k\",\"cycles\":1,\"new\":[[\"T\",64]]}\n".repeat(30);
    let trace = format!("{HEADER}{tasks}");
    let check = |more: &str| in_folder(Path::new("."), &format!("check - {more}"), &trace).stdout;
    assert!(check("").contains("… and 20 more of never_read; --limit shows more"));
    assert!(!check("--limit 30").contains("more of"));
    let json: Value = serde_json::from_str(&check("--limit 2 --json -")).expect("JSON");
    assert_eq!((&json["counts"]["never_read"], &json["warnings"]), (&30.into(), &60.into()));
    let kinds = json["findings"].as_array().expect("a list").iter().filter(|finding| finding["kind"] == "never_read");
    assert_eq!(kinds.count(), 2);
}

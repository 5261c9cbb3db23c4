//! Names from a trace are text in a page, whatever they contain.

use ptosim::config::Machine;
use ptosim::engine::{Journal, read_along, simulate};
use ptosim::report::{PackedPath, PathRecorder, PathSums, Recording, Report, Timeline, write_html};
use ptosim::workload;
use serde_json::{Value, json};
use std::fmt::Write;

const NAMES: [&str; 8] = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "quotes \" ' ` & < > \\ / end",
    "</SCRIPT ><!-- comment -->",
    "emoji 🚀👩‍👩‍👧‍👦 ✓",
    "lines \u{2028} and \u{2029} \n\r\t\0",
    "]]><![CDATA[ ${7*7} {{7*7}} %s",
    "&lt;b&gt; &#60;",
];

/// Eight tasks in a row in an open scope, so that a window of four slots cannot take them all.
fn trace(names: &[String]) -> String {
    let header = json!({ "op": "header", "format": "ptosim-trace", "version": 1, "name": names[0] });
    let mut text = format!("{header}\n{{\"op\":\"scope_begin\"}}\n");
    for (index, name) in names.iter().enumerate() {
        let deps: Vec<usize> = index.checked_sub(1).into_iter().collect();
        let submit = json!({ "op": "submit", "name": name, "kernel": name, "cycles": 10 + index, "deps": deps });
        writeln!(text, "{submit}").expect("memory does not fail");
    }
    text + "{\"op\":\"scope_end\"}\n"
}

/// The report and the page of a program of these names.
fn page(names: &[String], window: u64) -> (Report, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, trace(names)).expect("room on the disk");
    let program = workload::open(path.to_str().expect("a plain path")).expect("a trace");
    let mut machine = Machine::default();
    machine.limits.window = window;
    let run = |journal: &mut Journal| simulate(program.as_ref(), &machine, journal).expect("it runs");
    let (mut report, mut timeline, names) = read_along(Timeline::new(), run);
    let (_, path, _) = read_along(PathRecorder::new(Vec::new()), run);
    let (mut packed, mut sums) = (PackedPath::default(), PathSums::default());
    for step in &path.finish(&names) {
        packed.add(step);
        sums.add(step);
    }
    report.path = Some(sums.report(&names));
    let mut page = Vec::new();
    let recording = Recording { timeline: &mut timeline, path: &packed, names: &names };
    write_html(&report, Some(recording), &mut page).expect("memory does not fail");
    (report, String::from_utf8(page).expect("a page is UTF-8"))
}

#[test]
fn names_add_no_markup_and_come_back_unchanged() {
    let nasty: Vec<String> = NAMES.map(str::to_owned).into_iter().chain(["x".repeat(10_000)]).collect();
    let plain: Vec<String> = (0..nasty.len()).map(|index| format!("plain{index}")).collect();
    for window in [16, 4] {
        let (report, shown) = page(&nasty, window);
        assert_eq!(report.deadlock.is_some(), window == 4);
        let marks = |text: &str| text.matches('<').count();
        assert_eq!(marks(&shown), marks(&page(&plain, window).1), "window {window}");
        let data = shown.split_once("id=\"ptosim-report\">").expect("the report is there").1;
        let data = data.split_once("</script>").expect("it ends").0;
        let back: Report = serde_json::from_str(data).expect("JSON");
        assert_eq!(back, report);
        let raw: Value = serde_json::from_str(data).expect("JSON");
        let kernels: Vec<&str> =
            raw["kernels"].as_array().expect("a list").iter().filter_map(|kernel| kernel["name"].as_str()).collect();
        assert!(nasty[..kernels.len()].iter().all(|name| kernels.contains(&name.as_str())), "{kernels:?}");
        assert!(kernels.len() >= 3);
    }
}

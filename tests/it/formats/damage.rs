//! Damaged files of every format are refused with a message, or read; nothing panics, hangs or grows without bound.

use super::samples::samples;
use super::{open, open_as, refusal};
use ptosim::workload::binary::seal;
use ptosim::workload::import::Options;
use ptosim::workload::{Submit, WorkloadError};

/// Reads all of it.
fn walk(format: &str, bytes: Vec<u8>) -> Result<u64, WorkloadError> {
    let workload = open_as(format, bytes)?;
    let (mut source, mut task, mut operations) = (workload.open()?, Submit::default(), 0);
    while source.next(&mut task)?.is_some() {
        operations += 1;
    }
    workload.controls()?;
    Ok(operations)
}

/// Whether it was refused, with a message that is not too long.
fn is_refused(format: &str, bytes: Vec<u8>) -> bool {
    let Err(error) = walk(format, bytes) else { return false };
    let message = error.to_string();
    assert!(message.len() > 10 && message.len() < 1500, "{format}: {} bytes: {message:.300}", message.len());
    true
}

#[test]
fn every_sample_is_recognised_by_its_content() {
    for (format, bytes) in samples() {
        let workload = open(bytes.clone(), &Options::default()).unwrap_or_else(|error| panic!("{format}: {error}"));
        let named = open_as(format, bytes).expect("by its name too");
        assert_eq!(super::picture(workload.as_ref()), super::picture(named.as_ref()), "{format}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused_or_read_as_far_as_it_goes() {
    for (format, bytes) in samples() {
        let step = if bytes.len() > 2000 { 100 } else { 7 };
        let refused = (0..bytes.len()).step_by(step).filter(|&end| is_refused(format, bytes[..end].to_vec())).count();
        assert!(refused > 0, "{format}");
    }
}

#[test]
fn flipped_bytes_never_do_more_than_make_an_error() {
    const CHANGES: u64 = 600;
    for (format, bytes) in samples() {
        let mut refused = 0;
        for number in 0..CHANGES {
            let mut damaged = bytes.clone();
            let hash = |salt: u64| (number * 8 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            for change in 0..=number % 3 {
                let place = hash(change) as usize % damaged.len();
                damaged[place] = if number % 2 == 0 { damaged[place] ^ 1 << (number % 8) } else { hash(7) as u8 };
            }
            if format == "ptob" {
                seal(&mut damaged);
            }
            refused += u64::from(is_refused(format, damaged));
        }
        assert!(refused > 0, "{format}");
    }
}

#[test]
fn parts_that_are_doubled_or_swapped_never_do_more_than_make_an_error() {
    for (format, bytes) in samples() {
        let part = bytes.len() / 13;
        for first in 0..12 {
            let (start, end) = (first * part, (first + 1) * part);
            let doubled = [&bytes[..end], &bytes[start..]].concat();
            let swapped = [&bytes[..start], &bytes[end..end + part], &bytes[start..end], &bytes[end + part..]].concat();
            for mut damaged in [doubled, swapped] {
                if format == "ptob" {
                    seal(&mut damaged);
                }
                is_refused(format, damaged);
            }
        }
    }
}

#[test]
fn deep_nesting_and_endless_texts_are_refused() {
    let formats =
        ["native", "wfformat", "simpler", "hicann", "chrome", "chakra", "pytorch", "dot", "dax", "stg", "ptob"];
    let long = "x".repeat(10_000_000);
    let hostile = [
        "[".repeat(200_000),
        "{\"a\":".repeat(200_000),
        "<a>".repeat(200_000),
        "digraph{".repeat(100_000),
        format!("\"{long}\""),
        format!("{{\"name\":\"{long}\"}}"),
        format!("digraph {{ \"{long}\" -> b; b -> \"{long}\" }}"),
        format!("<adag><job id=\"{long}\" runtime=\"x\"/></adag>"),
        long.clone(),
    ];
    for format in formats {
        for text in &hostile {
            assert!(is_refused(format, text.clone().into_bytes()), "{format}: {text:.20}");
        }
    }
}

#[test]
fn messages_stay_short_and_keep_their_remedy() {
    let long = "x".repeat(10_000_000);
    let lines = [
        (format!("{{\"op\":\"{long}\"}}"), "unknown op", "header, done"),
        (format!("{{\"op\":\"submit\",\"{long}\":1}}"), "unknown field", "uuid, args"),
        (format!("{{\"op\":\"submit\",\"deps\":[\"{long}\"]}}"), "field \"deps\"", "use its number"),
    ];
    for (line, start, end) in lines {
        let header = "{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}";
        let message = walk("native", format!("{header}\n{line}\n").into()).expect_err("a wrong line").to_string();
        assert!(message.starts_with(&format!("input:2: {start}")) && message.ends_with(end), "{message:.200}");
        assert!(message.len() < 2000, "{} bytes", message.len());
    }
}

#[test]
fn numbers_may_be_texts_and_nonsense_is_named() {
    let hicann = |id: &str, time: &str| format!("[{{\"taskId\":{id},\"execTime\":{time},\"successors\":[]}}]");
    assert_eq!(walk("hicann", hicann("\"3\"", "\"12\"").into()).expect("texts"), 1);
    assert!(refusal("hicann", hicann("3", "NaN")).starts_with("input:1: column "));
    assert!(refusal("hicann", hicann("3", "-1")).contains("-1"));
    let workflow = |tasks: &str| format!("{{\"workflow\":{{\"specification\":{{\"tasks\":[{tasks}]}}}}}}");
    let cases = [
        (r#"{"id":"a"},{"id":"a"}"#, "task a occurs twice"),
        (r#"{"id":"a","parents":["b"]}"#, "task a names task b, which the file does not have"),
        (r#"{"id":"a","parents":["b"]},{"id":"b","parents":["a"]}"#, "in a circle: \"a\" ← \"b\" ← \"a\""),
        (r#"{"id":"a","parents":["a"]}"#, "\"a\" waits for itself"),
    ];
    let wrong = "\n{\"workflow\":{\"tasks\":[{\"name\":\"a\",\"runtime\":\"fast\"}]}}";
    assert!(
        refusal("wfformat", wrong).starts_with("input:2: column 51: \"fast\" is not"),
        "{}",
        refusal("wfformat", wrong)
    );
    for (tasks, expected) in cases {
        let message = refusal("wfformat", workflow(tasks));
        assert!(message.contains(expected), "{message}");
    }
    let chakra = |nodes: &str| format!("{{\"workload_graph\":[{nodes}]}}");
    let circle = r#"{"Id":1,"data_deps":[2]},{"Id":2,"data_deps":[1]}"#;
    assert!(refusal("chakra", chakra(circle)).contains("in a circle: \"n1\" ← \"n2\" ← \"n1\""));
    assert!(refusal("chakra", chakra(r#"{"Id":1,"data_deps":[9]}"#)).contains("node 1 names task 9"));
    assert!(refusal("chakra", chakra(r#"{"Id":1},{"Id":1}"#)).contains("task 1 occurs twice"));
    assert_eq!(walk("chakra", chakra(r#"{"Id":1,"ctrl_deps":[1,5]}"#).into()).expect("control is left out"), 1);
}

#[test]
fn a_file_that_goes_with_another_says_so() {
    for text in ["{\"callable_id_to_name\":{}}", "{\"chip_swimlane_level\":4}", "[{\"blockIdx\":34}]"] {
        let error = open(text, &Options::default()).err().expect("no tasks").to_string();
        assert!(error.contains("it goes with"), "{error}");
    }
}

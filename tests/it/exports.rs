//! What is exported is what was scheduled: Chrome events, Perfetto packets and the page are read back by readers of our own.

use crate::programs;
use ptosim::config::Machine;
use ptosim::engine::{BlockRow, Observer, read_along, simulate};
use ptosim::id::WorkerType;
use ptosim::report::{
    Arrows, Chrome, Export, PackedPath, PathRecorder, Perfetto, Recording, Report, Sheet, Timeline, write_html,
};
use ptosim::workload::{Symbols, Workload};
use serde_json::Value;
use std::collections::BTreeMap;

const SEEDS: u64 = 150;

/// `(worker, start, end, task, block, submit, ready)`, sorted.
type Rows = Vec<[u64; 7]>;

#[derive(Default)]
struct Recorder(Rows);

impl Observer for Recorder {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        let BlockRow { task, block, worker, submit, ready, start, end, .. } = *row;
        self.0.push([worker.0.into(), start, end, task.0, block.into(), submit, ready]);
    }
}

/// The programs of the first seeds that run, with their schedules.
fn runs(mut check: impl FnMut(u64, &dyn Workload, &Machine, &Rows, &Report)) {
    let mut ran = 0;
    for seed in 0..SEEDS {
        let (program, machine) = programs::random(seed);
        let mut rows = Recorder::default();
        let Ok(report) = simulate(&program, &machine, &mut rows) else { continue };
        rows.0.sort_unstable();
        check(seed, &program, &machine, &rows.0, &report);
        ran += 1;
    }
    assert!(ran > SEEDS / 2, "{ran} programs ran");
}

#[test]
fn chrome_events_are_the_schedule() {
    runs(|seed, program, machine, rows, report| {
        let sheet = Sheet::new(Chrome::default(), Vec::new(), "a \"name\"", machine);
        let arrows = Arrows::load(program, machine).expect("it ran before");
        let export = Export::new(sheet, machine, Some(arrows));
        let (run, export, _) = read_along(export, |journal| simulate(program, machine, journal));
        run.expect("it ran before");
        let bytes = export.finish().finish().expect("memory does not fail");
        let trace: Value = serde_json::from_slice(&bytes).expect("JSON");
        let nanos = |value: &Value| (value.as_f64().expect("a number") * 1000.0).round() as u64;
        let number = |value: &Value| value.as_u64().expect("a whole number");
        // Block 0 is not told.
        let block = |args: &Value| args.get("block").map_or(0, number);
        let events = trace["traceEvents"].as_array().expect("a list");
        let mut found: Rows = Vec::new();
        let mut scheduler = 0;
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let (start, length, args) = (nanos(&event["ts"]), nanos(&event["dur"]), &event["args"]);
            if args.get("submit").is_some() {
                let [task, submit] = ["task", "submit"].map(|key| number(&args[key]));
                // What was ready when it started does not say so.
                let ready = args.get("ready").map_or(start, number);
                found.push([number(&event["tid"]), start, start + length, task, block(args), submit, ready]);
            } else if event["pid"] == 11 {
                scheduler += length;
            }
        }
        found.sort_unstable();
        assert_eq!(&found, rows, "seed {seed}");
        let jobs = &report.scheduler;
        assert_eq!(scheduler, jobs.admit + jobs.complete + jobs.dispatch, "seed {seed}");
        let flows = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count();
        assert_eq!(flows("s"), flows("f"), "seed {seed}");
    });
}

/// Reads the wire format: fields as `(number, value)`.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(fixed.try_into().expect("eight bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (body, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(body)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn number(fields: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(key, field)| match field {
        Field::Number(value) if *key == wanted => Some(*value),
        _ => None,
    })
}

fn message<'a>(fields: &[(u64, Field<'a>)], wanted: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(key, field)| match field {
        Field::Bytes(value) if *key == wanted => Some(*value),
        _ => None,
    })
}

#[test]
fn perfetto_packets_are_the_schedule() {
    runs(|seed, program, machine, rows, _| {
        let export = Export::new(Sheet::new(Perfetto::default(), Vec::new(), "random", machine), machine, None);
        let (run, export, _) = read_along(export, |journal| simulate(program, machine, journal));
        run.expect("it ran before");
        let bytes = export.finish().finish().expect("memory does not fail");
        let is_worker = |name: &str| {
            let (kind, nth) = name.rsplit_once(' ').unwrap_or_default();
            WorkerType::ALL.iter().any(|known| known.name() == kind) && nth.parse::<u32>().is_ok()
        };
        // Workers are described in the order of their ids.
        let mut workers: Vec<u64> = Vec::new();
        let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
        let mut open: BTreeMap<u64, (u64, BTreeMap<String, u64>)> = BTreeMap::new();
        let mut names: BTreeMap<u64, String> = BTreeMap::new();
        let mut found: Rows = Vec::new();
        for (_, packet) in fields(&bytes) {
            let Field::Bytes(packet) = packet else { panic!("a trace consists of packets") };
            let packet = fields(packet);
            assert_eq!(number(&packet, 10), Some(1), "all packets are of one sequence");
            if let Some(descriptor) = message(&packet, 60).map(fields) {
                let name = message(&descriptor, 2).map_or(String::new(), |name| String::from_utf8_lossy(name).into());
                let track = number(&descriptor, 1).expect("an identity");
                workers.extend(is_worker(&name).then_some(track));
                assert_eq!(tracks.insert(track, name), None, "tracks differ");
            }
            for (table, entry) in message(&packet, 12).map(fields).unwrap_or_default() {
                let (3, Field::Bytes(entry)) = (table, entry) else { continue };
                let entry = fields(entry);
                let name = String::from_utf8_lossy(message(&entry, 2).expect("a name")).into_owned();
                names.insert(number(&entry, 1).expect("a number"), name);
            }
            let Some(event) = message(&packet, 11).map(fields) else { continue };
            let (track, now) = (number(&event, 11).expect("a track"), number(&packet, 8).expect("a moment"));
            assert!(tracks.contains_key(&track), "track {track} was described before");
            match number(&event, 9) {
                Some(1) => {
                    let annotations = event.iter().filter_map(|(key, field)| match field {
                        Field::Bytes(body) if *key == 4 => Some(fields(body)),
                        _ => None,
                    });
                    let facts = annotations.filter_map(|annotation| {
                        let name = &names[&number(&annotation, 1)?];
                        Some((name.clone(), number(&annotation, 3).expect("a number")))
                    });
                    assert!(open.insert(track, (now, facts.collect())).is_none(), "slices do not overlap");
                }
                Some(2) => {
                    let (start, facts) = open.remove(&track).expect("a slice that was begun");
                    if let Some(worker) = workers.iter().position(|&other| other == track) {
                        let [task, submit] = ["task", "submit"].map(|key| facts[key]);
                        // Block 0 is not told, nor a moment of readiness that is the start.
                        let block = facts.get("block").copied().unwrap_or(0);
                        let ready = facts.get("ready").copied().unwrap_or(start);
                        found.push([worker as u64, start, now, task, block, submit, ready]);
                    }
                }
                kind => assert_eq!(kind, Some(4), "slices and counters only"),
            }
        }
        found.sort_unstable();
        assert_eq!(&found, rows, "seed {seed}");
        assert!(open.is_empty());
    });
}

/// What stands in a block of the page.
fn block<'a>(page: &'a str, id: &str) -> &'a str {
    let rest = page.split_once(&format!("id=\"{id}\">")).expect("the block is there").1;
    rest.split_once("</script>").expect("the block ends").0
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for piece in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = piece.iter().fold(0_u32, |word, &digit| word << 6 | u32::from(value(digit)));
        let word = (word << (6 * (4 - piece.len()))).to_be_bytes();
        bytes.extend_from_slice(&word[1..piece.len()]);
    }
    bytes
}

fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[test]
fn the_page_holds_the_schedule_and_the_path() {
    runs(|seed, program, machine, rows, report| {
        let (run, mut timeline, names) = read_along(Timeline::new(), |journal| simulate(program, machine, journal));
        run.expect("it ran before");
        let path = PathRecorder::new(Vec::new());
        let (run, path, _) = read_along(path, |journal| simulate(program, machine, journal));
        run.expect("it ran before");
        let mut page = Vec::new();
        let steps = path.finish(&names);
        let mut packed = PackedPath::default();
        steps.iter().for_each(|step| packed.add(step));
        let recording = Recording { timeline: &mut timeline, path: &packed, names: &names };
        write_html(report, Some(recording), &mut page).expect("memory");
        let page = String::from_utf8(page).expect("a page is UTF-8");
        let head: Value = serde_json::from_str(block(&page, "ptosim-timeline")).expect("JSON");
        let bytes = from_base64(block(&page, "ptosim-bytes"));
        let mut rest = &bytes[(head["names"]["bytes"].as_u64().expect("a number")
            + head["tasks"]["bytes"].as_u64().expect("a number")) as usize..];
        let (mut found, mut worker): (Rows, u64) = (Vec::new(), 0);
        for track in head["tracks"].as_array().expect("a list") {
            let (mut spans, after) = rest.split_at(track["bytes"].as_u64().expect("a number") as usize);
            rest = after;
            if track["kind"] != "worker" {
                continue;
            }
            let (mut end, mut task) = (0, 0_i64);
            while !spans.is_empty() {
                let start = end + varint(&mut spans);
                end = start + varint(&mut spans);
                let about = varint(&mut spans);
                task += signed(about >> 1);
                let part = if about & 1 == 1 { varint(&mut spans) } else { 0 };
                let ready = start - varint(&mut spans);
                found.push([worker, start, end, task.cast_unsigned(), part, 0, ready]);
            }
            worker += 1;
        }
        let without_submit: Rows = rows.iter().map(|&[a, b, c, d, e, _, g]| [a, b, c, d, e, 0, g]).collect();
        found.sort_unstable();
        assert_eq!(found, without_submit, "seed {seed}");
        assert_eq!(head["path"]["count"], steps.len(), "seed {seed}");
        assert_eq!(rest.len() as u64, head["path"]["bytes"].as_u64().expect("a number"), "seed {seed}");
        let measured = |name: usize| {
            let buckets = head["waits"][name]["buckets"].as_array().expect("a list");
            buckets.iter().map(|count| count.as_u64().expect("a number")).sum::<u64>()
        };
        assert_eq!(measured(1), report.latency["ready_to_start"].count, "seed {seed}");
    });
}

//! A recorded timeline as the page of a report reads it: a head in JSON, and one piece of bytes whose parts the head lists.
//!
//! ```text
//! bytes: names | tasks | one part a track | critical path
//! ```

use super::blame::{Blame, PathStep};
use super::export::worker_names;
use super::spread::{Bins, Curve, Level};
use super::timeline::{Timeline, Waits};
use super::tracks::Track;
use super::varint::{Packed, push, zigzag};
use crate::config::Machine;
use crate::engine::journal::Names;
use crate::id::TaskType;
use serde::Serialize;
use std::borrow::Cow;

/// Bytes spent on the critical path; a path that takes more is not drawn.
const PATH_BYTES: usize = 6 << 20;

/// The head.
#[derive(Serialize)]
pub(super) struct Head {
    /// The last instant.
    end: u64,
    names: Part,
    tasks: Part,
    /// Whether tasks were recorded, with kernels and producers; a schedule holds only blocks.
    has_tasks: bool,
    tracks: Vec<TrackHead>,
    path: Part,
    /// Whether a path was recorded, be it too long to draw.
    has_path: bool,
    curves: Vec<CurveHead>,
    waits: Vec<WaitHead>,
    blames: Vec<(&'static str, &'static str)>,
}

/// Entries, and the bytes they take.
#[derive(Serialize)]
struct Part {
    count: u64,
    bytes: usize,
}

#[derive(Serialize)]
struct TrackHead {
    name: String,
    /// `orchestrator`, `scheduler` or `worker`.
    kind: &'static str,
    /// Spans recorded.
    count: u64,
    bytes: usize,
    /// Cycles of a bin, when there was no room for spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    bin: Option<u64>,
}

#[derive(Serialize)]
struct CurveHead {
    name: String,
    unit: &'static str,
    limit: u64,
    /// Cycles of a bin.
    bin: u64,
    max: Vec<u64>,
    mean: Vec<f64>,
}

#[derive(Serialize)]
struct WaitHead {
    name: &'static str,
    /// Values of 0, of 1, of 2 to 3, of 4 to 7, …; without the empty end.
    buckets: Vec<u64>,
}

/// Head and bytes, in pieces, of a timeline and its critical path.
pub(super) fn pack<'a>(
    timeline: &'a mut Timeline,
    path: &'a PackedPath,
    names: &Names,
    machine: &Machine,
) -> (Head, Vec<Cow<'a, [u8]>>) {
    let curves = curves(timeline, machine);
    let timeline = &*timeline;
    let mut pieces = Pieces::default();
    let names = pieces.add(names.iter().len() as u64, pack_names(names));
    let tasks = pieces.add_packed(timeline.tasks.count, &timeline.tasks.packed);
    let tracks = tracks(timeline, machine, &mut pieces);
    let (has_tasks, has_path) = (tasks.count > 0, path.count > 0);
    let path = pieces.add_packed(path.count, &path.packed);
    let drawn = |part: Part| Part { count: if part.bytes == 0 { 0 } else { part.count }, ..part };
    let head = Head {
        end: timeline.end,
        names,
        tasks: drawn(tasks),
        has_tasks,
        tracks,
        path: drawn(path),
        has_path,
        curves,
        waits: waits(&timeline.waits),
        blames: Blame::ALL.iter().map(|blame| (blame.name(), blame.meaning())).collect(),
    };
    (head, pieces.0)
}

/// The bytes of parts, one after the other.
#[derive(Default)]
struct Pieces<'a>(Vec<Cow<'a, [u8]>>);

impl<'a> Pieces<'a> {
    fn add(&mut self, count: u64, bytes: Vec<u8>) -> Part {
        let part = Part { count, bytes: bytes.len() };
        self.0.push(bytes.into());
        part
    }

    fn add_packed(&mut self, count: u64, packed: &'a Packed) -> Part {
        self.0.extend(packed.pieces().map(Cow::from));
        Part { count, bytes: packed.length() }
    }
}

/// Each name as: bytes it shares with the beginning of the one before | bytes that follow | those bytes.
fn pack_names(names: &Names) -> Vec<u8> {
    let (mut bytes, mut before): (Vec<u8>, &[u8]) = (Vec::new(), &[]);
    for name in names.iter() {
        let name = name.as_bytes();
        let shared = name.iter().zip(before).take_while(|(a, b)| a == b).count();
        push(&mut bytes, shared as u64);
        push(&mut bytes, (name.len() - shared) as u64);
        bytes.extend_from_slice(&name[shared..]);
        before = name;
    }
    bytes
}

fn tracks<'a>(timeline: &'a Timeline, machine: &Machine, pieces: &mut Pieces<'a>) -> Vec<TrackHead> {
    let runtime_in_detail = timeline.runtime_is_detailed();
    let mut add = |track: &'a Track, name: String, kind: &'static str, in_detail: bool| {
        let Part { count, bytes } = if in_detail {
            pieces.add_packed(track.count, &track.spans)
        } else {
            pieces.add(track.count, bin_bytes(track))
        };
        TrackHead { name, kind, count, bytes, bin: (!in_detail).then(|| track.bins.width()) }
    };
    let mut heads = vec![add(&timeline.orchestrator, "orchestrator".into(), "orchestrator", runtime_in_detail)];
    for (thread, spans) in timeline.scheduler.iter().enumerate() {
        heads.push(add(spans, format!("scheduler {thread}"), "scheduler", runtime_in_detail));
    }
    for (worker, (_, name)) in worker_names(machine).into_iter().enumerate() {
        let spans = timeline.workers.get(worker).unwrap_or(&timeline.idle);
        heads.push(add(spans, name, "worker", timeline.is_detailed()));
    }
    heads
}

fn bin_bytes(track: &Track) -> Vec<u8> {
    let mut bytes = Vec::new();
    for bin in track.bins.all() {
        push(&mut bytes, bin.cycles);
        push(&mut bytes, bin.label.into());
    }
    bytes
}

/// A critical path as the page reads it, or nothing but its length when it is too long.
///
/// ```text
/// bytes of a step: blame × 8 + has worker × 4 + has task × 2 + runs a kernel | cycles | task difference | worker
/// ```
#[derive(Default)]
pub struct PackedPath {
    packed: Packed,
    count: u64,
    is_too_long: bool,
    task: u64,
}

impl PackedPath {
    /// Adds a step.
    #[inline]
    pub fn add(&mut self, step: &PathStep) {
        self.count += 1;
        if self.is_too_long {
            return;
        }
        let flags =
            u8::from(step.worker.is_some()) << 2 | u8::from(step.task.is_some()) << 1 | u8::from(step.is_kernel);
        let mut line = self.packed.room();
        line.byte((step.blame.index() as u8) << 3 | flags);
        line.varint(step.to - step.from);
        if let Some(task) = step.task {
            line.varint(zigzag(task.0, self.task));
            self.task = task.0;
        }
        if let Some(worker) = step.worker {
            line.varint(worker.0.into());
        }
        let length = line.length();
        self.packed.advance(length);
        if self.packed.length() > PATH_BYTES {
            self.packed = Packed::default();
            self.is_too_long = true;
        }
    }
}

fn curves(timeline: &mut Timeline, machine: &Machine) -> Vec<CurveHead> {
    let (limits, end) = (&machine.limits, timeline.end);
    let mut heads = Vec::new();
    let mut add = |curve: &mut Curve, name: String, unit, limit| {
        heads.push(curve_head(curve.close(end), name, unit, limit));
    };
    let n_rings = timeline.rings.len();
    for (ring, curves) in timeline.rings.iter_mut().enumerate() {
        let of_ring = |what: &str| if n_rings == 1 { what.to_owned() } else { format!("{what} of ring {ring}") };
        add(&mut curves.window, of_ring("window"), "slots", limits.window - limits.spare);
        add(&mut curves.heap, of_ring("heap"), "bytes", limits.heap);
        add(&mut curves.deps, of_ring("dependency entries"), "entries", limits.deps);
    }
    add(&mut timeline.tensors, "tensor map".into(), "entries", limits.tensors);
    for (kind, curve) in TaskType::ALL.into_iter().zip(&mut timeline.ready) {
        add(curve, format!("ready queue {kind}"), "tasks", limits.ready);
    }
    heads.retain(|head| head.max.iter().any(|&max| max > 0));
    heads
}

fn curve_head(bins: &Bins<Level>, name: String, unit: &'static str, limit: u64) -> CurveHead {
    let mean = |level: &Level| (level.area as f64 / bins.width() as f64 * 100.0).round() / 100.0;
    CurveHead {
        name,
        unit,
        limit,
        bin: bins.width(),
        max: bins.all().iter().map(|level| level.max).collect(),
        mean: bins.all().iter().map(mean).collect(),
    }
}

fn waits(waits: &Waits) -> Vec<WaitHead> {
    [("submit to ready", &waits.submit_to_ready), ("ready to start", &waits.ready_to_start)]
        .into_iter()
        .map(|(name, buckets)| {
            let used = buckets.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
            WaitHead { name, buckets: buckets[..used].to_vec() }
        })
        .collect()
}

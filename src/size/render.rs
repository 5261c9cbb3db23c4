//! A search as text and as JSON.

use super::picture::bar;
use super::{Answer, Kind, Point, Proven, Sizes, Sizing, Together};
use crate::config::format_bytes;
use crate::report::{columns, count, group, plain, write_pretty};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Points of a curve that the text shows.
const SHOWN: usize = 16;
/// Pairs of sizes of which the larger one is slower that the text shows.
const PAIRS: usize = 4;

/// What was found, as people read it.
#[must_use]
pub fn render(sizing: &Sizing) -> String {
    let Sizing { workload, machine, policy, rings, tasks, unlimited, .. } = sizing;
    let mut text = format!(
        "{} on {machine} under {policy}: {}, {}; {} when nothing is ever full\n\n",
        plain(workload),
        count(*tasks, "task"),
        count((*rings).into(), "ring"),
        count(unlimited.makespan, "cycle")
    );
    let rows: Vec<Vec<String>> = sizing.answers.iter().map(|answer| row(answer, &sizing.high_water)).collect();
    let within = format!("within {} %", sizing.within * 100.0);
    text.push_str(&columns(&["", "completes from", &within, "knee", "most used", "one step less"], &rows));
    for answer in sizing.answers.iter().filter(|answer| answer.curve.len() > 1) {
        text.push('\n');
        text.push_str(&curve(answer, sizing));
    }
    text.push('\n');
    for (title, together) in [("smallest together", &sizing.smallest), ("fast together", &sizing.fast)] {
        if let Some(together) = together {
            text.push_str(&line(title, together, sizing));
        }
    }
    let _ = writeln!(
        text,
        "{}{}",
        count(sizing.runs, "run"),
        if sizing.is_interrupted { "; stopped before the end" } else { "" }
    );
    text
}

/// What was found, as JSON.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(sizing: &Sizing, writer: impl Write) -> io::Result<()> {
    write_pretty(&Document { format: "ptosim-size", version: 1, sizing }, writer)
}

/// A search as it stands in a file.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    #[serde(flatten)]
    sizing: &'a Sizing,
}

fn amount(kind: Kind, size: u64) -> String {
    if kind == Kind::Heap { format_bytes(size) } else { group(size) }
}

fn row(answer: &Answer, high_water: &Sizes) -> Vec<String> {
    let kind = answer.kind;
    let shown = |size: Option<u64>| size.map_or_else(String::new, |size| amount(kind, size));
    let used = match kind {
        Kind::Window => high_water.window,
        Kind::Heap => high_water.heap,
        Kind::Deps => high_water.deps,
        Kind::Tensors => high_water.tensors,
    };
    let below = answer.smallest.as_ref().map_or_else(String::new, reason);
    let fast = answer.fast.as_ref();
    let mark = if fast.is_some_and(|fast| !fast.is_proven) { " *" } else { "" };
    vec![
        kind.key().to_owned(),
        shown(answer.smallest.as_ref().map(|smallest| smallest.size)),
        shown(fast.map(|fast| fast.size)) + mark,
        shown(answer.knee),
        amount(kind, used),
        below,
    ]
}

fn reason(smallest: &Proven) -> String {
    match &smallest.below {
        None => "there is no smaller size".into(),
        Some(reason) if smallest.is_proven => reason.clone(),
        Some(reason) => format!("{reason}; sizes below were not all tried"),
    }
}

/// A makespan beside that of unlimited sizes; two of no cycles are equal.
fn relative(makespan: u64, sizing: &Sizing) -> f64 {
    let unlimited = sizing.unlimited.makespan;
    if makespan == unlimited { 1.0 } else { makespan as f64 / unlimited as f64 }
}

/// Table and picture of one curve.
fn curve(answer: &Answer, sizing: &Sizing) -> String {
    let best = answer.curve.iter().filter_map(|point| point.makespan).min().unwrap_or(0);
    let worst = answer.curve.iter().filter_map(|point| point.makespan).max().unwrap_or(0);
    let told = |point: &Point| match (point.makespan, &point.stuck) {
        (Some(makespan), _) => vec![
            amount(answer.kind, point.size),
            group(makespan),
            format!("{:.3}", relative(makespan, sizing)),
            bar(makespan, best, worst),
        ],
        (None, reason) => {
            vec![amount(answer.kind, point.size), String::new(), String::new(), reason.clone().unwrap_or_default()]
        }
    };
    let rows: Vec<Vec<String>> = thinned(answer).into_iter().map(told).collect();
    let mut text = columns(&[answer.kind.key(), "cycles", "of unlimited", ""], &rows);
    if !answer.slower_when_larger.is_empty() {
        let pairs: Vec<String> = answer
            .slower_when_larger
            .iter()
            .take(PAIRS)
            .map(|&(small, large)| format!("{} → {}", amount(answer.kind, small), amount(answer.kind, large)))
            .collect();
        let _ = writeln!(text, "larger is not always faster here: slower at {}", pairs.join(", "));
    }
    if answer.fast.as_ref().is_some_and(|fast| !fast.is_proven) {
        text.push_str("* the smallest of the sizes that were run; not all below it were\n");
    }
    text
}

/// The points of a curve, or those that matter when there are too many: the answers, their neighbours, powers of two, and
/// those that show that larger is slower.
fn thinned(answer: &Answer) -> Vec<&Point> {
    if answer.curve.len() <= SHOWN {
        return answer.curve.iter().collect();
    }
    let smallest = answer.smallest.as_ref().map(|smallest| smallest.size);
    let fast = answer.fast.as_ref().map(|fast| fast.size);
    let last = answer.curve.last().map(|point| point.size);
    let wanted = [smallest, fast, answer.knee, last];
    let bends: Vec<u64> =
        answer.slower_when_larger.iter().take(PAIRS).flat_map(|&(small, large)| [small, large]).collect();
    let is_wanted = |index: usize| {
        let near = |at: usize| answer.curve.get(at).is_some_and(|point| wanted.contains(&Some(point.size)));
        let size = answer.curve[index].size;
        near(index) || near(index + 1) || bends.contains(&size) || (size.is_power_of_two() && Some(size) > smallest)
    };
    let points = answer.curve.iter().enumerate();
    points.filter(|(index, _)| is_wanted(*index)).map(|(_, point)| point).collect()
}

fn line(title: &str, together: &Together, sizing: &Sizing) -> String {
    let Sizes { window, heap, deps, tensors } = together.limits;
    format!(
        "{title}: --set limits.window={window} --set limits.heap={heap} --set limits.deps={deps} --set limits.tensors={tensors}\n    \
         {} cycles ({:.3} of unlimited); {} of slots and dependency entries, {} of heap\n",
        group(together.makespan),
        relative(together.makespan, sizing),
        format_bytes(together.window_bytes),
        format_bytes(together.heap_bytes)
    )
}

//! Dependencies from flow events: a flow begins and ends at a moment on a thread, and so in the slice that runs there then.

use super::Groups;
use super::event::{Event, Key};
use std::collections::HashMap;

/// Difference in microseconds that rounding may make.
const TOLERANCE: f64 = 1e-3;

/// A run on a thread.
struct Slice {
    start: f64,
    end: f64,
    task: u64,
}

/// Producer and consumer of every flow that connects two tasks.
pub fn edges(events: &[Event<'_>], groups: &Groups<'_>) -> Vec<(u64, u64)> {
    let mut tracks: HashMap<(&Key, &Key), Vec<Slice>> = HashMap::new();
    for (&task, runs) in groups {
        for run in runs {
            let slice = Slice { start: run.ts.0, end: run.ts.0 + run.dur.0, task };
            tracks.entry((&run.pid, &run.tid)).or_default().push(slice);
        }
    }
    tracks.values_mut().for_each(|track| track.sort_by(|left, right| left.start.total_cmp(&right.start)));
    let mut begun: HashMap<(&str, &str, &Key), u64> = HashMap::new();
    let mut found = Vec::new();
    for event in flows(events) {
        let Some(track) = tracks.get(&(&event.pid, &event.tid)) else { continue };
        let flow = (&*event.name, &*event.cat, &event.id);
        match &*event.ph {
            "s" => _ = ending(track, event.ts.0).map(|task| begun.insert(flow, task)),
            "f" | "t" => {
                let ends = (begun.get(&flow).copied(), beginning(track, event.ts.0));
                if let (Some(producer), Some(consumer)) = ends {
                    found.extend((producer != consumer).then_some((producer, consumer)));
                }
            }
            _ => {}
        }
    }
    found
}

/// Events of flows in the order of time, beginnings first: those that say that they are dependencies, or all if none does.
fn flows<'a>(events: &'a [Event<'a>]) -> Vec<&'a Event<'a>> {
    let is_flow = |event: &&Event<'_>| matches!(&*event.ph, "s" | "t" | "f");
    let is_dependency = |event: &&Event<'_>| matches!(&*event.name, "dependency" | "dep") || event.cat == "dep";
    let mut flows: Vec<&Event<'_>> = events.iter().filter(is_flow).collect();
    if flows.iter().any(is_dependency) {
        flows.retain(is_dependency);
    }
    let is_end = |event: &Event<'_>| event.ph != "s";
    flows.sort_by(|left, right| left.ts.0.total_cmp(&right.ts.0).then(is_end(left).cmp(&is_end(right))));
    flows
}

/// The run in which a flow ends: where two touch, the later.
fn beginning(track: &[Slice], moment: f64) -> Option<u64> {
    let after = track.partition_point(|slice| slice.start <= moment + TOLERANCE);
    track[..after].last().filter(|slice| slice.end >= moment - TOLERANCE).map(|slice| slice.task)
}

/// The run from which a flow begins: where two touch, the earlier.
fn ending(track: &[Slice], moment: f64) -> Option<u64> {
    let after = track.partition_point(|slice| slice.start <= moment + TOLERANCE);
    let last = track[..after].last()?;
    let before = after.checked_sub(2).map(|index| &track[index]);
    let touching = before.filter(|slice| (slice.end - moment).abs() <= TOLERANCE);
    touching.or(Some(last).filter(|slice| slice.end >= moment - TOLERANCE)).map(|slice| slice.task)
}

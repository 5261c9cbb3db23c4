//! A look at a window from outside, also at that of a dead process.

use super::{At, Mapped, is_locked, is_locked_at, state, submitter_lock};
use crate::error::RunError;
use crate::report::columns;
use std::fmt::Write;
use std::path::Path;

/// The header, rings, queue and oldest tasks of a window, as text.
///
/// # Errors
/// When the file is no window, or one that does not fit together.
pub fn inspect(path: &Path) -> Result<String, RunError> {
    let mapped = Mapped::open(path)?;
    mapped.guarded(|| describe(&mapped))
}

fn describe(mapped: &Mapped) -> Result<String, RunError> {
    let (path, window) = (&mapped.path, mapped.window()?);
    let mut text = format!("{}: window of version {}\n", path.display(), mapped.get(At::Version));
    let side = |name: &str, pid: At, beat: At, doing: At, alive: bool| {
        let doing = match mapped.get(doing) {
            state::ABSENT => "absent",
            state::WORKING if alive => "working",
            state::WORKING => "dead",
            state::DONE => "done",
            _ => "failed",
        };
        format!("{name}: {doing}, process {}, {} signs of life\n", mapped.get(pid), mapped.get(beat))
    };
    text += &side("device", At::DevicePid, At::DeviceBeat, At::DeviceState, is_locked(&mapped.file));
    let submitter = is_locked_at(&submitter_lock(path));
    text += &side("submitter", At::SubmitterPid, At::SubmitterBeat, At::SubmitterState, submitter);
    let (limits, workers) = (&mapped.machine.limits, &mapped.machine.workers);
    let _ = writeln!(
        text,
        "{} workers; {} rings of {} slots, heap of {} bytes, {} dependency entries; {} tasks wait in the queue",
        workers.total(),
        limits.rings,
        limits.window,
        limits.heap,
        limits.deps,
        mapped.queue()?.len()
    );
    let rows: Vec<Vec<String>> = (0..window.n_rings())
        .map(|index| {
            let ring = window.ring(index);
            let (submitted, retired) = (ring.submitted(), ring.retired());
            let oldest = if retired < submitted {
                let slot = window.slot(window.at(index, retired));
                format!("task {} {}, fanin {}", slot.task(), slot.state().name(), slot.fanin())
            } else {
                "none".into()
            };
            let (top, tail) = (ring.heap_top(), ring.heap_tail());
            [index.into(), submitted, retired, top, tail]
                .map(|number: u64| number.to_string())
                .into_iter()
                .chain([oldest])
                .collect()
        })
        .collect();
    text += &columns(&["ring", "submitted", "last_task_alive", "heap_top", "heap_tail", "oldest task alive"], &rows);
    Ok(text)
}

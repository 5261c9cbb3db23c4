//! Submissions as our own writer writes them: its fields, in its order, without white space. Most lines of most traces are
//! like that, and reading them takes a fraction of the time of reading just any JSON.
//!
//! What is written in another way, or wrong, is left to the general reader, which also knows what to say about it.

use super::resolve::{Names, rows};
use super::scan::Scan;
use crate::id::TaskType;
use crate::workload::{Cost, NewBuffer, Region, Submit};

/// Reads a line at the beginning of `text` into `task` and returns its length with its end. `None` when the line is not a
/// submission, is not whole or is written in another way; names in it may have got numbers then, but nothing else happened.
#[inline]
pub fn submit(text: &[u8], names: &mut Names, task: &mut Submit) -> Option<usize> {
    let mut scan = Scan::new(text);
    scan.take(b"{\"op\":\"submit\"")?;
    task.clear();
    if scan.meets(b",\"name\":\"") {
        task.name = Some(names.symbols.intern_hashed(scan.text()?)?);
    }
    if scan.meets(b",\"kernel\":\"") {
        task.kernel = Some(names.symbols.intern_hashed(scan.text()?)?);
    }
    if scan.meets(b",\"worker_type\":\"") {
        task.kind = Some(worker_type(&mut scan)?);
    }
    if scan.meets(b",\"cycles\":") {
        task.cost = Some(Cost::Cycles(scan.integer()?));
    }
    if scan.meets(b",\"deps\":[") {
        producers(&mut scan, names, task)?;
    }
    if !scan.meets(b"}\n") {
        lists(&mut scan, names, task)?;
        scan.take(b"}\n")?;
    }
    task.kernel = task.kernel.or(task.name);
    names.bind_all(&task.allocates);
    names.submitted(task.name);
    Some(scan.at())
}

fn worker_type(scan: &mut Scan<'_>) -> Option<TaskType> {
    let is = |found: bool, kind| found.then_some(kind);
    is(scan.meets(b"CUBE\""), TaskType::Cube)
        .or_else(|| is(scan.meets(b"VECTOR\""), TaskType::Vector))
        .or_else(|| is(scan.meets(b"MIX\""), TaskType::Mix))
        .or_else(|| is(scan.meets(b"AI_CPU\""), TaskType::AiCpu))
        .or_else(|| is(scan.meets(b"ACCELERATOR\""), TaskType::Accelerator))
        .or_else(|| is(scan.meets(b"NONE\""), TaskType::None))
}

fn producers(scan: &mut Scan<'_>, names: &Names, task: &mut Submit) -> Option<()> {
    loop {
        task.deps.push(names.earlier(scan.integer()?)?);
        if scan.meets(b"]") {
            return Some(());
        }
        scan.take(b",")?;
    }
}

/// What may stand behind the producers.
fn lists(scan: &mut Scan<'_>, names: &mut Names, task: &mut Submit) -> Option<()> {
    if scan.meets(b",\"in\":[") {
        regions(scan, names, &mut task.reads)?;
    }
    if scan.meets(b",\"out\":[") {
        regions(scan, names, &mut task.writes)?;
    }
    if scan.meets(b",\"inout\":[") {
        regions(scan, names, &mut task.updates)?;
    }
    if scan.meets(b",\"new\":[") {
        new_buffers(scan, names, &mut task.allocates)?;
    }
    if scan.meets(b",\"out_bytes\":") {
        task.out_bytes = scan.integer()?;
    }
    if scan.meets(b",\"blocks\":") {
        task.blocks = u32::try_from(scan.integer()?).ok().filter(|&blocks| blocks > 0)?;
    }
    if scan.meets(b",\"params\":{") {
        params(scan, names, task)?;
    }
    Some(())
}

fn regions(scan: &mut Scan<'_>, names: &Names, found: &mut Vec<Region>) -> Option<()> {
    loop {
        scan.take(b"[\"")?;
        let whole = names.bound(scan.text()?)?;
        scan.take(b",")?;
        let offset = scan.integer()?;
        scan.take(b",")?;
        let bytes = scan.integer()?;
        if scan.meets(b",") {
            let count = scan.integer()?;
            scan.take(b",")?;
            found.push(rows("", whole, [offset, bytes, count, scan.integer()?]).ok()?);
        } else {
            let end = offset.checked_add(bytes)?;
            found.push((end <= whole.row_bytes).then(|| Region::range(whole.buffer, offset, bytes))?);
        }
        if scan.meets(b"]]") {
            return Some(());
        }
        scan.take(b"],")?;
    }
}

fn new_buffers(scan: &mut Scan<'_>, names: &mut Names, found: &mut Vec<NewBuffer>) -> Option<()> {
    loop {
        scan.take(b"[\"")?;
        let buffer = names.buffer(scan.text()?)?;
        scan.take(b",")?;
        found.push(NewBuffer { buffer, bytes: scan.integer()? });
        if scan.meets(b"]]") {
            return Some(());
        }
        scan.take(b"],")?;
    }
}

fn params(scan: &mut Scan<'_>, names: &mut Names, task: &mut Submit) -> Option<()> {
    loop {
        scan.take(b"\"")?;
        let name = names.symbols.intern_hashed(scan.text()?)?;
        scan.take(b":")?;
        let value = u32::try_from(scan.integer()?).ok()?;
        if task.params.iter().any(|&(known, _)| known == name) {
            return None;
        }
        task.params.push((name, value.into()));
        if scan.meets(b"}") {
            return Some(());
        }
        scan.take(b",")?;
    }
}

//! One walk over the accesses of a program: what conflicts, what is read, what is left, what outlives its scope.

use super::accesses::{Accesses, Span, shared};
use super::holding::Holding;
use crate::id::{BufferId, TaskId};
use crate::workload::{Operation, Region, Submit, Workload, WorkloadError};
use std::ops::ControlFlow;

/// Two accesses to the same bytes of which the later one writes; between them nobody else writes these bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflict {
    /// The task that writes.
    pub later: TaskId,
    /// The task that read or wrote before.
    pub earlier: TaskId,
    /// What the earlier one did.
    pub hazard: Hazard,
    /// The first of their common bytes.
    pub bytes: Span,
}

/// What a write comes after.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hazard {
    /// A read.
    WriteAfterRead,
    /// A write.
    WriteAfterWrite,
}

/// A buffer of the heap used when nothing keeps it any more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Escape {
    /// The task that made the buffer.
    pub owner: TaskId,
    /// The task that uses it.
    pub user: TaskId,
    /// The buffer.
    pub buffer: BufferId,
    /// The scope that held it and is closed; `None` when no scope ever held it.
    pub scope: Option<u32>,
}

/// What the walk found, apart from conflicts, which it hands on as it meets them.
#[derive(Debug, Default)]
pub struct Survey {
    /// Uses of buffers that nothing keeps.
    pub escapes: Vec<Escape>,
    /// Heap buffers that nobody reads, with the task that makes them.
    pub unread: Vec<(TaskId, BufferId)>,
    /// Declared buffers that nobody touches, with the line of the declaration.
    pub unused: Vec<(BufferId, Option<u64>)>,
    /// Tasks two of whose outputs share bytes, with the first of these.
    pub overlaps: Vec<(TaskId, Span)>,
    /// Tasks without any effect that somebody could need.
    pub unneeded: Vec<TaskId>,
    /// The last task whose conflicts were told, when those of later ones were not wanted.
    pub conflicts_end: Option<TaskId>,
}

/// What a buffer name stands for.
#[derive(Clone, Copy)]
enum Binding {
    /// Device memory: declared in a line, touched or not.
    Device { line: Option<u64>, is_used: bool },
    /// A piece of the heap.
    Heap { owner: TaskId, is_read: bool, is_empty: bool },
}

struct Walk<'a, F> {
    holding: &'a Holding,
    survey: Survey,
    accesses: Accesses,
    bindings: Vec<Option<Binding>>,
    /// For each task the tasks without which it would not have its inputs.
    sources: Vec<Vec<TaskId>>,
    /// Tasks whose effect is left at the end, or unknown.
    is_needed: Vec<bool>,
    tell: F,
    /// Conflicts of the task at hand.
    found: Vec<Conflict>,
}

/// Walks through a program; `tell` gets the conflicts of one later task after the other until it says `Break`.
///
/// # Errors
/// When the program cannot be read.
pub fn survey(
    workload: &dyn Workload,
    holding: &Holding,
    tell: impl FnMut(&[Conflict]) -> ControlFlow<()>,
) -> Result<Survey, WorkloadError> {
    let mut walk = Walk {
        holding,
        survey: Survey::default(),
        accesses: Accesses::default(),
        bindings: Vec::new(),
        sources: Vec::new(),
        is_needed: Vec::new(),
        tell,
        found: Vec::new(),
    };
    let (mut source, mut task) = (workload.open()?, Submit::default());
    while let Some(operation) = source.next(&mut task)? {
        match operation {
            Operation::Buffer { buffer, .. } => {
                walk.bind(buffer, Some(Binding::Device { line: source.line(), is_used: false }));
            }
            Operation::Submit => walk.submit(&task),
            Operation::ScopeBegin | Operation::ScopeEnd => {}
        }
    }
    (0..walk.bindings.len() as u32).for_each(|buffer| walk.bind(BufferId(buffer), None));
    walk.settle_needs();
    Ok(walk.survey)
}

fn is_some(region: &Region) -> bool {
    region.rows > 0 && region.row_bytes > 0
}

impl<F: FnMut(&[Conflict]) -> ControlFlow<()>> Walk<'_, F> {
    fn submit(&mut self, task: &Submit) {
        let id = TaskId(self.sources.len() as u64);
        self.own_overlaps(id, task);
        self.uses(id, task);
        self.conflicts(id, task);
        self.needs(id, task);
        for region in &task.reads {
            self.accesses.read(region, id);
        }
        for region in task.writes.iter().chain(&task.updates) {
            self.accesses.write(region, id);
        }
        for new in &task.allocates {
            self.bind(new.buffer, Some(Binding::Heap { owner: id, is_read: false, is_empty: new.bytes == 0 }));
            self.accesses.write(&Region::range(new.buffer, 0, new.bytes), id);
        }
    }

    /// Outputs of one task that share bytes, or buffers it makes twice.
    fn own_overlaps(&mut self, id: TaskId, task: &Submit) {
        let outputs: Vec<Region> = task.writes.iter().chain(&task.updates).copied().collect();
        let made: Vec<Region> = task.allocates.iter().map(|new| Region::range(new.buffer, 0, new.bytes)).collect();
        let first_of = |list: &[Region]| {
            (1..list.len()).find_map(|at| list[..at].iter().find_map(|other| shared(other, &list[at])))
        };
        let overlap = first_of(&outputs).or_else(|| first_of(&made));
        self.survey.overlaps.extend(overlap.map(|bytes| (id, bytes)));
    }

    /// Books which buffers are used, and those that nothing keeps any more.
    fn uses(&mut self, id: TaskId, task: &Submit) {
        let first_escape = self.survey.escapes.len();
        let read =
            task.reads.iter().chain(&task.updates).filter(|region| is_some(region)).map(|region| (region.buffer, true));
        let written = task.writes.iter().filter(|region| is_some(region)).map(|region| (region.buffer, false));
        for (buffer, reads) in read.chain(written) {
            match self.bindings.get_mut(buffer.0 as usize).and_then(Option::as_mut) {
                Some(Binding::Device { is_used, .. }) => *is_used = true,
                Some(Binding::Heap { owner, is_read, .. }) => {
                    *is_read |= reads;
                    let (owner, scope) = (*owner, self.holding.holders[owner.0 as usize]);
                    let is_kept = scope.is_some_and(|scope| self.holding.scopes[scope as usize].end > id);
                    if !is_kept {
                        self.survey.escapes.push(Escape { owner, user: id, buffer, scope });
                    }
                }
                None => {}
            }
        }
        let mut escapes = self.survey.escapes.split_off(first_escape);
        escapes.sort_unstable();
        escapes.dedup();
        self.survey.escapes.append(&mut escapes);
    }

    fn conflicts(&mut self, later: TaskId, task: &Submit) {
        let Walk { accesses, found, tell, survey, .. } = self;
        if survey.conflicts_end.is_some() {
            return;
        }
        let conflict_with = |earlier, hazard, bytes| Conflict { later, earlier, hazard, bytes };
        for region in task.writes.iter().chain(&task.updates) {
            accesses.writers(region, |writer, bytes| found.push(conflict_with(writer, Hazard::WriteAfterWrite, bytes)));
            accesses.readers(region, |reader, bytes| found.push(conflict_with(reader, Hazard::WriteAfterRead, bytes)));
        }
        found.sort_unstable();
        found.dedup_by_key(|conflict| (conflict.earlier, conflict.hazard));
        if tell(found).is_break() {
            survey.conflicts_end = Some(later);
        }
        found.clear();
    }

    /// What a task needs: whom it names, whose bytes it reads, who creates it.
    fn needs(&mut self, id: TaskId, task: &Submit) {
        let mut sources = task.deps.clone();
        sources.extend(task.parent.map(|(parent, _)| parent));
        for region in task.reads.iter().chain(&task.updates) {
            self.accesses.writers(region, |writer, _| {
                if sources.last() != Some(&writer) {
                    sources.push(writer);
                }
            });
        }
        sources.sort_unstable();
        sources.dedup();
        self.sources.push(sources);
        let written = task.writes.iter().chain(&task.updates).filter(|region| is_some(region)).count();
        let made = task.allocates.iter().filter(|new| new.bytes > 0).count();
        debug_assert_eq!(self.is_needed.len() as u64, id.0);
        // A task that names no output is taken to do something the program does not tell.
        self.is_needed.push(written + made == 0);
    }

    /// The name means something else from now on; tells what its buffer was not used for.
    fn bind(&mut self, buffer: BufferId, binding: Option<Binding>) {
        let index = buffer.0 as usize;
        if index >= self.bindings.len() {
            self.bindings.resize(index + 1, None);
        }
        match std::mem::replace(&mut self.bindings[index], binding) {
            Some(Binding::Device { line, is_used: false }) => self.survey.unused.push((buffer, line)),
            // Device memory outlives the run, so what is left in it is a result.
            Some(Binding::Device { .. }) => {
                let is_needed = &mut self.is_needed;
                self.accesses.last_writers(buffer, |writer| is_needed[writer.0 as usize] = true);
            }
            Some(Binding::Heap { owner, is_read: false, is_empty: false }) => self.survey.unread.push((owner, buffer)),
            Some(Binding::Heap { .. }) | None => {}
        }
        self.accesses.bind(buffer);
    }

    /// Whoever is needed needs its sources, which come before it.
    fn settle_needs(&mut self) {
        for task in (0..self.sources.len()).rev() {
            if self.is_needed[task] {
                self.sources[task].iter().for_each(|source| self.is_needed[source.0 as usize] = true);
            }
        }
        let unneeded = self.is_needed.iter().enumerate().filter(|(_, is_needed)| !**is_needed);
        self.survey.unneeded = unneeded.map(|(task, _)| TaskId(task as u64)).collect();
        self.survey.unread.sort_unstable();
        self.survey.unused.sort_unstable();
    }
}

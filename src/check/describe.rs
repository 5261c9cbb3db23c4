//! Facts in words: who, where, which bytes, and what to do about it.

use super::Checked;
use super::accesses::{Span, rows};
use super::fact::{Fact, Kind, Level, Misfit};
use super::holding::Scope;
use super::reach::Redundant;
use super::survey::{Conflict, Escape, Hazard};
use crate::config::{Hazards, format_bytes};
use crate::id::{BufferId, Symbol, TaskId};
use crate::report::plain;
use crate::window::Resource;
use crate::workload::{Region, Submit};
use serde::Serialize;

/// A fact, told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What it is.
    pub kind: Kind,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// The tasks it is about, the earlier one first.
    pub tasks: Vec<Party>,
    /// The bytes it is about, such as `C[0..64)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// A task of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Party {
    /// The task.
    pub task: TaskId,
    /// Its label, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Its line in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The regions it uses of the buffer at hand, such as `in C[0..64)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
}

/// Message, remedy, tasks and bytes.
type Told = (String, String, Vec<(TaskId, Option<BufferId>)>, Option<Span>);

impl Checked {
    /// A fact in words.
    #[must_use]
    pub fn describe(&self, fact: &Fact) -> Finding {
        let (message, remedy, tasks, bytes) = match fact {
            Fact::Race(conflict) => self.race(conflict),
            Fact::Escape(escape) => self.escape(escape),
            Fact::NeverFits(misfit) => self.misfit(misfit),
            Fact::Overlap { task, bytes } => (
                format!("{} writes {} through two of its outputs", self.who(*task), self.span(bytes)),
                "give its outputs bytes of their own".into(),
                vec![(*task, Some(bytes.buffer))],
                Some(*bytes),
            ),
            Fact::Unread { task, buffer } => (
                format!("{} makes `{}`, which nobody reads", self.who(*task), self.buffer(*buffer)),
                "read it, or do not allocate it".into(),
                vec![(*task, Some(*buffer))],
                None,
            ),
            Fact::Unneeded { task } => (
                format!(
                    "nobody needs {}: its outputs are overwritten or dropped before a needed task reads them",
                    self.who(*task)
                ),
                "remove it, or let the task that needs it read its output or name it in deps".into(),
                vec![(*task, None)],
                None,
            ),
            Fact::Unused { buffer, line } => {
                let place = line.map_or_else(String::new, |line| format!(" (line {line})"));
                let message = format!("buffer `{}`{place} is declared and never used", self.buffer(*buffer));
                (message, "remove the declaration".into(), Vec::new(), None)
            }
            Fact::Redundant { edge, is_named } => self.redundant(edge, *is_named),
        };
        let tasks = tasks.into_iter().map(|(task, buffer)| self.party(task, buffer)).collect();
        let bytes = bytes.map(|bytes| self.span(&bytes));
        Finding { level: fact.level(), kind: fact.kind(), message, remedy, tasks, bytes }
    }

    fn race(&self, conflict: &Conflict) -> Told {
        let Conflict { later, earlier, hazard, bytes } = *conflict;
        let what = self.span(&bytes);
        let did = match hazard {
            Hazard::WriteAfterRead => "may still read",
            Hazard::WriteAfterWrite => "may still write",
        };
        let message = format!("{} writes {what}, which {} {did}", self.who(later), self.who(earlier));
        let depend = format!("make task {later} depend on task {earlier}");
        let buffer = self.buffer(bytes.buffer);
        let remedy = match (hazard, self.hazards()) {
            (Hazard::WriteAfterRead, Hazards::Raw) => format!("{depend}, or set rules.hazards=full"),
            (Hazard::WriteAfterRead, Hazards::RawWaw | Hazards::Full) => {
                format!("{depend}, or let task {earlier} take `{buffer}` as inout, or set rules.hazards=full")
            }
            (Hazard::WriteAfterWrite, _) => {
                format!("{depend}, or let task {later} take `{buffer}` as inout, or set rules.hazards=raw_waw")
            }
        };
        let tasks = [earlier, later].map(|task| (task, Some(bytes.buffer)));
        (message, remedy, tasks.to_vec(), Some(bytes))
    }

    fn escape(&self, escape: &Escape) -> Told {
        let Escape { owner, user, buffer, scope } = *escape;
        let (who, made, name) = (self.who(user), self.who(owner), self.buffer(buffer));
        let (message, remedy) = match scope.map(|scope| self.holding.scopes[scope as usize]) {
            Some(scope) => (
                format!("{who} uses `{name}` of {made} after {} that holds it has closed", scope_words(&scope)),
                format!("submit task {user} before the scope closes, or make `{name}` in an outer scope"),
            ),
            None => (
                format!(
                    "{who} uses `{name}` of {made}, which no scope holds: it may be recycled before task {user} is submitted"
                ),
                format!("put tasks {owner} and {user} into one scope"),
            ),
        };
        (message, remedy, [owner, user].map(|task| (task, Some(buffer))).to_vec(), None)
    }

    fn misfit(&self, misfit: &Misfit) -> Told {
        let Misfit { scope, resource, ring, task, needed, size } = *misfit;
        let (key, unit) = match resource {
            Resource::Window => ("limits.window", "slots"),
            Resource::Heap => ("limits.heap", "bytes"),
            Resource::Deps => ("limits.deps", "dependency entries"),
            Resource::Tensors => ("limits.tensors", "tensor-map entries"),
        };
        let place = if resource == Resource::Tensors { String::new() } else { format!(" of ring {ring}") };
        let there = if resource == Resource::Heap { format_bytes(size) } else { format!("{size} {unit}") };
        let who = self.who(task);
        let message = match scope.map(|scope| self.holding.scopes[scope as usize]) {
            Some(scope) => {
                format!("{} keeps more than the {there}{place}: {who} can never be submitted", scope_words(&scope))
            }
            None => format!("{who} needs more than the {there}{place}"),
        };
        let close = if scope.is_some() { ", or close the scope earlier" } else { "" };
        (message, format!("set {key}={needed} or more{close}"), vec![(task, None)], None)
    }

    fn redundant(&self, edge: &Redundant, is_named: bool) -> Told {
        let Redundant { consumer, producer, through } = *edge;
        let message = format!(
            "{} depends on {}, which comes before it anyway by way of {}",
            self.who(consumer),
            self.who(producer),
            self.who(through)
        );
        let has_memory = self.program.tasks()[producer.0 as usize].heap_bytes() > 0;
        let remedy = match (is_named, has_memory) {
            (false, _) => "it follows from the regions and costs one dependency entry".into(),
            (true, false) => format!("leave {producer} out of the deps of task {consumer}"),
            (true, true) => format!(
                "leave {producer} out of the deps of task {consumer}, unless that uses its memory, which the edge keeps"
            ),
        };
        (message, remedy, [producer, through, consumer].map(|task| (task, None)).to_vec(), None)
    }

    fn party(&self, task: TaskId, buffer: Option<BufferId>) -> Party {
        let facts = &self.graph.tasks[task.0 as usize];
        let text = |symbol: Symbol| self.graph.symbols.name(symbol).to_owned();
        let submit = &self.program.tasks()[task.0 as usize];
        Party {
            task,
            name: facts.name.map(text),
            kernel: facts.kernel.map(text),
            line: facts.line,
            regions: buffer.map(|buffer| self.regions(submit, buffer)).unwrap_or_default(),
        }
    }

    /// The arguments of a task that name a buffer.
    fn regions(&self, submit: &Submit, buffer: BufferId) -> Vec<String> {
        let lists = [("in", &submit.reads), ("out", &submit.writes), ("inout", &submit.updates)];
        let of_buffer = |region: &&Region| region.buffer == buffer;
        let mut texts: Vec<String> = lists
            .into_iter()
            .flat_map(|(word, list)| list.iter().filter(of_buffer).map(move |region| (word, region)))
            .map(|(word, region)| format!("{word} {}", self.region(region)))
            .collect();
        let made = submit.allocates.iter().filter(|new| new.buffer == buffer);
        texts.extend(made.map(|new| format!("new {}[0..{})", self.buffer(buffer), new.bytes)));
        texts
    }

    /// `task 93 ``tile_add`` (line 120)`.
    fn who(&self, task: TaskId) -> String {
        let facts = &self.graph.tasks[task.0 as usize];
        let label = facts.name.or(facts.kernel);
        let label = label.map_or_else(String::new, |label| format!(" `{}`", plain(self.graph.symbols.name(label))));
        let line = facts.line.map_or_else(String::new, |line| format!(" (line {line})"));
        format!("task {task}{label}{line}")
    }

    fn buffer(&self, buffer: BufferId) -> String {
        plain(self.program.buffers().name(Symbol(buffer.0)))
    }

    fn span(&self, span: &Span) -> String {
        format!("{}[{}..{})", self.buffer(span.buffer), span.start, span.end)
    }

    fn region(&self, region: &Region) -> String {
        let (start, end) = rows(region).next().unwrap_or((region.offset, region.offset));
        let rows = if region.rows > 1 { format!(" × {} every {}", region.rows, region.stride) } else { String::new() };
        format!("{}[{start}..{end}){rows}", self.buffer(region.buffer))
    }
}

fn scope_words(scope: &Scope) -> String {
    let line = match scope.begin_line {
        Some(line) => format!("of line {line}"),
        None => format!("at depth {}", scope.depth + 1),
    };
    let end = scope.end_line.map_or_else(String::new, |line| format!(" to {line}"));
    format!("the scope {line}{end}")
}

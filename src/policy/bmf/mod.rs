//! `bmf`: a stream graph. Tasks belong to nodes, nodes to queues, and a queue is a worker; back-pressure between nodes.
//!
//! ```text
//! READY ─▶ flow (nodes, streams, back-pressure) ─▶ queues (timestamp, node, order) ─▶ the queue's own worker
//! ```
//!
//! The rules are those of the BMF scheduler: a node schedules its oldest task when something happens around it, upstream
//! nodes first, unless too many of its tasks are pending or too many packets wait behind it. A failed task stops the whole
//! graph, and so does a time without any scheduled task.

mod choose;
mod config;
mod finder;
mod flow;
mod graph;
mod node;
mod pass;
mod queues;
mod read;
mod record;
mod route;
pub mod safe_queue;
pub mod scheduler_queue;
mod sorting;
pub mod stream;
pub mod timestamp;

pub use choose::{NodeItem, NodeTable};
pub use config::{Backpressure, Config, NodeConfig};

use super::{AfterEnd, Dropped, End, Halt, Policy, Ready, Requests, Stage};
use crate::config::Machine;
use crate::engine::RunError;
use crate::graph::Adjacency;
use crate::id::{TaskId, TaskType};
use crate::window::SlotRef;
use crate::workload::{Control, Workload};
use flow::Flow;
use graph::NodeGraph;
use node::Flag;
use queues::Queues;
use read::Program;
use record::Record;
use serde_json::Value;

/// The rule of the BMF scheduler.
pub struct Bmf {
    flow: Flow,
    is_relaxed: bool,
    /// The nodes behind each, if sources are cut off when nobody needs them any more.
    force_close: Option<Adjacency<u32>>,
    time_out: u64,
    phase: Phase,
    /// Tasks completed before the start, which take no worker, and whether their nodes closed: what they ask for is asked after it.
    early: Vec<(TaskId, bool)>,
    /// Whether a task is being completed, which asks for the nodes of all that becomes READY by it.
    is_completing: bool,
    requests: Requests,
}

/// How far a graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Tasks wait in their nodes.
    Built,
    /// Nodes are scheduled.
    Started,
    /// No task is scheduled any more; those in the queues still run.
    Closed,
    /// Nothing starts any more.
    Halted,
}

impl Bmf {
    /// The policy for one program on one machine: finds its nodes and gives each a queue.
    ///
    /// # Errors
    /// When the program cannot be read, or the configuration does not fit the machine.
    pub fn new(config: &Config, workload: &dyn Workload, machine: &Machine) -> Result<Bmf, RunError> {
        config.validate()?;
        let mut shape = NodeGraph::new(Program::load(workload, machine)?, config, machine)?;
        let is_declared = shape.is_declared || !config.nodes.is_empty();
        let is_relaxed = match config.backpressure {
            Backpressure::Auto => !is_declared,
            Backpressure::Strict => false,
            Backpressure::Relaxed => true,
        };
        Ok(Bmf {
            is_relaxed,
            force_close: config.force_close.then(|| shape.downstream()),
            time_out: config.time_out,
            phase: Phase::Built,
            early: Vec::new(),
            is_completing: false,
            requests: Requests { notes: std::mem::take(&mut shape.warnings), ..Requests::default() },
            flow: Flow::new(shape, config, Queues::new(machine.workers.total()), Record::new(is_declared)),
        })
    }

    /// Cancels a READY task of a node that was closed by force; whether it did.
    #[inline(never)]
    fn refuses(&mut self, ready: Ready, now: u64) -> bool {
        let is_closed = self.flow.nodes[self.flow.node_of(ready.task) as usize].is(Flag::ForceClosed);
        if is_closed {
            self.flow.hold_released();
            self.requests.cancel.push((ready.slot, "force close".into()));
            self.flow.cancel(ready.task, now);
        }
        is_closed
    }

    /// Cancels what is not needed any more.
    #[inline(always)]
    fn settle(&mut self, now: u64) {
        if self.force_close.is_some() {
            self.cancel_useless(now);
        }
    }

    /// Sources are cut off when every node behind them has closed.
    fn cancel_useless(&mut self, now: u64) {
        while let Some(closed) = self.flow.closed.as_mut().and_then(Vec::pop) {
            let (begin, end) = self.flow.shape.live[closed as usize];
            for place in begin..end {
                let upstream = self.flow.shape.upstream[place as usize];
                if self.is_useless(upstream) && !self.flow.nodes[upstream as usize].is(Flag::ForceClosed) {
                    self.flow.nodes[upstream as usize].set(Flag::ForceClosed, true);
                    for slot in self.flow.take_held(upstream, now) {
                        self.requests.cancel.push((slot, "force close".into()));
                    }
                }
            }
        }
    }

    /// Whether all nodes behind a source are closed while it still has tasks.
    fn is_useless(&self, node: u32) -> bool {
        let behind = self.force_close.as_ref().map_or(&[][..], |downstream| downstream.of(node as usize));
        let is_source = self.flow.shape.streams_into(node).is_empty();
        is_source && !behind.is_empty() && behind.iter().all(|&node| self.flow.is_closed(node))
    }

    /// The graph starts, and what was completed before asks for its consumers.
    #[cold]
    fn start(&mut self, now: u64) {
        self.enter(Phase::Started);
        self.flow.start(now);
        for (task, has_closed) in std::mem::take(&mut self.early) {
            self.flow.catch_up(task, has_closed, now);
        }
        self.settle(now);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.flow.is_open = phase == Phase::Started;
    }

    fn halt(&mut self, reason: String, timeout: bool) {
        self.enter(Phase::Halted);
        self.flow.record.halt = Some(reason.clone());
        self.requests.halt = Some(Halt { timeout, reason });
    }

    /// Cancels the tasks of a node that wait in one queue or in all.
    fn remove_queued(&mut self, node: i32, queue: Option<u64>, now: u64) {
        for item in self.flow.queues.remove(node, queue) {
            self.flow.record.removed(now, &self.flow.shape.names, TaskId(item.task().into()));
            self.requests.cancel.push((item.slot(), format!("removed from its queue (node {node})")));
            self.flow.remove(TaskId(item.task().into()), now);
        }
    }

    /// A command about one node.
    fn control_node(&mut self, control: &Control, now: u64) {
        let argument = |key: &str| control.arguments.get(key).and_then(Value::as_i64);
        let id = argument("node").and_then(|node| i32::try_from(node).ok());
        let Some((id, index)) = id.and_then(|id| self.flow.shape.index_of(id).map(|index| (id, index))) else {
            let node = control.arguments.get("node").map_or_else(|| "no node".into(), |node| format!("node {node}"));
            self.requests.notes.push(format!("control `{}` names {node} of this graph: ignored", control.command));
            return;
        };
        match control.command.as_str() {
            "add_node" => self.flow.add_node(index, now),
            "remove_node" => self.flow.remove_node(index),
            "pause_node" | "pause" => self.flow.nodes[index as usize].set(Flag::Paused, true),
            "remove_node_task" => self.remove_queued(id, None, now),
            "clear_task" => self.remove_queued(id, argument("queue").and_then(|queue| u64::try_from(queue).ok()), now),
            other => unreachable!("{other} is not about a node"),
        }
    }

    /// Resumes queues and nodes: all of them, one queue, or one node.
    fn resume(&mut self, control: &Control, now: u64) {
        let queue = control.arguments.get("queue").and_then(Value::as_u64);
        let node = control.arguments.get("node").and_then(Value::as_i64);
        if node.is_none() {
            self.flow.queues.pause(queue, false);
        }
        for index in 0..self.flow.nodes.len() as u32 {
            let is_meant = queue.is_none() && node.is_none_or(|id| id == i64::from(self.flow.shape.id(index)));
            if is_meant && self.flow.nodes[index as usize].is(Flag::Paused) {
                self.flow.nodes[index as usize].set(Flag::Paused, false);
                self.flow.sched_required(index, now);
            }
        }
    }
}

impl Policy for Bmf {
    const READS_SUBMISSIONS: bool = false;
    /// As long as it is steady.
    const INTERFERES: bool = false;
    const KEEPS_ORDER: bool = true;
    const TAKES_CERTAIN_WORKERS: bool = true;

    fn name(&self) -> &'static str {
        "bmf"
    }

    /// A node that is closed by force does not take what becomes READY, and a run that is watched may be halted.
    fn is_steady(&self) -> bool {
        self.force_close.is_none() && self.time_out == 0
    }

    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        if self.force_close.is_some() && self.refuses(ready, now) {
            return Ok(());
        }
        if self.is_completing && !ready.by_admission {
            self.flow.release(ready.task, ready.slot);
            return Ok(());
        }
        self.flow.admit(ready.task, ready.slot, self.flow.node_of(ready.task), now);
        self.settle(now);
        Ok(())
    }

    /// The watch counts as a timer that may be due.
    #[inline]
    fn is_idle(&self) -> bool {
        let is_watched = self.time_out > 0;
        self.phase != Phase::Built && self.flow.queues.is_empty() && !is_watched
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        if self.phase == Phase::Built {
            self.start(stage.now);
        }
        self.flow.queues.hand_out(stage);
    }

    fn on_end(&mut self, end: &End, now: u64) -> AfterEnd {
        if !end.failed {
            self.is_completing = true;
            return AfterEnd::Complete;
        }
        if self.phase != Phase::Halted {
            let node = self.flow.shape.id(self.flow.node_of(end.task));
            let name = self.flow.shape.names.name(end.task);
            self.halt(format!("exception node={node} task={name} at {now}"), false);
        }
        AfterEnd::Abandon
    }

    fn on_complete(&mut self, end: &End, now: u64) {
        self.is_completing = false;
        if self.phase == Phase::Halted {
            self.flow.hold_released();
            return;
        }
        self.flow.complete(end.task, end.kind != TaskType::None, now);
        if self.phase == Phase::Built {
            self.early.push((end.task, self.flow.is_closed(self.flow.node_of(end.task))));
        }
        self.settle(now);
    }

    fn on_cancel(&mut self, _slot: SlotRef, task: TaskId, now: u64) {
        self.flow.hold_released();
        if self.phase != Phase::Halted {
            self.flow.cancel(task, now);
            self.settle(now);
        }
    }

    fn on_control(&mut self, control: &Control, now: u64) -> bool {
        if self.phase == Phase::Halted {
            return true;
        }
        match control.command.as_str() {
            "pause" => {
                let queue = control.arguments.get("queue").and_then(Value::as_u64);
                if control.arguments.contains_key("node") {
                    self.control_node(control, now);
                } else if let (false, Some(queue)) = (self.flow.queues.pause(queue, true), queue) {
                    self.requests
                        .notes
                        .push(format!("control `pause` names queue {queue}, which is not there: ignored"));
                }
            }
            "resume" => self.resume(control, now),
            "close" | "shutdown" => {
                self.flow.queues.pause(None, false);
                self.enter(Phase::Closed);
                self.flow.record.closed_at = Some(now);
            }
            "add_node" | "remove_node" | "pause_node" | "remove_node_task" | "clear_task" => {
                self.control_node(control, now);
            }
            _ => return false,
        }
        self.settle(now);
        true
    }

    #[inline]
    fn requests(&mut self) -> Option<&mut Requests> {
        self.requests.is_any().then_some(&mut self.requests)
    }

    /// The moment at which the watch finds that nothing was scheduled for too long.
    fn next_timer(&self) -> Option<u64> {
        let is_watched = self.time_out > 0 && self.flow.left > 0 && self.phase != Phase::Halted;
        is_watched.then(|| self.flow.last_schedule.saturating_add(self.time_out))
    }

    fn on_timer(&mut self, now: u64) -> bool {
        let last = self.flow.last_schedule;
        self.halt(format!("time_out at {now} (last_schedule_clk={last})"), true);
        true
    }

    fn on_idle(&mut self, now: u64) -> bool {
        if self.phase == Phase::Closed {
            let left = self.flow.left;
            self.halt(format!("closed: {left} tasks were not scheduled"), false);
            return false;
        }
        let is_stuck = self.flow.queues.is_empty() && self.flow.held > 0;
        if is_stuck && self.is_relaxed && self.flow.force(now) {
            self.settle(now);
            return true;
        }
        if !self.flow.queues.is_empty() {
            self.requests.notes.push(format!("bmf: nothing can move at {now}: tasks wait in queues that are paused"));
        } else if is_stuck {
            self.requests
                .notes
                .extend(self.flow.why_held().map(|why| format!("bmf: nothing can move at {now}: {why}")));
        }
        false
    }

    fn report(&self) -> Value {
        self.flow.record.report(self)
    }
}

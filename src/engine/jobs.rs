//! The scheduler's threads in virtual time: a queue of jobs, taken strictly first in first out.

use crate::config::SchedulerCosts;
use crate::report::SchedulerReport;
use crate::window::SlotRef;
use std::collections::VecDeque;

/// Something for a scheduler thread to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// Look at a published task.
    Admit(SlotRef),
    /// Process the end of the block that this worker leads.
    Complete(u32),
    /// Complete a task that takes no worker.
    Join(SlotRef),
    /// Start the block that this worker leads.
    Dispatch(u32),
}

/// A job in progress.
#[derive(Clone, Debug)]
struct Running {
    end: u64,
    job: Job,
    /// Completions that take effect with it, the next one last.
    more: Vec<Job>,
}

/// All threads and their queue.
pub(super) struct Jobs {
    queue: VecDeque<Job>,
    /// In the order in which they started.
    running: Vec<Running>,
    threads: usize,
    pub(super) report: SchedulerReport,
}

impl Jobs {
    pub(super) fn new(costs: &SchedulerCosts) -> Jobs {
        Jobs {
            queue: VecDeque::with_capacity(1024),
            running: Vec::with_capacity(costs.threads as usize),
            threads: costs.threads as usize,
            report: SchedulerReport { threads: costs.threads, ..SchedulerReport::default() },
        }
    }

    #[inline]
    pub(super) fn push(&mut self, job: Job) {
        self.queue.push_back(job);
    }

    /// Whether no job waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next job, if a thread is free to take it.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Job> {
        if self.running.len() == self.threads {
            return None;
        }
        let job = self.queue.pop_front()?;
        self.report.jobs += 1;
        Some(job)
    }

    /// The next job if it is a completion, for the thread that has just taken another one.
    pub(super) fn take_completion(&mut self) -> Option<Job> {
        if !matches!(self.queue.front(), Some(Job::Complete(_) | Job::Join(_))) {
            return None;
        }
        self.report.jobs += 1;
        self.queue.pop_front()
    }

    /// Keeps a thread busy with completions taken together now.
    pub(super) fn run_batch(&mut self, mut batch: Vec<Job>, now: u64, cost: u64) {
        self.report.complete += cost;
        batch.reverse();
        if let Some(job) = batch.pop() {
            self.running.push(Running { end: now.saturating_add(cost), job, more: batch });
        }
    }

    /// Keeps a thread busy with a job taken now.
    pub(super) fn run(&mut self, job: Job, now: u64, cost: u64) {
        match job {
            Job::Admit(_) => self.report.admit += cost,
            Job::Complete(_) | Job::Join(_) => self.report.complete += cost,
            Job::Dispatch(_) => self.report.dispatch += cost,
        }
        self.running.push(Running { end: now.saturating_add(cost), job, more: Vec::new() });
    }

    /// The first started of the jobs that end now.
    #[inline]
    pub(super) fn finish(&mut self, now: u64) -> Option<Job> {
        if self.running.is_empty() {
            return None;
        }
        let index = self.running.iter().position(|running| running.end == now)?;
        if let Some(next) = self.running[index].more.pop() {
            return Some(std::mem::replace(&mut self.running[index].job, next));
        }
        Some(self.running.remove(index).job)
    }

    /// When the next job ends.
    #[inline]
    pub(super) fn next_end(&self) -> Option<u64> {
        self.running.iter().map(|running| running.end).min()
    }
}

//! The scheduler's threads in virtual time: a queue of jobs, taken strictly first in first out.

use crate::config::SchedulerCosts;
use crate::fifo::Fifo;
use crate::report::SchedulerReport;
use crate::window::SlotRef;

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

impl Default for Job {
    fn default() -> Job {
        Job::Admit(0)
    }
}

/// A job in progress.
#[derive(Clone, Copy, Debug)]
struct Running {
    end: u64,
    job: Job,
    /// Which of the batches takes effect with it, if any does.
    batch: Option<u32>,
}

/// All threads and their queue.
pub(super) struct Jobs {
    queue: Fifo<Job>,
    /// In the order in which they started.
    running: Vec<Running>,
    /// When the first of them ends, or the largest number when none does.
    next_end: u64,
    threads: usize,
    /// Completions that take effect with another one, the next one last, each batch of a job in progress.
    batches: Vec<Vec<Job>>,
    pub(super) report: SchedulerReport,
}

impl Jobs {
    pub(super) fn new(costs: &SchedulerCosts) -> Jobs {
        Jobs {
            queue: Fifo::default(),
            running: Vec::with_capacity(costs.threads as usize),
            next_end: u64::MAX,
            threads: costs.threads as usize,
            batches: Vec::new(),
            report: SchedulerReport { threads: costs.threads, ..SchedulerReport::default() },
        }
    }

    #[inline]
    pub(super) fn push(&mut self, job: Job) {
        self.queue.push(job);
    }

    /// Whether no job waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no thread is free.
    #[inline]
    fn is_full(&self) -> bool {
        self.running.len() == self.threads
    }

    /// Whether a job that is queued now is the next one that a free thread takes.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_empty() && !self.is_full()
    }

    /// Whether no job can be taken before another one ends.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.is_empty() || self.is_full()
    }

    /// A job is taken.
    #[inline]
    pub(super) fn count(&mut self) {
        self.report.jobs += 1;
    }

    /// The next job, if a thread is free to take it.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Job> {
        if self.is_full() {
            return None;
        }
        let job = self.queue.pop()?;
        self.count();
        Some(job)
    }

    /// The next job if it is a completion, for the thread that has just taken another one.
    pub(super) fn take_completion(&mut self) -> Option<Job> {
        if !matches!(self.queue.front(), Some(Job::Complete(_) | Job::Join(_))) {
            return None;
        }
        self.count();
        self.queue.pop()
    }

    /// Keeps a thread busy with completions taken together now.
    pub(super) fn run_batch(&mut self, mut batch: Vec<Job>, now: u64, cost: u64) {
        self.report.complete += cost;
        batch.reverse();
        let Some(job) = batch.pop() else { return };
        let end = now.saturating_add(cost);
        if batch.is_empty() {
            return self.start(Running { end, job, batch: None });
        }
        let unused = self.batches.iter().position(Vec::is_empty).unwrap_or(self.batches.len());
        if unused == self.batches.len() {
            self.batches.push(Vec::new());
        }
        self.batches[unused] = batch;
        self.start(Running { end, job, batch: Some(unused as u32) });
    }

    /// Keeps a thread busy with a job taken now.
    #[inline]
    pub(super) fn run(&mut self, job: Job, now: u64, cost: u64) {
        match job {
            Job::Admit(_) => self.report.admit += cost,
            Job::Complete(_) | Job::Join(_) => self.report.complete += cost,
            Job::Dispatch(_) => self.report.dispatch += cost,
        }
        self.start(Running { end: now.saturating_add(cost), job, batch: None });
    }

    #[inline]
    fn start(&mut self, running: Running) {
        self.next_end = self.next_end.min(running.end);
        self.running.push(running);
    }

    /// The first started of the jobs that end now, which is when the next one ends.
    #[inline]
    pub(super) fn finish(&mut self, now: u64) -> Job {
        let index = self.running.iter().position(|running| running.end == now).expect("a job ends now");
        let running = &mut self.running[index];
        if let Some(batch) = running.batch
            && let Some(next) = self.batches[batch as usize].pop()
        {
            return std::mem::replace(&mut running.job, next);
        }
        let job = running.job;
        // A few threads at most: cheaper than `remove`.
        for later in index + 1..self.running.len() {
            self.running[later - 1] = self.running[later];
        }
        self.running.pop();
        self.next_end = self.running.iter().fold(u64::MAX, |next, running| next.min(running.end));
        job
    }

    /// When the next job ends, or the largest number.
    #[inline]
    pub(super) fn next_end(&self) -> u64 {
        self.next_end
    }

    /// The job in progress that started first.
    pub(super) fn first_running(&self) -> Option<Job> {
        self.running.first().map(|running| running.job)
    }
}

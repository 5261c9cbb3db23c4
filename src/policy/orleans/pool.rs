//! Orleans' scheduler on threads of the host: closures run one at a time per context, in the order in which they came.

use super::run_queue::{GroupState, Item, Limits, RunQueue, Turns};
use crate::workload::WorkItem;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An idle thread looks again after this time at the latest.
const WAIT: Duration = Duration::from_millis(50);

thread_local! {
    /// The context of the work item that this thread runs.
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// A closure and the context it runs in.
type Job = (Option<Arc<str>>, Box<dyn FnOnce() + Send>);

/// Why a work item is not taken.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum QueueError {
    /// Bare tasks come from inside a context, not from outside.
    #[error(
        "InvalidOperation: a work item of kind `task` cannot be queued to context `{0}`; use invoke, request, response, closure or resume"
    )]
    InvalidOperation(String),
    /// The context was stopped.
    #[error("context `{0}` was stopped and takes no more work")]
    Stopped(String),
}

/// Threads that share the work of all contexts.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    work: Mutex<Work>,
    news: Condvar,
    begin: Instant,
}

struct Work {
    queue: RunQueue<Job>,
    names: BTreeMap<Arc<str>, u32>,
    running: usize,
    is_closing: bool,
    failures: u64,
}

/// What a pool did.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Turns and how they ended.
    pub turns: Turns,
    /// Closures that panicked.
    pub failures: u64,
    /// Whether every context that was not stopped waits for work.
    pub all_waiting: bool,
}

/// The context of the work item that the calling thread runs.
#[must_use]
pub fn current_context() -> Option<String> {
    CURRENT.with_borrow(|current| current.as_deref().map(str::to_string))
}

impl Pool {
    /// A pool of so many threads, at least one. A quantum is in nanoseconds.
    #[must_use]
    pub fn new(n_threads: usize, limits: Limits) -> Pool {
        let work =
            Work { queue: RunQueue::new(limits), names: BTreeMap::new(), running: 0, is_closing: false, failures: 0 };
        let shared = Arc::new(Shared { work: Mutex::new(work), news: Condvar::new(), begin: Instant::now() });
        let thread = |_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.serve())
        };
        Pool { threads: (0..n_threads.max(1)).map(thread).collect(), shared }
    }

    /// The way to queue more work, also from inside a work item.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Waits until all work is done, ends the threads and tells what was done.
    #[must_use]
    pub fn close(self) -> Summary {
        self.shared.lock().is_closing = true;
        self.shared.news.notify_all();
        for thread in self.threads {
            thread.join().expect("work items that panic do not end their thread");
        }
        let work = self.shared.lock();
        let is_quiet = |state| matches!(state, GroupState::Waiting | GroupState::Shutdown);
        Summary {
            turns: *work.queue.turns(),
            failures: work.failures,
            all_waiting: work.queue.groups().iter().all(|group| is_quiet(group.state())),
        }
    }
}

/// Queues work to a pool.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Queues a work item to a context, or to no context.
    ///
    /// # Errors
    /// When the kind does not suit the context, or the context was stopped.
    pub fn queue(
        &self,
        context: Option<&str>,
        kind: WorkItem,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), QueueError> {
        match context {
            Some(context) if kind == WorkItem::Task => Err(QueueError::InvalidOperation(context.into())),
            _ => self.push(context.map(Arc::from), Box::new(job)),
        }
    }

    /// Queues a task to the context of the calling work item.
    ///
    /// # Errors
    /// When that context was stopped.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) -> Result<(), QueueError> {
        self.push(CURRENT.with_borrow(Clone::clone), Box::new(job))
    }

    /// Stops a context: what waits there is dropped. False if there is none of this name.
    pub fn stop(&self, context: &str) -> bool {
        let mut work = self.0.lock();
        let Some(&group) = work.names.get(context) else { return false };
        work.queue.stop(group);
        true
    }

    fn push(&self, context: Option<Arc<str>>, job: Box<dyn FnOnce() + Send>) -> Result<(), QueueError> {
        let mut work = self.0.lock();
        let now = self.0.now();
        let group = context.as_ref().map(|context| work.group(context));
        if let Some(group) = group
            && work.queue.group(group).state() == GroupState::Shutdown
        {
            return Err(QueueError::Stopped(work.queue.group(group).name().into()));
        }
        work.queue.push(group, Item { what: (context, job), lane: 0, queued: now }, now);
        drop(work);
        self.0.news.notify_one();
        Ok(())
    }
}

impl Work {
    fn group(&mut self, context: &Arc<str>) -> u32 {
        if let Some(&group) = self.names.get(context) {
            return group;
        }
        let group = self.queue.add_group(context);
        self.names.insert(Arc::clone(context), group);
        group
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// A thread: takes an entry, runs its turn, looks again.
    fn serve(&self) {
        let mut work = self.lock();
        loop {
            match work.queue.take(0, self.now()) {
                Some((group, item)) => {
                    work.running += 1;
                    drop(work);
                    work = self.turn(group, item);
                    work.running -= 1;
                    if work.is_closing {
                        self.news.notify_all();
                    }
                }
                None if work.is_closing && work.running == 0 => return,
                None => work = self.news.wait_timeout(work, WAIT).unwrap_or_else(PoisonError::into_inner).0,
            }
        }
    }

    /// Runs a task, or items of a group until its turn ends.
    fn turn(&self, group: Option<u32>, mut item: Item<Job>) -> MutexGuard<'_, Work> {
        loop {
            let (context, job) = item.what;
            CURRENT.set(context);
            let failed = catch_unwind(AssertUnwindSafe(job)).is_err();
            CURRENT.set(None);
            let mut work = self.lock();
            work.failures += u64::from(failed);
            let Some(group) = group else { return work };
            work.queue.group_mut(group).tally.failed += u64::from(failed);
            let Some(next) = work.queue.proceed(group, self.now(), |_| true) else { return work };
            item = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

    #[test]
    fn items_of_one_activation_run_in_order() {
        let pool = Pool::new(4, Limits::default());
        let number = Arc::new(AtomicI64::new(0));
        // Ordering: Relaxed; the lock of the queue orders the items of a context.
        let steps: [fn(i64) -> i64; 3] = [|n| n + 5, |n| n * 3, |n| n - 1];
        for step in steps {
            let number = Arc::clone(&number);
            let job = move || number.store(step(number.load(Relaxed)), Relaxed);
            pool.handle().queue(Some("A"), WorkItem::Invoke, job).expect("A takes invocations");
        }
        assert!(pool.close().all_waiting);
        assert_eq!(number.load(Relaxed), 14);
    }

    #[test]
    fn a_bare_task_needs_the_null_context() {
        let pool = Pool::new(1, Limits::default());
        let handle = pool.handle();
        let refused = handle.queue(Some("A"), WorkItem::Task, || {});
        assert_eq!(refused, Err(QueueError::InvalidOperation("A".into())));
        assert_eq!(handle.queue(None, WorkItem::Task, || {}), Ok(()));
        assert_eq!(pool.close().turns.turns, 0);
    }

    #[test]
    fn a_child_has_the_context_of_its_parent_unless_it_names_one() {
        let pool = Pool::new(2, Limits::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let seen = Arc::clone(&seen);
            move || seen.lock().expect("nobody panics here").push((name, current_context()))
        };
        let (parent, child, free) = (note("parent"), note("child"), note("free"));
        let handle = pool.handle();
        let job = move || {
            parent();
            handle.spawn(child).expect("the parent's context takes work");
            handle.queue(None, WorkItem::Task, free).expect("the null context takes tasks");
        };
        pool.handle().queue(Some("A"), WorkItem::Invoke, job).expect("A takes invocations");
        assert_eq!(pool.close().failures, 0);
        let mut seen = seen.lock().expect("nobody panics here").clone();
        seen.sort();
        let a = || Some("A".to_string());
        assert_eq!(seen, [("child", a()), ("free", None), ("parent", a())]);
        assert_eq!(current_context(), None);
    }

    #[test]
    fn a_failing_item_does_not_stop_its_group() {
        let pool = Pool::new(2, Limits::default());
        let ran = Arc::new(AtomicU64::new(0));
        for fails in [false, true, false] {
            let ran = Arc::clone(&ran);
            let job = move || {
                assert!(!fails, "this item fails on purpose");
                ran.fetch_add(1, Relaxed);
            };
            pool.handle().queue(Some("A"), WorkItem::Invoke, job).expect("A takes invocations");
        }
        let summary = pool.close();
        assert_eq!((ran.load(Relaxed), summary.failures, summary.all_waiting), (2, 1, true));
    }

    #[test]
    fn a_stopped_context_takes_no_more_work() {
        let pool = Pool::new(1, Limits::default());
        let handle = pool.handle();
        handle.queue(Some("A"), WorkItem::Invoke, || {}).expect("A takes invocations");
        assert!(handle.stop("A"));
        assert!(!handle.stop("B"));
        assert_eq!(handle.queue(Some("A"), WorkItem::Invoke, || {}), Err(QueueError::Stopped("A".into())));
        assert!(pool.close().all_waiting);
    }

    #[test]
    fn items_of_one_activation_never_overlap() {
        let pool = Pool::new(8, Limits { quantum: 20_000, ..Limits::default() });
        let counters: Vec<_> = (0..10).map(|_| Arc::new(AtomicU64::new(0))).collect();
        for round in 0..1000 {
            for (index, counter) in counters.iter().enumerate() {
                let counter = Arc::clone(counter);
                // Ordering: Relaxed, and not one operation on purpose: two at once would lose an increment.
                let job = move || counter.store(counter.load(Relaxed) + 1, Relaxed);
                let queued = pool.handle().queue(Some(&format!("activation {index}")), WorkItem::Invoke, job);
                assert_eq!(queued, Ok(()), "round {round}");
            }
        }
        assert!(pool.close().all_waiting);
        assert!(counters.iter().all(|counter| counter.load(Relaxed) == 1000));
    }
}

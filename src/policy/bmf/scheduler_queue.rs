//! One thread and its queue of tasks, as BMF runs them: by timestamp, then node, then order of arrival.
//!
//! ```text
//! INITED ─start▶ RUNNING ⇄ PAUSED        close: RUNNING, PAUSED ─▶ TERMINATING (drains) ─▶ TERMINATED
//! ```
//!
//! All state is behind one lock, and every wait re-checks it, so that no wake-up is lost.

use super::timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A task to be run; smaller ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Item {
    /// Of its packet.
    pub timestamp: i64,
    /// Its node.
    pub node: i32,
    /// Order of arrival, given by the queue.
    order: u64,
    /// What it is called by the user.
    pub task: u64,
}

impl Item {
    /// A task of a node. `priority` is accepted and has no effect, as in BMF itself.
    #[must_use]
    pub fn new(timestamp: i64, node: i32, task: u64, priority: i32) -> Item {
        let _ = priority;
        Item { timestamp, node, order: 0, task }
    }
}

/// How far a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Made, not started.
    Inited,
    /// Its thread takes tasks.
    Running,
    /// Its thread waits to be resumed.
    Paused,
    /// Its thread takes what is left.
    Terminating,
    /// Its thread is gone.
    Terminated,
}

/// Why a task is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The thread is gone.
    #[error("the queue is terminated")]
    Terminated,
    /// The task has no timestamp.
    #[error("timestamp -1 is unset")]
    Unset,
}

/// Runs a task; an error or a panic stops the queue.
pub type Run = Box<dyn FnMut(&Item) -> Result<(), String> + Send>;

/// Told the node whose task failed.
pub type OnException = Box<dyn FnMut(i32) + Send>;

/// A thread with its queue.
pub struct SchedulerQueue {
    id: u32,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    work: Option<(Run, OnException)>,
}

struct Shared {
    inner: Mutex<Inner>,
    /// Signalled when anything of the state or the queue changes.
    changed: Condvar,
}

struct Inner {
    items: BinaryHeap<Reverse<Item>>,
    next_order: u64,
    state: State,
    /// Whether a pause is asked for.
    paused: bool,
    /// The state to return to.
    paused_state: State,
    exception: Option<String>,
}

impl SchedulerQueue {
    /// A queue that is not started.
    #[must_use]
    pub fn new(id: u32, run: Run, on_exception: OnException) -> SchedulerQueue {
        let inner = Inner {
            items: BinaryHeap::new(),
            next_order: 0,
            state: State::Inited,
            paused: false,
            paused_state: State::Inited,
            exception: None,
        };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), changed: Condvar::new() });
        SchedulerQueue { id, shared, thread: None, work: Some((run, on_exception)) }
    }

    /// Starts the thread, named after the queue; a second call does nothing.
    ///
    /// # Panics
    /// When the host gives no thread.
    pub fn start(&mut self) {
        let Some((run, on_exception)) = self.work.take() else { return };
        let shared = Arc::clone(&self.shared);
        self.shared.lock().state = State::Running;
        let name = format!("schedule_queue{}", self.id);
        let thread = std::thread::Builder::new().name(name).spawn(move || shared.work(run, on_exception));
        self.thread = Some(thread.expect("the host has a thread left"));
    }

    /// Adds a task.
    ///
    /// # Errors
    /// When the queue is terminated or the task has no timestamp.
    pub fn add_task(&self, item: Item) -> Result<(), Refused> {
        let mut inner = self.shared.lock();
        if inner.state == State::Terminated {
            return Err(Refused::Terminated);
        }
        if item.timestamp == timestamp::UNSET {
            return Err(Refused::Unset);
        }
        let order = inner.next_order;
        inner.next_order += 1;
        inner.items.push(Reverse(Item { order, ..item }));
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Takes out the tasks of a node that have not begun; gives their number.
    pub fn remove_node_task(&self, node: i32) -> usize {
        let mut inner = self.shared.lock();
        let before = inner.items.len();
        inner.items.retain(|Reverse(item)| item.node != node);
        before - inner.items.len()
    }

    /// Waits until the task at hand is done and no other begins. Not to be called by a task of this queue.
    pub fn pause(&self) {
        let mut inner = self.shared.lock();
        if matches!(inner.state, State::Terminating | State::Terminated | State::Paused) {
            return;
        }
        inner.paused = true;
        if inner.state == State::Inited {
            inner.paused_state = State::Inited;
            inner.state = State::Paused;
        }
        self.shared.changed.notify_all();
        while inner.paused && !matches!(inner.state, State::Paused | State::Terminated) {
            inner = self.shared.wait(inner);
        }
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        let mut inner = self.shared.lock();
        inner.resume();
        self.shared.changed.notify_all();
    }

    /// Runs what is queued and ends the thread; a paused queue is resumed first.
    pub fn close(&mut self) {
        let mut inner = self.shared.lock();
        inner.resume();
        inner.state = match inner.state {
            State::Inited | State::Terminated => State::Terminated,
            State::Running | State::Paused | State::Terminating => State::Terminating,
        };
        self.shared.changed.notify_all();
        drop(inner);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic of a task is caught");
        }
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.shared.lock().state
    }

    /// Tasks that have not begun.
    pub fn len(&self) -> usize {
        self.shared.lock().items.len()
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What stopped it, if a task failed.
    pub fn exception(&self) -> Option<String> {
        self.shared.lock().exception.clone()
    }
}

impl Drop for SchedulerQueue {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    fn resume(&mut self) {
        self.paused = false;
        if self.state == State::Paused {
            self.state = self.paused_state;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: pause, end, wait, run, in this order.
    fn work(&self, mut run: Run, mut on_exception: OnException) {
        while let Some(item) = self.next() {
            let result = catch_unwind(AssertUnwindSafe(|| run(&item)));
            let Err(error) = result.unwrap_or_else(|_| Err("the task panicked".into())) else { continue };
            self.lock().exception = Some(error);
            on_exception(item.node);
            break;
        }
        self.lock().state = State::Terminated;
        self.changed.notify_all();
    }

    /// The next task, when there is one and no pause; `None` when the queue is closed and empty.
    fn next(&self) -> Option<Item> {
        let mut inner = self.lock();
        loop {
            if inner.paused {
                if inner.state != State::Paused {
                    inner.paused_state = inner.state;
                    inner.state = State::Paused;
                    self.changed.notify_all();
                }
            } else if let Some(Reverse(item)) = inner.items.pop() {
                return Some(item);
            } else if inner.state == State::Terminating {
                return None;
            }
            inner = self.wait(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Refused, SchedulerQueue, State};
    use std::sync::mpsc::{Receiver, channel};

    /// A queue whose tasks are told, and task 666 fails; also tells the nodes of failed tasks.
    fn queue() -> (SchedulerQueue, Receiver<u64>, Receiver<i32>) {
        let ((told, ran), (failed, failures)) = (channel(), channel());
        let run = Box::new(move |item: &Item| {
            told.send(item.task).unwrap();
            if item.task == 666 { Err("unlucky".into()) } else { Ok(()) }
        });
        (SchedulerQueue::new(0, run, Box::new(move |node| failed.send(node).unwrap())), ran, failures)
    }

    #[test]
    fn tasks_run_by_timestamp_then_node_then_order_of_arrival() {
        let (mut queue, ran, _) = queue();
        for (timestamp, task) in (0..100).rev().zip(0..) {
            queue.add_task(Item::new(timestamp, 0, task, 0)).unwrap();
        }
        for (task, node) in [(200, 7), (201, 3), (202, 3)] {
            queue.add_task(Item::new(1000, node, task, -5)).unwrap();
        }
        queue.start();
        queue.close();
        let expected: Vec<_> = (0..100).rev().chain([201, 202, 200]).collect();
        assert_eq!(ran.iter().take(103).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tasks_without_a_timestamp_and_terminated_queues_are_refused() {
        let (mut queue, _ran, _) = queue();
        assert_eq!(queue.add_task(Item::new(-1, 0, 1, 0)), Err(Refused::Unset));
        queue.pause();
        assert_eq!((queue.state(), queue.add_task(Item::new(1, 0, 1, 0))), (State::Paused, Ok(())));
        queue.resume();
        assert_eq!(queue.state(), State::Inited);
        queue.start();
        queue.close();
        assert_eq!(queue.add_task(Item::new(1, 0, 1, 0)), Err(Refused::Terminated));
    }

    #[test]
    fn a_terminating_queue_still_takes_tasks() {
        let (told, ran) = channel();
        let (enter, entered) = channel();
        let (leave, left) = channel::<()>();
        let run = Box::new(move |item: &Item| {
            enter.send(()).unwrap();
            left.recv().unwrap();
            told.send(item.task).unwrap();
            Ok(())
        });
        let mut queue = SchedulerQueue::new(3, run, Box::new(|_| {}));
        queue.add_task(Item::new(1, 0, 1, 0)).unwrap();
        queue.start();
        entered.recv().unwrap();
        queue.shared.lock().state = State::Terminating;
        assert_eq!(queue.add_task(Item::new(2, 0, 2, 0)), Ok(()));
        leave.send(()).unwrap();
        leave.send(()).unwrap();
        queue.close();
        assert_eq!(ran.iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn pausing_an_idle_queue_returns_and_closing_a_paused_one_drains_it() {
        let (mut queue, ran, _) = queue();
        queue.start();
        queue.pause();
        assert_eq!(queue.state(), State::Paused);
        queue.resume();
        assert_eq!(queue.state(), State::Running);
        queue.pause();
        queue.add_task(Item::new(1, 0, 1, 0)).unwrap();
        queue.add_task(Item::new(2, 0, 2, 0)).unwrap();
        assert_eq!((queue.len(), ran.try_recv().is_err()), (2, true), "nothing starts while it is paused");
        queue.close();
        assert_eq!(queue.state(), State::Terminated);
        assert_eq!([ran.recv(), ran.recv()], [Ok(1), Ok(2)]);
    }

    #[test]
    fn a_failing_task_is_told_with_its_node_and_ends_the_loop() {
        let (mut queue, ran, failures) = queue();
        for (timestamp, node, task) in [(2, 0, 1), (1, 4, 666), (3, 0, 2)] {
            queue.add_task(Item::new(timestamp, node, task, 0)).unwrap();
        }
        queue.start();
        assert_eq!(failures.recv(), Ok(4));
        queue.close();
        assert_eq!((queue.exception(), queue.len()), (Some("unlucky".into()), 2));
        assert_eq!(ran.try_iter().collect::<Vec<_>>(), [666]);
    }

    #[test]
    fn queued_tasks_of_a_node_can_be_removed() {
        let (mut queue, ran, _) = queue();
        for (timestamp, task, node) in [(1, 1, 0), (2, 2, 5), (3, 3, 5), (4, 4, 0)] {
            queue.add_task(Item::new(timestamp, node, task, 0)).unwrap();
        }
        assert_eq!((queue.remove_node_task(5), queue.is_empty()), (2, false));
        queue.start();
        queue.close();
        assert_eq!(ran.try_iter().collect::<Vec<_>>(), [1, 4]);
    }
}

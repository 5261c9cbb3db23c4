//! The dispatcher on host threads: one thread fires tasks when they are due, each task runs on a thread of its own.
//!
//! The dispatcher sleeps until the first task is due, or until something is added; every change moves a generation counter
//! under the same lock, so that no wake-up is lost and nothing polls.

use super::heap::Heap;
use super::registry::Registry;
use super::task::Task;
use crate::workload::ScheduleAt;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Fires tasks at their time, from any thread.
pub struct Dispatcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    registry: Registry,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// The moment that times are counted from, as a time of the day and on the steady clock.
    origin: (i64, Instant),
}

#[derive(Default)]
struct Inner {
    /// By microseconds since the origin.
    heap: Heap<Task>,
    /// Grows with every change that the dispatcher must look at.
    generation: u64,
    is_running: bool,
    gates: BTreeMap<String, Arc<Gate>>,
    tasks: Vec<JoinHandle<()>>,
    log: Vec<String>,
}

/// Tokens of one source; they are given in the order in which tickets were drawn.
struct Gate {
    tokens: u64,
    state: Mutex<GateState>,
    moved: Condvar,
}

#[derive(Default)]
struct GateState {
    drawn: u64,
    released: u64,
}

/// A place in the line of a gate; gives the token back when it is dropped.
struct Pass(Arc<Gate>);

impl Dispatcher {
    /// A dispatcher that is not started. Cycles of tasks count as microseconds from now.
    #[must_use]
    pub fn new(registry: Registry) -> Dispatcher {
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |span| span.as_micros());
        let origin = (i64::try_from(micros).unwrap_or(i64::MAX), Instant::now());
        let inner = Mutex::new(Inner::default());
        Dispatcher { shared: Arc::new(Shared { registry, inner, changed: Condvar::new(), origin }), thread: None }
    }

    /// Adds a task; one that is due earlier than the others wakes the dispatcher at once.
    pub fn add_task(&self, task: Task) {
        let when = match task.schedule_at {
            ScheduleAt::Cycle(micros) => micros,
            ScheduleAt::UtcMicros(micros) => u64::try_from(micros.saturating_sub(self.shared.origin.0)).unwrap_or(0),
        };
        let mut inner = self.shared.lock();
        inner.heap.push(when, task);
        self.shared.wake(&mut inner);
    }

    /// Starts firing; a second call does nothing.
    ///
    /// # Panics
    /// When the host gives no thread.
    pub fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        self.shared.lock().is_running = true;
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("ray_dispatcher".into()).spawn(move || shared.dispatch());
        self.thread = Some(thread.expect("the host has a thread left"));
    }

    /// Stops firing and waits for the dispatcher; fired tasks go on. Without a start it does nothing.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let mut inner = self.shared.lock();
        inner.is_running = false;
        self.shared.wake(&mut inner);
        drop(inner);
        thread.join().expect("the dispatcher does not panic");
    }

    /// Waits for every task fired so far.
    pub fn wait(&self) {
        loop {
            let tasks = std::mem::take(&mut self.shared.lock().tasks);
            if tasks.is_empty() {
                return;
            }
            for task in tasks {
                task.join().expect("a panic of a task is caught");
            }
        }
    }

    /// Tasks not fired.
    pub fn n_pending(&self) -> usize {
        self.shared.lock().heap.len()
    }

    /// Tasks not fired, in the order in which they would be; see [`super::save_pending`].
    pub fn pending(&self) -> Vec<Task> {
        self.shared.lock().heap.in_order().into_iter().map(|entry| entry.item.clone()).collect()
    }

    /// The log so far.
    pub fn log(&self) -> Vec<String> {
        self.shared.lock().log.clone()
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
        self.wait();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, inner: &mut Inner) {
        inner.generation += 1;
        self.changed.notify_all();
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.1.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The dispatcher's thread.
    fn dispatch(self: &Arc<Shared>) {
        let mut inner = self.lock();
        inner.log.push("Scheduler started".into());
        while inner.is_running {
            let now = self.now();
            if let Some(entry) = inner.heap.pop_due(now) {
                self.fire(&mut inner, entry.item);
                continue;
            }
            let sleep = inner.heap.next_when().map(|when| Duration::from_micros(when - now));
            inner = self.sleep(inner, sleep);
        }
        inner.log.push("Scheduler stopped".into());
    }

    /// Waits until something changes, at most for this long.
    fn sleep<'a>(&self, inner: MutexGuard<'a, Inner>, most: Option<Duration>) -> MutexGuard<'a, Inner> {
        let seen = inner.generation;
        let unchanged = |inner: &mut Inner| inner.generation == seen;
        match most {
            None => self.changed.wait_while(inner, unchanged).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                let result = self.changed.wait_timeout_while(inner, most, unchanged);
                result.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Starts a task on a thread of its own; its place in the line of its source is drawn here, in the order of firing.
    fn fire(self: &Arc<Shared>, inner: &mut Inner, task: Task) {
        let Some(consumer) = self.registry.find(&task.source).cloned() else {
            inner.log.push(format!("[drop] Unknown task source: {} {}", task.source, task.to_dict()));
            return;
        };
        let tokens = consumer.concurrent_count().max(1);
        let gate = inner.gates.entry(task.source.clone()).or_insert_with(|| Arc::new(Gate::new(tokens)));
        let (gate, ticket) = (Arc::clone(gate), gate.draw());
        let shared = Arc::clone(self);
        let run = move || {
            let pass = gate.enter(ticket);
            let result = catch_unwind(AssertUnwindSafe(|| consumer.consume(&task)));
            drop(pass);
            if let Err(error) = result.unwrap_or_else(|_| Err("panicked".into())) {
                shared.lock().log.push(format!("[fail] task {} from {}: {error}", task.uuid, task.source));
            }
        };
        inner.tasks.retain(|task| !task.is_finished());
        inner.tasks.push(std::thread::spawn(run));
    }
}

impl Gate {
    fn new(tokens: u64) -> Gate {
        Gate { tokens, state: Mutex::default(), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) -> u64 {
        let mut state = self.lock();
        state.drawn += 1;
        state.drawn - 1
    }

    /// Waits until it is this ticket's turn.
    fn enter(self: Arc<Gate>, ticket: u64) -> Pass {
        let state = self.lock();
        let is_early = |state: &mut GateState| ticket >= state.released + self.tokens;
        drop(self.moved.wait_while(state, is_early).unwrap_or_else(PoisonError::into_inner));
        Pass(self)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.lock().released += 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Dispatcher;
    use crate::policy::ray::{Consumer, Registry, Task};
    use crate::workload::ScheduleAt;
    use serde_json::{Value, json};
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    struct Teller {
        tokens: u64,
        told: Mutex<Sender<String>>,
        running: AtomicU64,
        most: AtomicU64,
    }

    impl Consumer for Teller {
        fn name(&self) -> &'static str {
            "s"
        }

        fn concurrent_count(&self) -> u64 {
            self.tokens
        }

        fn produce(&self, args: Value) -> Task {
            let when = args["when"].as_u64().unwrap_or(0);
            let uuid = args["uuid"].as_str().unwrap_or("?").to_string();
            Task { uuid, args, source: "s".into(), schedule_at: ScheduleAt::Cycle(when) }
        }

        fn consume(&self, task: &Task) -> Result<(), String> {
            self.most.fetch_max(self.running.fetch_add(1, SeqCst) + 1, SeqCst);
            std::thread::yield_now();
            self.told.lock().unwrap().send(task.uuid.clone()).unwrap();
            self.running.fetch_sub(1, SeqCst);
            match task.uuid.as_str() {
                "bad" => Err("broken".into()),
                "worse" => panic!("on purpose"),
                _ => Ok(()),
            }
        }
    }

    fn dispatcher(tokens: u64) -> (Dispatcher, Arc<Teller>, Receiver<String>) {
        let (told, heard) = channel();
        let teller =
            Arc::new(Teller { tokens, told: Mutex::new(told), running: AtomicU64::new(0), most: AtomicU64::new(0) });
        let mut registry = Registry::default();
        registry.register(Arc::<Teller>::clone(&teller)).unwrap();
        (Dispatcher::new(registry), teller, heard)
    }

    fn add(dispatcher: &Dispatcher, teller: &Teller, uuid: &str, when: u64) {
        dispatcher.add_task(teller.produce(json!({"uuid": uuid, "when": when})));
    }

    #[test]
    fn starting_twice_is_starting_once_and_stopping_before_returns() {
        let (mut dispatcher, ..) = dispatcher(1);
        dispatcher.stop();
        dispatcher.start();
        dispatcher.start();
        dispatcher.stop();
        assert_eq!(dispatcher.log(), ["Scheduler started", "Scheduler stopped"]);
        dispatcher.start();
        dispatcher.stop();
        assert_eq!(dispatcher.log().len(), 4);
    }

    #[test]
    fn an_earlier_task_overtakes_the_one_the_dispatcher_sleeps_for() {
        let (mut dispatcher, teller, heard) = dispatcher(2);
        let begin = Instant::now();
        add(&dispatcher, &teller, "late", 500_000);
        dispatcher.start();
        add(&dispatcher, &teller, "early", 100_000);
        assert_eq!([heard.recv().unwrap(), heard.recv().unwrap()], ["early", "late"]);
        assert!(begin.elapsed() >= Duration::from_millis(490), "nothing fires before its time");
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing is forgotten");
        assert_eq!(dispatcher.n_pending(), 0);
    }

    #[test]
    fn one_token_keeps_the_order_of_firing_and_no_more_run_than_there_are_tokens() {
        for tokens in [1, 3] {
            let (mut dispatcher, teller, heard) = dispatcher(tokens);
            let uuids: Vec<_> = (0..40).map(|number| format!("t{number:02}")).collect();
            for uuid in &uuids {
                add(&dispatcher, &teller, uuid, 0);
            }
            dispatcher.start();
            let mut order: Vec<_> = heard.iter().take(uuids.len()).collect();
            assert!(tokens > 1 || order == uuids, "first come first served");
            order.sort();
            assert_eq!(order, uuids);
            assert!(teller.most.load(SeqCst) <= tokens);
        }
    }

    #[test]
    fn failures_and_unknown_sources_are_logged_and_give_their_token_back() {
        let (mut dispatcher, teller, heard) = dispatcher(1);
        let mut stray = teller.produce(json!({"uuid": "stray"}));
        stray.source = "nope".into();
        dispatcher.add_task(stray);
        for uuid in ["bad", "worse", "good"] {
            add(&dispatcher, &teller, uuid, 0);
        }
        dispatcher.start();
        assert_eq!(heard.iter().take(3).collect::<Vec<_>>(), ["bad", "worse", "good"]);
        dispatcher.stop();
        dispatcher.wait();
        let log = dispatcher.log();
        assert!(log[1].starts_with("[drop] Unknown task source: nope {"));
        assert!(log[1].contains("\"uuid\":\"stray\""));
        assert!(log.contains(&"[fail] task bad from s: broken".to_string()));
        assert!(log.contains(&"[fail] task worse from s: panicked".to_string()));
    }

    #[test]
    fn what_is_not_fired_at_a_stop_is_kept() {
        let (mut dispatcher, teller, _heard) = dispatcher(1);
        add(&dispatcher, &teller, "b", 3_600_000_000);
        add(&dispatcher, &teller, "a", 1_800_000_000);
        dispatcher.start();
        dispatcher.stop();
        let pending: Vec<_> = dispatcher.pending().into_iter().map(|task| task.uuid).collect();
        assert_eq!(pending, ["a", "b"]);
    }
}

//! Programs on real threads: stress, and small ones for tools that watch every access to memory (`scripts/miri.sh`, `scripts/tsan.sh`).
//!
//! Each runs every part of the threaded engine that shares memory: free mode with and without scheduler threads, deterministic mode,
//! kernels on numbers, embedded programs, and tasks that fail. The sizes suit the tool.

#![expect(unsafe_code, reason = "kernels that write plain memory, so that a race is one")]

mod stress;
mod witness;

use ptosim::engine::RunError;
use ptosim::engine::execute::{Numbers, verify};
use ptosim::engine::threads::{Call, KernelError, Kernels, Options, run, run_deterministic};
use ptosim::policy::Choice;
use ptosim::report::Outcome;
use ptosim::runtime::Runtime;
use ptosim::workload;
use std::cell::UnsafeCell;
use std::fmt::Write;
use std::sync::Arc;
use witness::machine;

/// Tasks of a program.
const TASKS: usize = if cfg!(miri) { 20 } else { 3_000 };

/// Scheduler threads to try.
const SCHEDULERS: &[&str] = if cfg!(miri) {
    &["scheduler.threads=0", "scheduler.threads=2"]
} else {
    &["scheduler.threads=0", "scheduler.threads=1", "scheduler.threads=3"]
};

/// Plain memory that every task writes: a race unless the engine orders a task behind the one before it.
struct Plain(UnsafeCell<Vec<u64>>);

// SAFETY: tasks of a chain run one after the other, which is what the engine promises and the tools check.
unsafe impl Sync for Plain {}

impl Kernels for Plain {
    fn run(&self, call: &Call) -> Result<(), KernelError> {
        // SAFETY: as above.
        let seen = unsafe { &mut *self.0.get() };
        seen.push(call.task.0);
        Ok(())
    }
}

fn in_order() -> Vec<u64> {
    (0..TASKS as u64).collect()
}

#[test]
fn the_tasks_of_a_chain_see_what_the_ones_before_wrote_in_plain_memory() {
    let workload = workload::open(&format!("chain:n={TASKS}")).expect("a generator");
    let windows = if cfg!(miri) { &["limits.window=2"][..] } else { &["limits.window=2", "limits.window=16"] };
    for threads in SCHEDULERS {
        for window in windows {
            let plain = Plain(UnsafeCell::default());
            let options = Options { executors: Some(2), ..Options::default() };
            let report = run(workload.as_ref(), &machine(&[threads, window]), &plain, &options, &mut ());
            let report = report.expect("a run");
            assert_eq!(report.outcome, Outcome::Completed, "{threads} {window}: {:?}", report.deadlock);
            assert_eq!(plain.0.into_inner(), in_order(), "{threads} {window}");
        }
    }
}

#[test]
fn deterministic_mode_orders_plain_memory_too() {
    let workload = workload::open(&format!("chain:n={TASKS}")).expect("a generator");
    let plain = Plain(UnsafeCell::default());
    let options = Options { executors: Some(2), ..Options::default() };
    let machine = machine(&["limits.window=16"]);
    run_deterministic(workload.as_ref(), &machine, &Choice::default(), (&plain, &options), &mut ()).expect("a run");
    assert_eq!(plain.0.into_inner(), in_order());
}

#[test]
fn numbers_are_right_in_a_heap_that_recycles() {
    let depth = if cfg!(miri) { 3 } else { 32 };
    let spec = format!("bgemm:batch=1,m=2,n=2,k={depth},tile=4,scope=step");
    for threads in SCHEDULERS {
        let machine = machine(&["limits.heap=256", "limits.window=8", threads]);
        let workload = workload::open(&spec).expect("a generator");
        let numbers = Arc::new(Numbers::new(&spec, &machine).expect("memory for the heap"));
        let options = Options { executors: Some(2), ..Options::default() };
        run(&numbers.tap(workload.as_ref()), &machine, &*numbers, &options, &mut ()).expect("a run");
        verify(workload.as_ref(), &numbers).expect("equal numbers");
    }
}

#[test]
fn a_task_that_fails_cancels_what_depends_on_it_on_all_threads() {
    let mut trace = String::from("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"faults\"}\n");
    for task in 0..TASKS {
        let deps = if task < 4 { String::new() } else { format!(",\"deps\":[{},{}]", task - 4, task - 1) };
        let fault = task % 16 == 7;
        let blocks = 1 + task % 3;
        writeln!(trace, "{{\"op\":\"submit\",\"cycles\":5,\"blocks\":{blocks},\"fault\":{fault}{deps}}}")
            .expect("a text");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("faults.jsonl");
    std::fs::write(&path, trace).expect("a trace");
    let workload = workload::open(&path.to_string_lossy()).expect("a trace");
    for threads in SCHEDULERS {
        let options = Options { executors: Some(2), ..Options::default() };
        let machine = machine(&["limits.window=8", threads]);
        let report = run(workload.as_ref(), &machine, &ptosim::engine::threads::Noop, &options, &mut ());
        let report = report.expect("a report");
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!((report.ended.completed, report.ended.failed), (7, 1), "{threads}");
        assert_eq!(report.ended.cancelled, TASKS as u64 - 8, "{threads}");
    }
}

#[test]
fn an_embedded_program_reads_what_its_kernels_wrote() {
    let runtime = Runtime::builder()
        .workers(1, 2)
        .window(4)
        .heap(256)
        .executors(2)
        .kernel("fill", |_, outputs| outputs[0].fill(3.0))
        .kernel("add", |inputs, outputs| outputs[0].iter_mut().zip(inputs[0]).for_each(|(sum, x)| *sum += x))
        .build()
        .expect("settings that fit");
    let rounds = TASKS / 8;
    let end = runtime.run(|session| {
        let total = session.buffer(&[0.0; 4])?;
        for _ in 0..rounds {
            let _scope = session.scope()?;
            let threes = session.temporary(4);
            session.submit("fill", &[threes.create()])?;
            session.submit("add", &[threes.read(), total.update()])?;
        }
        session.wait_all()?;
        Ok(session.contents(&total))
    });
    assert_eq!(end.expect("a run"), [3.0 * rounds as f32; 4]);
}

#[test]
fn a_kernel_that_panics_ends_all_threads() {
    let runtime = Runtime::builder().window(4).heap(256).executors(2).kernel("bad", |_, _| panic!("on purpose"));
    let runtime = runtime.build().expect("settings that fit");
    let result = runtime.run(|session| (0..8).try_for_each(|_| session.submit("bad", &[]).map(|_| ())));
    assert!(matches!(result, Err(RunError::Kernel(_))), "{result:?}");
}

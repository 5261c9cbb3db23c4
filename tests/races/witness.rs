//! Kernels that check that every block runs once and after its producers.

use ptosim::config::Machine;
use ptosim::engine::RunError;
use ptosim::engine::threads::{Call, KernelError, Kernels, Options, run, run_deterministic};
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::policy::Choice;
use ptosim::report::{Outcome, Report};
use ptosim::workload::Workload;
use std::sync::atomic::{AtomicU32, Ordering};

/// Kernels that check what they are called for.
pub(crate) struct Witness {
    graph: Graph,
    /// Blocks begun and ended, by task.
    begun: Vec<AtomicU32>,
    ended: Vec<AtomicU32>,
}

impl Witness {
    pub(crate) fn new(graph: Graph) -> Witness {
        let counts = || graph.tasks.iter().map(|_| AtomicU32::new(0)).collect();
        Witness { begun: counts(), ended: counts(), graph }
    }

    pub(crate) fn n_tasks(&self) -> u64 {
        self.graph.tasks.len() as u64
    }

    /// Runs in free mode and expects a complete run.
    pub(crate) fn check_free(&mut self, workload: &dyn Workload, machine: &Machine, options: &Options, label: &str) {
        self.forget();
        let report = run(workload, machine, &*self, options, &mut ());
        self.check_complete(report, &format!("{label}, free"));
    }

    /// Runs in deterministic mode and expects a complete run.
    pub(crate) fn check_deterministic(
        &mut self,
        workload: &dyn Workload,
        machine: &Machine,
        options: &Options,
        label: &str,
    ) {
        self.forget();
        let report = run_deterministic(workload, machine, &Choice::default(), (&*self, options), &mut ());
        self.check_complete(report, &format!("{label}, deterministic"));
    }

    /// Nothing has run yet.
    fn forget(&mut self) {
        self.begun.iter_mut().chain(&mut self.ended).for_each(|count| *count.get_mut() = 0);
    }

    fn check_complete(&self, report: Result<Report, RunError>, label: &str) {
        let report = report.unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(report.outcome, Outcome::Completed, "{label}: {:?}", report.deadlock);
        let n_tasks = self.n_tasks();
        assert_eq!(
            (report.tasks, report.ended.completed, report.ended.consumed),
            (n_tasks, n_tasks, n_tasks),
            "{label}"
        );
        self.check_all_ran();
    }

    fn is_done(&self, task: TaskId) -> bool {
        let (index, own) = (task.0 as usize, &self.graph.tasks[task.0 as usize]);
        // A task without workers runs no block; it is done when its producers are.
        if own.kind == ptosim::id::TaskType::None {
            return self.graph.producers(task).iter().all(|&producer| self.is_done(producer));
        }
        self.ended[index].load(Ordering::SeqCst) == own.blocks
    }

    pub(crate) fn check_all_ran(&self) {
        for (index, task) in self.graph.tasks.iter().enumerate() {
            let expected = if task.kind == ptosim::id::TaskType::None { 0 } else { task.blocks };
            assert_eq!(self.ended[index].load(Ordering::SeqCst), expected, "blocks of task {index}");
        }
    }
}

impl Kernels for Witness {
    fn run(&self, call: &Call) -> Result<(), KernelError> {
        let index = call.task.0 as usize;
        if let Some(early) = self.graph.producers(call.task).iter().find(|&&producer| !self.is_done(producer)) {
            return Err(KernelError(format!("started before its producer {early} ended")));
        }
        let block = self.begun[index].fetch_add(1, Ordering::SeqCst);
        if block >= self.graph.tasks[index].blocks {
            return Err(KernelError(format!("block {block} runs twice")));
        }
        self.ended[index].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

pub(crate) fn machine(settings: &[&str]) -> Machine {
    let mut machine = Machine::default();
    machine.apply(&settings.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("settings of the test");
    machine.validate().expect("settings of the test");
    machine
}

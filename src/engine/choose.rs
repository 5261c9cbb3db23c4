//! From the name of a policy to a run under its type.

use super::listener::{Anyone, Listener};
use super::{BlockRow, Observer, RunError, simulate, simulate_under};
use crate::config::{Limits, Machine};
use crate::graph::Graph;
use crate::id::TaskId;
use crate::machine::Crew;
use crate::policy::bmf::Bmf;
use crate::policy::cyber::Cyber;
use crate::policy::heft::{self, Heft};
use crate::policy::orleans::Orleans;
use crate::policy::predictive::{self, Predictive};
use crate::policy::ray::Ray;
use crate::policy::{
    Choice, Lifo, Name, Ordered, PerWorker, Plan, Policy, Pto, QueueLimit, Random, Shortest, StaticList, Steal,
};
use crate::report::Report;
use crate::workload::{Source, Symbols, Workload, WorkloadError};

/// As [`super::run_with`], without looking for the sizes that would have been enough.
///
/// The default policy is compiled for every type of observer, the others once for all.
///
/// # Errors
/// As [`super::run_with`].
pub fn simulate_with<O: Observer>(
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    observer: &mut O,
) -> Result<Report, RunError> {
    match choice.name {
        Name::Pto => simulate(workload, machine, observer),
        _ if O::WATCHES => watched(workload, machine, choice, observer),
        _ => unwatched(workload, machine, choice),
    }
}

fn watched(
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    listener: &mut dyn Listener,
) -> Result<Report, RunError> {
    Run { workload, machine, choice, observer: Anyone(listener) }.under_name()
}

fn unwatched(workload: &dyn Workload, machine: &Machine, choice: &Choice) -> Result<Report, RunError> {
    Run { workload, machine, choice, observer: () }.under_name()
}

/// A run under any policy.
struct Run<'a, O> {
    workload: &'a dyn Workload,
    machine: &'a Machine,
    choice: &'a Choice,
    observer: O,
}

impl<O: Observer> Run<'_, O> {
    fn under_name(self) -> Result<Report, RunError> {
        let (workload, machine, config) = (self.workload, self.machine, &self.choice.config);
        match self.choice.name {
            Name::Pto => self.under(Pto::new(QueueLimit::of(machine))),
            Name::CyberClassic => self.under(Cyber::classic(config.scheduler_conf.clone(), machine)?),
            Name::CyberChoreography => self.under(Cyber::choreography(config.scheduler_conf.clone(), machine)?),
            Name::Orleans => self.under(Orleans::new(config.orleans.clone(), machine)?),
            Name::Bmf => self.under(Bmf::new(&config.bmf, workload, machine)?),
            Name::Ray => self.under(Ray::new(&config.ray, workload, machine)?),
            Name::PerWorker => self.under(PerWorker::new(machine)),
            Name::Steal => self.under(Steal::new(machine)),
            Name::Predictive => {
                let ranks = predictive::ranks(&Graph::load(workload, machine)?);
                self.under(Ordered::new(Predictive::new(ranks), machine))
            }
            Name::Heft => {
                let ranks = heft::ranks(&Graph::load(workload, machine)?, machine);
                self.under(Ordered::new(Heft::new(ranks), machine))
            }
            Name::Static => self.under(StaticList::new(plan(workload, machine)?, machine)),
            Name::Lifo => self.under(Ordered::new(Lifo, machine)),
            Name::Random => self.under(Ordered::new(Random::new(config.policy.seed), machine)),
            Name::Shortest => self.under(Ordered::new(Shortest, machine)),
        }
    }

    fn under(mut self, policy: impl Policy) -> Result<Report, RunError> {
        simulate_under(self.workload, self.machine, policy, &mut self.observer)
    }
}

/// The list schedule of a program: what `predictive` does with it when nothing is ever full.
fn plan(workload: &dyn Workload, machine: &Machine) -> Result<Plan, RunError> {
    let graph = Graph::load(workload, machine)?;
    let mut roomy = machine.clone();
    roomy.limits = Limits {
        window: (graph.tasks.len() as u64).next_power_of_two(),
        heap: 1 << 60,
        deps: graph.n_edges() as u64,
        tensors: u64::MAX,
        ready: u64::MAX,
        rings: 1,
        spare: 0,
    };
    let mut recorder = Recorder::default();
    let policy = Ordered::new(Predictive::new(predictive::ranks(&graph)), &roomy);
    let report = simulate_under(&WithoutControls(workload), &roomy, policy, &mut Anyone(&mut recorder))?;
    Ok(Plan::new(&recorder.blocks(), graph.tasks.len(), report.makespan))
}

/// Who ran what, in the order in which the blocks started; a MIX block has several rows.
#[derive(Default)]
struct Recorder {
    rows: Vec<(TaskId, u32, u32)>,
}

impl Observer for Recorder {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.rows.push((row.task, row.block, row.worker.0));
    }
}

impl Recorder {
    fn blocks(&self) -> Vec<(TaskId, Crew)> {
        let same = |a: &(TaskId, u32, u32), b: &(TaskId, u32, u32)| (a.0, a.1) == (b.0, b.1);
        let crew = |rows: &[(TaskId, u32, u32)]| Crew::of(&rows.iter().map(|row| row.2).collect::<Vec<_>>());
        self.rows.chunk_by(same).map(|rows| (rows[0].0, crew(rows))).collect()
    }
}

/// A workload without its timed commands, which the plan leaves to the run.
struct WithoutControls<'a>(&'a dyn Workload);

impl Workload for WithoutControls<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        self.0.open()
    }
}

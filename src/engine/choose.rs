//! From the name of a policy to a run under its type.

use super::{BlockRow, Observer, RunError, drive, simulate_under};
use crate::config::{Limits, Machine};
use crate::id::TaskId;
use crate::machine::Crew;
use crate::policy::bmf::Bmf;
use crate::policy::cyber::Cyber;
use crate::policy::heft::Heft;
use crate::policy::list_schedule::{Outline, list_schedule};
use crate::policy::orleans::Orleans;
use crate::policy::predictive::Predictive;
use crate::policy::ray::Ray;
use crate::policy::{
    Choice, Lifo, Name, Ordered, PerWorker, Plan, Pto, QueueLimit, Random, Shortest, StaticList, Steal,
};
use crate::report::Report;
use crate::workload::{Source, Symbols, Workload, WorkloadError};

/// As [`super::run_with`], without looking for the sizes that would have been enough.
///
/// # Errors
/// As [`super::run_with`].
pub fn simulate_with(
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    match choice.name {
        // Compiled once more for the journal and for nobody, so that nothing slows the default policy down.
        Name::Pto if observer.watches() && observer.journal().is_some() => {
            let journal = observer.journal().expect("it was there just now");
            drive(workload, machine, Pto::new(QueueLimit::of(machine)), journal)
        }
        Name::Pto if !observer.watches() => drive(workload, machine, Pto::new(QueueLimit::of(machine)), &mut ()),
        Name::Pto => simulate_under(workload, machine, Pto::new(QueueLimit::of(machine)), observer),
        Name::CyberClassic => {
            let policy = Cyber::classic(choice.config.scheduler_conf.clone(), machine)?;
            simulate_under(workload, machine, policy, observer)
        }
        Name::CyberChoreography => {
            let policy = Cyber::choreography(choice.config.scheduler_conf.clone(), machine)?;
            simulate_under(workload, machine, policy, observer)
        }
        Name::Orleans => {
            let policy = Orleans::new(choice.config.orleans.clone(), machine)?;
            simulate_under(workload, machine, policy, observer)
        }
        Name::Bmf => {
            let policy = Bmf::new(&choice.config.bmf, workload, machine).map_err(|error| match error {
                RunError::Config(error) => RunError::Config(choice.config.name_file(error)),
                error => error,
            })?;
            simulate_under(workload, machine, policy, observer)
        }
        Name::Ray => {
            let policy = Ray::new(&choice.config.ray, workload, machine)?;
            simulate_under(workload, machine, policy, observer)
        }
        Name::PerWorker => simulate_under(workload, machine, PerWorker::new(machine), observer),
        Name::Steal => simulate_under(workload, machine, Steal::new(machine), observer),
        Name::Predictive => {
            let order = Predictive::read(workload, machine)?;
            simulate_under(workload, machine, Ordered::new(order, machine), observer)
        }
        Name::Heft => {
            let order = Heft::read(workload, machine)?;
            simulate_under(workload, machine, Ordered::new(order, machine), observer)
        }
        Name::Static => {
            let policy = StaticList::new(plan(workload, machine)?, machine);
            simulate_under(workload, machine, policy, observer)
        }
        Name::Lifo => simulate_under(workload, machine, Ordered::new(Lifo, machine), observer),
        Name::Random => {
            let order = Random::new(choice.config.policy.seed);
            simulate_under(workload, machine, Ordered::new(order, machine), observer)
        }
        Name::Shortest => simulate_under(workload, machine, Ordered::new(Shortest, machine), observer),
    }
}

/// The list schedule of a program: what `predictive` does with it when nothing is ever full.
fn plan(workload: &dyn Workload, machine: &Machine) -> Result<Plan, RunError> {
    let outline = Outline::load(workload, machine)?;
    let outline = match list_schedule(outline, machine) {
        Ok(plan) => return Ok(plan),
        Err(outline) => outline,
    };
    let (n_tasks, n_edges) = (outline.n_tasks(), outline.n_edges());
    let mut roomy = machine.clone();
    roomy.limits = Limits {
        window: (n_tasks as u64).next_power_of_two(),
        heap: 1 << 60,
        deps: n_edges as u64,
        tensors: u64::MAX,
        ready: u64::MAX,
        rings: 1,
        spare: 0,
    };
    let mut recorder = Recorder::default();
    let policy = Ordered::new(Predictive::new(outline.into_ranks()), &roomy);
    let report = simulate_under(&WithoutControls(workload), &roomy, policy, &mut recorder)?;
    Ok(Plan::new(&recorder.blocks(), n_tasks, report.makespan))
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

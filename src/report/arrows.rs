//! Arrows from producers to consumers in exported timelines.

use crate::config::Machine;
use crate::engine::RunError;
use crate::graph::Producers;
use crate::id::{TaskId, TaskType};
use crate::workload::Workload;

/// Every dependency of a program, by both ends.
pub struct Arrows {
    producers: Producers,
    /// The place of a consumer in these lists, from 1, is the number of its arrow.
    consumers: Producers,
    /// By task: whether it runs on workers. Other tasks have no ends to join.
    runs: Vec<bool>,
    arriving: Vec<u64>,
    leaving: Vec<u64>,
    /// The task asked for last: a MIX block is told once for each of its workers.
    previous: Option<TaskId>,
}

impl Arrows {
    /// Reads a whole program and finds its dependencies.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<Arrows, RunError> {
        let mut runs = Vec::new();
        let (producers, _) =
            Producers::load(workload, machine, |orchestrator, _| runs.push(orchestrator.resolved.0 != TaskType::None))?;
        let consumers = producers.reversed();
        Ok(Arrows { producers, consumers, runs, arriving: Vec::new(), leaving: Vec::new(), previous: None })
    }

    /// The numbers of the arrows that leave a task and of those that arrive, if this is its first row.
    pub(super) fn of(&mut self, task: TaskId, block: u32) -> (&[u64], &[u64]) {
        let Arrows { producers, consumers, runs, arriving, leaving, previous } = self;
        arriving.clear();
        leaving.clear();
        if block == 0 && previous.replace(task) != Some(task) {
            let number = task.0 as u32;
            for &producer in producers.of(number as usize).iter().filter(|&&producer| runs[producer as usize]) {
                let place = consumers.of(producer as usize).binary_search(&number).expect("edges have two ends");
                arriving.push((consumers.range(producer as usize).start + place + 1) as u64);
            }
            let places = consumers.range(number as usize);
            leaving.extend(places.filter(|&place| runs[consumers.tasks[place] as usize]).map(|place| place as u64 + 1));
        }
        (leaving, arriving)
    }
}

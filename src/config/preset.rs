//! Scheduler costs from what single operations cost: `cost.preset` = none, low, mid or high.

use super::machine::SchedulerCosts;
use crate::nearest::nearest;

/// The key that takes the name of a preset.
pub(super) const KEY: &str = "cost.preset";

/// Cycles of the operations of a scheduler.
struct Operations {
    name: &'static str,
    /// Atomic addition.
    add: u64,
    /// Compare and swap.
    cas: u64,
    /// Push to or pop from a ready queue.
    queue: u64,
    /// One step of `last_task_alive`.
    advance: u64,
    /// Taking the lock of a fanout list.
    lock: u64,
}

const PRESETS: [Operations; 4] = [
    Operations { name: "none", add: 0, cas: 0, queue: 0, advance: 0, lock: 0 },
    Operations { name: "low", add: 10, cas: 50, queue: 20, advance: 1, lock: 100 },
    Operations { name: "mid", add: 30, cas: 75, queue: 25, advance: 1, lock: 300 },
    Operations { name: "high", add: 50, cas: 100, queue: 30, advance: 1, lock: 1000 },
];

/// Sets the costs of the jobs that these operations make up. A completion takes the fanout lock, tries CONSUMED and moves
/// the ring on; an edge is an addition to the consumer's fanin and one to the producer's references; READY tries a state and
/// pushes, a dispatch pops. Admission only looks, so it costs nothing.
///
/// # Errors
/// When there is no such preset.
pub(super) fn apply(costs: &mut SchedulerCosts, name: &str) -> Result<(), String> {
    let Some(of) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names = PRESETS.map(|preset| preset.name);
        let hint = nearest(name, names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(format!("{KEY} = {name}: must be one of {}{hint}", names.join(", ")));
    };
    costs.admit = 0;
    costs.complete = of.lock + of.cas + of.advance;
    costs.edge = 2 * of.add;
    costs.dispatch = of.cas + 2 * of.queue;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Machine;

    #[test]
    fn a_preset_sets_the_costs_of_jobs_and_details_win() {
        let mut machine = Machine::default();
        machine.apply(&["scheduler.edge=7", "cost.preset=low"]).expect("both are right");
        let costs = &machine.scheduler;
        assert_eq!((costs.admit, costs.complete, costs.edge, costs.dispatch), (0, 151, 7, 90));
        let machine = Machine::parse("[cost]\npreset = \"high\"\n", "m.toml").expect("it is right");
        assert_eq!(machine.scheduler.complete + machine.scheduler.dispatch, 1261);
        let error = Machine::parse("[cost]\npreset = \"hi\"\n", "m.toml").expect_err("it is wrong").to_string();
        assert!(error.starts_with("m.toml:2: cost.preset = hi: must be one of none, low, mid, high"), "{error}");
    }

    #[test]
    fn a_task_with_one_edge_costs_between_100_and_2000_cycles_under_every_preset_but_none() {
        for preset in ["low", "mid", "high"] {
            let mut machine = Machine::default();
            machine.set("cost.preset", preset).expect("it is one");
            let costs = machine.scheduler;
            let sum = costs.admit + costs.complete + costs.edge + costs.dispatch;
            assert!((100..=2000).contains(&sum), "{preset}: {sum}");
        }
    }
}

//! The policy `bmf` against a model that counts everything anew at every step, on random node graphs with cycles.

use crate::policy_run::{machine, run};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A task of a random case.
struct Task {
    node: usize,
    timestamp: i64,
    cycles: u64,
    deps: Vec<usize>,
    /// It takes no worker.
    is_none: bool,
}

/// A random case: queue *i* belongs to worker *i*.
struct Case {
    tasks: Vec<Task>,
    queue_of: Vec<usize>,
    limits: Vec<usize>,
    n_workers: usize,
    is_relaxed: bool,
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed);
    let (n_nodes, n_workers, n_tasks) = (1 + random.below(6), 1 + random.below(4), 1 + random.below(40));
    // Half of the graphs are chains of stages without cycles.
    let (is_staged, has_none) = (random.below(2) == 0, random.below(3) == 0);
    let tasks = (0..n_tasks)
        .map(|task| Task {
            node: if is_staged { task * n_nodes / n_tasks } else { random.below(n_nodes) },
            timestamp: i64::try_from(random.below(20)).expect("a small number"),
            cycles: random.below(30) as u64,
            deps: (0..random.below(4)).filter(|_| task > 0).map(|_| random.below(task.max(1))).collect(),
            is_none: has_none && random.below(4) == 0,
        })
        .collect();
    Case {
        tasks,
        queue_of: (0..n_nodes).map(|_| random.below(n_workers)).collect(),
        limits: (0..n_nodes).map(|_| 1 + random.below(4)).collect(),
        n_workers,
        is_relaxed: random.below(2) == 0,
    }
}

/// What happens: rows by start, and schedulings in order.
#[derive(PartialEq, Debug, Default)]
struct Outcome {
    rows: Vec<(usize, usize, u64, u64)>,
    admissions: Vec<(u64, usize)>,
    forced: Vec<(u64, usize)>,
}

/// The rules, with nothing kept that can be counted.
struct Model<'a> {
    case: &'a Case,
    now: u64,
    completed: BTreeSet<usize>,
    /// Completed, and its pending count given back.
    processed: BTreeSet<usize>,
    /// In the order of scheduling.
    admitted: Vec<usize>,
    started: BTreeSet<usize>,
    outcome: Outcome,
}

impl Model<'_> {
    fn of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.case.tasks.len()).filter(move |&task| self.case.tasks[task].node == node)
    }

    fn n_nodes(&self) -> usize {
        self.case.limits.len()
    }

    fn consumes(&self, consumer: usize, producer: usize) -> bool {
        self.case.tasks[consumer].deps.contains(&producer)
    }

    fn upstream(&self, node: usize) -> Vec<usize> {
        let feeds = |from: &usize| {
            *from != node && self.of(node).any(|task| self.of(*from).any(|other| self.consumes(task, other)))
        };
        (0..self.n_nodes()).filter(feeds).collect()
    }

    fn is_ready(&self, task: usize) -> bool {
        self.case.tasks[task].deps.iter().all(|dep| self.completed.contains(dep))
    }

    fn held(&self, node: usize) -> Option<usize> {
        let is_open = |task: &usize| !self.case.tasks[*task].is_none && !self.admitted.contains(task);
        let waiting = self.of(node).filter(is_open).filter(|&task| self.is_ready(task));
        waiting.min_by_key(|&task| (self.case.tasks[task].timestamp, task))
    }

    fn is_held_back(&self, node: usize) -> bool {
        let pending =
            self.of(node).filter(|task| self.admitted.contains(task) && !self.processed.contains(task)).count();
        let waits = |task: usize, to: usize| {
            let waits = |other: usize| !self.case.tasks[other].is_none && !self.admitted.contains(&other);
            self.of(to).any(|other| self.consumes(other, task) && waits(other))
        };
        let is_full = |to: usize| {
            let packets = self.of(node).filter(|task| self.completed.contains(task) && waits(*task, to)).count();
            packets >= self.case.limits[to]
        };
        pending >= self.case.limits[node] || (0..self.n_nodes()).any(|to| to != node && is_full(to))
    }

    fn schedule(&mut self, node: usize) -> Option<usize> {
        let task = self.held(node)?;
        self.admitted.push(task);
        self.outcome.admissions.push((self.now, task));
        Some(task)
    }

    fn sched_required(&mut self, node: usize, met: &mut BTreeSet<usize>) {
        if !met.insert(node) {
            return;
        }
        for upstream in self.upstream(node) {
            self.sched_required(upstream, met);
        }
        if !self.is_held_back(node) {
            self.schedule(node);
        }
    }

    /// The task is completed; whether its node closes.
    fn end(&mut self, task: usize) -> bool {
        self.completed.insert(task);
        self.of(self.case.tasks[task].node).all(|other| self.completed.contains(&other))
    }

    fn complete(&mut self, task: usize) {
        let is_closed = self.end(task);
        self.ask(task, is_closed);
    }

    /// What the completion of a task asks for.
    fn ask(&mut self, task: usize, is_closed: bool) {
        let node = self.case.tasks[task].node;
        if is_closed {
            for upstream in self.upstream(node) {
                self.schedule(upstream);
            }
        }
        for to in 0..self.n_nodes() {
            if to != node && self.of(to).any(|other| self.consumes(other, task)) {
                self.sched_required(to, &mut BTreeSet::new());
            }
        }
        self.processed.insert(task);
        if !is_closed {
            self.sched_required(node, &mut BTreeSet::new());
        }
    }

    /// The next task that takes no worker and became READY by the completion of one of these, whose order is that of completion.
    fn next_none(&self, completed: &[usize]) -> Option<usize> {
        let is_next =
            |&task: &usize| self.case.tasks[task].is_none && !self.completed.contains(&task) && self.is_ready(task);
        let last = |&task: &usize| {
            let place = |dep: &usize| completed.iter().position(|done| done == dep);
            let released_by = self.case.tasks[task].deps.iter().filter_map(place).max();
            // Consumers are linked in front of each other.
            (released_by, if released_by.is_some() { usize::MAX - task } else { task })
        };
        (0..self.case.tasks.len()).filter(is_next).min_by_key(last)
    }

    /// Every free worker takes the first task of its queue.
    fn dispatch(&mut self, busy: &mut [Option<(usize, u64)>]) {
        for (worker, slot) in busy.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
            let mine = |&(_, task): &(usize, usize)| {
                self.case.queue_of[self.case.tasks[task].node] == worker && !self.started.contains(&task)
            };
            let queued = self.admitted.iter().copied().enumerate().filter(mine);
            let key =
                |&(order, task): &(usize, usize)| (self.case.tasks[task].timestamp, self.case.tasks[task].node, order);
            if let Some((_, task)) = queued.min_by_key(key) {
                let end = self.now + self.case.tasks[task].cycles;
                self.started.insert(task);
                self.outcome.rows.push((task, worker, self.now, end));
                *slot = Some((task, end));
            }
        }
    }

    /// Each source is listed, and each listing schedules the listed node that was chosen longest ago.
    fn list_sources(&mut self) {
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        for source in 0..self.n_nodes() {
            if self.upstream(source).is_empty() {
                chosen.push((0, source));
                let open = chosen.iter_mut().filter(|(_, node)| !self.is_held_back(*node));
                if let Some(oldest) = open.min() {
                    oldest.0 = source + 1;
                    let node = oldest.1;
                    self.schedule(node);
                }
            }
        }
    }

    fn run(mut self) -> Outcome {
        // What happens before the start is taken up right after it.
        let mut completed = Vec::new();
        let mut early = Vec::new();
        while let Some(task) = self.next_none(&completed) {
            completed.push(task);
            early.push((task, self.end(task)));
        }
        self.list_sources();
        early.into_iter().for_each(|(task, is_closed)| self.ask(task, is_closed));
        let mut busy = vec![None; self.case.n_workers];
        loop {
            self.dispatch(&mut busy);
            if let Some(end) = busy.iter().flatten().map(|&(_, end)| end).min() {
                self.now = end;
                for worker in &mut busy {
                    if let Some((task, _)) = worker.take_if(|(_, until)| *until == end) {
                        self.complete(task);
                        completed.push(task);
                    }
                }
                while let Some(task) = self.next_none(&completed) {
                    self.complete(task);
                    completed.push(task);
                }
            } else {
                let oldest = (0..self.n_nodes()).filter_map(|node| self.held(node));
                let oldest = oldest.min_by_key(|&task| (self.case.tasks[task].timestamp, self.case.tasks[task].node));
                let Some(task) = oldest.filter(|_| self.case.is_relaxed) else { return self.outcome };
                self.schedule(self.case.tasks[task].node);
                self.outcome.forced.push((self.now, task));
            }
        }
    }
}

fn by_model(case: &Case) -> Outcome {
    let model = Model {
        case,
        now: 0,
        completed: BTreeSet::new(),
        processed: BTreeSet::new(),
        admitted: Vec::new(),
        started: BTreeSet::new(),
        outcome: Outcome::default(),
    };
    model.run()
}

fn by_policy(case: &Case) -> Outcome {
    let node = |node: usize| {
        (node.to_string(), json!({"scheduler": case.queue_of[node], "queue_length_limit": case.limits[node]}))
    };
    let nodes: serde_json::Map<String, Value> = (0..case.limits.len()).map(node).collect();
    let backpressure = if case.is_relaxed { "relaxed" } else { "strict" };
    let config =
        json!({"policy": "bmf", "scheduler_count": case.n_workers, "backpressure": backpressure, "nodes": nodes});
    let submit = |task: &Task| {
        let kind = if task.is_none { "NONE" } else { "VECTOR" };
        json!({"op": "submit", "cycles": task.cycles, "deps": task.deps, "node": task.node, "timestamp": task.timestamp,
            "worker_type": kind})
    };
    let operations: Vec<_> = case.tasks.iter().map(submit).collect();
    let told = run(&config, &machine(&format!("{}any", case.n_workers)), &operations).expect("it runs");
    let task = |name: &str| name.trim_start_matches("task").parse().expect("a number");
    let events = |field: &str| {
        let list: Vec<(u64, String)> = serde_json::from_value(told.policy(field).clone()).expect("a list");
        list.into_iter().map(|(at, name)| (at, task(&name))).collect()
    };
    Outcome {
        rows: told
            .starts
            .iter()
            .map(|(name, worker, start, end)| (task(name), *worker as usize, *start, *end))
            .collect(),
        admissions: events("admissions"),
        forced: events("forced_admissions"),
    }
}

#[test]
fn bmf_agrees_with_the_model_on_random_node_graphs() {
    let (forced, stuck) = (0..3_000_u64)
        .into_par_iter()
        .map(|seed| {
            let case = case(seed);
            let (model, policy) = (by_model(&case), by_policy(&case));
            assert_eq!(policy, model, "seed {seed}");
            let is_whole = model.rows.len() == case.tasks.iter().filter(|task| !task.is_none).count();
            assert!(is_whole || !case.is_relaxed, "seed {seed}: relaxed graphs always finish");
            (usize::from(!model.forced.is_empty()), usize::from(!is_whole))
        })
        .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(forced > 100 && stuck > 100, "{forced} cases force a task, {stuck} get stuck");
}

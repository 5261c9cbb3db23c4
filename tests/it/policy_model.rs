//! The Cyber, Orleans and Ray policies against models that keep nothing that can be looked up, on random programs.

use crate::notation::{any, program};
use crate::policies::seeds;
use ptosim::engine::{BlockRow, Observer, simulate_with};
use ptosim::policy::cyber::conf::ChoreographyTask;
use ptosim::policy::orleans::Span;
use ptosim::policy::{Choice, Config, Name, ray};
use ptosim::workload::Symbols;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SEEDS: u64 = 1_500;

/// A task of a random case; each policy reads the fields of its own.
struct Task {
    cycles: u64,
    deps: Vec<usize>,
    submit_at: u64,
    /// Routine, activation or source.
    owner: Option<usize>,
    prio: u32,
    processor: i32,
    schedule_at: Option<u64>,
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn tasks(random: &mut Random) -> Vec<Task> {
    let (n_tasks, is_late) = (1 + random.below(24), random.below(3) == 0);
    let mut submit_at = 0;
    let mut task = |index: usize| {
        submit_at += if is_late { [0, 0, 3, 7][random.below(4)] } else { 0 };
        Task {
            cycles: [1, 2, 5, 5, 10, 10, 20, 30][random.below(8)],
            deps: (0..random.below(4)).filter(|_| index > 0).map(|_| random.below(index.max(1))).collect(),
            submit_at,
            owner: Some(random.below(5)).filter(|&owner| owner < 4),
            prio: [0, 1, 2, 5, 19, 20, 25][random.below(7)],
            processor: [-1, 0, 1, 2, 3][random.below(5)],
            schedule_at: Some(random.below(60) as u64).filter(|at| at % 2 == 0),
        }
    };
    (0..n_tasks).map(&mut task).collect()
}

/// What a policy decides.
trait Rule {
    fn submit(&mut self, _task: usize, _now: u64) {}
    fn ready(&mut self, task: usize, now: u64);
    fn ended(&mut self, _task: usize, _worker: usize) {}
    /// The next start, given the idle workers by clock and id.
    fn pick(&mut self, idle: &[usize], now: u64) -> Option<(usize, usize)>;
    fn next_timer(&self) -> Option<u64> {
        None
    }
}

/// Task, worker, start and end of everything that runs.
fn play(tasks: &[Task], n_workers: usize, rule: &mut dyn Rule) -> Vec<(usize, usize, u64, u64)> {
    let mut busy: Vec<Option<(usize, u64)>> = vec![None; n_workers];
    let (mut rows, mut clocks) = (Vec::new(), vec![0; n_workers]);
    let (mut done, mut is_ready) = (vec![false; tasks.len()], vec![false; tasks.len()]);
    let (mut n_submitted, mut now) = (0, 0);
    loop {
        for (worker, place) in busy.iter_mut().enumerate() {
            if let Some((task, _)) = place.take_if(|(_, end)| *end == now) {
                done[task] = true;
                for consumer in (0..n_submitted).rev() {
                    let waits = tasks[consumer].deps.contains(&task) && !is_ready[consumer];
                    if waits && tasks[consumer].deps.iter().all(|&dep| done[dep]) {
                        is_ready[consumer] = true;
                        rule.ready(consumer, now);
                    }
                }
                rule.ended(task, worker);
            }
        }
        while n_submitted < tasks.len() && tasks[n_submitted].submit_at <= now {
            let task = n_submitted;
            n_submitted += 1;
            rule.submit(task, now);
            if tasks[task].deps.iter().all(|&dep| done[dep]) {
                is_ready[task] = true;
                rule.ready(task, now);
            }
        }
        loop {
            let mut idle: Vec<usize> = (0..n_workers).filter(|&worker| busy[worker].is_none()).collect();
            idle.sort_by_key(|&worker| (clocks[worker], worker));
            let Some((worker, task)) = rule.pick(&idle, now) else { break };
            let end = now + tasks[task].cycles;
            (busy[worker], clocks[worker]) = (Some((task, end)), end);
            rows.push((task, worker, now, end));
        }
        let ends = busy.iter().flatten().map(|&(_, end)| end);
        let submission = tasks.get(n_submitted).map(|task| task.submit_at);
        let next = ends.chain(submission).chain(rule.next_timer()).filter(|&at| at > now).min();
        let Some(next) = next else { break };
        now = next;
    }
    rows.sort_unstable();
    rows
}

/// The engine's answer to the same question.
fn ask(
    tasks: &[Task],
    n_workers: usize,
    choice: &Choice,
    fields: impl Fn(&Task) -> Value,
) -> Vec<(usize, usize, u64, u64)> {
    #[derive(Default)]
    struct Rows(Vec<(usize, usize, u64, u64)>);
    impl Observer for Rows {
        fn block(&mut self, row: &BlockRow, _names: &Symbols) {
            self.0.push((row.task.0 as usize, row.worker.0 as usize, row.start, row.end));
        }
    }
    let line = |task: &Task| {
        let mut line = fields(task);
        line["op"] = json!("submit");
        line["cycles"] = json!(task.cycles);
        line["deps"] = json!(task.deps);
        line["submit_at"] = json!(task.submit_at);
        line
    };
    let lines: Vec<Value> = tasks.iter().map(line).collect();
    let mut rows = Rows::default();
    let report = simulate_with(&program(&lines), &any(n_workers as u32), choice, &mut rows);
    assert_eq!(report.expect("it runs").ended.completed, tasks.len() as u64);
    rows.0.sort_unstable();
    rows.0
}

/// Compares model and engine for many seeds.
fn agree(compare: impl Fn(&mut Random) -> [Vec<(usize, usize, u64, u64)>; 2] + Sync) {
    (0..seeds(SEEDS)).into_par_iter().for_each(|seed| {
        let [model, engine] = compare(&mut Random(seed));
        assert_eq!(engine, model, "seed {seed}");
    });
}

/// Processors and routines: the highest priority first, then the order of creation; no routine twice at once.
struct Cyber<'a> {
    tasks: &'a [Task],
    presets: &'a BTreeMap<usize, (i32, u32)>,
    n_pinned: usize,
    /// Home, priority and name.
    routines: Vec<(usize, u32, Option<usize>)>,
    routine_of: Vec<usize>,
    ready: Vec<usize>,
    running: Vec<usize>,
}

impl Rule for Cyber<'_> {
    fn submit(&mut self, task: usize, _now: u64) {
        let own = &self.tasks[task];
        let known = self.routines.iter().position(|&(.., name)| name.is_some() && name == own.owner);
        self.routine_of.push(known.unwrap_or(self.routines.len()));
        if known.is_none() {
            let preset = own.owner.and_then(|owner| self.presets.get(&owner)).copied();
            let (processor, prio) = preset.unwrap_or((own.processor, own.prio));
            let is_pinned = processor >= 0 && (processor as usize) < self.n_pinned;
            let home = if is_pinned { processor as usize } else { self.n_pinned };
            self.routines.push((home, if is_pinned { prio } else { prio.min(19) }, own.owner));
        }
    }

    fn ready(&mut self, task: usize, _now: u64) {
        self.ready.push(task);
    }

    fn ended(&mut self, task: usize, _worker: usize) {
        self.running.retain(|&other| other != task);
    }

    fn pick(&mut self, idle: &[usize], _now: u64) -> Option<(usize, usize)> {
        let is_running = |routine| self.running.iter().any(|&task| self.routine_of[task] == routine);
        for &worker in idle {
            let home = worker.min(self.n_pinned);
            let mine =
                |&&task: &&usize| self.routines[self.routine_of[task]].0 == home && !is_running(self.routine_of[task]);
            let level =
                |&&task: &&usize| (std::cmp::Reverse(self.routines[self.routine_of[task]].1), self.routine_of[task]);
            if let Some(&task) = self.ready.iter().filter(mine).min_by_key(level) {
                self.ready.retain(|&other| other != task);
                self.running.push(task);
                return Some((worker, task));
            }
        }
        None
    }
}

#[test]
fn cyber_agrees_with_the_model_on_random_programs() {
    agree(|random| {
        let (tasks, n_workers) = (tasks(random), 2 + random.below(4));
        let n_pinned = random.below(n_workers);
        let mut presets = BTreeMap::new();
        for owner in 0..4 {
            if random.below(3) == 0 {
                presets.insert(
                    owner,
                    (
                        i32::try_from(random.below(n_workers + 1)).expect("few workers") - 1,
                        [0, 3, 19, 30][random.below(4)],
                    ),
                );
            }
        }
        let name = if n_pinned == 0 { Name::CyberClassic } else { Name::CyberChoreography };
        let mut choice = Choice::of(name);
        let conf = &mut choice.config.scheduler_conf;
        let preset = |(owner, &(processor, prio)): (&usize, &(i32, u32))| ChoreographyTask {
            name: format!("r{owner}"),
            processor: Some(processor),
            prio,
        };
        if n_pinned > 0 {
            conf.choreography_conf.choreography_processor_num = Some(n_pinned as u32);
            conf.choreography_conf.tasks = presets.iter().map(preset).collect();
        } else {
            presets.clear();
        }
        let mut rule = Cyber {
            tasks: &tasks,
            presets: &presets,
            n_pinned,
            routines: Vec::new(),
            routine_of: Vec::new(),
            ready: Vec::new(),
            running: Vec::new(),
        };
        let fields = |task: &Task| match task.owner {
            Some(owner) => json!({"prio": task.prio, "processor": task.processor, "routine": format!("r{owner}")}),
            None => json!({"prio": task.prio, "processor": task.processor}),
        };
        [play(&tasks, n_workers, &mut rule), ask(&tasks, n_workers, &choice, fields)]
    });
}

/// Turns of activations in one queue.
struct Orleans<'a> {
    tasks: &'a [Task],
    quantum: u64,
    most: usize,
    /// READY tasks of each activation that have not started.
    waiting: [Vec<usize>; 4],
    /// Activations with a turn: worker, begin, tasks so far.
    turns: [Option<(usize, u64, usize)>; 4],
    /// Since when each entry waits, whether a turn put it there, its number, and the task or the activation.
    queue: Vec<(u64, bool, usize, Result<usize, usize>)>,
    n_queued: usize,
    /// Turns whose task has ended.
    ended: Vec<usize>,
}

impl Orleans<'_> {
    fn enter(&mut self, now: u64, is_again: bool, entry: Result<usize, usize>) {
        self.queue.push((now, is_again, self.n_queued, entry));
        self.queue.sort_unstable();
        self.n_queued += 1;
    }
}

impl Rule for Orleans<'_> {
    fn ready(&mut self, task: usize, now: u64) {
        let Some(activation) = self.tasks[task].owner else { return self.enter(now, false, Ok(task)) };
        self.waiting[activation].push(task);
        let is_queued = self.queue.iter().any(|&(.., entry)| entry == Err(activation));
        if !is_queued && self.turns[activation].is_none() {
            self.enter(now, false, Err(activation));
        }
    }

    fn ended(&mut self, task: usize, _worker: usize) {
        self.ended.extend(self.tasks[task].owner);
    }

    fn pick(&mut self, idle: &[usize], now: u64) -> Option<(usize, usize)> {
        while !self.ended.is_empty() {
            let activation = self.ended.remove(0);
            let (worker, begin, n_tasks) = self.turns[activation].take().expect("it has a turn");
            let is_used_up = self.quantum > 0 && now - begin >= self.quantum || self.most > 0 && n_tasks >= self.most;
            if self.waiting[activation].is_empty() {
                continue;
            }
            if is_used_up {
                self.enter(now, true, Err(activation));
                continue;
            }
            self.turns[activation] = Some((worker, begin, n_tasks + 1));
            return Some((worker, self.waiting[activation].remove(0)));
        }
        let &worker = idle.first().filter(|_| !self.queue.is_empty())?;
        match self.queue.remove(0).3 {
            Ok(task) => Some((worker, task)),
            Err(activation) => {
                self.turns[activation] = Some((worker, now, 1));
                Some((worker, self.waiting[activation].remove(0)))
            }
        }
    }
}

#[test]
fn orleans_agrees_with_the_model_on_random_programs() {
    agree(|random| {
        let (tasks, n_workers) = (tasks(random), 1 + random.below(4));
        let (quantum, most) = ([0_u64, 5, 10, 15, 25][random.below(5)], random.below(3));
        let mut config = Config::default();
        config.orleans.activation_scheduling_quantum = Span::Cycles(quantum.cast_signed());
        config.orleans.max_work_items_per_turn = most as u64;
        let mut rule = Orleans {
            tasks: &tasks,
            quantum,
            most,
            waiting: Default::default(),
            turns: [None; 4],
            queue: Vec::new(),
            n_queued: 0,
            ended: Vec::new(),
        };
        let fields = |task: &Task| json!({"activation": task.owner.map(|owner| format!("a{owner}"))});
        let choice = Choice { name: Name::Orleans, config };
        [play(&tasks, n_workers, &mut rule), ask(&tasks, n_workers, &choice, fields)]
    });
}

/// Tasks fire when they are due and need a token of their source.
struct Ray<'a> {
    tasks: &'a [Task],
    tokens: Vec<usize>,
    submitted: Vec<u64>,
    /// When due, order, task.
    heap: Vec<(u64, usize, usize)>,
    n_added: usize,
    /// Fired, without a token.
    fired: Vec<usize>,
    /// With a token.
    line: Vec<usize>,
}

impl Ray<'_> {
    fn source(&self, task: usize) -> usize {
        self.tasks[task].owner.unwrap_or(4)
    }
}

impl Rule for Ray<'_> {
    fn submit(&mut self, _task: usize, now: u64) {
        self.submitted.push(now);
    }

    fn ready(&mut self, task: usize, _now: u64) {
        self.heap.push((self.tasks[task].schedule_at.unwrap_or(self.submitted[task]), self.n_added, task));
        self.n_added += 1;
    }

    fn ended(&mut self, task: usize, _worker: usize) {
        let source = self.source(task);
        match self.fired.iter().position(|&other| self.source(other) == source) {
            Some(place) => self.line.push(self.fired.remove(place)),
            None => self.tokens[source] += 1,
        }
    }

    fn pick(&mut self, idle: &[usize], now: u64) -> Option<(usize, usize)> {
        self.heap.sort_unstable();
        while let Some(&(_, _, task)) = self.heap.first().filter(|&&(when, ..)| when <= now) {
            self.heap.remove(0);
            let source = self.source(task);
            if self.tokens[source] > 0 {
                self.tokens[source] -= 1;
                self.line.push(task);
            } else {
                self.fired.push(task);
            }
        }
        let &worker = idle.first().filter(|_| !self.line.is_empty())?;
        Some((worker, self.line.remove(0)))
    }

    fn next_timer(&self) -> Option<u64> {
        self.heap.iter().map(|&(when, ..)| when).min()
    }
}

#[test]
fn ray_agrees_with_the_model_on_random_programs() {
    agree(|random| {
        let (tasks, n_workers) = (tasks(random), 1 + random.below(4));
        let mut tokens: Vec<usize> = (0..4).map(|_| 1 + random.below(3)).collect();
        let mut config = Config::default();
        for (source, &count) in tokens.iter().enumerate() {
            let own = ray::SourceConfig { concurrent_count: ray::ConcurrentCount::Valid(count as u64) };
            config.ray.sources.get_or_insert_default().insert(format!("s{source}"), own);
        }
        tokens.push(n_workers);
        let mut rule = Ray {
            tasks: &tasks,
            tokens,
            submitted: Vec::new(),
            heap: Vec::new(),
            n_added: 0,
            fired: Vec::new(),
            line: Vec::new(),
        };
        let fields = |task: &Task| {
            let mut fields = json!({});
            if let Some(owner) = task.owner {
                fields["source"] = json!(format!("s{owner}"));
            }
            if let Some(at) = task.schedule_at {
                fields["schedule_at"] = json!(at);
            }
            fields
        };
        let choice = Choice { name: Name::Ray, config };
        [play(&tasks, n_workers, &mut rule), ask(&tasks, n_workers, &choice, fields)]
    });
}

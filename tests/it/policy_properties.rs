//! What holds under the Cyber and Orleans policies for every program: XP-1 to XP-10 on random ones.

use crate::differential::{Rows, balanced};
use crate::invariants;
use crate::model::{self, Ending, Row};
use crate::notation::any;
use crate::policies::seeds;
use crate::program::{Op, Program};
use crate::programs;
use ptosim::config::{ConfigError, Machine, Workers};
use ptosim::engine::{RunError, simulate_under};
use ptosim::id::{TaskId, TaskType};
use ptosim::policy::Policy;
use ptosim::policy::cyber::conf::{ChoreographyTask, ClassicTask, SchedGroup};
use ptosim::policy::cyber::{Conf, Cyber};
use ptosim::policy::orleans::{Config, Orleans, Span};
use ptosim::report::{Outcome, Report};
use ptosim::workload::{Control, PolicyFields, Source, Workload, WorkloadError};
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const SEEDS: u64 = 2_500;

/// A program with timed commands.
#[derive(Clone)]
struct Story {
    program: Program,
    controls: Vec<Control>,
}

impl Workload for Story {
    fn name(&self) -> String {
        self.program.name()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        self.program.open()
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        Ok(self.controls.clone())
    }
}

/// `SplitMix64`, seeded apart from the generator of programs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Gives the tasks of a program fields of the policies, parents, faults; and the program controls.
fn story(seed: u64) -> (Story, Machine) {
    let (mut program, machine) = programs::random(seed);
    let mut random = Random(seed ^ 0x5eed);
    let (faulty, bossy) = (random.chance(20), random.chance(20));
    let mut n_tasks = 0;
    for op in &mut program.ops {
        let Op::Submit(submit) = op else { continue };
        let mut fields = PolicyFields::default();
        if random.chance(60) {
            fields.routine = Some(format!("r{}", random.below(5)));
        }
        fields.prio = random.chance(60).then(|| random.below(23) as u32);
        fields.group = random.chance(30).then(|| format!("g{}", random.below(2)));
        fields.processor = random.chance(40).then(|| random.below(4) as i32 - 1);
        if random.chance(70) {
            fields.activation = Some(random.chance(85).then(|| format!("a{}", random.below(6))));
        }
        fields.post_cycles = if random.chance(10) { random.below(30) } else { 0 };
        submit.policy = random.chance(90).then(|| Box::new(fields));
        submit.fault = faulty && random.chance(5);
        if n_tasks > 0 && random.chance(10) {
            submit.parent = Some((TaskId(random.below(n_tasks)), random.below(20)));
        }
        n_tasks += 1;
    }
    let controls = if bossy { controls(&mut random) } else { Vec::new() };
    (Story { program, controls }, machine)
}

fn controls(random: &mut Random) -> Vec<Control> {
    let commands = ["remove_routine", "notify", "stop_activation", "stop_application_turns", "shutdown", "pause"];
    let control = |_| {
        let command = commands[random.below(6) as usize];
        let mut arguments = serde_json::Map::new();
        arguments.insert("routine".into(), json!(format!("r{}", random.below(5))));
        arguments.insert("activation".into(), json!(format!("a{}", random.below(6))));
        Control { at: random.below(300), command: command.into(), arguments, line: None }
    };
    (0..2).map(control).collect()
}

/// The same program on workers that all run everything, so that every group can serve every task.
fn on_any(story: &Story, machine: &Machine) -> Option<Machine> {
    let has_mix = story.program.submits().any(|submit| submit.kind == Some(TaskType::Mix));
    let total = machine.workers.total();
    (!has_mix && total > 1)
        .then(|| Machine { workers: Workers { any: total, ..Workers::default() }, ..machine.clone() })
}

/// Two groups, or pinned processors and a pool, with tasks of their own.
fn explicit(total: u32, reversed: bool) -> Conf {
    let mut conf = Conf::default();
    for (index, number) in [1, total - 1].into_iter().enumerate() {
        let mut group = SchedGroup { name: format!("g{index}"), processor_num: Some(number), ..SchedGroup::default() };
        let task = |routine| ClassicTask { name: format!("r{routine}"), prio: routine, ..ClassicTask::default() };
        group.tasks = [2 * index as u32, 2 * index as u32 + 1].map(task).into();
        conf.classic_conf.groups.push(group);
    }
    conf.choreography_conf.choreography_processor_num = Some(1);
    let task = |routine: i32| ChoreographyTask {
        name: format!("r{routine}"),
        processor: Some((routine - 1).min(total.cast_signed() - 1)),
        prio: 3 * routine as u32,
    };
    conf.choreography_conf.tasks = (0..4).map(task).collect();
    if reversed {
        conf.classic_conf.groups.iter_mut().for_each(|group| group.tasks.reverse());
        conf.choreography_conf.tasks.reverse();
    }
    conf
}

/// Runs a story twice and checks the schedule; gives it, unless the program asks for the impossible.
fn check<P: Policy>(
    story: &Story,
    machine: &Machine,
    policy: impl Fn() -> Result<P, ConfigError>,
) -> Result<Option<(Vec<Row>, Report)>, String> {
    let mut rows = Rows::default();
    let run = |rows: &mut Rows| {
        let policy = policy().map_err(|error| error.to_string())?;
        Ok::<_, String>(simulate_under(story, machine, policy, rows))
    };
    let report = match run(&mut rows)? {
        Ok(report) => report,
        // How many dependency entries a task needs depends on what is consumed by then.
        Err(RunError::TooLarge { .. }) => return Ok(None),
        Err(_) if matches!(model::run(&story.program, machine).ending, Ending::Error(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let again = run(&mut Rows::default())?.map_err(|error| error.to_string())?;
    if serde_json::to_string(&report).ok() != serde_json::to_string(&again).ok() {
        return Err("two runs give two reports".into());
    }
    let ended = report.ended;
    if ended.completed + ended.failed + ended.dropped + ended.cancelled != report.tasks {
        return Err(format!("{} tasks, but {ended:?}", report.tasks));
    }
    match (&report.outcome, &report.deadlock) {
        (Outcome::Deadlock, Some(deadlock)) if deadlock.resource != "policy" => {}
        (Outcome::Completed | Outcome::Failed, None) if ended.consumed == report.tasks => {}
        (outcome, deadlock) => return Err(format!("{outcome:?} with {ended:?} and {deadlock:?}")),
    }
    let plain = story.controls.is_empty() && story.program.submits().all(|submit| !submit.fault);
    if plain {
        invariants::check(&story.program, machine, &rows.0, report.outcome == Outcome::Completed)?;
        balanced(machine, &rows.0, &report)?;
    }
    Ok(Some((rows.0, report)))
}

/// Tasks of one owner do not overlap: the first block of one starts when the last of another has ended.
fn one_at_a_time(program: &Program, rows: &[Row], owner: impl Fn(usize) -> Option<String>) -> Result<(), String> {
    let mut spans: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let span = spans.entry(row.task).or_insert((row.start, row.end));
        *span = (span.0.min(row.start), span.1.max(row.end));
    }
    let mut by_owner: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for (task, span) in spans {
        by_owner.entry(owner(task as usize).unwrap_or(format!("task {task}"))).or_default().push(span);
    }
    for (owner, mut spans) in by_owner {
        spans.sort_unstable();
        if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!("{owner} runs twice at once: {pair:?} of {} tasks", program.submits().count()));
        }
    }
    Ok(())
}

fn routines(program: &Program) -> Vec<Option<String>> {
    program.submits().map(|submit| submit.policy.as_ref()?.routine.clone()).collect()
}

fn activations(program: &Program) -> Vec<Option<String>> {
    let mut known: Vec<Option<String>> = Vec::new();
    for submit in program.submits() {
        let own = submit.policy.as_ref().and_then(|fields| fields.activation.clone());
        let parent = submit.parent.and_then(|(parent, _)| known[parent.0 as usize].clone());
        known.push(own.unwrap_or(parent));
    }
    known
}

/// Checks every seed; the first failure, if any, and how many runs gave a schedule.
fn every(test: impl Fn(u64) -> Result<bool, String> + Sync) {
    let results: Vec<_> = (0..seeds(SEEDS)).into_par_iter().map(|seed| (seed, test(seed))).collect();
    let mut schedules = 0;
    for (seed, result) in results {
        schedules += u64::from(result.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    }
    assert!(schedules > seeds(SEEDS) * 4 / 5, "only {schedules} programs ran");
}

fn cyber(seed: u64, make: fn(Conf, &Machine) -> Result<Cyber, ConfigError>) -> Result<bool, String> {
    let (mut story, mut machine) = story(seed);
    story.controls.retain(|control| !control.command.contains("stop"));
    let mut conf = Conf::default();
    if let Some(on_any) = on_any(&story, &machine) {
        machine = on_any;
        conf = explicit(machine.workers.total(), false);
        let reversed = explicit(machine.workers.total(), true);
        let one = check(&story, &machine, || make(conf.clone(), &machine))?;
        let two = check(&story, &machine, || make(reversed.clone(), &machine))?;
        if one.map(|(rows, _)| rows) != two.map(|(rows, _)| rows) {
            return Err("the order of tasks in the configuration matters".into());
        }
    }
    let Some((rows, report)) = check(&story, &machine, || make(conf.clone(), &machine))? else { return Ok(false) };
    let owners = routines(&story.program);
    if story.controls.is_empty() {
        one_at_a_time(&story.program, &rows, |task| owners[task].clone())?;
    }
    in_their_home(&story, &report, &rows)?;
    Ok(true)
}

/// Tasks of a pinned or grouped routine run on its workers, unless their blocks start together. A routine that is removed may be
/// created again elsewhere.
fn in_their_home(story: &Story, report: &Report, rows: &[Row]) -> Result<(), String> {
    let is_removed = |name: &str| {
        let names_it = |control: &Control| control.command == "remove_routine" && control.arguments["routine"] == name;
        story.controls.iter().any(names_it)
    };
    let groups = report.policy_report["groups"].as_array().expect("rows of groups");
    let workers = |group: usize| -> Vec<u64> {
        groups[group]["workers"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64).collect()
    };
    if groups.len() != 2 || report.machine.workers.any != report.machine.workers.total() {
        return Ok(());
    }
    let is_classic = report.policy == "cyber_classic";
    let mut home_of: BTreeMap<String, usize> = BTreeMap::new();
    for (task, submit) in story.program.submits().enumerate() {
        let fields = submit.policy.as_deref().cloned().unwrap_or_default();
        let name = fields.routine.clone().unwrap_or(format!("task{task}"));
        if is_removed(&name) {
            continue;
        }
        let preset: Option<usize> = name.strip_prefix('r').and_then(|number| number.parse().ok()).filter(|&r| r < 4);
        let own = match (is_classic, preset) {
            (true, Some(routine)) => routine / 2,
            (true, None) => usize::from(fields.group.as_deref() == Some("g1")),
            (false, Some(routine)) => usize::from(routine != 1),
            (false, None) => usize::from(fields.processor != Some(0)),
        };
        let home = *home_of.entry(name).or_insert(own);
        let is_wide = submit.sync_start && submit.blocks > 1;
        let strays = rows.iter().find(|row| row.task == task as u64 && !workers(home).contains(&u64::from(row.worker)));
        if let Some(row) = strays.filter(|_| !is_wide) {
            return Err(format!("{row:?} is not on the workers {:?} of its home {home}", workers(home)));
        }
    }
    Ok(())
}

#[test]
fn cyber_classic_keeps_all_properties() {
    every(|seed| cyber(seed, Cyber::classic));
}

#[test]
fn cyber_choreography_keeps_all_properties() {
    every(|seed| cyber(seed, Cyber::choreography));
}

#[test]
fn orleans_keeps_all_properties() {
    every(|seed| {
        let (story, machine) = story(seed);
        let mut random = Random(seed);
        let config = Config {
            activation_scheduling_quantum: Span::Cycles([0, 40, 80][random.below(3) as usize]),
            max_work_items_per_turn: random.below(3),
            inline: random.chance(30),
            prioritize_system: random.chance(30),
            ..Config::default()
        };
        let checked = check(&story, &machine, || Orleans::new(config.clone(), &machine))?;
        let Some((rows, report)) = checked else { return Ok(false) };
        let owners = activations(&story.program);
        one_at_a_time(&story.program, &rows, |task| owners[task].clone())?;
        let waits = |group: &serde_json::Value| group["state"] == "Waiting" || group["state"] == "Shutdown";
        if !report.policy_report["groups"].as_array().expect("rows of groups").iter().all(waits) {
            return Err("a group is left with work".into());
        }
        Ok(true)
    });
}

#[test]
fn one_worker_is_busy_all_the_time_under_every_policy() {
    for seed in 0..300 {
        let (mut story, _) = story(seed);
        story.controls.clear();
        story.program.ops.retain(|op| matches!(op, Op::Submit(_)));
        let mut sum = 0;
        for (index, op) in story.program.ops.iter_mut().enumerate() {
            let Op::Submit(submit) = op else { continue };
            let deps: Vec<_> = submit.deps.iter().copied().filter(|dep| dep.0 < index as u64).collect();
            let fields = submit.policy.take().map(|fields| Box::new(PolicyFields { post_cycles: 0, ..*fields }));
            **submit = ptosim::workload::Submit { deps, policy: fields, blocks: 1, ..Default::default() };
            submit.kind = Some(TaskType::Vector);
            submit.cost = Some(ptosim::workload::Cost::Cycles(seed % 7 + index as u64));
            sum += seed % 7 + index as u64;
        }
        let machine = any(1);
        let makespans = [
            check(&story, &machine, || Cyber::classic(Conf::default(), &machine)),
            check(&story, &machine, || Cyber::choreography(Conf::default(), &machine)),
            check(&story, &machine, || Orleans::new(Config::default(), &machine)),
        ];
        for told in makespans {
            let (_, report) = told.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")).expect("a right program");
            assert_eq!(report.makespan, sum, "seed {seed} under {}", report.policy);
        }
    }
}

#[test]
fn every_window_consumes_every_task() {
    for seed in 0..200 {
        let (mut story, mut machine) = story(seed);
        story.program.ops.retain(|op| !matches!(op, Op::ScopeBegin | Op::ScopeEnd));
        story.controls.clear();
        machine.limits = ptosim::config::Limits::default();
        for window in [1, 2, 4, 8, 16384] {
            machine.limits.window = window;
            let told = [
                check(&story, &machine, || Cyber::classic(Conf::default(), &machine)),
                check(&story, &machine, || Cyber::choreography(Conf::default(), &machine)),
                check(&story, &machine, || Orleans::new(Config::default(), &machine)),
            ];
            for told in told {
                let told = told.unwrap_or_else(|wrong| panic!("seed {seed}, window {window}: {wrong}"));
                let Some((_, report)) = told else { continue };
                assert!(report.deadlock.is_none(), "seed {seed}, window {window}: {:?}", report.deadlock);
                assert_eq!(report.ended.consumed, report.tasks);
            }
        }
    }
}

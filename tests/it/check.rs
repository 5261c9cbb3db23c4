//! `check` against a checker that keeps every byte and every path, on random programs.

use crate::model::{self, Ending, Resource};
use crate::program::{Op, Program};
use crate::programs;
use ptosim::check::{Checked, Fact, Kind, Level, check};
use ptosim::config::{Hazards, Machine, ScopeHold};
use ptosim::id::BufferId;
use ptosim::workload::{Builder, Region, Submit};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 5_000;

/// Pairs of tasks, the earlier one first; or a task twice; or a task and a buffer.
type Pairs = BTreeSet<(u64, u64)>;

/// What can be found, by kind; sizes are not among it.
#[derive(PartialEq, Debug, Default)]
struct Findings(BTreeMap<Kind, Pairs>);

impl Findings {
    fn add(&mut self, kind: Kind, a: u64, b: u64) {
        self.0.entry(kind).or_default().insert((a, b));
    }

    fn of(checked: &Checked) -> Findings {
        let mut findings = Findings::default();
        for fact in &checked.facts {
            let (a, b) = match fact {
                Fact::Race(race) => (race.earlier.0, race.later.0),
                Fact::Escape(escape) => (escape.owner.0, escape.user.0),
                Fact::Overlap { task, .. } | Fact::Unneeded { task } => (task.0, task.0),
                Fact::Unread { task, buffer } => (task.0, buffer.0.into()),
                Fact::Unused { buffer, .. } => (0, buffer.0.into()),
                Fact::Redundant { edge, .. } => (edge.producer.0, edge.consumer.0),
                Fact::NeverFits(_) => continue,
            };
            findings.add(fact.kind(), a, b);
        }
        findings
    }
}

#[derive(Clone, Default)]
struct Byte {
    writer: Option<usize>,
    readers: BTreeSet<usize>,
    /// Every access so far, and whether it wrote.
    history: Vec<(usize, bool)>,
}

struct Buffer {
    bytes: Vec<Byte>,
    /// The task that made it and the scopes that held it then; `None` for device memory.
    owner: Option<(usize, Vec<usize>)>,
    is_read: bool,
    is_used: bool,
}

/// Everything, byte by byte and task by task.
#[derive(Default)]
struct Naive {
    buffers: BTreeMap<BufferId, Buffer>,
    /// Tasks that come before each task.
    before: Vec<BTreeSet<usize>>,
    needs: Vec<BTreeSet<usize>>,
    needed: BTreeSet<usize>,
    findings: Findings,
    /// Unordered accesses to the same byte of which one writes, neighbours or not.
    all_races: Pairs,
    open: Vec<usize>,
    n_scopes: usize,
}

impl Naive {
    fn check(program: &Program, machine: &Machine) -> Naive {
        let mut naive = Naive::default();
        for op in &program.ops {
            match op {
                Op::Buffer { buffer, bytes } => naive.bind(*buffer, *bytes, None),
                Op::ScopeBegin => {
                    naive.open.push(naive.n_scopes);
                    naive.n_scopes += 1;
                }
                Op::ScopeEnd => naive.open.truncate(naive.open.len() - 1),
                Op::Submit(submit) => naive.submit(submit, machine),
            }
        }
        naive.buffers.keys().copied().collect::<Vec<_>>().into_iter().for_each(|buffer| naive.unbind(buffer));
        naive.settle_needs();
        naive
    }

    fn submit(&mut self, submit: &Submit, machine: &Machine) {
        let id = self.before.len();
        self.use_buffers(id, submit);
        let producers = self.producers(submit, machine.rules.hazards);
        self.order(id, &producers);
        self.races(id, submit);
        self.book(id, submit);
        let outputs: Vec<_> = submit.writes.iter().chain(&submit.updates).collect();
        let overlaps = (0..outputs.len()).any(|at| {
            let mine: BTreeSet<_> = positions(outputs[at]).collect();
            let is_mine = |other: &Region| positions(other).any(|byte| mine.contains(&byte));
            outputs[..at].iter().any(|other| other.buffer == outputs[at].buffer && is_mine(other))
        });
        if overlaps {
            self.findings.add(Kind::OverlappingOutputs, id as u64, id as u64);
        }
        let holders = match machine.rules.scope_hold {
            ScopeHold::Innermost => self.open.last().copied().into_iter().collect(),
            ScopeHold::Enclosing => self.open.clone(),
        };
        for new in &submit.allocates {
            self.bind(new.buffer, new.bytes, Some((id, holders.clone())));
            for byte in &mut self.buffers.get_mut(&new.buffer).expect("just bound").bytes {
                *byte = Byte { writer: Some(id), readers: BTreeSet::new(), history: vec![(id, true)] };
            }
        }
        if outputs.is_empty() && submit.allocates.is_empty() {
            self.needed.insert(id);
        }
    }

    fn producers(&mut self, submit: &Submit, hazards: Hazards) -> BTreeSet<usize> {
        let named = submit.deps.iter().map(|task| task.0 as usize);
        let read: Vec<usize> = submit
            .reads
            .iter()
            .chain(&submit.updates)
            .flat_map(|region| self.bytes(region))
            .filter_map(|byte| byte.writer)
            .collect();
        self.needs.push(named.clone().chain(read.iter().copied()).collect());
        let mut producers: BTreeSet<usize> = named.chain(read).collect();
        for byte in submit.writes.iter().chain(&submit.updates).flat_map(|region| self.bytes(region)) {
            if hazards != Hazards::Raw {
                producers.extend(byte.writer);
            }
            if hazards == Hazards::Full {
                producers.extend(&byte.readers);
            }
        }
        producers
    }

    fn order(&mut self, id: usize, producers: &BTreeSet<usize>) {
        let mut before = producers.clone();
        producers.iter().for_each(|&producer| before.extend(&self.before[producer]));
        for &producer in producers {
            if producers.iter().any(|&other| self.before[other].contains(&producer)) {
                self.findings.add(Kind::Redundant, producer as u64, id as u64);
            }
        }
        self.before.push(before);
    }

    fn races(&mut self, id: usize, submit: &Submit) {
        let mut found = Vec::new();
        let mut all = Vec::new();
        let is_open = |task: usize| task != id && !self.before[id].contains(&task);
        for byte in submit.writes.iter().chain(&submit.updates).flat_map(|region| self.bytes(region)) {
            found.extend(byte.writer.filter(|&task| is_open(task)).map(|task| (Kind::WriteAfterWrite, task)));
            let readers = byte.readers.iter().copied().filter(|&task| is_open(task));
            found.extend(readers.map(|task| (Kind::WriteAfterRead, task)));
            all.extend(byte.history.iter().map(|access| access.0).filter(|&task| is_open(task)));
        }
        for byte in submit.reads.iter().chain(&submit.updates).flat_map(|region| self.bytes(region)) {
            let writers = byte.history.iter().filter(|access| access.1).map(|access| access.0);
            all.extend(writers.filter(|&task| is_open(task)));
        }
        found.into_iter().for_each(|(kind, task)| self.findings.add(kind, task as u64, id as u64));
        self.all_races.extend(all.into_iter().map(|task| (task as u64, id as u64)));
    }

    fn book(&mut self, id: usize, submit: &Submit) {
        for region in submit.reads.iter().chain(&submit.updates) {
            self.each(region, |byte| {
                byte.readers.insert(id);
                byte.history.push((id, false));
            });
        }
        for region in submit.writes.iter().chain(&submit.updates) {
            self.each(region, |byte| {
                byte.writer = Some(id);
                byte.readers.clear();
                byte.history.push((id, true));
            });
        }
    }

    fn use_buffers(&mut self, id: usize, submit: &Submit) {
        for region in submit.reads.iter().chain(&submit.updates).chain(&submit.writes) {
            let buffer = self.buffers.get_mut(&region.buffer).expect("programs bind a buffer before they use it");
            buffer.is_used = true;
            let Some((owner, holders)) = &buffer.owner else { continue };
            let kind = if holders.is_empty() { Kind::Unheld } else { Kind::UseAfterScope };
            if !holders.iter().any(|scope| self.open.contains(scope)) {
                self.findings.add(kind, *owner as u64, id as u64);
            }
        }
        for region in submit.reads.iter().chain(&submit.updates) {
            self.buffers.get_mut(&region.buffer).expect("bound").is_read = true;
        }
    }

    fn bind(&mut self, name: BufferId, bytes: u64, owner: Option<(usize, Vec<usize>)>) {
        self.unbind(name);
        let bytes = vec![Byte::default(); bytes as usize];
        self.buffers.insert(name, Buffer { bytes, owner, is_read: false, is_used: false });
    }

    fn unbind(&mut self, name: BufferId) {
        let Some(buffer) = self.buffers.remove(&name) else { return };
        match buffer.owner {
            Some((owner, _)) if !buffer.is_read => self.findings.add(Kind::NeverRead, owner as u64, name.0.into()),
            Some(_) => {}
            None if !buffer.is_used => self.findings.add(Kind::Unused, 0, name.0.into()),
            None => self.needed.extend(buffer.bytes.iter().filter_map(|byte| byte.writer)),
        }
    }

    fn settle_needs(&mut self) {
        loop {
            let more: BTreeSet<_> = self.needed.iter().flat_map(|&task| self.needs[task].clone()).collect();
            if more.is_subset(&self.needed) {
                break;
            }
            self.needed.extend(more);
        }
        for task in (0..self.needs.len()).filter(|task| !self.needed.contains(task)) {
            self.findings.add(Kind::NotNeeded, task as u64, task as u64);
        }
    }

    fn bytes<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = &'a Byte> {
        let buffer = &self.buffers[&region.buffer].bytes;
        positions(region).map(move |position| &buffer[position])
    }

    fn each(&mut self, region: &Region, change: impl FnMut(&mut Byte)) {
        let buffer = &mut self.buffers.get_mut(&region.buffer).expect("bound").bytes;
        let touched: BTreeSet<usize> = positions(region).collect();
        buffer.iter_mut().enumerate().filter(|(at, _)| touched.contains(at)).map(|(_, byte)| byte).for_each(change);
    }
}

fn positions(region: &Region) -> impl Iterator<Item = usize> + use<> {
    let Region { offset, row_bytes, rows, stride, .. } = *region;
    (0..rows).flat_map(move |row| (0..row_bytes).map(move |column| (offset + row * stride + column) as usize))
}

/// What a seed taught: findings by kind, or nothing when the machine lacks workers.
fn compare(seed: u64) -> Result<BTreeMap<Kind, usize>, String> {
    let (program, machine) = programs::random(seed);
    let Ok(checked) = check(&program, &machine) else { return Ok(BTreeMap::new()) };
    let naive = Naive::check(&program, &machine);
    let found = Findings::of(&checked);
    if found != naive.findings {
        return Err(format!("brute force\n  {:?}\ncheck\n  {found:?}", naive.findings));
    }
    let races: Pairs = [Kind::WriteAfterRead, Kind::WriteAfterWrite]
        .iter()
        .flat_map(|kind| found.0.get(kind).cloned().unwrap_or_default())
        .collect();
    if !races.is_subset(&naive.all_races) || races.is_empty() != naive.all_races.is_empty() {
        return Err(format!("races {races:?}, of all unordered pairs {:?}", naive.all_races));
    }
    sizes(&program, &machine, &checked)?;
    for fact in &checked.facts {
        let finding = checked.describe(fact);
        if finding.message.is_empty() || finding.remedy.is_empty() {
            return Err(format!("{fact:?} is not told: {finding:?}"));
        }
    }
    let mut counts = BTreeMap::new();
    checked.facts.iter().for_each(|fact| *counts.entry(fact.kind()).or_default() += 1);
    Ok(counts)
}

/// What never fits does not complete; and whoever gets stuck on the window or the tensor map was told so.
fn sizes(program: &Program, machine: &Machine, checked: &Checked) -> Result<(), String> {
    let misfits: Vec<_> = checked.facts.iter().filter(|fact| fact.kind() == Kind::NeverFits).collect();
    let told = model::run(program, machine).ending;
    if !misfits.is_empty() && told == Ending::Completed {
        return Err(format!("it completes in spite of {misfits:?}"));
    }
    match told {
        Ending::Deadlock(stuck) if matches!(stuck.resource, Resource::Window | Resource::Tensors) => {
            let name = stuck.resource.name();
            let is_told = |fact: &&Fact| matches!(fact, Fact::NeverFits(misfit) if misfit.resource.name() == name);
            if checked.facts.iter().any(|fact| is_told(&fact)) { Ok(()) } else { Err(format!("not told of {stuck:?}")) }
        }
        Ending::Deadlock(_) | Ending::Completed | Ending::Error(_) => Ok(()),
    }
}

#[test]
fn check_agrees_with_brute_force_on_random_programs() {
    let results: Vec<_> = (0..SEEDS).into_par_iter().map(|seed| (seed, compare(seed))).collect();
    let mut totals: BTreeMap<Kind, usize> = BTreeMap::new();
    for (seed, result) in results {
        let counts = result.unwrap_or_else(|wrong| {
            panic!("seed {seed}: {wrong}\n--- trace\n{}", programs::random(seed).0.trace());
        });
        counts.into_iter().for_each(|(kind, count)| *totals.entry(kind).or_default() += count);
    }
    assert_eq!(totals.len(), 10, "every kind comes up: {totals:?}");
    assert!(totals.values().all(|&count| count > 100), "{totals:?}");
}

/// A producer, a reader of its tile and a later writer of the same bytes, with a remedy applied or not.
fn tile(remedy: &str) -> Checked {
    let mut program = Builder::new("tile");
    let (tile, out) = (program.buffer("T", 256), program.buffer("O", 256));
    program.task("load").cycles(10).writes(tile).submit();
    let reader = program.task("use").cycles(50);
    let reader = if remedy == "inout" { reader.updates(tile) } else { reader.reads(tile) };
    let reader = reader.updates(out).submit();
    let writer = program.task("load").cycles(10).writes(tile.range(0, 64));
    let writer = if remedy == "deps" { writer.after(reader) } else { writer };
    writer.submit();
    program.task("use").cycles(50).reads(tile).updates(out).submit();
    let mut machine = Machine::default();
    if remedy == "full" {
        machine.rules.hazards = Hazards::Full;
    }
    check(&program.build().expect("a program"), &machine).expect("it can be checked")
}

#[test]
fn a_write_after_a_read_is_told_with_a_remedy_and_every_remedy_helps() {
    let checked = tile("");
    let errors: Vec<_> = checked.facts.iter().filter(|fact| fact.level() == Level::Error).collect();
    assert_eq!(errors.len(), 1);
    let finding = checked.describe(errors[0]);
    assert_eq!(finding.message, "task 2 `load` writes T[0..64), which task 1 `use` may still read");
    assert_eq!(
        finding.remedy,
        "make task 2 depend on task 1, or let task 1 take `T` as inout, or set rules.hazards=full"
    );
    assert_eq!(
        (finding.tasks[0].regions.as_slice(), finding.bytes.as_deref()),
        (&["in T[0..256)".to_owned()][..], Some("T[0..64)"))
    );
    for remedy in ["deps", "inout", "full"] {
        assert_eq!(tile(remedy).count(Level::Error), 0, "{remedy}");
    }
}

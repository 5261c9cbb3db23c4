//! The unit cases of the PTO runtime (PU-01 to PU-11) and its options. PU-03, PU-12 and PU-13 are about the queues and threads
//! of the real runtime and are tested there.

use crate::program::{Op, Program};
use ptosim::config::{FanoutOrder, Limits, Machine, OnReadyFull, Rules, SchedulerCosts, Workers};
use ptosim::engine::{BlockRow, Observer, run_with, simulate_with};
use ptosim::id::{TaskId, TaskType};
use ptosim::machine::Floor;
use ptosim::policy::{Choice, Name};
use ptosim::report::{Memory, Operations, Outcome, Report, verdict};
use ptosim::sync::{Local, Shared};
use ptosim::window::{Needs, Outcomes, Refusal, Resource, SlotRef, State, Window};
use ptosim::workload::{Control, Cost, Source, Stdin, Submit, Symbols, Workload, WorkloadError};

fn vectors(n_workers: u32) -> Machine {
    Machine { workers: Workers { vector: n_workers, ..Workers::default() }, ..Machine::default() }
}

fn task(cycles: u64, deps: &[u64]) -> Op {
    let mut submit = Submit::default();
    submit.clear();
    submit.kind = Some(TaskType::Vector);
    submit.cost = Some(Cost::Cycles(cycles));
    submit.deps = deps.iter().map(|&task| TaskId(task)).collect();
    Op::Submit(Box::new(submit))
}

fn run(ops: &[Op], machine: &Machine) -> Report {
    run_with(&Program { ops: ops.to_vec() }, machine, &Choice::default(), &mut ()).expect("the program runs")
}

#[test]
fn pu_01_a_window_is_a_power_of_two_and_workers_may_be_many() {
    let mut machine = Machine::default();
    for wrong in ["1000", "0", "-4"] {
        let told = machine.set("limits.window", wrong).and_then(|()| machine.validate()).expect_err(wrong).to_string();
        assert!(told.contains("must be a positive power of 2"), "{told}");
    }
    for right in ["1", "2", "16384"] {
        machine.set("limits.window", right).and_then(|()| machine.validate()).expect(right);
    }
    machine.apply(&["workers.cube=65", "workers.vector=200"]).expect("they are numbers");
    machine.validate().expect("more than 128 workers are fine");
}

#[test]
fn pu_02_the_memory_of_the_default_sizes() {
    let memory = Memory::of(&Machine::default());
    let bytes: Vec<u64> = memory.parts.iter().map(ptosim::report::MemoryPart::bytes).collect();
    assert_eq!((bytes, memory.bytes()), (vec![5_570_560, 524_288, 1_048_576], 7_143_424));
}

#[test]
fn pu_04_exactly_one_of_three_releases_makes_a_task_ready() {
    for _ in 0..500 {
        let window = Window::<Shared>::new(&Limits { window: 2, deps: 4, ..Limits::default() }, FanoutOrder::Lifo);
        let slot = window.reserve(0, TaskId(0), &Needs::default(), 0).expect("there is room");
        window.wait_for_one_more(slot);
        window.wait_for_one_more(slot);
        let ready: usize = std::thread::scope(|scope| {
            let release = || usize::from(window.satisfy(slot));
            [scope.spawn(release), scope.spawn(release), scope.spawn(release)]
                .map(|thread| thread.join().expect("no panic"))
                .iter()
                .sum()
        });
        assert_eq!((ready, window.slot(slot).state()), (1, State::Ready));
    }
    let window = Window::<Local>::new(&Limits { window: 2, deps: 4, ..Limits::default() }, FanoutOrder::Lifo);
    let slot = window.reserve(0, TaskId(0), &Needs::default(), 0).expect("there is room");
    window.wait_for_one_more(slot);
    window.wait_for_one_more(slot);
    assert_eq!([(); 3].map(|()| window.satisfy(slot)), [false, false, true]);
}

/// Counts what was consumed.
#[derive(Default)]
struct Consumed(Vec<SlotRef>);

impl Outcomes for Consumed {
    fn ready(&mut self, _slot: SlotRef) {}
    fn unblocked(&mut self, _slot: SlotRef) {}
    fn consumed(&mut self, slot: SlotRef) {
        self.0.push(slot);
    }
}

#[test]
fn pu_05_a_task_is_consumed_when_complete_and_given_up_by_all_who_hold_it_and_only_once() {
    let window = Window::<Local>::new(&Limits { window: 4, deps: 4, ..Limits::default() }, FanoutOrder::Lifo);
    let mut consumed = Consumed::default();
    let held = window.reserve(0, TaskId(0), &Needs::default(), 1).expect("there is room");
    assert!(window.satisfy(held));
    window.slot(held).start();
    window.complete(held, &mut consumed);
    assert_eq!((window.slot(held).state(), consumed.0.len()), (State::Completed, 0), "a scope still holds it");
    window.release(held, &mut consumed);
    assert_eq!((window.slot(held).state(), consumed.0.len()), (State::Consumed, 1));
    let pending = window.reserve(0, TaskId(1), &Needs::default(), 1).expect("there is room");
    window.release(pending, &mut consumed);
    assert_eq!((window.slot(pending).state(), consumed.0.len()), (State::Pending, 1), "it has not run");
}

/// Two vectors, the first of them free with clock 10; the other one as given. Who gets the next block?
fn next_of_two(clock: u64, is_free: bool) -> Option<u32> {
    let mut floor = Floor::new(&Workers { vector: 2, ..Workers::default() });
    for (worker, clock) in [(0, 10), (1, clock)] {
        floor.take_worker(worker);
        floor.worker_mut(worker).clock = clock;
    }
    floor.give_back(0);
    if is_free {
        floor.give_back(1);
    }
    floor.take(TaskType::Vector)
}

#[test]
fn pu_06_a_worker_leaves_a_block_to_a_free_one_with_a_smaller_clock_only() {
    assert_eq!(next_of_two(5, true), Some(1), "the other one waits with a smaller clock");
    assert_eq!(next_of_two(10, true), Some(0), "of equals the smaller id takes it");
    assert_eq!(next_of_two(11, true), Some(0), "the other one has a larger clock");
    assert_eq!(next_of_two(5, false), Some(0), "the other one is busy, whatever its clock");
    let mut alone = Floor::new(&Workers { vector: 1, ..Workers::default() });
    assert_eq!((alone.take(TaskType::Vector), alone.take(TaskType::Vector)), (Some(0), None), "nobody else is there");
}

/// A program with timed commands.
struct Controlled {
    program: Program,
    controls: Vec<Control>,
}

impl Workload for Controlled {
    fn name(&self) -> String {
        "controlled".into()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        self.program.open()
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        Ok(self.controls.clone())
    }
}

fn with_shutdown(ops: &[Op], at: u64, machine: &Machine, name: Name) -> Report {
    let shutdown = Control { at, command: "shutdown".into(), arguments: serde_json::Map::new(), line: None };
    let workload = Controlled { program: Program { ops: ops.to_vec() }, controls: vec![shutdown] };
    simulate_with(&workload, machine, &Choice::of(name), &mut ()).expect("the program runs")
}

#[test]
fn pu_07_a_shutdown_drains_what_is_ready_and_nothing_else() {
    // At 5 task 0 runs and 1 to 3 are READY; 4 waits for 3; 5 does not fit into the window yet.
    let ops =
        [task(10, &[]), task(10, &[]), task(10, &[]), task(10, &[]), task(10, &[3]), task(10, &[4]), task(10, &[])];
    let machine = Machine { limits: Limits { window: 8, spare: 2, ..Limits::default() }, ..vectors(1) };
    for name in [Name::Pto, Name::Lifo, Name::PerWorker, Name::Predictive, Name::Static] {
        let report = with_shutdown(&ops, 5, &machine, name);
        let ended = &report.ended;
        assert_eq!((report.outcome, report.makespan), (Outcome::Failed, 40), "{name}");
        assert_eq!(
            (ended.completed, ended.dropped, ended.cancelled),
            (4, 2, 1),
            "{name}: one of them was never submitted"
        );
        assert_eq!((report.tasks, ended.consumed), (7, 6), "{name}: the ring advances over all that was submitted");
        assert!(report.notes[0].starts_with("shut down at 5"), "{:?}", report.notes);
    }
    let idle = with_shutdown(&[task(10, &[])], 50, &vectors(1), Name::Pto);
    assert_eq!((idle.outcome, idle.makespan), (Outcome::Completed, 10), "nothing is left at 50");
}

#[test]
fn pu_07_a_shutdown_inside_a_scope_lets_go_of_its_tasks() {
    let ops = [Op::ScopeBegin, task(10, &[]), task(10, &[]), task(10, &[]), Op::ScopeEnd];
    let machine = Machine { limits: Limits { window: 2, ..Limits::default() }, ..vectors(1) };
    assert_eq!(run(&ops, &machine).outcome, Outcome::Deadlock);
    let report = with_shutdown(&ops, 30, &machine, Name::Pto);
    assert_eq!((report.outcome, report.ended.dropped), (Outcome::Failed, 1), "the third task was never submitted");
    assert_eq!((report.ended.completed, report.ended.consumed), (2, 2));
}

#[test]
fn pu_08_pieces_of_the_heap_are_rounded_to_64_bytes() {
    let top = |sizes: &[u64]| {
        let limits = Limits { window: 8, heap: 4096, deps: 4, ..Limits::default() };
        let window = Window::<Local>::new(&limits, FanoutOrder::Lifo);
        for (index, &bytes) in sizes.iter().enumerate() {
            let submit = Submit { out_bytes: bytes, ..Submit::default() };
            let needs = Needs { heap: submit.heap_bytes(), ..Needs::default() };
            window.reserve(0, TaskId(index as u64), &needs, 0).expect("it fits");
        }
        window.ring(0).heap_top()
    };
    assert_eq!((top(&[100]), top(&[1]), top(&[1, 33]), top(&[1, 33, 64])), (128, 64, 128, 192));
    assert_eq!(top(&[100, 0]), 128, "nothing for nothing");
    let window = Window::<Local>::new(&Limits { window: 2, heap: 4096, ..Limits::default() }, FanoutOrder::Lifo);
    let refusal = window.reserve(0, TaskId(0), &Needs { heap: 8192, ..Needs::default() }, 0);
    assert_eq!(refusal, Err(Refusal::TooLarge(Resource::Heap)));
}

#[test]
fn pu_09_the_heap_wraps_when_its_beginning_is_free_again() {
    let limits = Limits { window: 8, heap: 4096, deps: 4, ..Limits::default() };
    let window = Window::<Local>::new(&limits, FanoutOrder::Lifo);
    let take = |task, heap| window.reserve(0, TaskId(task), &Needs { heap, ..Needs::default() }, 0);
    let retire = |slot| {
        assert!(window.satisfy(slot));
        window.slot(slot).start();
        window.complete(slot, &mut Consumed::default());
        window.advance(0, |_, _| {});
    };
    let (first, second) = (take(0, 64).expect("it fits"), take(1, 4032).expect("it fits"));
    assert_eq!(take(2, 64), Err(Refusal::Full(Resource::Heap)));
    retire(first);
    assert_eq!(window.ring(0).heap_tail(), 64);
    let wrapped = take(2, 64).expect("the first piece is back");
    assert_eq!(window.ring(0).heap_top(), 4096 + 64, "ring offset 0 of the second lap");
    assert_eq!(take(3, 64), Err(Refusal::Full(Resource::Heap)));
    retire(second);
    retire(wrapped);
    assert!(take(3, 4096).is_ok(), "an empty ring begins anew");
}

#[test]
fn pu_10_scopes_match_and_nest_64_deep() {
    let read = |lines: &str| {
        let text = format!("{{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1}}\n{lines}");
        let trace = Stdin::from_reader("t", Box::new(std::io::Cursor::new(text.into_bytes())));
        simulate_with(&trace, &Machine::default(), &Choice::default(), &mut ()).map(|report| report.outcome)
    };
    let (begin, end) = ("{\"op\":\"scope_begin\"}\n", "{\"op\":\"scope_end\"}\n");
    assert!(read(end).expect_err("nothing is open").to_string().contains(":2: "));
    assert_eq!(read(&[begin, begin, end, end].concat()).ok(), Some(Outcome::Completed));
    assert_eq!(read(&begin.repeat(64)).ok(), Some(Outcome::Completed));
    assert!(read(&begin.repeat(65)).expect_err("too deep").to_string().contains("64 scopes are open"));
}

#[test]
fn pu_11_a_full_ready_queue_defers_or_drops() {
    let ops: Vec<Op> = (0..5).map(|_| task(10, &[])).collect();
    let mut machine = vectors(1);
    machine.limits.ready = 2;
    let mut order = Order::default();
    let report = run_with(&Program { ops: ops.clone() }, &machine, &Choice::default(), &mut order).expect("it runs");
    assert_eq!((report.outcome, order.0), (Outcome::Completed, vec![0, 1, 2, 3, 4]));
    assert_eq!((report.high_water.ready_queue_full_events, report.ended.dropped), (3, 0));
    machine.rules.on_ready_queue_full = OnReadyFull::Drop;
    // The other four systems keep READY tasks in structures of their own, which have no such limit.
    let other = [Name::CyberClassic, Name::CyberChoreography, Name::Orleans, Name::Bmf, Name::Ray];
    for name in Name::ALL.into_iter().filter(|name| !other.contains(name)) {
        let run = run_with(&Program { ops: ops.clone() }, &machine, &Choice::of(name), &mut ());
        let report = run.expect("the program runs");
        assert_eq!((report.outcome, report.ended.completed, report.ended.dropped), (Outcome::Failed, 2, 3), "{name}");
        let lost: Vec<_> = report.notes.iter().filter(|note| note.starts_with("[错误] 就绪队列满！任务")).collect();
        assert_eq!(lost.len(), 3, "{name}: {lost:?}");
    }
}

#[test]
fn the_ready_queue_that_a_verdict_advises_drops_nothing() {
    // What is dropped takes its consumers along: with more room these wait, too.
    let ops = (0..150).map(|id| if id < 100 { task(10, &[]) } else { task(10, &[id - 100]) }).collect();
    let program = Program { ops };
    for (limit, window) in [(2, 1024), (60, 1024), (2, 64)] {
        let mut machine = vectors(1);
        (machine.limits.ready, machine.limits.window) = (limit, window);
        machine.rules.on_ready_queue_full = OnReadyFull::Drop;
        for name in [Name::Pto, Name::PerWorker, Name::Steal, Name::Predictive, Name::Static, Name::Lifo] {
            let report = run_with(&program, &machine, &Choice::of(name), &mut ()).expect("it runs");
            assert!(report.ended.dropped > 0, "{name}");
            let told = verdict(&report);
            let advised = told.split_once("limits.ready=").expect("a size").1;
            let advised: String = advised.chars().take_while(char::is_ascii_digit).collect();
            let mut roomy = machine.clone();
            roomy.limits.ready = advised.parse().expect("a number");
            let report = run_with(&program, &roomy, &Choice::of(name), &mut ()).expect("it runs");
            assert_eq!((report.ended.completed, report.ended.dropped), (150, 0), "{name}: {told}");
            assert_eq!(roomy.limits.ready, 150.min(window), "{name}");
        }
    }
}

#[derive(Default)]
struct Order(Vec<u64>);

impl Observer for Order {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.0.push(row.task.0);
    }
}

#[test]
fn operations_follow_from_the_totals() {
    let join = Op::Submit(Box::new(Submit { kind: Some(TaskType::None), ..submit_of(&task(0, &[0])) }));
    let report = run(&[task(10, &[]), join, task(5, &[1])], &vectors(1));
    let operations = Operations::of(&report);
    assert_eq!((operations.fanin_add, operations.ready_cas, operations.advance), (2, 3, 3));
    assert_eq!((operations.push, operations.pop), (2, 2), "a joint needs no queue");
}

fn submit_of(op: &Op) -> Submit {
    match op {
        Op::Submit(submit) => (**submit).clone(),
        Op::Buffer { .. } | Op::ScopeBegin | Op::ScopeEnd => panic!("not a task"),
    }
}

#[test]
fn completions_that_wait_together_pay_once_when_they_are_a_batch() {
    // Four tasks end at 10. One after the other they are complete at 15, 20, 25 and 30; together at 15.
    let mut ops: Vec<Op> = (0..4).map(|_| task(10, &[])).collect();
    ops.push(task(10, &[0, 1, 2, 3]));
    let scheduler = SchedulerCosts { complete: 5, ..SchedulerCosts::default() };
    let makespan = |completion_batch| {
        let rules = Rules { completion_batch, ..Rules::default() };
        let report = run(&ops, &Machine { scheduler: scheduler.clone(), rules, ..vectors(4) });
        (report.makespan, report.scheduler.complete, report.scheduler.jobs)
    };
    assert_eq!(makespan(1), (40, 25, 15));
    assert_eq!(makespan(2), (30, 15, 15));
    assert_eq!(makespan(8), (25, 10, 15));
}

#[test]
fn an_adaptive_window_grows_while_the_orchestrator_waits_and_never_gets_stuck_below_its_limit() {
    let ops: Vec<Op> = (0..400).map(|_| task(10, &[])).collect();
    let with = |window, adaptive_window| {
        let rules = Rules { adaptive_window, ..Rules::default() };
        let mut machine = Machine { limits: Limits { window, ..Limits::default() }, rules, ..vectors(8) };
        machine.orchestrator.submit = 2;
        machine
    };
    let (fixed, roomy, adaptive) =
        (run(&ops, &with(2, 0)).makespan, run(&ops, &with(64, 0)).makespan, run(&ops, &with(64, 2)));
    assert!(fixed > adaptive.makespan && adaptive.makespan < roomy + roomy / 5, "{fixed} {roomy} {adaptive:?}");
    assert!(adaptive.notes.iter().any(|note| note.starts_with("the window adapted itself")), "{:?}", adaptive.notes);
    let most = adaptive.high_water.rings[0].window;
    assert!((5..=16).contains(&most), "five tasks are in flight when nobody waits: {most}");
    let mut scope = vec![Op::ScopeBegin];
    scope.extend((0..20).map(|_| task(10, &[])));
    scope.push(Op::ScopeEnd);
    assert_eq!(run(&scope, &with(32, 2)).outcome, Outcome::Completed, "a scope of 20 needs 32 slots");
    assert_eq!(run(&scope, &with(16, 2)).outcome, Outcome::Deadlock);
}

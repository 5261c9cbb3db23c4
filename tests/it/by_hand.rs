//! Small runs worked out by hand, one for each rule that is easy to get wrong; the model and the engine must both agree.

use crate::model::{self, Ending};
use crate::program::{Op, Program};
use ptosim::config::{Hazards, Machine, ScopeHold, Workers};
use ptosim::engine::{self, BlockRow, Observer};
use ptosim::id::{BufferId, TaskId, TaskType};
use ptosim::report::Blocked;
use ptosim::workload::{Builder, Cost, NewBuffer, Region, Submit, Symbols, Units};

/// `(task, block, worker, start, end)`.
type Start = (u64, u32, u32, u64, u64);

/// What to run, and what comes out.
#[derive(Default)]
struct Case {
    rule: &'static str,
    machine: Machine,
    ops: Vec<Op>,
    starts: Vec<Start>,
    finish: u64,
    edges: u64,
    blocked: Blocked,
}

#[test]
fn the_model_agrees_with_the_cases_worked_out_by_hand() {
    for case in cases() {
        let told = model::run(&Program { ops: case.ops.clone() }, &case.machine);
        let starts = told.rows.iter().map(|row| (row.task, row.block, row.worker, row.start, row.end)).collect();
        assert_eq!(told.ending, Ending::Completed, "{}", case.rule);
        check(&case, starts, (told.finish, told.edges), told.orchestrator.blocked);
    }
}

#[test]
fn the_engine_agrees_with_the_cases_worked_out_by_hand() {
    for case in cases() {
        let mut starts = Starts::default();
        let program = Program { ops: case.ops.clone() };
        match ptosim::engine::run(&program, &case.machine, &mut starts) {
            Ok(report) => check(&case, starts.0, (report.finish, report.edges), report.orchestrator.blocked),
            Err(error) => panic!("{}: {error}", case.rule),
        }
    }
}

#[derive(Default)]
struct Starts(Vec<Start>);

impl Observer for Starts {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.0.push((row.task.0, row.block, row.worker.0, row.start, row.end));
    }
}

fn check(case: &Case, mut starts: Vec<Start>, (finish, edges): (u64, u64), blocked: Blocked) {
    starts.sort_unstable();
    assert_eq!(starts, case.starts, "starts: {}", case.rule);
    assert_eq!(finish, case.finish, "finish: {}", case.rule);
    assert_eq!(edges, case.edges, "edges: {}", case.rule);
    assert_eq!(blocked, case.blocked, "blocked: {}", case.rule);
}

fn cases() -> Vec<Case> {
    let subjects = [
        scheduler_cases(),
        mix_cases(),
        placement_cases(),
        window_cases(),
        pool_cases(),
        hazard_cases(),
        scope_cases(),
        vec![binding_case(), coming_back_case()],
    ];
    subjects.into_iter().flatten().collect()
}

/// `n` vectors and nothing else, no costs.
fn vectors(vector: u32) -> Machine {
    Machine { workers: Workers { vector, ..Workers::default() }, ..Machine::default() }
}

/// `n` clusters and nothing else, no costs.
fn clusters(clusters: u32) -> Machine {
    Machine { workers: Workers { clusters, ..Workers::default() }, ..Machine::default() }
}

/// A machine with some settings changed.
fn with(mut machine: Machine, change: impl FnOnce(&mut Machine)) -> Machine {
    change(&mut machine);
    machine
}

/// A VECTOR task, with some fields changed.
fn task(cycles: u64, deps: &[u64], change: impl FnOnce(&mut Submit)) -> Op {
    let mut submit = Submit::default();
    submit.clear();
    submit.kind = Some(TaskType::Vector);
    submit.cost = Some(Cost::Cycles(cycles));
    submit.deps = deps.iter().map(|&task| TaskId(task)).collect();
    change(&mut submit);
    Op::Submit(Box::new(submit))
}

fn plain(cycles: u64, deps: &[u64]) -> Op {
    task(cycles, deps, |_| {})
}

fn range(offset: u64, bytes: u64) -> Region {
    Region::range(BufferId(0), offset, bytes)
}

fn scheduler_cases() -> Vec<Case> {
    let costly = with(vectors(1), |machine| {
        machine.scheduler.complete = 2;
        machine.scheduler.edge = 3;
    });
    let handing_out = with(vectors(2), |machine| {
        machine.scheduler.dispatch = 4;
        machine.worker.pickup = 3;
    });
    vec![
        Case {
            rule: "completing costs 3 more for each consumer linked when the last block is taken",
            machine: costly.clone(),
            ops: vec![plain(10, &[]), plain(5, &[0]), plain(5, &[0])],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 0, 25, 30), (2, 0, 0, 18, 23)],
            finish: 32,
            edges: 2,
            ..Case::default()
        },
        Case {
            rule: "a joint becomes READY with its producer and pays its own completion: 15 = 10 + (2 + 3), 20 = 15 + (2 + 3)",
            machine: costly,
            ops: vec![plain(10, &[]), task(9, &[0], |joint| joint.kind = Some(TaskType::None)), plain(5, &[1])],
            starts: vec![(0, 0, 0, 0, 10), (2, 0, 0, 20, 25)],
            finish: 27,
            edges: 2,
            ..Case::default()
        },
        Case {
            rule: "one thread hands out one block after the other, and each worker picks up 3 cycles later",
            machine: handing_out.clone(),
            ops: vec![plain(10, &[]), plain(10, &[])],
            starts: vec![(0, 0, 0, 7, 17), (1, 0, 1, 11, 21)],
            finish: 21,
            ..Case::default()
        },
        Case {
            rule: "two threads hand out two blocks at once",
            machine: with(handing_out, |machine| machine.scheduler.threads = 2),
            ops: vec![plain(10, &[]), plain(10, &[])],
            starts: vec![(0, 0, 0, 7, 17), (1, 0, 1, 7, 17)],
            finish: 17,
            ..Case::default()
        },
        Case {
            rule: "the orchestrator pays 5 for a task and 2 for its entry, waits for cycle 30 without being blocked",
            machine: with(vectors(1), |machine| {
                machine.orchestrator.submit = 5;
                machine.orchestrator.per_edge = 2;
            }),
            ops: vec![plain(10, &[]), plain(1, &[0]), task(1, &[0], |late| late.submit_at = 30)],
            starts: vec![(0, 0, 0, 5, 15), (1, 0, 0, 15, 16), (2, 0, 0, 35, 36)],
            finish: 36,
            edges: 1,
            ..Case::default()
        },
    ]
}

fn mix_cases() -> Vec<Case> {
    let mix = |cycles: Cost, cube: u8, vector: u8| {
        task(0, &[], |mix| {
            mix.kind = Some(TaskType::Mix);
            mix.cost = Some(cycles);
            mix.units = Units { cube, vector };
        })
    };
    let all = Cost::PerKind { cube: 10, vector: 4 };
    vec![
        Case {
            rule: "each worker of a MIX block has its own end and clock, all become free with the last",
            machine: clusters(1),
            ops: vec![mix(all, 1, 2), plain(5, &[])],
            starts: vec![(0, 0, 0, 0, 10), (0, 0, 1, 0, 4), (0, 0, 2, 0, 4), (1, 0, 1, 10, 15)],
            finish: 15,
            ..Case::default()
        },
        Case {
            rule: "a MIX block goes to the cluster whose chosen units have the smallest largest clock",
            machine: clusters(2),
            ops: vec![
                plain(1, &[]),
                plain(2, &[]),
                plain(3, &[]),
                plain(4, &[]),
                task(6, &[], |mix| {
                    mix.kind = Some(TaskType::Mix);
                    mix.units = Units { cube: 0, vector: 1 };
                    mix.submit_at = 9;
                    mix.blocks = 3;
                }),
            ],
            starts: vec![
                (0, 0, 2, 0, 1),
                (1, 0, 3, 0, 2),
                (2, 0, 4, 0, 3),
                (3, 0, 5, 0, 4),
                (4, 0, 2, 9, 15),
                (4, 1, 3, 9, 15),
                (4, 2, 4, 9, 15),
            ],
            finish: 15,
            ..Case::default()
        },
    ]
}

fn placement_cases() -> Vec<Case> {
    vec![
        Case {
            rule: "a sync_start head waits for all its workers and holds back its queue",
            machine: vectors(2),
            ops: vec![
                plain(10, &[]),
                task(5, &[], |both| {
                    both.blocks = 2;
                    both.sync_start = true;
                }),
                plain(3, &[]),
            ],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 10, 15), (1, 1, 0, 10, 15), (2, 0, 0, 15, 18)],
            finish: 18,
            ..Case::default()
        },
        Case {
            rule: "CUBE goes before VECTOR to a worker that serves both; a missing ACCELERATOR is served by ANY",
            machine: Machine { workers: Workers { any: 1, ..Workers::default() }, ..Machine::default() },
            ops: vec![
                task(1, &[], |engine| engine.kind = Some(TaskType::Accelerator)),
                plain(2, &[]),
                task(4, &[], |cube| cube.kind = Some(TaskType::Cube)),
            ],
            starts: vec![(0, 0, 0, 6, 7), (1, 0, 0, 4, 6), (2, 0, 0, 0, 4)],
            finish: 7,
            ..Case::default()
        },
        Case {
            rule: "an AI_CPU task without its kind of worker waits in the queue of VECTOR",
            machine: vectors(1),
            ops: vec![task(1, &[], |cpu| cpu.kind = Some(TaskType::AiCpu)), plain(2, &[])],
            starts: vec![(0, 0, 0, 0, 1), (1, 0, 0, 1, 3)],
            finish: 3,
            ..Case::default()
        },
    ]
}

fn window_cases() -> Vec<Case> {
    vec![
        Case {
            rule: "a spare slot stays unused: the second task waits for the first",
            machine: with(vectors(2), |machine| {
                machine.limits.window = 2;
                machine.limits.spare = 1;
            }),
            ops: vec![plain(10, &[]), plain(10, &[])],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 10, 20)],
            finish: 20,
            blocked: Blocked { window: 10, ..Blocked::default() },
            ..Case::default()
        },
        Case {
            rule: "the inner scope has a ring of its own",
            machine: with(vectors(3), |machine| {
                machine.limits.window = 1;
                machine.limits.rings = 2;
            }),
            ops: vec![
                Op::ScopeBegin,
                plain(9, &[]),
                Op::ScopeBegin,
                plain(9, &[]),
                Op::ScopeEnd,
                Op::ScopeEnd,
                plain(1, &[]),
            ],
            starts: vec![(0, 0, 0, 0, 9), (1, 0, 1, 0, 9), (2, 0, 2, 9, 10)],
            finish: 10,
            blocked: Blocked { window: 9, ..Blocked::default() },
            ..Case::default()
        },
    ]
}

fn pool_cases() -> Vec<Case> {
    let bytes = |bytes| task(10, &[], move |task| task.out_bytes = bytes);
    vec![
        Case {
            rule: "a heap without live pieces starts anew at the base: 192 bytes fit although 128 were passed",
            machine: with(vectors(2), |machine| machine.limits.heap = 256),
            ops: vec![bytes(65), bytes(192), plain(3, &[])],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 10, 20), (2, 0, 0, 10, 13)],
            finish: 20,
            blocked: Blocked { heap: 10, ..Blocked::default() },
            ..Case::default()
        },
        Case {
            rule: "entries are looked up at every attempt and return when the task retires, in ring order",
            machine: with(vectors(2), |machine| machine.limits.deps = 1),
            ops: vec![plain(10, &[]), plain(20, &[]), plain(5, &[0]), plain(5, &[1])],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 0, 20), (2, 0, 0, 10, 15), (3, 0, 0, 20, 25)],
            finish: 25,
            edges: 1,
            blocked: Blocked { deps: 20, ..Blocked::default() },
        },
        Case {
            rule: "with full hazards a read takes a map entry too",
            machine: with(vectors(2), |machine| {
                machine.limits.tensors = 1;
                machine.rules.hazards = Hazards::Full;
            }),
            ops: vec![
                Op::Buffer { buffer: BufferId(0), bytes: 8 },
                task(10, &[], |reader| reader.reads = vec![range(0, 4)]),
                task(10, &[], |reader| reader.reads = vec![range(4, 4)]),
            ],
            starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 10, 20)],
            finish: 20,
            blocked: Blocked { tensors: 10, ..Blocked::default() },
            ..Case::default()
        },
    ]
}

fn hazard_cases() -> Vec<Case> {
    let hazards = |hazards| with(vectors(3), move |machine| machine.rules.hazards = hazards);
    let write_read_write = || {
        vec![
            Op::Buffer { buffer: BufferId(0), bytes: 16 },
            task(10, &[], |writer| writer.writes = vec![range(0, 8)]),
            task(10, &[], |reader| reader.reads = vec![range(7, 2)]),
            task(1, &[], |writer| writer.writes = vec![range(4, 4)]),
        ]
    };
    let schedule = |rule, mode, last: Start, edges| Case {
        rule,
        machine: hazards(mode),
        ops: write_read_write(),
        starts: vec![(0, 0, 0, 0, 10), (1, 0, 3 - last.2, 10, 20), last],
        finish: 20.max(last.4),
        edges,
        ..Case::default()
    };
    vec![
        schedule("raw: a write waits for nobody", Hazards::Raw, (2, 0, 1, 0, 1), 1),
        schedule("raw_waw: a write waits for the last writer", Hazards::RawWaw, (2, 0, 1, 10, 11), 2),
        schedule("full: a write waits for writer and readers", Hazards::Full, (2, 0, 2, 20, 21), 3),
    ]
}

fn scope_cases() -> Vec<Case> {
    let scopes = |rule, hold, edges| Case {
        rule,
        machine: with(vectors(1), move |machine| machine.rules.scope_hold = hold),
        ops: vec![
            Op::ScopeBegin,
            Op::ScopeBegin,
            plain(5, &[]),
            Op::ScopeEnd,
            task(5, &[0], |late| late.submit_at = 20),
            Op::ScopeEnd,
        ],
        starts: vec![(0, 0, 0, 0, 5), (1, 0, 0, 20, 25)],
        finish: 25,
        edges,
        ..Case::default()
    };
    vec![
        scopes("the inner scope alone holds its task", ScopeHold::Innermost, 0),
        scopes("the outer scope holds the task of the inner one too", ScopeHold::Enclosing, 1),
    ]
}

fn binding_case() -> Case {
    let rows = Region { buffer: BufferId(0), offset: 0, row_bytes: 4, rows: 2, stride: 8 };
    Case {
        rule: "arguments mean the buffer bound before; a new binding hides it; a hidden write is hidden for good",
        machine: vectors(3),
        ops: vec![
            Op::Buffer { buffer: BufferId(0), bytes: 16 },
            task(10, &[], |writer| writer.writes = vec![range(0, 16)]),
            task(20, &[], |maker| {
                maker.reads = vec![range(0, 16)];
                maker.allocates = vec![NewBuffer { buffer: BufferId(0), bytes: 16 }];
            }),
            task(1, &[], |over| over.writes = vec![rows]),
            task(1, &[], |reader| reader.reads = vec![range(8, 4)]),
            task(1, &[], |reader| reader.reads = vec![range(4, 4)]),
        ],
        starts: vec![(0, 0, 0, 0, 10), (1, 0, 1, 10, 30), (2, 0, 0, 30, 31), (3, 0, 1, 31, 32), (4, 0, 2, 30, 31)],
        finish: 32,
        edges: 4,
        ..Case::default()
    }
}

/// One cluster is taken out of turn again and again in one cycle, because the first one has no cube; then the others are asked for.
fn coming_back_case() -> Case {
    const TIMES: u64 = 300;
    let of_type = |kind, cycles, deps: &[u64]| task(cycles, deps, |task| task.kind = Some(kind));
    let mut ops = vec![of_type(TaskType::Cube, 1000, &[]), of_type(TaskType::Cube, 1, &[])];
    let mut starts = vec![(0, 0, 0, 0, 1000), (1, 0, 1, 0, 1)];
    for nth in 0..TIMES {
        ops.push(task(0, &[nth + 1], |mix| {
            mix.kind = Some(TaskType::Mix);
            mix.units = Units { cube: 1, vector: 1 };
        }));
        // The vector of the second cluster with the smaller clock is the other one only once.
        let vector = if nth == 1 { 5 } else { 4 };
        starts.extend([(nth + 2, 0, 1, 1, 1), (nth + 2, 0, vector, 1, 1)]);
    }
    let last = TIMES + 1;
    ops.extend((0..4).map(|_| plain(10, &[last])));
    starts.extend((0..4).map(|nth| (last + 1 + nth, 0, 5 - nth as u32, 1, 11)));
    Case {
        rule: "a worker that comes back often with the clock it had does not push out others",
        machine: clusters(2),
        ops,
        starts,
        finish: 1000,
        edges: TIMES + 4,
        blocked: Blocked::default(),
    }
}

/// Whatever the jobs of the scheduler cost, nothing that is ready waits while a worker that could run it is free.
#[test]
fn a_child_starts_in_the_cycle_in_which_its_parent_does() {
    let mut builder = Builder::new("family");
    let parent = builder.task("parent").vector().cycles(50).submit();
    builder.task("child").vector().cycles(10).parent(parent, 0).submit();
    builder.task("late").vector().cycles(10).parent(parent, 7).submit();
    let program = builder.build().expect("a valid program");
    let machine = Machine { workers: Workers { vector: 2, ..Workers::default() }, ..Machine::default() };
    let report = engine::run(&program, &machine, &mut ()).expect("the run completes");
    assert_eq!(report.makespan, 50, "two workers: the parent on one, its children one after the other");
    assert_eq!(report.latency["ready_to_start"].max, 3, "only the late child waits, for the first to end");
}

#[test]
fn the_critical_path_knows_retired_tasks_in_every_ring() {
    for rings in [1, 2, 4] {
        let mut machine = vectors(1);
        machine.limits.rings = rings;
        let program = Program {
            ops: vec![
                plain(1, &[]),
                Op::ScopeBegin,
                Op::ScopeBegin,
                plain(100, &[]),
                Op::ScopeEnd,
                Op::ScopeEnd,
                task(1, &[], |late| late.submit_at = 1000),
                plain(10, &[1]),
            ],
        };
        let report = engine::run(&program, &machine, &mut ()).expect("the run completes");
        assert_eq!(report.bounds.critical_path, 110, "{rings} rings");
    }
}

#[test]
fn a_cancelled_task_releases_its_producers_at_once() {
    let mut machine = vectors(2);
    machine.limits.window = 4;
    let program = Program {
        ops: vec![
            task(10, &[], |bad| bad.fault = true),
            plain(100, &[]),
            plain(10, &[0, 1]),
            plain(10, &[]),
            plain(10, &[]),
        ],
    };
    let mut starts = Starts::default();
    let report = engine::run(&program, &machine, &mut starts).expect("the run ends");
    assert_eq!(starts.0[3], (4, 0, 0, 20, 30), "the window has room when the failed task is consumed, at cycle 10");
    assert_eq!((report.ended.cancelled, report.ended.consumed, report.makespan), (1, 5, 100));
}

#[test]
fn a_child_knows_when_its_retired_parent_started_and_whether_it_did() {
    let late = |parent, offset| {
        move |child: &mut Submit| (child.submit_at, child.parent) = (10, Some((TaskId(parent), offset)))
    };
    let program = Program { ops: vec![plain(5, &[]), task(10, &[], late(0, 100))] };
    let mut starts = Starts::default();
    engine::run(&program, &vectors(2), &mut starts).expect("the run completes");
    assert_eq!(starts.0[1].3, 100, "the start of the parent plus the offset");

    let fault = task(1, &[], |bad| bad.fault = true);
    let program = Program { ops: vec![fault, plain(1, &[0]), task(10, &[], late(1, 0))] };
    let report = engine::run(&program, &vectors(2), &mut ()).expect("the run ends");
    assert_eq!((report.ended.failed, report.ended.cancelled), (1, 2), "a child of a cancelled task never runs");

    // With one slot the child takes that of its parent.
    let mut narrow = vectors(2);
    narrow.limits.window = 1;
    let program = Program { ops: vec![plain(5, &[]), task(10, &[], late(0, 100))] };
    let mut starts = Starts::default();
    engine::run(&program, &narrow, &mut starts).expect("the run completes");
    assert_eq!(starts.0[1].3, 100, "whatever the window");
    let fault = task(1, &[], |bad| bad.fault = true);
    let program = Program { ops: vec![fault, task(10, &[], late(0, 0))] };
    for machine in [&narrow, &vectors(2)] {
        let report = engine::run(&program, machine, &mut ()).expect("the run ends");
        assert_eq!((report.ended.failed, report.ended.completed), (1, 1), "a failed parent has started");
    }

    let none = task(0, &[0], |none| none.kind = Some(TaskType::None));
    let early = task(1, &[], |child| child.parent = Some((TaskId(1), 7)));
    let program = Program { ops: vec![plain(3, &[]), none, early, task(1, &[], late(1, 7))] };
    let mut starts = Starts::default();
    engine::run(&program, &vectors(3), &mut starts).expect("the run completes");
    assert_eq!(
        (starts.0[1].3, starts.0[2].3),
        (10, 10),
        "a NONE parent starts when it completes, for all its children"
    );
}

#[test]
fn a_task_that_ends_the_narrow_mode_does_not_begin_the_instant_anew() {
    let mut machine = vectors(2);
    (machine.orchestrator.scope, machine.orchestrator.per_edge, machine.scheduler.dispatch) = (1, 7, 1);
    let ends = [
        |task: &mut Submit| task.blocks = 2,
        |task: &mut Submit| task.sync_start = true,
        |task: &mut Submit| task.fault = true,
        |task: &mut Submit| task.parent = Some((TaskId(0), 0)),
    ];
    for end in ends {
        // At cycle 1 the first task starts and ends, which is looked at only when the second has been reserved.
        let program = Program { ops: vec![plain(0, &[]), Op::ScopeBegin, task(1, &[0], end), plain(1, &[1])] };
        let alone = engine::run(&program, &machine, &mut ()).expect("the run ends");
        let watched = engine::run(&program, &machine, &mut Starts::default()).expect("the run ends");
        assert_eq!(alone, watched);
        assert_eq!(alone.orchestrator.working, 15, "both dependencies are paid for");
    }
}

#[test]
fn tasks_published_in_one_cycle_are_admitted_before_what_that_leads_to() {
    let none = |none: &mut Submit| (none.kind, none.submit_at) = (Some(TaskType::None), 1);
    let child = task(1, &[], |child| child.parent = Some((TaskId(0), 5)));
    let program = Program { ops: vec![plain(0, &[]), task(0, &[], none), plain(3, &[1]), child, plain(7, &[])] };
    let mut starts = Starts::default();
    engine::run(&program, &vectors(1), &mut starts).expect("the run completes");
    let mut found: Vec<_> = starts.0.iter().map(|&(task, _, _, start, _)| (task, start)).collect();
    found.sort_unstable();
    assert_eq!(found, [(0, 0), (2, 8), (3, 11), (4, 1)], "the last is READY before the NONE task is completed");
}

#[test]
fn a_cancelled_task_stays_linked_until_it_is_admitted_and_waits_for_no_scheduler() {
    let mut machine = vectors(2);
    (machine.scheduler.complete, machine.scheduler.edge) = (2, 5);
    let fault = task(3, &[], |bad| bad.fault = true);
    let late = |task: &mut Submit| task.submit_at = 4;
    let program = Program { ops: vec![fault, plain(3, &[]), task(0, &[0, 1], late), task(1, &[], late)] };
    let report = engine::run(&program, &machine, &mut ()).expect("the run ends");
    assert_eq!((report.scheduler.complete, report.finish), (11, 15), "the edge to the cancelled task is paid for");

    let mut machine = vectors(1);
    (machine.workers.cube, machine.scheduler.admit) = (1, 10);
    let fault = task(0, &[], |bad| bad.fault = true);
    let cube = task(0, &[0], |cube| (cube.kind, cube.submit_at) = (Some(TaskType::Cube), 25));
    let program = Program { ops: vec![fault, plain(40, &[]), cube] };
    let report = engine::run(&program, &machine, &mut ()).expect("the run ends");
    let accounts = &report.workers[0].accounts;
    assert_eq!((accounts.overhead, accounts.dependency, accounts.drained), (0, 10, 25));
}

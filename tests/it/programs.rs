//! Random programs and machines: the same seed always gives the same pair.
//!
//! Sizes are chosen so that most runs complete, many deadlock on one of the resources, and a few ask for something
//! the machine can never give. Buffers are small, so that regions overlap often.

use crate::program::{Op, Program};
use ptosim::config::{
    FanoutOrder, Hazards, Limits, Machine, OrchestratorCosts, Rules, SchedulerCosts, ScopeHold, WorkerCosts, Workers,
};
use ptosim::id::{BufferId, TaskId, TaskType, WorkerType};
use ptosim::workload::{Cost, NewBuffer, Region, Submit, Units};

/// Names of buffers in a program.
const NAMES: u64 = 6;

/// The program and the machine of a seed.
pub fn random(seed: u64) -> (Program, Machine) {
    let mut random = Random(seed);
    // In a third much happens in the same cycle, and what not every engine mode knows is rare.
    let is_dense = seed % 3 == 2;
    let machine = machine(&mut random, is_dense);
    let program = Writer::new(random, &machine, is_dense).write();
    (program, machine)
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    fn small(&mut self, low: u32, high: u32) -> u32 {
        self.range(low.into(), high.into()) as u32
    }

    /// True `percent` times in 100.
    fn chance(&mut self, percent: u64) -> bool {
        self.range(0, 99) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.range(0, from.len() as u64 - 1) as usize]
    }
}

fn machine(random: &mut Random, is_dense: bool) -> Machine {
    let with_costs = random.chance(50);
    let cost = |random: &mut Random, most: u64| {
        let most = if is_dense { most.min(2) } else { most };
        if with_costs && random.chance(70) { random.range(0, most) } else { 0 }
    };
    Machine {
        name: "random".into(),
        workers: workers(random),
        limits: limits(random),
        orchestrator: OrchestratorCosts { submit: cost(random, 12), per_edge: cost(random, 5), scope: cost(random, 8) },
        scheduler: SchedulerCosts {
            threads: random.small(1, 3),
            admit: cost(random, 6),
            complete: cost(random, 9),
            edge: cost(random, 4),
            dispatch: cost(random, 7),
        },
        worker: WorkerCosts { pickup: cost(random, 6) },
        rules: Rules {
            hazards: random.pick(&[Hazards::Raw, Hazards::RawWaw, Hazards::Full]),
            scope_hold: random.pick(&[ScopeHold::Innermost, ScopeHold::Enclosing]),
            fanout_order: random.pick(&[FanoutOrder::Lifo, FanoutOrder::Fifo]),
            ..Rules::default()
        },
        ..Machine::default()
    }
}

fn workers(random: &mut Random) -> Workers {
    let clustered = random.chance(40);
    let mut up_to = |percent, most| if random.chance(percent) { random.small(1, most) } else { 0 };
    let (ai_cpu, accelerator, any) = (up_to(25, 2), up_to(25, 2), up_to(30, 2));
    if clustered {
        return Workers { clusters: random.small(1, 3), cube: 0, vector: 0, ai_cpu, accelerator, any };
    }
    let cube = up_to(80, 3);
    let others = cube + ai_cpu + accelerator + any;
    let vector = if others > 0 && random.chance(10) { 0 } else { random.small(1, 4) };
    Workers { clusters: 0, cube, vector, ai_cpu, accelerator, any }
}

fn limits(random: &mut Random) -> Limits {
    let tight = |random: &mut Random| random.chance(40);
    let window = if tight(random) { 1 << random.range(0, 4) } else { 1 << random.range(5, 6) };
    let heap = match (tight(random), random.chance(20)) {
        (false, _) => 1 << 20,
        (true, false) => 64 * random.range(7, 20),
        (true, true) => random.range(500, 1500),
    };
    let deps = if tight(random) { random.range(4, 24) } else { 65536 };
    let tensors = if tight(random) { random.range(4, 24) } else { 65536 };
    let spare = u64::from(window > 1 && random.chance(20));
    Limits { window, heap, deps, tensors, rings: random.small(1, 4), spare, ..Limits::default() }
}

/// Writes one program.
struct Writer {
    random: Random,
    /// Types the machine can run.
    kinds: Vec<TaskType>,
    workers: Workers,
    /// Size of the buffer each name is bound to.
    bound: Vec<Option<u64>>,
    ops: Vec<Op>,
    n_tasks: u64,
    is_dense: bool,
}

impl Writer {
    fn new(random: Random, machine: &Machine, is_dense: bool) -> Writer {
        let workers = &machine.workers;
        let has = |kind| workers.count(kind) + workers.any > 0;
        let mut kinds = vec![TaskType::None];
        if has(WorkerType::Cube) {
            kinds.extend([TaskType::Cube; 3]);
        }
        if has(WorkerType::Vector) {
            kinds.extend([TaskType::Vector; 5]);
        }
        if has(WorkerType::Vector) || has(WorkerType::AiCpu) {
            kinds.push(TaskType::AiCpu);
        }
        if has(WorkerType::Vector) || has(WorkerType::Accelerator) {
            kinds.push(TaskType::Accelerator);
        }
        if workers.clusters > 0 {
            kinds.extend([TaskType::Mix; 4]);
        }
        if is_dense {
            let common = kinds.iter().copied().filter(|kind| matches!(kind, TaskType::Cube | TaskType::Vector));
            kinds.extend(common.collect::<Vec<_>>().repeat(5));
        }
        Writer { random, kinds, workers: workers.clone(), bound: Vec::new(), ops: Vec::new(), n_tasks: 0, is_dense }
    }

    fn write(mut self) -> Program {
        for _ in 0..self.random.range(1, 3) {
            self.buffer();
        }
        let most = self.random.pick(&[6, 25, 60, 60]);
        let n_tasks = self.random.range(1, most);
        let scoped = self.random.pick(&[0, 8, 20]);
        let mut depth = 0;
        while self.n_tasks < n_tasks {
            if depth < 4 && self.random.chance(scoped) {
                self.ops.push(Op::ScopeBegin);
                depth += 1;
            } else if depth > 0 && self.random.chance(scoped + 5) {
                self.ops.push(Op::ScopeEnd);
                depth -= 1;
            } else if self.random.chance(3) {
                self.buffer();
            } else {
                let submit = self.submit();
                self.ops.push(Op::Submit(Box::new(submit)));
                self.n_tasks += 1;
            }
        }
        self.ops.extend((0..depth).map(|_| Op::ScopeEnd));
        Program { ops: self.ops }
    }

    /// A name to bind: one used before, or the next one.
    fn name(&mut self) -> BufferId {
        let next = (self.bound.len() as u64).min(NAMES - 1);
        let name = self.random.range(0, next);
        if name == self.bound.len() as u64 {
            self.bound.push(None);
        }
        BufferId(name as u32)
    }

    fn buffer(&mut self) {
        let buffer = self.name();
        let bytes = if self.random.chance(10) { self.random.range(1024, 4096) } else { self.random.range(1, 512) };
        self.bound[buffer.0 as usize] = Some(bytes);
        self.ops.push(Op::Buffer { buffer, bytes });
    }

    fn submit(&mut self) -> Submit {
        let mut submit = Submit::default();
        submit.clear();
        let kind = if self.random.chance(1) { self.random.pick(&TaskType::ALL) } else { self.random.pick(&self.kinds) };
        submit.kind = Some(kind);
        submit.cost = Some(Cost::Cycles(self.cycles()));
        if kind == TaskType::Mix {
            self.mix(&mut submit);
        }
        if self.random.chance(if self.is_dense { 3 } else { 25 }) {
            submit.blocks = self.random.small(2, 5);
        }
        if self.random.chance(if self.is_dense { 2 } else { 15 }) {
            submit.sync_start = true;
            if self.random.chance(98) {
                submit.blocks = submit.blocks.min(self.together(&submit)).max(1);
            }
        }
        if self.random.chance(6) {
            submit.submit_at = self.random.range(0, if self.is_dense { 20 } else { 400 });
        }
        self.dependencies(&mut submit);
        self.regions(&mut submit);
        self.allocations(&mut submit);
        submit
    }

    /// How many blocks of a task can run at the same time.
    fn together(&self, submit: &Submit) -> u32 {
        let of = |kind| self.workers.count(kind) + self.workers.any;
        let or_vectors = |own| if own == 0 { of(WorkerType::Vector) } else { own };
        match submit.kind {
            Some(TaskType::Mix) if submit.units == (Units { cube: 0, vector: 1 }) => 2 * self.workers.clusters,
            Some(TaskType::Mix) => self.workers.clusters,
            Some(TaskType::Cube) => of(WorkerType::Cube),
            Some(TaskType::AiCpu) => or_vectors(of(WorkerType::AiCpu)),
            Some(TaskType::Accelerator) => or_vectors(of(WorkerType::Accelerator)),
            Some(TaskType::Vector | TaskType::None) | None => of(WorkerType::Vector),
        }
    }

    fn cycles(&mut self) -> u64 {
        if self.random.chance(15) {
            0
        } else if self.is_dense {
            self.random.range(0, 2)
        } else {
            self.random.range(1, 50)
        }
    }

    fn mix(&mut self, submit: &mut Submit) {
        let shapes = [(1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 2)];
        let (cube, vector) = self.random.pick(&shapes);
        submit.units = if self.random.chance(1) { Units { cube: 2, vector } } else { Units { cube, vector } };
        if self.random.chance(50) {
            submit.cost = Some(Cost::PerKind { cube: self.cycles(), vector: self.cycles() });
        }
    }

    fn dependencies(&mut self, submit: &mut Submit) {
        if self.n_tasks == 0 || self.random.chance(50) {
            return;
        }
        for _ in 0..self.random.range(1, 3) {
            let reach = if self.random.chance(70) { 5 } else { self.n_tasks };
            let back = self.random.range(1, reach.min(self.n_tasks));
            submit.deps.push(TaskId(self.n_tasks - back));
        }
    }

    fn regions(&mut self, submit: &mut Submit) {
        let busy = self.random.pick(&[0, 30, 60]);
        for _ in 0..2 {
            if self.random.chance(busy) {
                submit.reads.extend(self.region());
            }
            if self.random.chance(busy / 2) {
                submit.writes.extend(self.region());
            }
            if self.random.chance(busy / 3) {
                submit.updates.extend(self.region());
            }
        }
    }

    /// All of a buffer, a range, or a rectangle whose rows do not touch.
    fn region(&mut self) -> Option<Region> {
        let name = self.random.range(0, self.bound.len() as u64 - 1);
        let buffer = BufferId(name as u32);
        let size = self.bound[name as usize]?;
        let offset = self.random.range(0, size - 1);
        Some(match self.random.range(0, 3) {
            0 => Region::range(buffer, 0, size),
            1 => Region::range(buffer, offset, self.random.range(1, size - offset)),
            2 => Region::range(buffer, offset, self.random.range(1, (size - offset).min(32))),
            _ => {
                let row_bytes = self.random.range(1, (size - offset).min(16));
                let stride = row_bytes + self.random.range(1, 24);
                let most = (size - offset - row_bytes) / stride + 1;
                match self.random.range(1, most.min(8)) {
                    1 => Region::range(buffer, offset, row_bytes),
                    rows => Region { buffer, offset, row_bytes, rows, stride },
                }
            }
        })
    }

    fn allocations(&mut self, submit: &mut Submit) {
        if self.random.chance(20) {
            submit.out_bytes = self.random.range(1, 300);
        }
        for _ in 0..2 {
            if self.random.chance(15) {
                let buffer = self.name();
                let bytes = self.random.range(1, 250);
                let again = submit.allocates.iter().any(|new| new.buffer == buffer);
                if !again {
                    submit.allocates.push(NewBuffer { buffer, bytes });
                    self.bound[buffer.0 as usize] = Some(bytes);
                }
            }
        }
    }
}

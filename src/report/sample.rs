//! Reports made by hand and a full disk, for the tests of this folder.

use super::*;
use serde_json::json;
use std::io::{self, Write};

/// Two cubes and two vectors that mostly wait for each other.
pub(super) fn waits_for_dependencies() -> Report {
    let mut machine = Machine::default();
    machine.workers.cube = 2;
    machine.workers.vector = 2;
    let cube = Accounts { busy: 200, dependency: 700, drained: 100, ..Accounts::default() };
    let vector = Accounts { busy: 350, dependency: 610, orchestrator: 40, ..Accounts::default() };
    let workers = [
        (WorkerType::Cube, cube),
        (WorkerType::Cube, cube),
        (WorkerType::Vector, vector),
        (WorkerType::Vector, vector),
    ];
    Report {
        format: "ptosim-result".into(),
        version: 1,
        workload: "chain".into(),
        machine,
        policy: "pto".into(),
        engine: "virtual".into(),
        outcome: Outcome::Completed,
        makespan: 1000,
        finish: 1000,
        tasks: 12,
        edges: 11,
        blocks: 12,
        ended: Ended { completed: 12, consumed: 12, ..Ended::default() },
        workers: workers.into_iter().zip(0..).map(|((kind, accounts), id)| worker(id, kind, accounts)).collect(),
        orchestrator: OrchestratorReport { working: 40, done: 960, ..OrchestratorReport::default() },
        scheduler: SchedulerReport { threads: 1, admit: 12, complete: 24, dispatch: 24, idle: 940, jobs: 36 },
        bounds: Bounds { critical_path: 920, work: 350, lower_bound: 920, efficiency: 0.92 },
        high_water: HighWater {
            rings: vec![RingHighWater { window: 12, heap: 1 << 20, deps: 11 }],
            tensors: 3,
            ready: BTreeMap::from([("CUBE".into(), 1), ("VECTOR".into(), 2)]),
            ready_queue_full_events: 0,
        },
        latency: BTreeMap::from([(
            "ready_to_start".into(),
            Latency { count: 12, mean: 2.5, p50: 2, p90: 4, p99: 9, max: 9 },
        )]),
        kernels: vec![
            KernelReport { name: "tile_add".into(), count: 6, total: 700, share: 0.636, mean: 116.7, max: 150 },
            KernelReport { name: "gemm_tile".into(), count: 6, total: 400, share: 0.364, mean: 66.7, max: 100 },
        ],
        deadlock: None,
        notes: vec!["AI_CPU tasks run on VECTOR workers, because the machine has no AI_CPU".into()],
        path: None,
        what_if: Vec::new(),
        policy_report: json!({}),
        verdict: String::new(),
        threads: None,
    }
}

/// A run whose open scope keeps the window full.
pub(super) fn deadlock() -> Report {
    Report {
        outcome: Outcome::Deadlock,
        finish: 400,
        deadlock: Some(Deadlock {
            resource: "window".into(),
            ring: 1,
            task: Some(TaskId(15)),
            name: Some("gemm_tile".into()),
            line: Some(40),
            at: 400,
            current: 15,
            last_task_alive: 12,
            size: 4,
            spare: 1,
            used: 3,
            wanted: 1,
            oldest: Some(OldestTask {
                task: TaskId(12),
                name: "tile_add".into(),
                line: Some(33),
                state: "COMPLETED".into(),
                held_by_scopes: vec![ScopeFact { depth: 2, line: Some(30), tasks: 3 }],
                waits_for_consumers: vec![TaskId(13), TaskId(14)],
                waits_for_producers: Vec::new(),
            }),
            needed: BTreeMap::from([("limits.window".into(), 8)]),
            is_smallest: true,
        }),
        ..waits_for_dependencies()
    }
}

fn worker(id: u32, kind: WorkerType, accounts: Accounts) -> WorkerReport {
    WorkerReport { id: WorkerId(id), kind, blocks: 3, busy: accounts.busy, accounts }
}

/// Takes so many bytes and then is full.
pub(super) struct Full(pub(super) usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

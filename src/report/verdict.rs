//! What holds a run back and what to try, in plain words, from the numbers of its report alone.
//!
//! The paragraph looks at the busiest type of worker, because its idle cycles are the ones that cost time, names the largest
//! account of those, and gives the remedy that belongs to it.

use super::deadlock::explain;
use super::host;
use super::words::{about, count, group, list, share};
use super::{Ended, Outcome, Report, TypeReport};
use crate::id::WorkerType;

/// A type this busy is bound by its own work.
const BOUND_BY_WORK: f64 = 0.9;
/// A critical path of this part of the makespan leaves nothing for more workers to gain.
const BOUND_BY_PATH: f64 = 0.8;
/// An orchestrator or scheduler this busy is what the others wait for.
const RUNTIME_FULL: f64 = 0.8;

/// The paragraph for [`Report::verdict`].
#[must_use]
pub fn verdict(report: &Report) -> String {
    match (report.outcome, &report.deadlock) {
        (Outcome::Deadlock, Some(deadlock)) => explain(deadlock),
        (Outcome::Deadlock, None) => format!("Stuck at cycle {}: work is left and nothing can happen.", report.finish),
        (Outcome::Failed, _) => failed(report),
        (Outcome::Timeout, _) => format!(
            "A time-out of the policy ended the run after {} of {}; the last of what still ran ended at cycle {}.",
            group(report.ended.completed),
            count(report.tasks, "task"),
            group(report.makespan)
        ),
        (Outcome::Completed, _) => match &report.threads {
            Some(threads) if threads.mode == "free" => host::verdict(report, threads),
            _ => completed(report),
        },
    }
}

fn failed(report: &Report) -> String {
    let Ended { completed, failed, dropped, cancelled, .. } = report.ended;
    let causes = [(failed, "failed"), (dropped, "dropped"), (cancelled, "cancelled")];
    let causes: Vec<String> = causes
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, how)| format!("{} {how}", group(number)))
        .collect();
    if causes.is_empty() {
        return format!("The policy halted the run after {} of {}.", group(completed), count(report.tasks, "task"));
    }
    let mut sentences =
        vec![format!("Of {}, {} completed; {}.", count(report.tasks, "task"), group(completed), list(&causes))];
    let full = report.high_water.ready_queue_full_events;
    if dropped > 0 && full > 0 {
        // Only tasks that have a slot can wait, so that this is enough whatever runs once nothing is dropped.
        let limits = &report.machine.limits;
        let enough = (limits.window * u64::from(limits.rings)).min(report.tasks);
        sentences.push(format!(
            "A ready queue was full {}; --set limits.ready={enough} has room for every task that can ever wait, and with --set \
             rules.on_ready_queue_full=defer none is dropped either.",
            count(full, "time")
        ));
    }
    if failed > 0 && cancelled > 0 {
        sentences.push("What depends on a failed task is cancelled, so begin with the first failure.".into());
    }
    sentences.join(" ")
}

fn completed(report: &Report) -> String {
    if report.tasks == 0 {
        return "The workload submits no task, so there is nothing to time.".into();
    }
    let types = report.by_type();
    let busiest = types.iter().rev().max_by(|a, b| a.utilisation().total_cmp(&b.utilisation()));
    match busiest {
        Some(busiest) if report.makespan > 0 => format!("{} {}", cause_of(report, busiest), bound(report)),
        _ => "No task kept a worker for a single cycle, so there is nothing to time.".into(),
    }
}

/// How far the makespan is from what these workers could do at best.
fn bound(report: &Report) -> String {
    let lower = group(report.bounds.lower_bound);
    let gain = share(report.makespan.saturating_sub(report.bounds.lower_bound), report.makespan);
    if gain == 0.0 {
        format!("The makespan equals its lower bound of {lower} cycles: no order of these tasks is faster.")
    } else {
        format!("These tasks cannot take less than {lower} cycles: at most {} is left to gain.", about(gain))
    }
}

fn cause_of(report: &Report, busiest: &TypeReport) -> String {
    let busy = busiest.utilisation();
    let workers = plural(busiest.kind);
    let path = share(report.bounds.critical_path, report.makespan);
    if busy >= BOUND_BY_WORK {
        let remedy = if path >= BOUND_BY_PATH {
            format!("the critical path is {} of the makespan, so only shorter kernels help", about(path))
        } else {
            "more of them or shorter kernels help, a better order hardly".into()
        };
        return format!("{workers} are busy {} of the time: this run is bound by their work; {remedy}.", about(busy));
    }
    let (account, cycles) = largest_idle(busiest);
    let part = about(share(cycles, busiest.accounts.total()));
    let waits = match account {
        "overhead" if is_picked_up_slowly(report) => format!("spend {part} of it on picking blocks up"),
        "overhead" => format!("wait {part} of it for the scheduler"),
        "held" => format!("see ready tasks kept back from them {part} of it"),
        "dependency" => format!("wait {part} of it for dependencies"),
        "window" => format!("have no task {part} of it, because the window is full"),
        "heap" => format!("have no task {part} of it, because the heap is full"),
        "deps" => format!("have no task {part} of it, because the dependency entries are used up"),
        "tensors" => format!("have no task {part} of it, because the tensor-map entries are used up"),
        "orchestrator" => format!("wait {part} of it for the orchestrator"),
        _ => format!("have nothing left to do {part} of it"),
    };
    let remedy = remedy(report, busiest, account, path);
    format!("{workers}, the busiest, run kernels {} of the time and {waits}; {remedy}.", about(busy))
}

fn largest_idle(of: &TypeReport) -> (&'static str, u64) {
    let idle = of.accounts.entries().into_iter().filter(|(name, _)| *name != "busy");
    idle.rev().max_by_key(|(_, cycles)| *cycles).expect("there are accounts besides busy")
}

fn remedy(report: &Report, busiest: &TypeReport, account: &str, path: f64) -> String {
    let limits = &report.machine.limits;
    let double = |key: &str, size: u64| {
        format!("try --set limits.{key}={}, or close scopes earlier", size.saturating_mul(2).max(1))
    };
    match account {
        "overhead" if is_picked_up_slowly(report) => format!(
            "that takes {} cycles a block and a kernel {} on average; make tasks larger",
            group(report.machine.worker.pickup),
            group(mean_kernel(report))
        ),
        "overhead" => scheduler(report),
        "held" => {
            "the policy or a busy partner in the cluster holds them; try another policy, more clusters, or fewer \
                   blocks that must start together"
                .into()
        }
        "dependency" => dependencies(report, path),
        "window" => double("window", limits.window),
        "heap" => double("heap", limits.heap),
        "deps" => double("deps", limits.deps),
        "tensors" => double("tensors", limits.tensors),
        "orchestrator" => orchestrator(report),
        _ => drained(report, busiest),
    }
}

fn dependencies(report: &Report, path: f64) -> String {
    let path_text = format!("the critical path is {} of the makespan", about(path));
    if path >= BOUND_BY_PATH {
        return format!(
            "{path_text}: more workers will not help, but shorter kernels on it or breaking the chain will"
        );
    }
    let blocked = report.orchestrator.blocked;
    let sizes = [
        ("window", blocked.window, report.machine.limits.window),
        ("heap", blocked.heap, report.machine.limits.heap),
        ("deps", blocked.deps, report.machine.limits.deps),
        ("tensors", blocked.tensors, report.machine.limits.tensors),
    ];
    let (key, cycles, size) = sizes.into_iter().rev().max_by_key(|(_, cycles, _)| *cycles).expect("there are four");
    let part = share(cycles, report.finish);
    if part > 0.1 {
        return format!(
            "{path_text}, and the orchestrator is blocked on {} {} of the time, so independent tasks come late; try --set \
             limits.{key}={}",
            resource(key),
            about(part),
            size.saturating_mul(2).max(1)
        );
    }
    if share(report.orchestrator.working, report.finish) >= RUNTIME_FULL {
        return format!("{path_text}, but what they wait for is submitted late: {}", orchestrator(report));
    }
    if scheduler_load(report) >= RUNTIME_FULL {
        return format!("{path_text}, but what they wait for is held up by the scheduler: {}", scheduler(report));
    }
    format!("{path_text}, so the order matters: try another policy, or submit independent work earlier")
}

fn resource(key: &str) -> &str {
    match key {
        "window" => "the window",
        "heap" => "the heap",
        "deps" => "dependency entries",
        _ => "tensor-map entries",
    }
}

/// Whether most of a block's way to its worker is that this picks it up.
fn is_picked_up_slowly(report: &Report) -> bool {
    let costs = &report.machine.scheduler;
    report.machine.worker.pickup > costs.admit + costs.complete + costs.dispatch
        && scheduler_load(report) < RUNTIME_FULL
}

/// Cycles of a block's kernel.
fn mean_kernel(report: &Report) -> u64 {
    let busy: u64 = report.workers.iter().map(|worker| worker.busy).sum();
    busy / report.blocks.max(1)
}

/// Part of the time of the scheduler's threads in which they work.
fn scheduler_load(report: &Report) -> f64 {
    let scheduler = &report.scheduler;
    let working = scheduler.admit + scheduler.complete + scheduler.dispatch;
    share(working, working + scheduler.idle)
}

fn scheduler(report: &Report) -> String {
    let scheduler = &report.scheduler;
    let full = scheduler_load(report);
    let threads = count(scheduler.threads.into(), "thread");
    if full >= RUNTIME_FULL {
        let more = scheduler.threads.saturating_add(1);
        return format!(
            "with {threads} it is busy {} of its time; try --set scheduler.threads={more}, or larger tasks",
            about(full)
        );
    }
    let costs = &report.machine.scheduler;
    let way = costs.admit + costs.complete + costs.dispatch + report.machine.worker.pickup;
    let are = if scheduler.threads == 1 { "is" } else { "are" };
    format!(
        "the way of a block through it takes {} cycles and its kernel {} on average, while its {threads} {are} busy only {}; \
         make tasks larger",
        group(way),
        group(mean_kernel(report)),
        about(full)
    )
}

fn orchestrator(report: &Report) -> String {
    let orchestrator = &report.orchestrator;
    if orchestrator.waiting > orchestrator.working {
        return "the workload itself submits late (`submit_at`), so nothing here makes it faster".into();
    }
    let each = orchestrator.working / report.tasks.max(1);
    format!("submitting takes {} cycles a task; make tasks larger or cheaper to submit", group(each))
}

fn drained(report: &Report, busiest: &TypeReport) -> String {
    let most = share(busiest.most_busy, report.makespan);
    if busiest.blocks < busiest.workers {
        let are = if busiest.blocks == 1 { "is" } else { "are" };
        let (blocks, workers) = (count(busiest.blocks, "block"), count(busiest.workers, "worker"));
        return format!("there {are} only {blocks} for {workers}; fewer do as well");
    }
    format!(
        "their share of the work ends early or is uneven, the most loaded of them runs {}; split long tasks or start them first",
        about(most)
    )
}

fn plural(kind: WorkerType) -> &'static str {
    match kind {
        WorkerType::Cube => "Cube workers",
        WorkerType::Vector => "Vector workers",
        WorkerType::AiCpu => "AI CPUs",
        WorkerType::Accelerator => "Accelerators",
        WorkerType::Any => "Workers of any type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Accounts, sample};

    /// The verdict on a run whose vectors, the busiest, spend their 1000 cycles like this.
    fn on(vector: Accounts, change: impl FnOnce(&mut Report)) -> String {
        let mut report = sample::waits_for_dependencies();
        assert_eq!(vector.total(), report.makespan);
        for worker in report.workers.iter_mut().filter(|worker| worker.kind == WorkerType::Vector) {
            worker.busy = vector.busy;
            worker.accounts = vector;
        }
        change(&mut report);
        verdict(&report)
    }

    fn short_path(report: &mut Report) {
        report.bounds.critical_path = 300;
        report.bounds.lower_bound = 350;
    }

    #[test]
    fn dependencies_along_the_critical_path_are_not_cured_by_workers() {
        assert_eq!(
            verdict(&sample::waits_for_dependencies()),
            "Vector workers, the busiest, run kernels 35 % of the time and wait 61 % of it for dependencies; the critical \
             path is 92 % of the makespan: more workers will not help, but shorter kernels on it or breaking the chain will. \
             These tasks cannot take less than 920 cycles: at most 8 % is left to gain."
        );
    }

    #[test]
    fn other_dependencies_are_cured_by_order_or_by_a_larger_window() {
        let accounts = Accounts { busy: 350, dependency: 650, ..Accounts::default() };
        let text = on(accounts, short_path);
        assert!(
            text.contains("the critical path is 30 % of the makespan, so the order matters: try another policy"),
            "{text}"
        );
        let text = on(accounts, |report| {
            short_path(report);
            report.orchestrator.blocked.window = 500;
        });
        assert!(text.contains("blocked on the window 50 % of the time"), "{text}");
        assert!(text.contains("try --set limits.window=32768"), "{text}");
    }

    #[test]
    fn dependencies_on_what_the_runtime_delays_blame_the_runtime() {
        let accounts = Accounts { busy: 350, dependency: 650, ..Accounts::default() };
        let text = on(accounts, |report| {
            short_path(report);
            report.orchestrator.working = 960;
        });
        assert!(text.contains("is submitted late: submitting takes 80 cycles a task"), "{text}");
        let text = on(accounts, |report| {
            short_path(report);
            report.scheduler.idle = 0;
        });
        assert!(text.contains("held up by the scheduler: with 1 thread it is busy 100 %"), "{text}");
    }

    #[test]
    fn busy_workers_are_the_bound() {
        let accounts = Accounts { busy: 960, dependency: 40, ..Accounts::default() };
        let text = on(accounts, short_path);
        assert!(
            text.starts_with("Vector workers are busy 96 % of the time: this run is bound by their work; more of"),
            "{text}"
        );
        let text = on(accounts, |_| ());
        assert!(text.contains("the critical path is 92 % of the makespan, so only shorter kernels help."), "{text}");
    }

    #[test]
    fn a_full_resource_names_the_setting_that_doubles_it() {
        let text = on(Accounts { busy: 300, window: 700, ..Accounts::default() }, short_path);
        assert!(
            text.contains("have no task 70 % of it, because the window is full; try --set limits.window=32768"),
            "{text}"
        );
        let text = on(Accounts { busy: 300, heap: 700, ..Accounts::default() }, short_path);
        assert!(text.contains("--set limits.heap=134217728"), "{text}");
        let text = on(Accounts { busy: 300, deps: 700, ..Accounts::default() }, short_path);
        assert!(text.contains("--set limits.deps=131072"), "{text}");
        let text = on(Accounts { busy: 300, tensors: 700, ..Accounts::default() }, short_path);
        assert!(text.contains("--set limits.tensors=131072"), "{text}");
    }

    #[test]
    fn scheduler_overhead_asks_for_threads_or_for_larger_tasks() {
        let accounts = Accounts { busy: 300, overhead: 700, ..Accounts::default() };
        let text = on(accounts, |report| report.scheduler.idle = 0);
        assert!(text.contains("with 1 thread it is busy 100 % of its time; try --set scheduler.threads=2"), "{text}");
        let text = on(accounts, |report| report.machine.scheduler.dispatch = 500);
        assert!(text.contains("takes 500 cycles and its kernel 83 on average, while its 1 thread is busy"), "{text}");
    }

    #[test]
    fn slow_pickups_are_not_blamed_on_the_scheduler() {
        let accounts = Accounts { busy: 300, overhead: 700, ..Accounts::default() };
        let text = on(accounts, |report| report.machine.worker.pickup = 500);
        let said =
            "spend 70 % of it on picking blocks up; that takes 500 cycles a block and a kernel 83 on average; make";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn the_orchestrator_holding_and_draining_have_their_own_words() {
        let accounts = Accounts { busy: 300, orchestrator: 700, ..Accounts::default() };
        let text = on(accounts, |report| report.orchestrator.working = 1200);
        assert!(text.contains("wait 70 % of it for the orchestrator; submitting takes 100 cycles a task"), "{text}");
        let text = on(accounts, |report| report.orchestrator.waiting = 600);
        assert!(text.contains("the workload itself submits late"), "{text}");
        let text = on(Accounts { busy: 300, held: 700, ..Accounts::default() }, |_| ());
        assert!(text.contains("kept back from them 70 % of it; the policy or a busy partner"), "{text}");
        let text = on(Accounts { busy: 300, drained: 700, ..Accounts::default() }, |_| ());
        assert!(text.contains("have nothing left to do 70 % of it; their share of the work ends early"), "{text}");
        let text = on(Accounts { busy: 300, drained: 700, ..Accounts::default() }, |report| {
            report.workers[2].blocks = 1;
            report.workers[3].blocks = 0;
        });
        assert!(text.contains("there is only 1 block for 2 workers; fewer do as well"), "{text}");
    }

    #[test]
    fn an_empty_run_has_nothing_to_time() {
        let mut report = sample::waits_for_dependencies();
        report.makespan = 0;
        assert!(verdict(&report).starts_with("No task kept a worker"));
        report.tasks = 0;
        assert!(verdict(&report).starts_with("The workload submits no task"));
    }

    #[test]
    fn a_bad_end_is_told_first() {
        let mut report = sample::deadlock();
        assert!(verdict(&report).starts_with("Stuck at cycle 400: the window"));
        report.outcome = Outcome::Timeout;
        assert!(verdict(&report).contains("A time-out of the policy ended the run"));
        report.outcome = Outcome::Failed;
        report.ended = Ended { completed: 7, failed: 1, dropped: 1, cancelled: 3, consumed: 12 };
        report.high_water.ready_queue_full_events = 1;
        assert_eq!(
            verdict(&report),
            "Of 12 tasks, 7 completed; 1 failed, 1 dropped and 3 cancelled. A ready queue was full 1 time; --set \
             limits.ready=12 has room for every task that can ever wait, and with --set rules.on_ready_queue_full=defer none \
             is dropped either. What depends on a failed task is cancelled, so begin with the first failure."
        );
    }
}

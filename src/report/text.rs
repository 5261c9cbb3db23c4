//! The report for people: headline, verdict, and tables that fit a terminal.
//!
//! The text carries colours as escape codes; who prints it to something else than a terminal strips them (`anstream` does).

use super::compare::counters;
use super::host;
use super::table::{numbers, plain};
use super::words::{count, decimal, duration, group, percent, share, short, wrap};
use super::{Blame, Outcome, Report, TypeReport};
use crate::config::format_bytes;
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table};
use owo_colors::OwoColorize;
use std::fmt::Write;

/// Kernels shown; the rest is only counted.
const TOP_KERNELS: usize = 10;
/// Waiting times in the order of a task's life; others come first.
const LIFE: [&str; 4] = ["submit_to_ready", "ready_to_start", "start_to_end", "end_to_completed"];
/// The longest bar, in characters.
const LONGEST_BAR: usize = 24;

/// The whole text, in lines of about `width` characters (80 to 120 suit it).
#[must_use]
pub fn render(report: &Report, width: usize) -> String {
    let mut text = headline(report);
    if !report.verdict.is_empty() {
        let _ = write!(text, "\n{}\n", wrap(&report.verdict, width));
    }
    for note in &report.notes {
        let _ = write!(text, "\n{}\n", wrap(&format!("note: {note}"), width));
    }
    if let Some(threads) = &report.threads {
        section(&mut text, "On the host", host::figures(threads));
        section(&mut text, "Waiting times of one task in 64, in ns", host::latencies(threads));
        if threads.mode == "free" {
            section(&mut text, "Most in use", high_water(report));
            return text;
        }
    }
    let types = report.by_type();
    section(&mut text, "Where the worker cycles went", accounts(&types, width));
    section(&mut text, "Critical path", critical_path(report));
    section(&mut text, "What if", what_if(report));
    section(&mut text, "Workers", workers(report, &types));
    section(&mut text, "Runtime", Some(runtime(report, width)));
    section(&mut text, "Most in use", high_water(report));
    section(&mut text, "Waiting times in cycles", latencies(report));
    section(&mut text, "Kernels", kernels(report));
    text
}

fn headline(report: &Report) -> String {
    let Report { workload, policy, engine, .. } = report;
    let machine = &report.machine;
    let place = format!("{} on {}:", short(workload), machine.name);
    let end = match report.outcome {
        Outcome::Completed => "completed".green().bold().to_string(),
        Outcome::Deadlock => "deadlock".red().bold().to_string(),
        Outcome::Failed => "failed".red().bold().to_string(),
        Outcome::Timeout => "timed out".red().bold().to_string(),
    };
    let when = match report.outcome {
        Outcome::Completed => format!("in {}", count(report.makespan, "cycle")),
        _ => format!("at cycle {}", group(report.finish)),
    };
    let time =
        duration(if report.outcome == Outcome::Completed { report.makespan } else { report.finish }, machine.clock_mhz);
    let (tasks, blocks, edges) =
        (count(report.tasks, "task"), count(report.blocks, "block"), count(report.edges, "edge"));
    format!(
        "{} {end} {when}, {time} at {} MHz\n{tasks}, {blocks}, {edges}; policy {policy}, engine {engine}\n",
        place.bold(),
        machine.clock_mhz
    )
}

fn section(text: &mut String, title: &str, table: Option<Table>) {
    if let Some(table) = table {
        let _ = write!(text, "\n{}\n{}\n", title.bold(), table.trim_fmt());
    }
}

/// One row an account that is not empty, one bar and share a type.
fn accounts(types: &[TypeReport], width: usize) -> Option<Table> {
    let bar_width = (width.saturating_sub(14) / types.len().max(1)).saturating_sub(12).min(LONGEST_BAR);
    let mut header = vec![String::new()];
    for of in types {
        header.extend([format!("{} × {}", of.kind, of.workers), String::new()]);
    }
    let mut table = plain(&header.iter().map(String::as_str).collect::<Vec<_>>());
    let columns: Vec<_> = types.iter().map(|of| of.accounts.entries()).collect();
    for index in 0..columns.first()?.len() {
        if columns.iter().all(|entries| entries[index].1 == 0) {
            continue;
        }
        let name = columns[0][index].0;
        let mut row = vec![Cell::new(name)];
        for (of, entries) in types.iter().zip(&columns) {
            let part = share(entries[index].1, of.accounts.total());
            row.push(Cell::new(bar(part, bar_width)).fg(colour(name)));
            let text = if part == 0.0 { "–".into() } else { percent(part) };
            row.push(Cell::new(text).set_alignment(CellAlignment::Right));
        }
        table.add_row(row);
    }
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    (!table.is_empty()).then_some(table)
}

/// A bar in eighths of a character.
fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn colour(account: &str) -> Color {
    match account {
        "busy" => Color::Green,
        "dependency" => Color::Blue,
        "overhead" | "orchestrator" => Color::Magenta,
        "held" => Color::Cyan,
        "drained" => Color::DarkGrey,
        _ => Color::Red,
    }
}

fn critical_path(report: &Report) -> Option<Table> {
    let path = report.path.as_ref()?;
    let mut table = plain(&["", "cycles", "share", "", ""]);
    for blame in Blame::ALL {
        if let Some(&cycles) = path.blame.get(blame.name()) {
            let part = share(cycles, report.makespan);
            let bar = bar(part, LONGEST_BAR / 2);
            table.add_row([blame.name().into(), group(cycles), percent(part), bar, blame.meaning().to_owned()]);
        }
    }
    numbers(table)
}

fn what_if(report: &Report) -> Option<Table> {
    let mut table = plain(&["", "makespan", "gain", ""]);
    for answer in &report.what_if {
        let settings: Vec<String> = answer.settings.iter().map(|setting| format!("--set {setting}")).collect();
        let gain = match answer.outcome {
            Outcome::Completed if report.outcome != Outcome::Completed => "completes".into(),
            Outcome::Completed => format!("{:.1} %", 100.0 * answer.share),
            Outcome::Deadlock | Outcome::Failed | Outcome::Timeout => "does not complete".into(),
        };
        table.add_row([answer.change.clone(), group(answer.makespan), gain, settings.join(" ")]);
    }
    numbers(table)
}

fn workers(report: &Report, types: &[TypeReport]) -> Option<Table> {
    let mut table = plain(&["type", "workers", "blocks", "busy", "least busy", "most busy"]);
    for of in types {
        let part = |cycles| percent(share(cycles, report.makespan));
        table.add_row([
            of.kind.to_string(),
            group(of.workers),
            group(of.blocks),
            percent(of.utilisation()),
            part(of.least_busy),
            part(of.most_busy),
        ]);
    }
    numbers(table)
}

/// Orchestrator, scheduler and bounds, each a line of facts.
fn runtime(report: &Report, width: usize) -> Table {
    let mut table = plain(&[]);
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.add_row(["orchestrator".to_owned(), orchestrator(report)]);
    table.add_row(["scheduler".to_owned(), scheduler(report)]);
    table.add_row(["bounds".to_owned(), bounds(report)]);
    let counters = counters(&report.policy_report);
    if !counters.is_empty() {
        table.add_row(["policy".to_owned(), counters]);
    }
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table
}

fn orchestrator(report: &Report) -> String {
    let orchestrator = &report.orchestrator;
    let blocked = &orchestrator.blocked;
    let parts = [
        ("working", orchestrator.working),
        ("waiting for submit_at", orchestrator.waiting),
        ("blocked on the window", blocked.window),
        ("blocked on the heap", blocked.heap),
        ("blocked on dependency entries", blocked.deps),
        ("blocked on tensor-map entries", blocked.tensors),
        ("stuck", orchestrator.stuck),
        ("done", orchestrator.done),
    ];
    facts(&parts, report.finish)
}

fn scheduler(report: &Report) -> String {
    let scheduler = &report.scheduler;
    let parts = [
        ("admit", scheduler.admit),
        ("complete", scheduler.complete),
        ("dispatch", scheduler.dispatch),
        ("idle", scheduler.idle),
    ];
    let whole = u64::from(scheduler.threads).saturating_mul(report.finish);
    let (threads, jobs) = (count(scheduler.threads.into(), "thread"), count(scheduler.jobs, "job"));
    format!("{} ({threads}, {jobs})", facts(&parts, whole))
}

fn bounds(report: &Report) -> String {
    let bounds = &report.bounds;
    let part = |cycles| percent(share(cycles, report.makespan));
    format!(
        "critical path {} ({}), work {} ({}); efficiency {}",
        group(bounds.critical_path),
        part(bounds.critical_path),
        group(bounds.work),
        part(bounds.work),
        percent(bounds.efficiency)
    )
}

fn facts(parts: &[(&str, u64)], whole: u64) -> String {
    let parts = parts.iter().filter(|(_, cycles)| *cycles > 0);
    let parts: Vec<String> = parts.map(|(name, cycles)| format!("{name} {}", percent(share(*cycles, whole)))).collect();
    if parts.is_empty() { "nothing to do".into() } else { parts.join(", ") }
}

fn high_water(report: &Report) -> Option<Table> {
    let limits = &report.machine.limits;
    let mut table = plain(&["", "most", "limit", ""]);
    let mut row = |name: String, most: String, limit: String, part: f64| {
        table.add_row([name, most, limit, percent(part)]);
    };
    for (ring, used) in report.high_water.rings.iter().enumerate().filter(|(_, used)| used.window > 0) {
        let of_ring = if report.high_water.rings.len() > 1 { format!(" of ring {ring}") } else { String::new() };
        let slots = [("window", used.window, limits.window), ("dependency entries", used.deps, limits.deps)];
        for (name, most, limit) in slots {
            row(format!("{name}{of_ring}"), group(most), group(limit), share(most, limit));
        }
        let (most, limit) = (format_bytes(used.heap), format_bytes(limits.heap));
        row(format!("heap{of_ring}"), most, limit, share(used.heap, limits.heap));
    }
    let entries = report.high_water.tensors;
    row("tensor map".into(), group(entries), group(limits.tensors), share(entries, limits.tensors));
    for (kind, most) in report.high_water.ready.iter().filter(|(_, most)| **most > 0) {
        row(format!("ready queue {kind}"), group(*most), group(limits.ready), share(*most, limits.ready));
    }
    numbers(table)
}

fn latencies(report: &Report) -> Option<Table> {
    let mut table = plain(&["", "count", "mean", "p50", "p90", "p99", "max"]);
    let mut latencies: Vec<_> = report.latency.iter().collect();
    latencies.sort_by_key(|(name, _)| LIFE.iter().position(|step| step == name));
    for (name, latency) in latencies {
        let mut row = vec![name.replace('_', " "), group(latency.count), decimal(latency.mean)];
        row.extend([latency.p50, latency.p90, latency.p99, latency.max].map(group));
        table.add_row(row);
    }
    numbers(table)
}

fn kernels(report: &Report) -> Option<Table> {
    let mut table = plain(&["kernel", "blocks", "cycles", "share", "mean", "max"]);
    for kernel in report.kernels.iter().take(TOP_KERNELS) {
        table.add_row([
            short(&kernel.name),
            group(kernel.count),
            group(kernel.total),
            percent(kernel.share),
            decimal(kernel.mean),
            group(kernel.max),
        ]);
    }
    if let Some(rest) = report.kernels.get(TOP_KERNELS..).filter(|rest| !rest.is_empty()) {
        let (blocks, cycles) = rest.iter().fold((0, 0), |sum, kernel| (sum.0 + kernel.count, sum.1 + kernel.total));
        let part = rest.iter().map(|kernel| kernel.share).sum();
        table.add_row([format!("{} more", rest.len()), group(blocks), group(cycles), percent(part)]);
    }
    numbers(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{KernelReport, sample, verdict};
    use anstream::adapter::strip_str;

    fn plain_text(report: &Report, width: usize) -> String {
        let mut report = report.clone();
        report.verdict = verdict(&report);
        strip_str(&render(&report, width)).to_string()
    }

    #[test]
    fn a_whole_report_reads_like_this() {
        let text = plain_text(&sample::waits_for_dependencies(), 100);
        assert_eq!(text, include_str!("golden.txt"), "\n{text}");
    }

    #[test]
    fn a_deadlock_is_explained_before_the_tables() {
        let text = plain_text(&sample::deadlock(), 100);
        assert!(text.starts_with("chain on ideal: deadlock at cycle 400, 216 ns at 1850 MHz\n"), "{text}");
        let (paragraph, flag) = (text.find("Stuck at cycle 400"), text.find("--set limits.window=8"));
        assert!(paragraph.is_some() && paragraph < flag && flag < text.find("Where the worker cycles went"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for width in [80, 100, 120] {
            for report in [sample::waits_for_dependencies(), sample::deadlock()] {
                let text = plain_text(&report, width);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{widest} > {width}:\n{text}");
            }
        }
    }

    #[test]
    fn rare_kernels_share_a_line() {
        let mut report = sample::waits_for_dependencies();
        let kernel = report.kernels[0].clone();
        report.kernels = (0..13).map(|index| KernelReport { name: format!("k{index}"), ..kernel.clone() }).collect();
        let text = plain_text(&report, 100);
        assert!(text.contains("k9 ") && !text.contains("k10 ") && text.contains("3 more"), "{text}");
    }

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(0.0, 8), "");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5625, 2), "█▏");
    }
}

//! A deadlock, explained in a paragraph: what is full, who asks for it, who keeps it, and which sizes would do.

use super::words::{count, group, list, short};
use super::{Deadlock, OldestTask};
use crate::id::TaskId;

/// Names of other tasks that are listed before the rest is only counted.
const LISTED: usize = 8;

/// The paragraph.
pub(super) fn explain(deadlock: &Deadlock) -> String {
    [what_is_full(deadlock), deadlock.circumstances()].join(" ")
}

impl Deadlock {
    /// Who asks for what is full, who keeps it, and which sizes would do.
    pub(crate) fn circumstances(&self) -> String {
        let mut sentences = Vec::new();
        sentences.extend(self.task.map(|task| who_asks(self, task)));
        sentences.extend(self.oldest.as_ref().map(|oldest| who_keeps(self, oldest)));
        sentences.push(what_would_do(self));
        sentences.join(" ")
    }
}

fn what_is_full(deadlock: &Deadlock) -> String {
    let at = group(deadlock.at);
    let ring = deadlock.ring;
    match deadlock.resource.as_str() {
        "window" => {
            format!("Stuck at cycle {at}: the window of ring {ring} is full and nothing left to happen empties it.")
        }
        "heap" => {
            format!("Stuck at cycle {at}: the heap of ring {ring} is full and nothing left to happen empties it.")
        }
        "deps" => {
            format!("Stuck at cycle {at}: the dependency entries of ring {ring} are used up and none will return.")
        }
        "tensors" => format!("Stuck at cycle {at}: the tensor-map entries are used up and none will return."),
        other => format!("Stuck at cycle {at}: nothing is left to happen, but the {other} still keeps tasks back."),
    }
}

fn who_asks(deadlock: &Deadlock, task: TaskId) -> String {
    let label = label(task, deadlock.name.as_deref(), deadlock.line);
    let wanted = units(&deadlock.resource, deadlock.wanted);
    let (size, used) = (group(deadlock.size), group(deadlock.used));
    let kept_free = match deadlock.spare {
        0 => String::new(),
        1 => " and 1 is kept free (limits.spare)".into(),
        spare => format!(" and {} are kept free (limits.spare)", group(spare)),
    };
    let (entered, retired) = (count(deadlock.current, "task"), group(deadlock.last_task_alive));
    let ring = if deadlock.resource == "tensors" { format!("its ring {}", deadlock.ring) } else { "this ring".into() };
    let have = if deadlock.current == 1 { "has" } else { "have" };
    let are = if deadlock.last_task_alive == 1 { "is" } else { "are" };
    format!(
        "Task {label} asks for {wanted}, but {used} of {size} are in use{kept_free}; {entered} {have} entered {ring} and \
         {retired} {are} retired."
    )
}

/// `number` of what a resource consists of.
fn units(resource: &str, number: u64) -> String {
    let entry = if number == 1 { "entry" } else { "entries" };
    match resource {
        "window" => count(number, "slot"),
        "heap" => count(number, "byte"),
        "deps" => format!("{} dependency {entry}", group(number)),
        "tensors" => format!("{} tensor-map {entry}", group(number)),
        other => format!("{} of the {other}", group(number)),
    }
}

fn who_keeps(deadlock: &Deadlock, oldest: &OldestTask) -> String {
    let label = label(oldest.task, Some(&oldest.name), oldest.line);
    let mut reasons = Vec::new();
    if let Some(scope) = oldest.held_by_scopes.last() {
        let place = scope.line.map_or(format!("at depth {}", scope.depth), |line| format!("opened in line {line}"));
        reasons.push(format!("the scope {place}, which holds {}, is still open", count(scope.tasks, "task")));
    }
    if !oldest.waits_for_consumers.is_empty() {
        reasons.push(format!("its {} not completed", have("consumer", &oldest.waits_for_consumers)));
    }
    if !oldest.waits_for_producers.is_empty() {
        reasons.push(format!("its {} not completed", have("producer", &oldest.waits_for_producers)));
    }
    let because = if reasons.is_empty() { String::new() } else { format!(": {}", list(&reasons)) };
    // The tensor map is shared: who keeps its entries may live in another ring.
    let place = if deadlock.resource == "tensors" { "that keeps entries" } else { "there" };
    format!("The oldest task alive {place} is {label}, which is {} and cannot be retired{because}.", oldest.state)
}

fn label(task: TaskId, name: Option<&str>, line: Option<u64>) -> String {
    let facts: Vec<String> = name.map(short).into_iter().chain(line.map(|line| format!("line {line}"))).collect();
    if facts.is_empty() { task.to_string() } else { format!("{task} ({})", facts.join(", ")) }
}

/// `consumer 5 has`, `consumers 5 and 7 have`, with at most [`LISTED`] names.
fn have(noun: &str, tasks: &[TaskId]) -> String {
    let mut names: Vec<String> = tasks.iter().take(LISTED).map(ToString::to_string).collect();
    if tasks.len() > LISTED {
        names.push(format!("{} more", group((tasks.len() - LISTED) as u64)));
    }
    let names = list(&names);
    if tasks.len() == 1 { format!("{noun} {names} has") } else { format!("{noun}s {names} have") }
}

fn what_would_do(deadlock: &Deadlock) -> String {
    let scope = deadlock.oldest.as_ref().is_some_and(|oldest| !oldest.held_by_scopes.is_empty());
    if deadlock.needed.is_empty() {
        return "No larger size lets this run finish.".into();
    }
    let flags: Vec<String> = deadlock.needed.iter().map(|(key, size)| format!("--set {key}={size}")).collect();
    let sizes = match (flags.len(), deadlock.is_smallest) {
        (1, true) => "a smaller one does not do",
        (1, false) => "one step less does not do",
        (_, true) => "with any of them smaller it does not",
        (_, false) => "with any of them one step less it does not",
    };
    let or = if scope { "; or close that scope earlier" } else { "" };
    format!("The run finishes with {}; {sizes}{or}.", flags.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_paragraph_names_resource_tasks_lines_and_remedy() {
        let report = sample::deadlock();
        assert_eq!(
            explain(report.deadlock.as_ref().expect("it is one")),
            "Stuck at cycle 400: the window of ring 1 is full and nothing left to happen empties it. \
             Task 15 (gemm_tile, line 40) asks for 1 slot, but 3 of 4 are in use and 1 is kept free (limits.spare); 15 tasks \
             have entered this ring and 12 are retired. The oldest task alive there is 12 (tile_add, line 33), which is COMPLETED and cannot be \
             retired: the scope opened in line 30, which holds 3 tasks, is still open and its consumers 13 and 14 have not \
             completed. The run finishes with --set limits.window=8; a smaller one does not do; or close that scope earlier."
        );
    }

    #[test]
    fn a_program_without_lines_and_a_policy_are_explained_too() {
        let mut deadlock = sample::deadlock().deadlock.expect("it is one");
        deadlock.resource = "policy".into();
        deadlock.task = None;
        deadlock.oldest = None;
        deadlock.needed.clear();
        assert_eq!(
            explain(&deadlock),
            "Stuck at cycle 400: nothing is left to happen, but the policy still keeps tasks back. \
             No larger size lets this run finish."
        );
    }

    #[test]
    fn long_lists_are_cut_and_several_sizes_named() {
        let mut deadlock = sample::deadlock().deadlock.expect("it is one");
        deadlock.resource = "deps".into();
        deadlock.wanted = 2;
        deadlock.needed.insert("limits.deps".into(), 12);
        let oldest = deadlock.oldest.as_mut().expect("there is one");
        oldest.held_by_scopes.clear();
        oldest.waits_for_consumers = (0..20).map(TaskId).collect();
        let text = explain(&deadlock);
        assert!(text.contains("the dependency entries of ring 1 are used up"), "{text}");
        assert!(text.contains("asks for 2 dependency entries"), "{text}");
        assert!(text.contains("its consumers 0, 1, 2, 3, 4, 5, 6, 7 and 12 more have not completed."), "{text}");
        assert!(text.ends_with(
            "The run finishes with --set limits.deps=12 --set limits.window=8; with any of them smaller it does not."
        ));
        deadlock.is_smallest = false;
        assert!(explain(&deadlock).ends_with("; with any of them one step less it does not."));
    }

    #[test]
    fn no_more_is_claimed_than_is_known() {
        let mut deadlock = sample::deadlock().deadlock.expect("it is one");
        deadlock.is_smallest = false;
        deadlock.resource = "tensors".into();
        deadlock.spare = 0;
        let text = explain(&deadlock);
        assert!(text.contains("3 of 4 are in use; 15 tasks have entered its ring 1 and 12 are retired."), "{text}");
        assert!(text.contains("The oldest task alive that keeps entries is 12 (tile_add, line 33)"), "{text}");
        assert!(text.contains("--set limits.window=8; one step less does not do; or close"), "{text}");
    }
}

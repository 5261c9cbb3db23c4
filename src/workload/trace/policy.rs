//! Fields of a submission that only policies read, and timed commands to them.

use super::fields::{Entries, Field, named, twice, unknown_field};
use super::json::{Cursor, Fault};
use super::time;
use crate::nearest::suggestion;
use crate::workload::{Control, PolicyFields, ScheduleAt, WorkItem};
use serde_json::{Map, Value};

/// Commands and the arguments each needs.
const COMMANDS: [(&str, &[&str]); 15] = [
    ("shutdown", &[]),
    ("pause", &[]),
    ("resume", &[]),
    ("close", &[]),
    ("remove_node_task", &["node"]),
    ("clear_task", &["node", "queue"]),
    ("add_node", &["node"]),
    ("remove_node", &["node"]),
    ("pause_node", &["node"]),
    ("start", &[]),
    ("stop", &[]),
    ("stop_activation", &["activation"]),
    ("stop_application_turns", &[]),
    ("remove_routine", &["routine"]),
    ("notify", &["routine"]),
];

const CONTROL_FIELDS: &[&str] = &["op", "at", "cmd", "node", "queue", "routine", "activation"];

/// Reads one policy field.
pub fn policy_field(cursor: &mut Cursor<'_>, field: Field, policy: &mut PolicyFields) -> Result<(), Fault> {
    let text = |cursor: &mut Cursor<'_>| cursor.string().map(|text| Some(text.into_owned()));
    match field {
        Field::Routine => policy.routine = text(cursor)?,
        Field::Prio => {
            let prio = cursor.integer()?;
            let prio = u32::try_from(prio).map_err(|_| format!("{prio} is too large; the largest is {}", u32::MAX))?;
            policy.prio = Some(prio);
        }
        Field::Group => policy.group = text(cursor)?,
        Field::Processor => policy.processor = Some(cursor.signed("-1 (the pool) to 2147483647")?),
        Field::Activation => policy.activation = Some(if cursor.null() { None } else { text(cursor)? }),
        Field::WorkItem => policy.work_item = Some(work_item(cursor)?),
        Field::Caller => policy.caller = text(cursor)?,
        Field::PostCycles => policy.post_cycles = cursor.integer()?,
        Field::Node => policy.node = Some(cursor.signed("a 32-bit number")?),
        Field::Timestamp => policy.timestamp = Some(cursor.signed("a 64-bit number")?),
        Field::Source => policy.source = text(cursor)?,
        Field::ScheduleAt => policy.schedule_at = Some(schedule_at(cursor)?),
        Field::Uuid => policy.uuid = text(cursor)?,
        Field::Args => policy.args = Some(any(cursor)?),
        other => unreachable!("{other:?} is no policy field"),
    }
    Ok(())
}

/// Reads the rest of a `control` line.
pub fn control(entries: &mut Entries<'_>, line: u64) -> Result<Control, Fault> {
    let (mut at, mut command, mut arguments) = (None, None, Map::new());
    while let Some(key) = entries.next_other_key()? {
        let cursor = &mut entries.cursor;
        let again = match &*key {
            "at" => at.replace(named(&key, cursor.integer())?).is_some(),
            "cmd" => command.replace(named(&key, command_name(cursor))?).is_some(),
            "node" | "queue" => {
                let value = named(&key, cursor.signed::<i32>("a 32-bit number"))?;
                arguments.insert(key.clone().into_owned(), value.into()).is_some()
            }
            "routine" | "activation" => {
                let value = named(&key, cursor.string())?.into_owned();
                arguments.insert(key.clone().into_owned(), value.into()).is_some()
            }
            _ => return Err(unknown_field(&key, "control", CONTROL_FIELDS)),
        };
        if again {
            return Err(twice(&key));
        }
    }
    let at = at.ok_or("control without \"at\"; give the cycle at which it acts")?;
    let (command, needed) = command.ok_or("control without \"cmd\"; give the command, such as \"pause\"")?;
    if let Some(missing) = needed.iter().find(|&&name| !arguments.contains_key(name)) {
        return Err(format!("command \"{command}\" needs the field \"{missing}\"; add it"));
    }
    Ok(Control { at, command: command.into(), arguments, line: Some(line) })
}

fn command_name(cursor: &mut Cursor<'_>) -> Result<(&'static str, &'static [&'static str]), Fault> {
    let name = cursor.string()?;
    COMMANDS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
        format!("unknown command \"{name}\"; {}", suggestion(&name, COMMANDS.into_iter().map(|(known, _)| known)))
    })
}

/// Names of work items as written in traces.
pub const WORK_ITEMS: [(&str, WorkItem); 6] = [
    ("invoke", WorkItem::Invoke),
    ("request", WorkItem::Request),
    ("response", WorkItem::Response),
    ("closure", WorkItem::Closure),
    ("resume", WorkItem::Resume),
    ("task", WorkItem::Task),
];

fn work_item(cursor: &mut Cursor<'_>) -> Result<WorkItem, Fault> {
    let name = cursor.string()?;
    let found = WORK_ITEMS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
    found.map(|(_, item)| item).ok_or_else(|| {
        format!("unknown work item \"{name}\"; {}", suggestion(&name, WORK_ITEMS.into_iter().map(|(known, _)| known)))
    })
}

fn schedule_at(cursor: &mut Cursor<'_>) -> Result<ScheduleAt, Fault> {
    match cursor.peek() {
        Some(b'"') => time::parse(&cursor.string()?).map(ScheduleAt::UtcMicros),
        Some(b'-' | b'0'..=b'9') => cursor.integer().map(ScheduleAt::Cycle),
        _ => Err(cursor.unexpected("a cycle or a time such as \"2026-03-01T09:30:00Z\"")),
    }
}

fn any(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    serde_json::from_str(cursor.raw()?).map_err(|error| error.to_string())
}

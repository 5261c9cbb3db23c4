//! A task as its source makes it, its dictionary form, and pending tasks as lines of JSON.

use crate::workload::ScheduleAt;
use crate::workload::trace::time;
use serde_json::{Map, Value, json};

/// One call of a source.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Task {
    /// Its identity in logs; not used to find duplicates.
    pub uuid: String,
    /// What its source makes of it.
    pub args: Value,
    /// Name of its source.
    pub source: String,
    /// When it is due.
    pub schedule_at: ScheduleAt,
}

/// Why a dictionary is not a task; the message names field, value and remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TaskError(String);

impl Task {
    /// The dictionary form: uuid, args, source and `schedule_at`. Times are texts in UTC, cycles are numbers.
    #[must_use]
    pub fn to_dict(&self) -> Value {
        let schedule_at = match self.schedule_at {
            ScheduleAt::Cycle(cycle) => json!(cycle),
            ScheduleAt::UtcMicros(micros) => json!(time::format(micros)),
        };
        json!({"uuid": self.uuid, "args": self.args, "source": self.source, "schedule_at": schedule_at})
    }

    /// The task of a dictionary.
    ///
    /// # Errors
    /// When a field is missing, unknown or of the wrong kind, or the time has no offset.
    pub fn from_dict(dict: &Value) -> Result<Task, TaskError> {
        let fields = dict.as_object().ok_or_else(|| TaskError(format!("{dict}: a task is an object")))?;
        let known = ["uuid", "args", "source", "schedule_at"];
        if let Some(other) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(TaskError(format!("{other}: a task has only {}", known.join(", "))));
        }
        let schedule_at = match &fields.get("schedule_at") {
            Some(Value::String(text)) => {
                ScheduleAt::UtcMicros(time::parse(text).map_err(|why| TaskError(format!("schedule_at: {why}")))?)
            }
            Some(value) => ScheduleAt::Cycle(value.as_u64().ok_or_else(|| wrong("schedule_at", value))?),
            None => return Err(missing("schedule_at")),
        };
        let args = fields.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Ok(Task { uuid: text(fields, "uuid")?, args, source: text(fields, "source")?, schedule_at })
    }
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<String, TaskError> {
    let value = fields.get(key).ok_or_else(|| missing(key))?;
    value.as_str().map(String::from).ok_or_else(|| wrong(key, value))
}

fn missing(key: &str) -> TaskError {
    TaskError(format!("{key} is missing"))
}

fn wrong(key: &str, value: &Value) -> TaskError {
    TaskError(format!("{key}: {value} is of the wrong kind"))
}

/// Pending tasks as lines of JSON, one a task, in the given order.
pub fn save_pending<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> String {
    tasks.into_iter().fold(String::new(), |text, task| text + &task.to_dict().to_string() + "\n")
}

/// The tasks of [`save_pending`]; added in this order they wait as they did before.
///
/// # Errors
/// When a line is not a task; names the line.
pub fn load_pending(text: &str) -> Result<Vec<Task>, TaskError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let task = |(index, line): (usize, &str)| {
        let dict = serde_json::from_str(line).map_err(|error| TaskError(error.to_string()));
        dict.and_then(|dict| Task::from_dict(&dict)).map_err(|error| TaskError(format!("line {}: {error}", index + 1)))
    };
    lines.map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::{Task, load_pending, save_pending};
    use crate::policy::ray::Heap;
    use crate::workload::ScheduleAt;
    use serde_json::{Value, json};

    fn task(uuid: &str, schedule_at: ScheduleAt) -> Task {
        Task { uuid: uuid.into(), args: json!({"frame": 7}), source: "video".into(), schedule_at }
    }

    #[test]
    fn a_dictionary_holds_exactly_the_task() {
        for schedule_at in [ScheduleAt::Cycle(40), ScheduleAt::UtcMicros(1_735_689_600_000_000)] {
            let task = task("t-1", schedule_at);
            let dict = task.to_dict();
            let mut keys: Vec<_> = dict.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            assert_eq!(keys, ["args", "schedule_at", "source", "uuid"]);
            assert_eq!(Task::from_dict(&dict), Ok(task));
        }
    }

    #[test]
    fn a_time_without_an_offset_and_foreign_fields_are_refused() {
        let dict = |schedule_at: Value| json!({"uuid": "u", "args": {}, "source": "s", "schedule_at": schedule_at});
        let east = Task::from_dict(&dict(json!("2025-01-01T08:00:00+08:00"))).unwrap();
        let utc = Task::from_dict(&dict(json!("2025-01-01T00:00:00Z"))).unwrap();
        assert_eq!(east, utc);
        let error = |dict: &Value| Task::from_dict(dict).unwrap_err().to_string();
        assert!(error(&dict(json!("2025-01-01T00:00:00"))).starts_with("schedule_at: "));
        assert_eq!(error(&dict(json!(-1))), "schedule_at: -1 is of the wrong kind");
        let mut foreign = dict(json!(1));
        foreign["prio"] = json!(3);
        assert!(error(&foreign).starts_with("prio: "));
        foreign.as_object_mut().unwrap().remove("prio");
        foreign.as_object_mut().unwrap().remove("source");
        assert_eq!(error(&foreign), "source is missing");
    }

    #[test]
    fn a_heap_saved_and_loaded_gives_the_same_order() {
        let mut heap = Heap::default();
        for (uuid, when) in [("late", 9), ("first", 2), ("second", 2)] {
            heap.push(when, task(uuid, ScheduleAt::Cycle(when)));
        }
        let text = save_pending(heap.in_order().into_iter().map(|entry| &entry.item));
        assert_eq!(text.lines().count(), 3);
        let mut again = Heap::default();
        for task in load_pending(&text).unwrap() {
            let ScheduleAt::Cycle(when) = task.schedule_at else { panic!("a cycle") };
            again.push(when, task);
        }
        let order: Vec<_> = again.in_order().iter().map(|entry| entry.item.uuid.clone()).collect();
        assert_eq!(order, ["first", "second", "late"]);
        assert!(load_pending("\n{}\n").unwrap_err().to_string().starts_with("line 2: "));
    }
}

//! Who consumes tasks, by name.

use super::task::Task;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes and consumes the tasks of one source.
pub trait Consumer: Send + Sync {
    /// Unique name; tasks name it as their source.
    fn name(&self) -> &str;

    /// How many of its tasks may run at once.
    fn concurrent_count(&self) -> u64 {
        1
    }

    /// Makes a task.
    fn produce(&self, args: Value) -> Task;

    /// Runs a task.
    ///
    /// # Errors
    /// When it fails; the text goes into the log.
    fn consume(&self, task: &Task) -> Result<(), String>;
}

/// All consumers. A value that is filled before the scheduler starts, not a global.
#[derive(Clone, Default)]
pub struct Registry {
    consumers: BTreeMap<String, Arc<dyn Consumer>>,
}

/// A second consumer of the same name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a consumer called `{0}` is registered already; names are unique")]
pub struct Taken(pub String);

impl Registry {
    /// Adds a consumer.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn register(&mut self, consumer: Arc<dyn Consumer>) -> Result<(), Taken> {
        let name = consumer.name().to_string();
        if self.consumers.contains_key(&name) {
            return Err(Taken(name));
        }
        self.consumers.insert(name, consumer);
        Ok(())
    }

    /// The consumer of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Consumer>> {
        self.consumers.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::{Consumer, Registry, Taken};
    use crate::policy::ray::Task;
    use crate::workload::ScheduleAt;
    use serde_json::{Value, json};
    use std::sync::Arc;

    struct Named(&'static str);

    impl Consumer for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn produce(&self, args: Value) -> Task {
            Task { uuid: "u".into(), args, source: self.0.into(), schedule_at: ScheduleAt::Cycle(0) }
        }

        fn consume(&self, _task: &Task) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn names_are_unique_and_unknown_ones_are_not_found() {
        let mut registry = Registry::default();
        assert!(registry.find("a").is_none());
        assert_eq!(registry.register(Arc::new(Named("a"))), Ok(()));
        assert_eq!(registry.register(Arc::new(Named("b"))), Ok(()));
        assert_eq!(registry.register(Arc::new(Named("a"))), Err(Taken("a".into())));
        let found = registry.find("b").expect("registered");
        assert_eq!((found.name(), found.concurrent_count()), ("b", 1));
        assert_eq!(found.produce(json!({"n": 1})).source, "b");
    }
}

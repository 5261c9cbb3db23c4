//! Settings of the policy: the `[bmf]` table of a policy file, or a graph of BMF itself in its own JSON.

use crate::config::{ConfigError, MOST_WORKERS, Places};
use crate::policy::settings::{Node, Tree};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The `[bmf]` table.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Number of queues; by default one more than the largest `scheduler` of a node.
    pub scheduler_count: Option<u32>,
    /// Cycles without a scheduled task after which the run is stopped; 0 is never.
    pub time_out: u64,
    /// What happens when back-pressure stops everything.
    pub backpressure: Backpressure,
    /// Whether the rest of a source is cancelled when every node behind it has closed.
    pub force_close: bool,
    /// Settings by node.
    #[serde(deserialize_with = "by_number")]
    pub nodes: BTreeMap<i32, NodeConfig>,
    /// Edges of the node graph declared beside those that follow from dependencies.
    #[serde(skip)]
    pub streams: BTreeSet<(i32, i32)>,
    /// Where these settings were made.
    #[serde(skip)]
    pub places: Places,
}

/// A `[bmf.nodes.N]` table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeConfig {
    /// Its queue, which is the worker of this number.
    pub scheduler: u32,
    /// How many of its tasks may be scheduled and not processed, and how many packets may wait for it in a stream.
    pub queue_length_limit: u64,
}

impl NodeConfig {
    /// The limit of a node of which the configuration says nothing.
    pub(super) const USUAL_LIMIT: u64 = 5;
}

impl Default for NodeConfig {
    fn default() -> NodeConfig {
        NodeConfig { scheduler: 0, queue_length_limit: NodeConfig::USUAL_LIMIT }
    }
}

/// What happens when nothing runs and back-pressure keeps every READY task back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backpressure {
    /// `Strict` when nodes are declared, `Relaxed` when they are derived.
    #[default]
    Auto,
    /// It is a deadlock.
    Strict,
    /// The oldest task is scheduled all the same.
    Relaxed,
}

fn by_number<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<i32, NodeConfig>, D::Error> {
    let number = |(key, node): (String, NodeConfig)| match key.parse() {
        Ok(number) => Ok((number, node)),
        Err(_) => {
            Err(serde::de::Error::custom(format!("bmf.nodes.{key}: a node is a whole number, such as bmf.nodes.0")))
        }
    };
    BTreeMap::<String, NodeConfig>::deserialize(input)?.into_iter().map(number).collect()
}

impl Config {
    /// Reads a graph as BMF itself writes it. `origin` is the file's name, for messages; the time-out of such a file is in
    /// seconds and becomes cycles of a clock of `clock_mhz`.
    ///
    /// # Errors
    /// When the text is not JSON, has no list `nodes`, or a number in it is out of its range.
    pub fn from_graph_json(text: &str, origin: &str, clock_mhz: u64) -> Result<Config, ConfigError> {
        let wrong = |message: String| ConfigError::Setting(format!("{origin}: {message}"));
        let graph: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let nodes = graph["nodes"].as_array().ok_or_else(|| wrong("a graph of BMF has a list `nodes`".into()))?;
        let mut config = Config::default();
        let mut writers: BTreeMap<String, i32> = BTreeMap::new();
        let mut readers = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let number = |value: &Value, key: &str| {
                whole(value, key).map_err(|message| wrong(format!("nodes[{index}]: {message}")))
            };
            let id = number(&node["id"], "id")?.unwrap_or(index as u64);
            let id = i32::try_from(id).map_err(|_| wrong(format!("nodes[{index}]: id {id}: must be below 2^31")))?;
            let mut settings = NodeConfig::default();
            if let Some(queue) = number(&node["scheduler"], "scheduler")? {
                settings.scheduler =
                    in_range(queue, "scheduler").map_err(|told| wrong(format!("nodes[{index}]: {told}")))?;
            }
            for place in [&node["meta_info"], &node["option"], node] {
                settings.queue_length_limit =
                    number(&place["queue_length_limit"], "queue_length_limit")?.unwrap_or(settings.queue_length_limit);
            }
            if config.nodes.insert(id, settings).is_some() {
                return Err(wrong(format!("nodes[{index}]: id {id} is used twice; give every node its own")));
            }
            writers.extend(streams(&node["output_streams"]).map(|stream| (stream, id)));
            readers.extend(streams(&node["input_streams"]).map(|stream| (stream, id)));
        }
        let edge = |(stream, reader): &(String, i32)| writers.get(stream).map(|&writer| (writer, *reader));
        config.streams = readers.iter().filter_map(edge).filter(|(from, to)| from != to).collect();
        let option = &graph["option"];
        let count = whole(&option["scheduler_count"], "scheduler_count").map_err(wrong)?;
        config.scheduler_count = count.map(|count| in_range(count, "scheduler_count")).transpose().map_err(wrong)?;
        if let Some(seconds) = option["time_out"].as_f64() {
            config.time_out = (seconds * 1e6 * clock_mhz as f64) as u64;
        }
        Ok(config)
    }

    /// Checks what can be seen without a workload.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self.scheduler_count {
            Some(0) => {
                return Err(self.refuse(&["bmf.scheduler_count"], "bmf.scheduler_count = 0: must be at least 1"));
            }
            Some(count) => self.check_queues("bmf.scheduler_count", count.into(), u64::from(count))?,
            None => {
                if let Some((id, node)) = self.nodes.iter().max_by_key(|(_, node)| node.scheduler) {
                    let queue = u64::from(node.scheduler);
                    self.check_queues(&format!("bmf.nodes.{id}.scheduler"), queue, queue + 1)?;
                }
            }
        }
        match self.nodes.iter().find(|(_, node)| node.queue_length_limit == 0) {
            Some((id, _)) => {
                let key = format!("bmf.nodes.{id}.queue_length_limit");
                Err(self.refuse(&[&key], &format!("{key} = 0: the node could never be scheduled; try 1")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a setting that asks for more queues than a machine may have workers.
    fn check_queues(&self, key: &str, value: u64, n_queues: u64) -> Result<(), ConfigError> {
        if n_queues <= MOST_WORKERS {
            return Ok(());
        }
        let most = MOST_WORKERS - (n_queues - value);
        let told = format!("{key} = {value}: must be at most {most}, because a queue is a worker; lower {key}");
        Err(self.refuse(&[key], &told))
    }

    /// The error that says what is wrong with these settings, with the line of the first if it is known.
    pub(super) fn refuse(&self, keys: &[&str], message: &str) -> ConfigError {
        ConfigError::Setting(self.places.locate(keys, message.to_owned()))
    }

    /// Notes the lines of a `[bmf]` table of a file, for messages.
    pub fn note_places(&mut self, table: &Node, origin: &str) {
        self.places = Places::of_file(origin);
        note_lines(&mut self.places, "bmf", table);
    }

    /// Number of queues.
    #[must_use]
    pub fn n_queues(&self) -> u32 {
        let largest = self.nodes.values().map(|node| node.scheduler).max().unwrap_or(0);
        self.scheduler_count.unwrap_or(largest.saturating_add(1))
    }

    /// The queue of a node; one that does not exist means queue 0.
    #[must_use]
    pub fn queue_of(&self, node: i32) -> u32 {
        let queue = self.node(node).scheduler;
        if queue < self.n_queues() { queue } else { 0 }
    }

    /// The settings of a node.
    #[must_use]
    pub fn node(&self, node: i32) -> NodeConfig {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    /// What is allowed but probably not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let count = self.n_queues();
        let beyond = self.nodes.iter().filter(|(_, node)| node.scheduler >= count);
        beyond
            .map(|(id, node)| {
                let queue = node.scheduler;
                format!("bmf: node {id} asks for queue {queue} of {count} queues: it gets queue 0")
            })
            .collect()
    }
}

/// The line of a table and of everything in it.
fn note_lines(places: &mut Places, key: &str, node: &Node) {
    places.stands(key, node.line);
    if let Tree::Table(fields) = &node.tree {
        fields.iter().for_each(|(name, node)| note_lines(places, &format!("{key}.{name}"), node));
    }
}

/// A whole number that may be absent.
fn whole(value: &Value, key: &str) -> Result<Option<u64>, String> {
    if value.is_null() {
        return Ok(None);
    }
    value.as_u64().map(Some).ok_or_else(|| format!("{key} {value}: must be a whole number from 0"))
}

/// A number of queues or of one of them.
fn in_range(number: u64, key: &str) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{key} {number}: must be at most {MOST_WORKERS}; lower {key}"))
}

/// Names of streams; a name may stand behind a label and a colon.
fn streams(list: &Value) -> impl Iterator<Item = String> + '_ {
    list.as_array().into_iter().flatten().filter_map(|stream| {
        let name = stream["identifier"].as_str().or(stream.as_str())?;
        Some(name.rsplit(':').next().unwrap_or(name).to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::{Backpressure, Config, NodeConfig};

    #[test]
    fn the_table_of_a_policy_file_is_read() {
        let text = "scheduler_count = 2\ntime_out = 7\nbackpressure = \"relaxed\"\n[nodes.0]\nscheduler = 1\n\
                    [nodes.12]\nqueue_length_limit = 3\n";
        let config: Config = toml::from_str(text).unwrap();
        assert_eq!((config.scheduler_count, config.time_out), (Some(2), 7));
        assert_eq!(config.backpressure, Backpressure::Relaxed);
        assert_eq!(config.nodes[&0], NodeConfig { scheduler: 1, queue_length_limit: 5 });
        assert_eq!(config.nodes[&12], NodeConfig { scheduler: 0, queue_length_limit: 3 });
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let error = |text| toml::from_str::<Config>(text).unwrap_err().to_string();
        assert!(error("time_oot = 1").contains("time_oot"));
        assert!(error("[nodes.a]\nscheduler = 1").contains("bmf.nodes.a"));
        assert!(error("backpressure = \"firm\"").contains("firm"));
        let config: Config = toml::from_str("[nodes.3]\nqueue_length_limit = 0").unwrap();
        assert!(config.validate().unwrap_err().to_string().contains("bmf.nodes.3.queue_length_limit = 0"));
    }

    #[test]
    fn a_queue_that_does_not_exist_means_queue_0_and_a_warning() {
        let config: Config = toml::from_str("scheduler_count = 2\n[nodes.5]\nscheduler = 3").unwrap();
        assert_eq!(config.queue_of(5), 0);
        assert_eq!(config.warnings(), ["bmf: node 5 asks for queue 3 of 2 queues: it gets queue 0"]);
    }

    #[test]
    fn without_the_option_the_largest_queue_counts() {
        let config: Config = toml::from_str("[nodes.0]\nscheduler = 0\n[nodes.1]\nscheduler = 2").unwrap();
        assert_eq!((config.n_queues(), config.queue_of(1)), (3, 2));
        assert!(config.warnings().is_empty());
    }

    #[test]
    fn a_graph_of_bmf_is_read_as_it_is() {
        let text = r#"{"mode": "normal", "input_streams": [], "option": {"scheduler_count": 3, "time_out": 0.5},
            "nodes": [
              {"id": 0, "scheduler": 0, "module_info": {"name": "decoder"}, "input_streams": [],
               "output_streams": [{"identifier": "video:d_0", "alias": ""}, {"identifier": "audio:d_1"}]},
              {"id": 1, "scheduler": 2, "meta_info": {"queue_length_limit": 9},
               "input_streams": [{"identifier": "d_0"}], "output_streams": [{"identifier": "f_0"}]},
              {"id": 4, "option": {"queue_length_limit": 2}, "input_streams": [{"identifier": "f_0"}, {"identifier": "d_1"}]}
            ]}"#;
        let config = Config::from_graph_json(text, "graph.json", 1000).unwrap();
        assert_eq!(config.scheduler_count, Some(3));
        assert_eq!(config.time_out, 500_000_000);
        assert_eq!(config.nodes[&0], NodeConfig::default());
        assert_eq!(config.nodes[&1], NodeConfig { scheduler: 2, queue_length_limit: 9 });
        assert_eq!(config.nodes[&4], NodeConfig { scheduler: 0, queue_length_limit: 2 });
        assert_eq!(config.streams.into_iter().collect::<Vec<_>>(), [(0, 1), (0, 4), (1, 4)]);
    }

    #[test]
    fn a_wrong_graph_names_the_place() {
        let error = |text| Config::from_graph_json(text, "g.json", 1).unwrap_err().to_string();
        assert!(error("{").starts_with("g.json: "));
        assert_eq!(error("{}"), "g.json: a graph of BMF has a list `nodes`");
        assert_eq!(
            error(r#"{"nodes": [{"id": 0}, {"id": 1, "scheduler": -2}]}"#),
            "g.json: nodes[1]: scheduler -2: must be a whole number from 0"
        );
        assert!(error(r#"{"nodes": [{"id": 0}, {"id": 0}]}"#).contains("id 0 is used twice"));
    }
}

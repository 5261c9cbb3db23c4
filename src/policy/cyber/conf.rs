//! The configuration of the Cyber policies, with the names of Apollo's `scheduler_conf`.
//!
//! It is read from the `[scheduler_conf]` table of a TOML file, or from a `.conf` file of Apollo as it is. Fields that Apollo
//! does not have are marked as extensions.

use super::proto;
use crate::config::{ConfigError, MOST_WORKERS, Workers};
use crate::policy::settings::{self, Field, Kind, Node};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The group of routines that no other group claims.
pub const DEFAULT_GROUP_NAME: &str = "default_grp";

/// Processors where the configuration gives no number.
pub const DEFAULT_PROC_NUM: u32 = 2;

/// Which processors there are, and which routine runs where and how urgently.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Conf {
    /// `classic` or `choreography`.
    pub policy: Option<String>,
    /// Size of Apollo's pool of coroutine stacks; more routines than that only give a warning.
    pub routine_num: Option<u32>,
    /// Processors where nothing else gives a number.
    pub default_proc_num: Option<u32>,
    /// CPUs of the whole process.
    pub process_level_cpuset: Option<String>,
    /// Attributes of named threads.
    pub threads: Vec<InnerThread>,
    /// Groups of the classic scheduler.
    pub classic_conf: ClassicConf,
    /// Processors and tasks of the choreography scheduler.
    pub choreography_conf: ChoreographyConf,
    /// Extension: a second live task of the same name without `routine` is an error, as `CreateTask` refuses it.
    pub unique_names: bool,
    /// Said in the report when the file of a process group is not there.
    #[serde(skip)]
    pub missing: Option<String>,
}

/// Attributes of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InnerThread {
    /// Its name.
    pub name: String,
    /// CPUs it may use.
    pub cpuset: String,
    /// `SCHED_OTHER`, `SCHED_RR` or `SCHED_FIFO`.
    pub policy: String,
    /// Its priority.
    pub prio: u32,
}

/// Groups of the classic scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassicConf {
    /// In file order; the first takes routines that no group names.
    pub groups: Vec<SchedGroup>,
}

/// Processors that serve the same routines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedGroup {
    /// Its name.
    pub name: String,
    /// How many processors it has.
    pub processor_num: Option<u32>,
    /// `range` or `1to1`.
    pub affinity: String,
    /// CPUs of its processors.
    pub cpuset: String,
    /// `SCHED_OTHER`, `SCHED_RR` or `SCHED_FIFO`.
    pub processor_policy: String,
    /// Priority of its threads.
    pub processor_prio: i32,
    /// Routines it serves.
    pub tasks: Vec<ClassicTask>,
    /// Extension: processors by worker type, instead of `processor_num` of any type.
    pub processors: Option<Typed>,
    /// Extension: the workers of the machine that are its processors.
    pub workers: Option<Vec<u32>>,
}

/// Numbers of processors by worker type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "SCREAMING_SNAKE_CASE")]
pub struct Typed {
    /// Cubes.
    pub cube: u32,
    /// Vectors.
    pub vector: u32,
    /// AI CPUs.
    pub ai_cpu: u32,
    /// Accelerators.
    pub accelerator: u32,
    /// Workers of every type.
    pub any: u32,
}

/// A routine of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClassicTask {
    /// Its name.
    pub name: String,
    /// Its priority, higher first.
    pub prio: u32,
    /// Overwritten by the group it stands in.
    pub group_name: Option<String>,
}

/// Processors and tasks of the choreography scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChoreographyConf {
    /// Processors that routines are pinned to.
    pub choreography_processor_num: Option<u32>,
    /// `range` or `1to1`.
    pub choreography_affinity: String,
    /// `SCHED_OTHER`, `SCHED_RR` or `SCHED_FIFO`.
    pub choreography_processor_policy: String,
    /// Priority of their threads.
    pub choreography_processor_prio: i32,
    /// Their CPUs.
    pub choreography_cpuset: String,
    /// Processors of the pool.
    pub pool_processor_num: Option<u32>,
    /// `range` or `1to1`.
    pub pool_affinity: String,
    /// `SCHED_OTHER`, `SCHED_RR` or `SCHED_FIFO`.
    pub pool_processor_policy: String,
    /// Priority of their threads.
    pub pool_processor_prio: i32,
    /// Their CPUs.
    pub pool_cpuset: String,
    /// Routines with a place or a priority of their own.
    pub tasks: Vec<ChoreographyTask>,
}

/// A routine of the choreography scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChoreographyTask {
    /// Its name.
    pub name: String,
    /// The processor it is pinned to; -1, or one that is not for pinning, is the pool.
    pub processor: Option<i32>,
    /// Its priority, higher first.
    pub prio: u32,
}

impl Default for InnerThread {
    fn default() -> InnerThread {
        InnerThread { name: String::new(), cpuset: String::new(), policy: String::new(), prio: 1 }
    }
}

impl Default for SchedGroup {
    fn default() -> SchedGroup {
        SchedGroup {
            name: DEFAULT_GROUP_NAME.into(),
            processor_num: None,
            affinity: String::new(),
            cpuset: String::new(),
            processor_policy: String::new(),
            processor_prio: 0,
            tasks: Vec::new(),
            processors: None,
            workers: None,
        }
    }
}

impl Default for ClassicTask {
    fn default() -> ClassicTask {
        ClassicTask { name: String::new(), prio: 1, group_name: None }
    }
}

impl Default for ChoreographyTask {
    fn default() -> ChoreographyTask {
        ChoreographyTask { name: String::new(), processor: None, prio: 1 }
    }
}

/// Which of the two schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Groups with processors of their own.
    Classic,
    /// Pinned processors and a pool.
    Choreography,
}

impl Conf {
    /// Reads a file: Apollo's own form if it ends in `.conf`, else TOML.
    ///
    /// # Errors
    /// When the file cannot be read or its text is wrong.
    pub fn load(path: &Path) -> Result<Conf, ConfigError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Io { path: origin.clone(), source })?;
        if path.extension().is_some_and(|extension| extension == "conf") {
            Conf::from_proto(&text, &origin)
        } else {
            Conf::from_toml(&text, &origin)
        }
    }

    /// The `[scheduler_conf]` table of a TOML file; the defaults if there is none.
    ///
    /// # Errors
    /// When the text is not TOML, a field is unknown or a value has the wrong type.
    pub fn from_toml(text: &str, origin: &str) -> Result<Conf, ConfigError> {
        let document = settings::from_toml(text, origin)?;
        document.field("scheduler_conf").map_or_else(|| Ok(Conf::default()), |node| Conf::from_node(node, origin))
    }

    /// A `.conf` file of Apollo.
    ///
    /// # Errors
    /// When the text is not a text-proto, a field is unknown or a value has the wrong type.
    pub fn from_proto(text: &str, origin: &str) -> Result<Conf, ConfigError> {
        let document = proto::parse(text, origin)?;
        settings::check(&document, CYBER_CONFIG, origin)?;
        document.field("scheduler_conf").map_or_else(|| Ok(Conf::default()), |node| Conf::from_node(node, origin))
    }

    fn from_node(node: &Node, origin: &str) -> Result<Conf, ConfigError> {
        let value = settings::check(node, SCHEDULER_CONF, origin)?;
        let mut conf: Conf =
            serde_json::from_value(value).map_err(|error| settings::explain(node, "scheduler_conf", &error, origin))?;
        for group in &mut conf.classic_conf.groups {
            // Zero of every type beside a number of processors means that types do not matter.
            group.processors = group.processors.filter(|typed| typed.total() > 0 || group.processor_num.is_none());
        }
        if let Some(classic) = node.field("classic_conf")
            && conf.classic_conf.groups.is_empty()
            && conf.mode().0 == Mode::Classic
        {
            let remedy = "add a group with processors, or leave classic_conf out to have one group of all workers";
            return Err(ConfigError::Setting(format!(
                "{origin}:{}: classic_conf has no groups; {remedy}",
                classic.line
            )));
        }
        Ok(conf)
    }

    /// The scheduler that the configuration asks for, and a warning if it asks for none that exists.
    #[must_use]
    pub fn mode(&self) -> (Mode, Option<String>) {
        match self.policy.as_deref() {
            Some("classic") => (Mode::Classic, None),
            Some("choreography") => (Mode::Choreography, None),
            Some(other) => (
                Mode::Classic,
                Some(format!("invalid scheduler policy `{other}`: classic or choreography; classic is used")),
            ),
            None => (Mode::Classic, Some("no scheduler conf names a policy: classic is used".into())),
        }
    }

    /// Whether it says how many processors one of the schedulers has.
    #[must_use]
    pub fn counts_processors(&self, mode: Mode) -> bool {
        let groups = &self.classic_conf.groups;
        let is_counted =
            |group: &SchedGroup| group.processor_num.is_some() || group.processors.is_some() || group.workers.is_some();
        match mode {
            Mode::Classic if groups.is_empty() => self.default_proc_num.is_some(),
            Mode::Classic => groups.iter().all(is_counted),
            Mode::Choreography => {
                let pinned = self.choreography_conf.choreography_processor_num.filter(|&number| number > 0);
                pinned.or(self.choreography_conf.pool_processor_num).or(self.default_proc_num).is_some()
            }
        }
    }

    /// The workers of a machine that has just the processors of this configuration, for use without a machine.
    ///
    /// # Errors
    /// When these are more than a machine may have.
    pub fn workers(&self, mode: Mode) -> Result<Workers, ConfigError> {
        match mode {
            Mode::Classic if !self.classic_conf.groups.is_empty() => self.workers_of_groups(),
            Mode::Classic => {
                let any = self.default_proc_num.unwrap_or(DEFAULT_PROC_NUM);
                at_most(any.into(), || format!("default_proc_num = {any}"), "default_proc_num")?;
                Ok(Workers { any, ..Workers::default() })
            }
            Mode::Choreography => {
                let (default, conf) = (self.default_proc_num.unwrap_or(DEFAULT_PROC_NUM), &self.choreography_conf);
                let pinned = conf.choreography_processor_num.filter(|&number| number > 0);
                let own_pool = conf.pool_processor_num.filter(|_| pinned.is_some());
                let (n_pinned, n_pool) = (pinned.unwrap_or(default), own_pool.unwrap_or(default));
                let culprit = match (pinned, own_pool) {
                    (Some(_), Some(pool)) if pool > n_pinned => "pool_processor_num",
                    (Some(_), _) if n_pinned >= n_pool => "choreography_processor_num",
                    _ => "default_proc_num",
                };
                let total = u64::from(n_pinned) + u64::from(n_pool);
                at_most(total, || format!("{n_pinned} choreography and {n_pool} pool processors"), culprit)?;
                Ok(Workers { any: n_pinned + n_pool, ..Workers::default() })
            }
        }
    }

    fn workers_of_groups(&self) -> Result<Workers, ConfigError> {
        let default = self.default_proc_num.unwrap_or(DEFAULT_PROC_NUM);
        let typed = |group: &SchedGroup| {
            let n = group.workers.as_ref().map(|ids| ids.len() as u32);
            group.processors.unwrap_or(Typed { any: n.or(group.processor_num).unwrap_or(default), ..Typed::default() })
        };
        let sizes: Vec<Typed> = self.classic_conf.groups.iter().map(typed).collect();
        let total: u64 = sizes.iter().map(Typed::total).sum();
        let largest = sizes.iter().zip(&self.classic_conf.groups).max_by_key(|(size, _)| size.total());
        let name = largest.map_or(DEFAULT_GROUP_NAME, |(_, group)| &group.name);
        let culprit = format!("the number of group `{name}`");
        at_most(total, || format!("the groups have {total} processors"), &culprit)?;
        let mut workers = Workers::default();
        for typed in sizes {
            workers.cube += typed.cube;
            workers.vector += typed.vector;
            workers.ai_cpu += typed.ai_cpu;
            workers.accelerator += typed.accelerator;
            workers.any += typed.any;
        }
        Ok(workers)
    }
}

/// Refuses more processors than a machine may have workers.
fn at_most(total: u64, told: impl FnOnce() -> String, culprit: &str) -> Result<(), ConfigError> {
    if total <= MOST_WORKERS {
        return Ok(());
    }
    let told = told();
    Err(ConfigError::Setting(format!("scheduler_conf: {told}: must be at most {MOST_WORKERS}; lower {culprit}")))
}

impl Typed {
    /// Number of processors of all types.
    #[must_use]
    pub fn total(&self) -> u64 {
        [self.cube, self.vector, self.ai_cpu, self.accelerator, self.any].map(u64::from).iter().sum()
    }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind }
}

/// Tables of a whole Apollo file; only the first is ours.
const CYBER_CONFIG: &[Field] = &[
    field("scheduler_conf", Kind::Table(SCHEDULER_CONF)),
    field("transport_conf", Kind::Ignored),
    field("run_mode_conf", Kind::Ignored),
    field("perf_conf", Kind::Ignored),
];

const SCHEDULER_CONF: &[Field] = &[
    field("policy", Kind::Text),
    field("routine_num", Kind::Count),
    field("default_proc_num", Kind::Workers),
    field("process_level_cpuset", Kind::Text),
    field("threads", Kind::Tables(THREAD)),
    field("classic_conf", Kind::Table(&[field("groups", Kind::Tables(GROUP))])),
    field("choreography_conf", Kind::Table(CHOREOGRAPHY)),
    field("unique_names", Kind::Flag),
];

const THREAD: &[Field] =
    &[field("name", Kind::Text), field("cpuset", Kind::Text), field("policy", Kind::Text), field("prio", Kind::Count)];

const GROUP: &[Field] = &[
    field("name", Kind::Text),
    field("processor_num", Kind::Workers),
    field("affinity", Kind::Text),
    field("cpuset", Kind::Text),
    field("processor_policy", Kind::Text),
    field("processor_prio", Kind::Integer),
    field(
        "tasks",
        Kind::Tables(&[field("name", Kind::Text), field("prio", Kind::Count), field("group_name", Kind::Text)]),
    ),
    field("processors", Kind::Table(TYPED)),
    field("workers", Kind::Counts),
];

const TYPED: &[Field] = &[
    field("CUBE", Kind::Workers),
    field("VECTOR", Kind::Workers),
    field("AI_CPU", Kind::Workers),
    field("ACCELERATOR", Kind::Workers),
    field("ANY", Kind::Workers),
];

const CHOREOGRAPHY: &[Field] = &[
    field("choreography_processor_num", Kind::Workers),
    field("choreography_affinity", Kind::Text),
    field("choreography_processor_policy", Kind::Text),
    field("choreography_processor_prio", Kind::Integer),
    field("choreography_cpuset", Kind::Text),
    field("pool_processor_num", Kind::Workers),
    field("pool_affinity", Kind::Text),
    field("pool_processor_policy", Kind::Text),
    field("pool_processor_prio", Kind::Integer),
    field("pool_cpuset", Kind::Text),
    field(
        "tasks",
        Kind::Tables(&[field("name", Kind::Text), field("processor", Kind::Integer), field("prio", Kind::Count)]),
    ),
];

//! From a configuration to processors: which worker of the machine serves which home, and what its thread would be given.
//!
//! A home is a set of routines and the processors that serve it: a group of the classic scheduler, a pinned processor of the
//! choreography scheduler, or that scheduler's pool. Groups take workers in file order, each the smallest ids left;
//! choreography processors come first, then the pool. A configuration without numbers of processors takes the machine as it
//! is; one with numbers must have as many processors as the machine has workers.

use super::conf::{ChoreographyTask, Conf, DEFAULT_GROUP_NAME, DEFAULT_PROC_NUM, Mode, SchedGroup, Typed};
use super::cpuset::{Class, affinity, parse_cpuset};
use crate::config::{ConfigError, Machine};
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use crate::nearest::nearest;
use serde::Serialize;

/// All homes and processors.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Groups in file order; or pinned processors, then the pool.
    pub homes: Vec<Home>,
    /// How many homes are pinned processors; they come first.
    pub n_pinned: u32,
    /// Whether the configuration, not the machine, decides which workers serve which home.
    pub is_explicit: bool,
    /// The type of each worker.
    pub kinds: Vec<WorkerType>,
    /// The home that each worker serves, if any.
    pub home_of: Vec<Option<u32>>,
    /// In order of home and number.
    pub processors: Vec<Processor>,
    /// Sentences for the report.
    pub notes: Vec<String>,
}

/// Routines and the processors that serve them.
#[derive(Clone, Debug)]
pub struct Home {
    /// Name of the group, or of the processor.
    pub name: String,
    /// Workers that serve it.
    pub workers: Vec<u32>,
    /// Worker types that serve it.
    kinds: [bool; 5],
}

/// A worker in the role of one of Cyber's processors.
#[derive(Clone, Debug, Serialize)]
pub struct Processor {
    /// Number in its home.
    pub processor: usize,
    /// Name of its home.
    pub home: String,
    /// Its worker.
    pub worker: u32,
    /// CPUs of its thread; `None` leaves the thread alone.
    pub cpus: Option<Vec<u32>>,
    /// Scheduling class of its thread.
    pub sched: Class,
}

/// What the threads of a home are given.
#[derive(Default)]
struct Attributes<'a> {
    affinity: &'a str,
    cpuset: &'a str,
    policy: &'a str,
    prio: i32,
}

impl Home {
    /// Whether it has workers of a type.
    #[must_use]
    pub fn has(&self, kind: WorkerType) -> bool {
        self.kinds[kind as usize]
    }

    /// Whether one of its processors can run tasks of a type.
    #[must_use]
    pub fn serves(&self, kind: TaskType) -> bool {
        self.has(WorkerType::Any) || own_type(kind).is_some_and(|own| self.has(own))
    }
}

impl Layout {
    /// Gives every home its workers.
    ///
    /// # Errors
    /// When numbers of processors and workers do not match, a group has none, or a cpuset is wrong.
    pub fn new(conf: &Conf, mode: Mode, machine: &Machine) -> Result<Layout, ConfigError> {
        let mut builder = Builder::new(machine);
        match mode {
            Mode::Classic => builder.classic(&conf.classic_conf.groups),
            Mode::Choreography => builder.choreography(conf),
        }
        .map_err(|message| ConfigError::Setting(format!("scheduler_conf: {message}")))?;
        Ok(Layout { kinds: builder.kinds, ..builder.layout })
    }

    /// Processors of the pool, or of the first group.
    #[must_use]
    pub fn pool_size(&self) -> usize {
        self.homes.get(self.n_pinned as usize).map_or(0, |home| home.workers.len())
    }

    /// The home of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.homes.iter().position(|home| home.name == name).map(|home| home as u32)
    }
}

/// Hands out workers.
struct Builder<'a> {
    machine: &'a Machine,
    kinds: Vec<WorkerType>,
    layout: Layout,
}

impl<'a> Builder<'a> {
    fn new(machine: &'a Machine) -> Builder<'a> {
        let kinds: Vec<_> = machine.workers.kinds().collect();
        let home_of = vec![None; kinds.len()];
        let layout = Layout {
            homes: Vec::new(),
            n_pinned: 0,
            is_explicit: true,
            kinds: Vec::new(),
            home_of,
            processors: Vec::new(),
            notes: Vec::new(),
        };
        Builder { machine, kinds, layout }
    }

    fn classic(&mut self, groups: &[SchedGroup]) -> Result<(), String> {
        if groups.is_empty() {
            self.layout.is_explicit = false;
            let all = self.left(|_| true);
            return self.home(DEFAULT_GROUP_NAME, all, &Attributes::default(), 0);
        }
        let exact = groups.iter().all(|group| group.workers.is_none());
        let alone = groups.len() == 1 && groups[0].processor_num.is_none() && groups[0].processors.is_none();
        let mut wanted = 0;
        for group in groups {
            wanted += self.size(group, alone)?;
        }
        let machine = self.kinds.len();
        if wanted > machine || exact && wanted < machine {
            return Err(self.mismatch(&format!("the groups have {wanted} processors")));
        }
        for group in groups {
            if self.layout.find(&group.name).is_some() {
                return Err(format!("two groups are called `{}`; give each its own name", group.name));
            }
            let workers = self.workers_of(group, alone)?;
            let attributes = Attributes {
                affinity: &group.affinity,
                cpuset: &group.cpuset,
                policy: &group.processor_policy,
                prio: group.processor_prio,
            };
            self.home(&group.name, workers, &attributes, 0)?;
        }
        let idle = self.left(|_| true).len();
        if idle > 0 {
            self.layout.notes.push(format!("{idle} workers belong to no group and stay idle"));
        }
        check_group_names(groups)
    }

    /// How many processors a group asks for.
    fn size(&self, group: &SchedGroup, alone: bool) -> Result<usize, String> {
        let typed = group.processors.map(|typed| typed.total());
        if let (Some(typed), Some(all)) = (typed, group.processor_num)
            && typed != u64::from(all)
        {
            return Err(format!(
                "group `{}`: processor_num = {all}, but its processors by type are {typed}; leave one out",
                group.name
            ));
        }
        if let Some(worker) = group.workers.as_deref().and_then(first_repeated) {
            return Err(format!("group `{}`: worker {worker} stands in its list twice; keep one", group.name));
        }
        let listed = group.workers.as_ref().map(Vec::len);
        let number = listed.or(typed.or(group.processor_num.map(u64::from)).map(|number| number as usize));
        match number {
            None if alone => Ok(self.kinds.len()),
            None | Some(0) => Err(format!(
                "group `{}` has no processors, so that its tasks would never run; set processor_num",
                group.name
            )),
            Some(number) => Ok(number),
        }
    }

    fn workers_of(&self, group: &SchedGroup, alone: bool) -> Result<Vec<u32>, String> {
        if let Some(ids) = &group.workers {
            let free = |&id: &u32| self.layout.home_of.get(id as usize).is_some_and(Option::is_none);
            return match ids.iter().find(|id| !free(id)) {
                None => Ok(ids.clone()),
                Some(&id) if (id as usize) < self.kinds.len() => {
                    Err(format!("group `{}`: worker {id} belongs to another group already", group.name))
                }
                Some(&id) => Err(format!(
                    "group `{}`: there is no worker {id}; machine `{}` has {} workers",
                    group.name,
                    self.machine.name,
                    self.kinds.len()
                )),
            };
        }
        if let Some(typed) = group.processors {
            return self.typed(group, typed);
        }
        let mut workers = self.left(|_| true);
        if !alone {
            workers.truncate(group.processor_num.unwrap_or(0) as usize);
        }
        Ok(workers)
    }

    fn typed(&self, group: &SchedGroup, typed: Typed) -> Result<Vec<u32>, String> {
        let numbers = [typed.cube, typed.vector, typed.ai_cpu, typed.accelerator, typed.any];
        let mut workers = Vec::new();
        for (kind, number) in WorkerType::ALL.into_iter().zip(numbers) {
            let left = self.left(|of| of == kind);
            if left.len() < number as usize {
                return Err(format!(
                    "group `{}` wants {number} {} processors, but only {} of machine `{}` are left",
                    group.name,
                    kind.name(),
                    left.len(),
                    self.machine.name
                ));
            }
            workers.extend(&left[..number as usize]);
        }
        Ok(workers)
    }

    fn choreography(&mut self, conf: &Conf) -> Result<(), String> {
        let own = &conf.choreography_conf;
        self.check_processors(&own.tasks)?;
        let total = self.kinds.len();
        let pinned = match (own.choreography_processor_num.unwrap_or(0) as usize, conf.default_proc_num) {
            (0, None) => {
                self.layout.is_explicit = false;
                self.spare_for_pinning()
            }
            (0, Some(number)) => {
                let number = number as usize;
                if 2 * number != total {
                    return Err(self.mismatch(&format!(
                        "default_proc_num gives {number} choreography and as many pool processors, {} in all",
                        2 * number
                    )));
                }
                (0..number as u32).collect()
            }
            (number, _) => {
                let pool = own.pool_processor_num.map_or(total.saturating_sub(number), |pool| pool as usize);
                if number + pool != total {
                    return Err(self.mismatch(&format!("{number} choreography and {pool} pool processors")));
                }
                (0..number as u32).collect()
            }
        };
        let attributes = Attributes {
            affinity: &own.choreography_affinity,
            cpuset: &own.choreography_cpuset,
            policy: &own.choreography_processor_policy,
            prio: own.choreography_processor_prio,
        };
        for (number, &worker) in pinned.iter().enumerate() {
            self.home(&format!("processor {number}"), vec![worker], &attributes, number)?;
        }
        self.layout.n_pinned = pinned.len() as u32;
        let attributes = Attributes {
            affinity: &own.pool_affinity,
            cpuset: &own.pool_cpuset,
            policy: &own.pool_processor_policy,
            prio: own.pool_processor_prio,
        };
        let rest = self.left(|_| true);
        self.home(DEFAULT_GROUP_NAME, rest, &attributes, 0)
    }

    /// A task may ask for a processor that is none of those for pinning and goes to the pool, but not for one that the machine
    /// does not have.
    fn check_processors(&self, tasks: &[ChoreographyTask]) -> Result<(), String> {
        let n = self.kinds.len();
        let is_none = |number: i32| usize::try_from(number).map_or(number != -1, |number| number >= n);
        match tasks.iter().find(|task| task.processor.is_some_and(is_none)) {
            Some(task) => Err(format!(
                "task `{}`: processor = {} is out of range; machine `{}` has processors 0 to {}, and -1 is the pool",
                task.name,
                task.processor.unwrap_or(-1),
                self.machine.name,
                n.saturating_sub(1)
            )),
            None => Ok(()),
        }
    }

    /// Up to two workers to pin routines to, at most half of the machine, such that the pool keeps every worker type.
    fn spare_for_pinning(&self) -> Vec<u32> {
        let most = (DEFAULT_PROC_NUM as usize).min(self.kinds.len().saturating_sub(1));
        let mut count = WorkerType::ALL.map(|kind| self.machine.workers.count(kind));
        let mut pinned = Vec::new();
        for (worker, &kind) in self.kinds.iter().enumerate() {
            if pinned.len() < most && count[kind as usize] > 1 {
                count[kind as usize] -= 1;
                pinned.push(worker as u32);
            }
        }
        pinned
    }

    fn mismatch(&self, wanted: &str) -> String {
        let machine = &self.machine.name;
        let n = self.kinds.len();
        format!("{wanted}, but machine `{machine}` has {n} workers; make the two numbers equal")
    }

    /// Workers without a home, ascending.
    fn left(&self, of: impl Fn(WorkerType) -> bool) -> Vec<u32> {
        let workers = self.kinds.iter().zip(&self.layout.home_of).enumerate();
        workers.filter(|(_, (kind, home))| home.is_none() && of(**kind)).map(|(id, _)| id as u32).collect()
    }

    /// Adds a home; `first` is the number of its first processor.
    fn home(&mut self, name: &str, workers: Vec<u32>, threads: &Attributes<'_>, first: usize) -> Result<(), String> {
        let cpus = parse_cpuset(threads.cpuset).map_err(|message| format!("{name}: {message}"))?;
        let mut kinds = [false; 5];
        for (index, &worker) in workers.iter().enumerate() {
            kinds[self.kinds[worker as usize] as usize] = true;
            self.layout.home_of[worker as usize] = Some(self.layout.homes.len() as u32);
            self.layout.processors.push(Processor {
                processor: first + index,
                home: name.into(),
                worker,
                cpus: affinity(threads.affinity, &cpus, first + index),
                sched: Class::new(threads.policy, threads.prio),
            });
        }
        self.layout.homes.push(Home { name: name.into(), workers, kinds });
        Ok(())
    }
}

/// The smallest number that a list has more than once.
fn first_repeated(ids: &[u32]) -> Option<u32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// A task may name the group it stands in; one that no processor serves is a mistake.
fn check_group_names(groups: &[SchedGroup]) -> Result<(), String> {
    for task in groups.iter().flat_map(|group| &group.tasks) {
        if let Some(name) = &task.group_name
            && groups.iter().all(|group| group.name != *name)
        {
            let told = unknown_group(name, groups.iter().map(|group| group.name.as_str()));
            return Err(format!("task `{}`: {told}", task.name));
        }
    }
    Ok(())
}

/// The message for a group that does not exist.
pub fn unknown_group<'a>(group: &str, groups: impl Iterator<Item = &'a str> + Clone) -> String {
    let remedy = match nearest(group, groups.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the groups are {}", groups.collect::<Vec<_>>().join(", ")),
    };
    format!("no processor serves group `{group}`; {remedy}")
}

//! The policies by name.

use super::Config;
use super::cyber::{Cyber, Mode};
use super::orleans::Orleans;
use crate::config::{ConfigError, Machine, Workers};
use crate::nearest::nearest;
use std::fmt;
use std::str::FromStr;

/// A policy of this program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Name {
    /// First in, first out per type, worker with the smallest clock: the PTO runtime itself.
    #[default]
    Pto,
    /// Apollo Cyber RT: priorities in groups that own processors.
    CyberClassic,
    /// Apollo Cyber RT: routines pinned to processors, and a pool.
    CyberChoreography,
    /// Orleans: activations that run one task at a time.
    Orleans,
    /// BMF: nodes of a stream graph with timestamps and back-pressure.
    Bmf,
    /// `RayScheduler`: timed release, tokens by source.
    Ray,
    /// A ready queue for every worker.
    PerWorker,
    /// The same with stealing.
    Steal,
    /// Longest path first.
    Predictive,
    /// Highest upward rank first.
    Heft,
    /// A list schedule, replayed.
    Static,
    /// Newest first.
    Lifo,
    /// Any first.
    Random,
    /// Fewest cycles first.
    Shortest,
}

impl Name {
    /// Every policy, in the order in which tables show them.
    pub const ALL: [Name; 14] = [
        Name::Pto,
        Name::CyberClassic,
        Name::CyberChoreography,
        Name::Orleans,
        Name::Bmf,
        Name::Ray,
        Name::PerWorker,
        Name::Steal,
        Name::Predictive,
        Name::Heft,
        Name::Static,
        Name::Lifo,
        Name::Random,
        Name::Shortest,
    ];

    /// The name used in commands, files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Name::Pto => "pto",
            Name::CyberClassic => "cyber_classic",
            Name::CyberChoreography => "cyber_choreography",
            Name::Orleans => "orleans",
            Name::Bmf => "bmf",
            Name::Ray => "ray",
            Name::PerWorker => "per_worker",
            Name::Steal => "steal",
            Name::Predictive => "predictive",
            Name::Heft => "heft",
            Name::Static => "static",
            Name::Lifo => "lifo",
            Name::Random => "random",
            Name::Shortest => "shortest",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Name {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Name, ConfigError> {
        let names = || Name::ALL.into_iter().map(Name::name);
        if let Some(known) = Name::ALL.into_iter().find(|name| name.name() == text) {
            return Ok(known);
        }
        // The name of a family is no slip: the first of it is meant.
        let of_family = || names().find(|name| name.split('_').next() == Some(text));
        let hint =
            nearest(text, names()).or_else(of_family).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let names = names().collect::<Vec<_>>().join(", ");
        Err(ConfigError::Setting(format!("unknown policy `{text}`{hint} (the policies are {names})")))
    }
}

/// A policy and how it is configured.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Which one.
    pub name: Name,
    /// Its settings; those of other policies are not looked at.
    pub config: Config,
}

impl Choice {
    /// A policy with the settings it has by default.
    #[must_use]
    pub fn of(name: Name) -> Choice {
        Choice { name, config: Config::default() }
    }

    /// What the user asked for: a name wins over the one in the configuration, which wins over the default.
    ///
    /// # Errors
    /// When there is no such policy.
    pub fn new(name: Option<&str>, config: Config) -> Result<Choice, ConfigError> {
        let name = match name {
            Some(name) => name.parse()?,
            None => config.policy.name.unwrap_or_default(),
        };
        Ok(Choice { name, config })
    }

    /// The workers that the settings of the policy count themselves: processors of Cyber, queues of BMF.
    ///
    /// # Errors
    /// When these are more than a machine may have.
    pub fn workers(&self) -> Result<Option<Workers>, ConfigError> {
        let mode = match self.name {
            Name::CyberClassic => Mode::Classic,
            Name::CyberChoreography => Mode::Choreography,
            Name::Bmf if !self.config.bmf.nodes.is_empty() => {
                let checked = self.config.bmf.validate().map_err(|error| self.config.name_file(error));
                return checked.map(|()| Some(Workers { any: self.config.bmf.n_queues(), ..Workers::default() }));
            }
            _ => return Ok(None),
        };
        let conf = &self.config.scheduler_conf;
        let counted = conf.counts_processors(mode).then(|| conf.workers(mode)).transpose();
        counted.map_err(|error| self.config.name_file(error))
    }

    /// The machine for this policy. If it was not named, no setting says which workers it has and the settings of the policy count
    /// some, it has those.
    ///
    /// # Errors
    /// As [`Choice::workers`].
    pub fn fit(&self, machine: Machine, is_named: bool) -> Result<Machine, ConfigError> {
        let counted = if is_named || machine.has_set_workers() { None } else { self.workers()? };
        Ok(match counted {
            Some(workers) => Machine { workers, ..machine },
            None => machine,
        })
    }

    /// Checks everything about the settings that can be known without a workload.
    ///
    /// # Errors
    /// When the policy's settings are wrong or do not fit the machine.
    pub fn check(&self, machine: &Machine) -> Result<(), ConfigError> {
        let Config { scheduler_conf, orleans, bmf, ray, .. } = &self.config;
        match self.name {
            Name::CyberClassic => Cyber::classic(scheduler_conf.clone(), machine).map(drop),
            Name::CyberChoreography => Cyber::choreography(scheduler_conf.clone(), machine).map(drop),
            Name::Orleans => Orleans::new(orleans.clone(), machine).map(drop),
            Name::Bmf => bmf.validate(),
            Name::Ray => ray.epoch_micros().map(drop),
            _ => Ok(()),
        }
        .map_err(|error| self.config.name_file(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_a_slip_gets_the_nearest() {
        for name in Name::ALL {
            assert_eq!(name.name().parse::<Name>().ok(), Some(name));
        }
        let error = "predictiv".parse::<Name>().expect_err("there is no such policy").to_string();
        assert!(error.starts_with("unknown policy `predictiv`; did you mean `predictive`?"), "{error}");
        let error = "cyber".parse::<Name>().expect_err("there is no such policy").to_string();
        assert!(error.starts_with("unknown policy `cyber`; did you mean `cyber_classic`?"), "{error}");
    }
}

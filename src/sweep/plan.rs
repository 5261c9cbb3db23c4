//! The points of a sweep, computed from their numbers, and what identifies the run of each.

use super::SweepError;
use super::axis::{Axis, Key};
use super::hash::{Hash, dice};
use super::spec::{DEFAULT_MACHINE, Mode, Spec, UNSET, with_parameter};
use crate::config::{ConfigError, Machine};
use crate::policy::{Choice, Config};
use crate::workload::import::Options;
use crate::workload::{self, Program};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Results of another version are results of another program.
const VERSION: &str = concat!("ptosim run ", env!("CARGO_PKG_VERSION"));
/// Workloads kept in memory at the same time.
const KEPT: usize = 16;

/// Everything a sweep will run.
pub struct Plan {
    /// What the file says.
    pub spec: Spec,
    /// Machines by name, before settings.
    machines: BTreeMap<String, Machine>,
    /// Settings of the policies by the clock of the machine, read at their first use.
    configs: Mutex<BTreeMap<u64, Config>>,
    /// Hash of the files of each workload that has some, of the policy's configuration and of kernel tables.
    contents: BTreeMap<String, String>,
    programs: Programs,
}

/// A part of a sweep: every `of`-th point, from `index` on, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Which part.
    pub index: u64,
    /// Of how many.
    pub of: u64,
}

/// One combination of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Trace file or generator with all its parameters.
    pub workload: String,
    /// Name of the machine that settings start from, if one is named.
    pub machine: Option<String>,
    /// Name of the policy.
    pub policy: String,
    /// Settings and generator parameters, in the order of the axes.
    pub settings: Vec<(String, String)>,
}

/// The values of a point as the engine takes them; or why it cannot.
pub struct Inputs {
    /// The machine with all settings.
    pub machine: Result<Machine, ConfigError>,
    /// The policy.
    pub choice: Choice,
}

type Loaded = Arc<OnceLock<Result<Program, String>>>;

/// Workloads parsed once for a clock, the ones used last.
#[derive(Default)]
struct Programs(Mutex<Vec<(String, f64, Loaded)>>);

impl Plan {
    /// Prepares a sweep: reads machines, policy configuration and the contents of files.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn new(spec: Spec) -> Result<Plan, SweepError> {
        let mut machines = BTreeMap::new();
        for name in spec.machines() {
            machines.insert(name.to_owned(), Machine::load(name)?);
        }
        let kernels = machines.values().map(|machine| machine.kernels.clone());
        let set_kernels = spec.values(&Key::Set("kernels".into())).iter().cloned();
        let files = spec.policy_config.iter().cloned().chain(kernels).chain(set_kernels);
        let mut contents = BTreeMap::new();
        for path in files.filter(|path| Path::new(path).is_file()) {
            let content = content_of(&[Path::new(&path).to_owned()])?;
            contents.insert(path, content);
        }
        for name in spec.values(&Key::Workload) {
            let mut files = workload::files(name, spec.import.from.as_deref());
            if !files.is_empty() {
                files.extend_from_slice(&spec.import.with);
                contents.insert(name.clone(), content_of(&files)?);
            }
        }
        Ok(Plan { machines, configs: Mutex::default(), contents, programs: Programs::default(), spec })
    }

    /// How many points there are.
    #[must_use]
    pub fn n_points(&self) -> u64 {
        u64::try_from(self.spec.n_points()).unwrap_or(u64::MAX)
    }

    /// Settings and generator parameters, in the order of the axes.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let fixed = [Key::Workload, Key::Machine, Key::Policy];
        self.spec.axes.iter().filter(|axis| !fixed.contains(&axis.key)).map(|axis| axis.key.name()).collect()
    }

    /// The identities of all points, in order.
    #[must_use]
    pub fn identities(&self) -> Vec<String> {
        (0..self.n_points()).into_par_iter().map(|index| self.identity(&self.point(index))).collect()
    }

    /// The points of a shard whose runs are not among `done`, each run once.
    #[must_use]
    pub fn missing(&self, identities: &[String], shard: Shard, done: &HashSet<String>) -> Vec<u64> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut missing = Vec::new();
        for (index, id) in (0_u64..).zip(identities) {
            let is_first = seen.insert(id);
            if is_first && !done.contains(id) && index % shard.of == shard.index {
                missing.push(index);
            }
        }
        missing
    }

    /// The point with this number.
    #[must_use]
    pub fn point(&self, index: u64) -> Point {
        let mut point = Point { workload: String::new(), machine: None, policy: String::new(), settings: Vec::new() };
        for (axis, value) in self.spec.axes.iter().zip(self.positions(index)) {
            let Some(value) = axis.values.get(value) else {
                debug_assert!(value == UNSET || axis.values.is_empty(), "positions are within their axis");
                continue;
            };
            match &axis.key {
                Key::Workload => point.workload.clone_from(value),
                Key::Generator(key) => {
                    point.workload = with_parameter(&point.workload, key, value);
                    point.settings.push((axis.key.name(), value.clone()));
                }
                Key::Machine => point.machine = Some(value.clone()),
                Key::Policy => point.policy.clone_from(value),
                Key::Set(key) => point.settings.push((key.clone(), value.clone())),
            }
        }
        point
    }

    /// The position of the value on each axis.
    fn positions(&self, index: u64) -> Vec<usize> {
        let axes = &self.spec.axes;
        match &self.spec.mode {
            Mode::List(points) => points[index as usize].clone(),
            Mode::Random { seed, .. } => {
                let throw = |(nth, axis): (usize, &Axis)| (dice(*seed, index, nth as u64) % axis.n_choices()) as usize;
                axes.iter().enumerate().map(throw).collect()
            }
            Mode::Grid => {
                let mut rest = index;
                let mut positions = vec![0; axes.len()];
                for (position, axis) in positions.iter_mut().zip(axes).rev() {
                    *position = (rest % axis.n_choices()) as usize;
                    rest /= axis.n_choices();
                }
                positions
            }
        }
    }

    /// What the engine needs for a point.
    #[must_use]
    pub fn inputs(&self, point: &Point) -> Inputs {
        let mut choice = Choice::of(point.policy.parse().expect("the specification was checked"));
        let machine = self.machine(point).and_then(|machine| {
            choice.config = self.config(&machine)?;
            choice.fit(machine, point.machine.is_some())
        });
        Inputs { machine, choice }
    }

    /// The machine of a point with all settings.
    fn machine(&self, point: &Point) -> Result<Machine, ConfigError> {
        let mut machine = self.machines[point.machine.as_deref().unwrap_or(DEFAULT_MACHINE)].clone();
        let settings = point.settings.iter().filter(|(key, _)| !key.starts_with("generator."));
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
        machine.apply(&settings)?;
        machine.validate()?;
        Ok(machine)
    }

    /// The settings of the policies, in which seconds are cycles of the machine's clock.
    fn config(&self, machine: &Machine) -> Result<Config, ConfigError> {
        let Some(path) = &self.spec.policy_config else { return Ok(Config::default()) };
        let mut known = self.configs.lock().expect("nobody panics while holding the settings");
        if let Some(config) = known.get(&machine.clock_mhz) {
            return Ok(config.clone());
        }
        let config = Config::load(path, machine)?;
        known.insert(machine.clock_mhz, config.clone());
        Ok(config)
    }

    /// The hash of everything that decides the result of a point.
    #[must_use]
    pub fn identity(&self, point: &Point) -> String {
        let hash = Hash::new().with(VERSION.as_bytes()).with(self.content(&point.workload));
        let hash = hash.with(format!("{:?}", self.spec.import).as_bytes());
        let config = self.spec.policy_config.as_deref().unwrap_or_default();
        let hash = hash.with(point.policy.as_bytes()).with(self.content(config));
        match self.inputs(point).machine {
            Ok(machine) => {
                let text = serde_json::to_vec(&machine).expect("a machine is plain data");
                hash.with(&text).with(self.content(&machine.kernels)).text()
            }
            Err(error) => hash.with(error.to_string().as_bytes()).text(),
        }
    }

    /// The hash of a file's content, or the text itself when it does not name a file.
    fn content<'a>(&'a self, text: &'a str) -> &'a [u8] {
        self.contents.get(text).map_or(text, String::as_str).as_bytes()
    }

    /// The workload of a point, parsed at its first use.
    ///
    /// # Errors
    /// The message, when it cannot be read.
    pub fn program(&self, point: &Point) -> Result<Program, String> {
        let machine = self.inputs(point).machine.map_err(|error| error.to_string())?;
        let options = Options { clock_mhz: machine.clock_mhz as f64, ..self.spec.import.clone() };
        self.programs.load(&point.workload, &options)
    }
}

/// The hash of what stands in files. What is beside the first is known by its name, too.
fn content_of(files: &[PathBuf]) -> Result<String, SweepError> {
    let mut hash = Hash::new();
    for (nth, path) in files.iter().enumerate() {
        let bytes = std::fs::read(path).map_err(|error| SweepError::Spec(format!("{}: {error}", path.display())))?;
        if nth > 0 {
            hash = hash.with(path.file_name().unwrap_or_default().as_encoded_bytes());
        }
        hash = hash.with(&bytes);
    }
    Ok(hash.text())
}

impl Programs {
    fn load(&self, spec: &str, options: &Options) -> Result<Program, String> {
        let loaded = {
            let mut kept = self.0.lock().expect("nobody panics while holding the workloads");
            if let Some((_, _, loaded)) =
                kept.iter().find(|(known, clock, _)| known == spec && clock.to_bits() == options.clock_mhz.to_bits())
            {
                Arc::clone(loaded)
            } else {
                let loaded = Loaded::default();
                kept.push((spec.to_owned(), options.clock_mhz, Arc::clone(&loaded)));
                let surplus = kept.len().saturating_sub(KEPT);
                kept.drain(..surplus);
                loaded
            }
        };
        let load = || {
            let workload = workload::open_with(spec, options).map_err(|error| error.to_string())?;
            Program::load(workload.as_ref()).map_err(|error| error.to_string())
        };
        loaded.get_or_init(load).clone()
    }
}

impl Shard {
    /// The whole sweep.
    pub const ALL: Shard = Shard { index: 0, of: 1 };
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// `2/4` is the second of four parts.
    fn from_str(text: &str) -> Result<Shard, String> {
        let wrong = || format!("`{text}` is not a shard; write 1/4 for the first of four parts");
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let (index, of): (u64, u64) = (index.parse().map_err(|_| wrong())?, of.parse().map_err(|_| wrong())?);
        if index == 0 || index > of { Err(wrong()) } else { Ok(Shard { index: index - 1, of }) }
    }
}

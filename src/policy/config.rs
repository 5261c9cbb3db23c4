//! The policy configuration: a TOML file with `[policy]` and a table for each policy that has settings.
//!
//! Apollo's own `.conf` files and BMF's own graphs in JSON are read as they are.

use super::settings::{self, Field, Kind};
use super::{Name, bmf, cyber, orleans, ray};
use crate::config::{ConfigError, Machine, line_of};
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;

/// Settings of all policies; every one has a default.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Which policy, and the seed of those that roll dice.
    pub policy: PolicyTable,
    /// Of `cyber_classic` and `cyber_choreography`.
    pub scheduler_conf: cyber::Conf,
    /// Of `orleans`.
    pub orleans: orleans::Config,
    /// Of `bmf`.
    pub bmf: bmf::Config,
    /// Of `ray`.
    pub ray: ray::Config,
    /// The file it was read from, for messages.
    pub origin: Option<String>,
}

/// `[policy]`.
#[derive(Clone, Debug)]
pub struct PolicyTable {
    /// The policy to use when the command does not say.
    pub name: Option<Name>,
    /// Of `random`; printed in its report.
    pub seed: u64,
}

impl Default for PolicyTable {
    fn default() -> PolicyTable {
        PolicyTable { name: None, seed: 1 }
    }
}

/// The tables of a file.
const TABLES: &[Field] = &[
    Field { name: "policy", kind: Kind::Table(POLICY) },
    Field { name: "scheduler_conf", kind: Kind::Ignored },
    Field { name: "orleans", kind: Kind::Ignored },
    Field { name: "bmf", kind: Kind::Ignored },
    Field { name: "ray", kind: Kind::Ignored },
];

const POLICY: &[Field] = &[Field { name: "name", kind: Kind::Text }, Field { name: "seed", kind: Kind::Count }];

/// The tables that are filled straight from TOML.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Plain {
    bmf: bmf::Config,
    ray: ray::Config,
}

impl Config {
    /// Reads a configuration file: a `.conf` of Apollo, a graph of BMF in `.json`, or TOML. Times in a graph of BMF are
    /// seconds and become cycles of the machine's clock.
    ///
    /// # Errors
    /// When it cannot be read, or a key or value is wrong; the message names file, line and remedy.
    pub fn load(path: &str, machine: &Machine) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        let text = text.trim_start_matches('\u{feff}');
        let origin = Some(path.to_owned());
        let of = |name| PolicyTable { name: Some(name), ..PolicyTable::default() };
        match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("conf") => {
                let scheduler_conf = cyber::Conf::from_proto(text, path)?;
                Ok(Config { policy: of(cyber_name(&scheduler_conf)), scheduler_conf, origin, ..Config::default() })
            }
            Some("json") => {
                let bmf = bmf::Config::from_graph_json(text, path, machine.clock_mhz)?;
                Ok(Config { policy: of(Name::Bmf), bmf, origin, ..Config::default() })
            }
            _ => Config::parse(text, path),
        }
    }

    /// Reads the file of a process group of Cyber in a folder: `conf/GROUP.conf`, or else `cyber/conf/GROUP.conf`. If
    /// there is neither, the report says so and `cyber_classic` runs with its defaults.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn of_process_group(group: &str, folder: &Path, machine: &Machine) -> Result<Config, ConfigError> {
        let names = Config::places_of_process_group(group);
        if let Some(path) = names.iter().map(|name| folder.join(name)).find(|path| path.exists()) {
            return Config::load(&path.to_string_lossy(), machine);
        }
        let [first, second] = names;
        let missing = Some(format!("neither {first} nor {second} is there: classic without configuration is used"));
        let policy = PolicyTable { name: Some(Name::CyberClassic), ..PolicyTable::default() };
        let scheduler_conf = cyber::Conf { missing, ..cyber::Conf::default() };
        Ok(Config { policy, scheduler_conf, ..Config::default() })
    }

    /// The files in which the settings of a process group of Cyber are looked for, in this order.
    #[must_use]
    pub fn places_of_process_group(group: &str) -> [String; 2] {
        [format!("conf/{group}.conf"), format!("cyber/conf/{group}.conf")]
    }

    /// Reads the text of a TOML file; `origin` is its name, for messages.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
        let document = settings::from_toml(text, origin)?;
        for (table, remedy) in MACHINE_TABLES {
            if let Some(node) = document.field(table) {
                let line = node.line;
                return Err(ConfigError::Setting(format!("{origin}:{line}: [{table}] is not of a policy; {remedy}")));
            }
        }
        settings::check(&document, TABLES, origin)?;
        let Plain { mut bmf, ray } = toml::from_str(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            let told = explain_value(text, error.span(), error.message()).unwrap_or_else(|| explain(error.message()));
            ConfigError::Setting(format!("{origin}:{line}: {told}"))
        })?;
        if let Some(table) = document.field("bmf") {
            bmf.note_places(table, origin);
        }
        let scheduler_conf = cyber::Conf::from_toml(text, origin)?;
        let mut policy = policy_table(&document, origin)?;
        if scheduler_conf.policy.is_some() {
            policy.name = policy.name.or(Some(cyber_name(&scheduler_conf)));
        }
        let config = Config {
            policy,
            scheduler_conf,
            orleans: orleans::Config::from_toml(text, origin)?,
            bmf,
            ray,
            origin: Some(origin.to_owned()),
        };
        config.bmf.validate().map_err(|error| config.name_file(error))?;
        Ok(config)
    }

    /// A mistake in the settings with the file they come from, unless it is named already.
    pub(crate) fn name_file(&self, error: ConfigError) -> ConfigError {
        match (error, &self.origin) {
            (ConfigError::Setting(message), Some(origin)) if !message.starts_with(origin.as_str()) => {
                ConfigError::Setting(format!("{origin}: {message}"))
            }
            (error, _) => error,
        }
    }
}

fn policy_table(document: &settings::Node, origin: &str) -> Result<PolicyTable, ConfigError> {
    let mut table = PolicyTable::default();
    let Some(policy) = document.field("policy") else { return Ok(table) };
    if let Some(node) = policy.field("name")
        && let settings::Tree::Text(name) = &node.tree
    {
        let named = name.parse().map_err(|error| ConfigError::Setting(format!("{origin}:{}: {error}", node.line)))?;
        table.name = Some(named);
    }
    if let Some(settings::Tree::Number(seed)) = policy.field("seed").map(|node| &node.tree) {
        table.seed = u64::try_from(*seed).unwrap_or(0);
    }
    Ok(table)
}

/// The policy that a configuration of Cyber asks for.
fn cyber_name(conf: &cyber::Conf) -> Name {
    match conf.mode().0 {
        cyber::Mode::Classic => Name::CyberClassic,
        cyber::Mode::Choreography => Name::CyberChoreography,
    }
}

/// Tables that belong to the machine, and where their settings are made.
const MACHINE_TABLES: [(&str, &str); 3] = [
    ("machine", "workers are set in the machine file, such as --set workers.cube=2"),
    ("pto", "sizes and rules are set in the machine file, such as --set limits.window=1024"),
    ("cost", "costs are set in the machine file, such as --set cost.preset=low"),
];

/// A value of the wrong kind with its key, if the key stands right before it.
fn explain_value(text: &str, span: Option<Range<usize>>, message: &str) -> Option<String> {
    let expected = message.trim().strip_prefix("invalid ")?.rsplit_once("expected ")?.1;
    let span = span?;
    let before = text.get(..span.start)?.trim_end().strip_suffix('=')?.trim_end();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = &before[before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1)..];
    let wanted = match expected {
        "u64" | "usize" => "a whole number from 0".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        other => other.to_owned(),
    };
    (!key.is_empty()).then(|| format!("`{key}` = {}: must be {wanted}", text[span].trim()))
}

/// A message in our words: an unknown key with the nearest known one.
fn explain(message: &str) -> String {
    let mut words = message.trim().split('`');
    let Some(key) = words.nth(1).filter(|_| message.starts_with("unknown field")) else {
        return message.trim().replace('\n', " ");
    };
    let known: Vec<&str> = words.skip(1).step_by(2).collect();
    settings::unknown_field(key, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Config::parse(text, "p.toml").expect_err("it is wrong").to_string()
    }

    #[test]
    fn name_and_seed_are_read_and_have_defaults() {
        let config = Config::parse("[policy]\nname = \"random\"\nseed = 7\n", "p.toml").expect("it is right");
        assert_eq!((config.policy.name, config.policy.seed), (Some(Name::Random), 7));
        let config = Config::parse("", "p.toml").expect("nothing is needed");
        assert_eq!((config.policy.name, config.policy.seed), (None, 1));
    }

    #[test]
    fn mistakes_name_line_and_remedy() {
        let told = refused("[policy]\nname = \"randm\"\n");
        assert!(told.starts_with("p.toml:2: unknown policy `randm`; did you mean `random`?"), "{told}");
        assert_eq!(refused("[policy]\nsed = 7\n"), "p.toml:2: unknown field `sed`; did you mean `seed`?");
        assert_eq!(refused("[bmf]\ntime_oot = 7\n"), "p.toml:2: unknown field `time_oot`; did you mean `time_out`?");
        assert_eq!(refused("[orlens]\n"), "p.toml:1: unknown field `orlens`; did you mean `orleans`?");
        assert!(refused("\n[pto]\nready = 7\n").starts_with("p.toml:2: [pto] is not of a policy"));
        assert!(refused("[policy\n").starts_with("p.toml:1: "));
        let told = refused("[bmf.nodes.0]\nqueue_length_limit = -1\n");
        assert_eq!(told, "p.toml:2: `queue_length_limit` = -1: must be a whole number from 0");
        let told = refused("[bmf]\nnodes = { 0 = { scheduler = \"one\" } }\n");
        assert_eq!(told, "p.toml:2: `scheduler` = \"one\": must be a whole number from 0 to 4294967295");
        let told = refused("[bmf.nodes.0]\nqueue_length_limit = 0\n");
        assert!(told.starts_with("p.toml:2: bmf.nodes.0.queue_length_limit = 0: "), "{told}");
    }

    #[test]
    fn a_table_of_cyber_chooses_its_scheduler_unless_another_policy_is_named() {
        let name = |text: &str| Config::parse(text, "p.toml").expect("it is right").policy.name;
        let table = |policy: &str| format!("[scheduler_conf]\npolicy = \"{policy}\"\n");
        assert_eq!(name(&table("choreography")), Some(Name::CyberChoreography));
        assert_eq!(name(&table("classic")), Some(Name::CyberClassic));
        assert_eq!(name(&table("foo")), Some(Name::CyberClassic));
        assert_eq!(name(&format!("[policy]\nname = \"lifo\"\n{}", table("choreography"))), Some(Name::Lifo));
        assert_eq!(name("[scheduler_conf]\nroutine_num = 7\n"), None);
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_in_every_form() {
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("a.conf", "scheduler_conf { policy: \"choreography\" }\n"),
            ("a.json", "{\"nodes\":[{\"id\":0}]}"),
            ("a.toml", "[policy]\nname = \"ray\"\n"),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, format!("\u{feff}{text}")).expect("room on the disk");
            let path = path.to_str().expect("a plain path");
            let config = Config::load(path, &Machine::default()).unwrap_or_else(|error| panic!("{error}"));
            assert!(config.policy.name.is_some(), "{file}");
        }
    }
}

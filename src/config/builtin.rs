//! The machines that come with the program, as the texts of their files.

/// A machine that comes with the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builtin {
    /// What `--machine` takes.
    pub name: &'static str,
    /// The whole machine file, comments included.
    pub toml: &'static str,
}

/// All of them, the default one first.
pub const BUILTINS: [Builtin; 4] = [
    Builtin { name: "ideal", toml: include_str!("machines/ideal.toml") },
    Builtin { name: "reference", toml: include_str!("machines/reference.toml") },
    Builtin { name: "a2a3", toml: include_str!("machines/a2a3.toml") },
    Builtin { name: "a5", toml: include_str!("machines/a5.toml") },
];

impl Builtin {
    /// The built-in machine of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Builtin> {
        BUILTINS.into_iter().find(|builtin| builtin.name == name)
    }

    /// What it is, in one sentence: the first comment of its file.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.toml.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

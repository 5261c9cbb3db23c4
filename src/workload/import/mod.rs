//! Traces that other programs write, read as our programs.
//!
//! One file per format, each behind the trait [`Format`]. A format is recognised by the first bytes of a file, or named by
//! the user. `docs/formats.md` says how each is understood.
//!
//! ```text
//! file ─▶ recognise ─▶ Format::read ─▶ sketch (rules, sorting, circles) ─▶ Program, with notes for the report
//! ```

mod chakra;
mod chrome;
mod dax;
mod dot;
mod file;
mod hicann;
mod number;
mod pull;
mod pytorch;
mod rules;
mod simpler;
mod sketch;
mod stg;
#[cfg(test)]
mod tests;
mod text;
mod wfformat;

pub use file::Input;
pub use rules::Rules;

use super::binary::{self, BinaryTrace};
use super::trace::{BYTE_ORDER_MARK, is_gzip, unpacked};
use super::{Program, Stdin, TraceFile, Workload, WorkloadError};
use crate::nearest::suggestion;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes by which a format is recognised.
const HEAD: u64 = 1 << 16;
/// Bytes of a file that are looked at when its beginning says nothing, as when a long description comes first.
const LONG_HEAD: u64 = 1 << 24;
/// What the native format is called.
const NATIVE: &str = "native";
/// What the binary form of it is called.
const BINARY: &str = "ptob";

/// A foreign format.
pub trait Format: Sync {
    /// What `--from` calls it.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn description(&self) -> &'static str;

    /// How names of such files end.
    fn endings(&self) -> &'static [&'static str];

    /// Which edges it can give; the first is the default.
    fn edges(&self) -> &'static [Edges] {
        &[Edges::Recorded]
    }

    /// What other files are called that [`Format::read`] looks for in the folder of a file of this name.
    fn beside(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// How many files of its own `--with` may name.
    fn most_with(&self) -> usize {
        0
    }

    /// Whether a file that begins like this is of this format.
    fn recognises(&self, head: &[u8]) -> bool;

    /// Reads a file. The caller has checked that `options.edges` is one of [`Format::edges`].
    ///
    /// # Errors
    /// When the file is wrong; names place, value and remedy.
    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError>;
}

/// All foreign formats, in the order in which they are tried.
#[must_use]
pub fn formats() -> &'static [&'static dyn Format] {
    &[
        &stg::Stg,
        &wfformat::WfFormat,
        &hicann::Hicann,
        &simpler::Simpler,
        &dax::Dax,
        &dot::Dot,
        &chrome::Chrome,
        &pytorch::PyTorch,
        &chakra::Chakra,
    ]
}

/// Where dependencies come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edges {
    /// As the file lists them.
    Recorded,
    /// Found by our tensor map from the regions that the file lists.
    Infer,
    /// Found by our tensor map from files, each taken as a buffer.
    Files,
    /// Data and control dependencies.
    All,
}

impl Edges {
    /// All choices.
    pub const ALL: [Edges; 4] = [Edges::Recorded, Edges::Infer, Edges::Files, Edges::All];

    /// What `--edges` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Edges::Recorded => "recorded",
            Edges::Infer => "infer",
            Edges::Files => "files",
            Edges::All => "all",
        }
    }

    /// The choice of this name.
    ///
    /// # Errors
    /// When there is none; names all.
    pub fn parse(name: &str) -> Result<Edges, String> {
        let names = || format!("\"{name}\" is unknown; use one of {}", Edges::ALL.map(Edges::name).join(", "));
        Edges::ALL.into_iter().find(|edges| edges.name() == name).ok_or_else(names)
    }
}

/// What the user chose about a file that is not ours.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The format; `None` recognises it.
    pub from: Option<String>,
    /// Where dependencies come from; `None` is the format's own choice.
    pub edges: Option<Edges>,
    /// Mapping rules.
    pub rules: Rules,
    /// The machine's cycles a microsecond.
    pub clock_mhz: f64,
    /// Files that belong to the input and do not stand beside it under their usual names.
    pub with: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options { from: None, edges: None, rules: Rules::default(), clock_mhz: 1850.0, with: Vec::new() }
    }
}

impl Options {
    /// Cycles a microsecond: the rules' clock, or else the machine's.
    #[must_use]
    pub fn cycles_per_us(&self) -> f64 {
        self.rules.clock_mhz.unwrap_or(self.clock_mhz)
    }

    /// The note that says how times became cycles.
    fn clock_note(&self) -> String {
        format!("1 µs of the file is {} cycles (clock_mhz)", self.cycles_per_us())
    }

    /// Makes sure that nothing was chosen about a generator that only files have.
    pub(super) fn check_generator(&self, spec: &str) -> Result<(), WorkloadError> {
        if self.from.is_some() {
            let message = format!("{spec}: --from names the format of a file, and this is a generator; leave it out");
            return Err(WorkloadError::Input(message));
        }
        self.check_own(spec)
    }

    /// Makes sure that nothing was chosen that only foreign formats know; `what` is of our own.
    pub(super) fn check_own(&self, what: &str) -> Result<(), WorkloadError> {
        let rules = self.rules != Rules::default();
        let chosen = [("--edges", self.edges.is_some()), ("--rules", rules), ("--with", !self.with.is_empty())];
        let Some((option, _)) = chosen.into_iter().find(|&(_, chosen)| chosen) else { return Ok(()) };
        Err(WorkloadError::Input(format!(
            "{what}: {option} is for traces of other programs, and this is none; leave it out or name the format with --from"
        )))
    }
}

/// Opens a file of any format.
///
/// # Errors
/// When the file cannot be read, or is of a foreign format and wrong.
pub fn open_file(path: &Path, options: &Options) -> Result<Box<dyn Workload>, WorkloadError> {
    match choose_file(path, options)? {
        Choice::Foreign(format) => read(format, &Input::load(path)?, options),
        Choice::Native => Ok(Box::new(TraceFile::new(path))),
        Choice::Binary => open_binary(path),
    }
}

/// Where the dependencies of a file can come from; nothing for our own formats, which leave no choice.
///
/// # Errors
/// When the file cannot be read or its format is unknown.
pub fn edges(path: &Path, options: &Options) -> Result<&'static [Edges], WorkloadError> {
    Ok(match choose_file(path, options)? {
        Choice::Foreign(format) => format.edges(),
        Choice::Native | Choice::Binary => &[],
    })
}

/// How a file is to be read, by its first bytes.
fn choose_file(path: &Path, options: &Options) -> Result<Choice, WorkloadError> {
    choose(&start_of(path, options)?, Some(path), options)
}

/// The files in the folder of `path` that opening it reads too, because its format has them.
pub(super) fn beside(path: &Path, from: Option<&str>) -> Vec<PathBuf> {
    let options = Options { from: from.map(ToOwned::to_owned), ..Options::default() };
    // What is wrong with the file shows when it is opened.
    let (Ok(Choice::Foreign(format)), Some(name)) = (choose_file(path, &options), path.file_name()) else {
        return Vec::new();
    };
    let names = format.beside(&name.to_string_lossy()).into_iter();
    names.map(|name| path.with_file_name(name)).filter(|path| path.is_file()).collect()
}

/// As many of the first bytes of a file, unpacked, as tell its format.
fn start_of(path: &Path, options: &Options) -> Result<Vec<u8>, WorkloadError> {
    let file = File::open(path).map_err(|source| WorkloadError::Io { path: path.display().to_string(), source })?;
    let start = head(Box::new(file), HEAD);
    if start.len() as u64 == HEAD && options.from.is_none() && !is_recognised(&start) {
        return Ok(File::open(path).map_or(start, |file| head(Box::new(file), LONG_HEAD)));
    }
    Ok(start)
}

/// Opens a stream of any format; `label` is for messages. A native trace is not held back until its end.
///
/// # Errors
/// As [`open_file`].
pub fn open_stream(
    label: &str,
    mut stream: Box<dyn Read + Send>,
    options: &Options,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let unreadable = |source| WorkloadError::Io { path: label.into(), source };
    let mut first = first_line(stream.as_mut()).map_err(unreadable)?;
    let mut start = head(Box::new(Cursor::new(first.clone())), HEAD);
    for length in [HEAD, LONG_HEAD] {
        if is_recognised(&start) || options.from.is_some() {
            break;
        }
        stream.by_ref().take(length).read_to_end(&mut first).map_err(unreadable)?;
        start = head(Box::new(Cursor::new(first.clone())), length);
    }
    let whole = Box::new(Cursor::new(first).chain(stream));
    match choose(&start, None, options)? {
        Choice::Foreign(format) => read(format, &Input::from_reader(whole, label)?, options),
        Choice::Native => Ok(Box::new(Stdin::from_reader(label, whole))),
        Choice::Binary => Ok(Box::new(BinaryTrace::new(Input::from_reader(whole, label)?.bytes, label)?)),
    }
}

/// Maps a binary trace, or unpacks one that is compressed.
fn open_binary(path: &Path) -> Result<Box<dyn Workload>, WorkloadError> {
    let start = File::open(path).and_then(|mut file| is_gzip(&mut file));
    let trace = if start.is_ok_and(|(is_packed, _)| is_packed) {
        let input = Input::load(path)?;
        BinaryTrace::new(input.bytes, &input.label)?
    } else {
        BinaryTrace::open(path)?
    };
    Ok(Box::new(trace))
}

/// What a stream gives until there is a line end.
fn first_line(stream: &mut dyn Read) -> io::Result<Vec<u8>> {
    let (mut first, mut piece) = (Vec::new(), [0; 4096]);
    while (first.len() as u64) < HEAD && !first.contains(&b'\n') {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => first.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(first)
}

/// Reads an input that is of this format.
///
/// # Errors
/// When the input is wrong, or the format cannot give the edges that were asked for.
pub fn read(format: &dyn Format, input: &Input, options: &Options) -> Result<Box<dyn Workload>, WorkloadError> {
    let known = format.edges();
    if let Some(edges) = options.edges.filter(|edges| !known.contains(edges)) {
        let names: Vec<&str> = known.iter().map(|edges| edges.name()).collect();
        let (asked, name) = (edges.name(), format.name());
        let message = format!("--edges {asked} is not for format {name}; it has {}", names.join(", "));
        return Err(input.error(message));
    }
    if let Some(path) = options.with.get(format.most_with()) {
        let (name, path) = (format.name(), path.display());
        return Err(input.error(match format.most_with() {
            0 => format!("--with {path}: files of format {name} have no others that belong to them; leave it out"),
            most => format!("--with {path}: at most {most} belong to a file of format {name}; leave it out"),
        }));
    }
    Ok(Box::new(format.read(input, options)?))
}

/// The first bytes, unpacked. What is damaged shows when the file is read.
fn head(stream: Box<dyn Read + Send>, length: u64) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(stream) = unpacked(stream) {
        let _ = stream.take(length).read_to_end(&mut head);
    }
    if head.starts_with(BYTE_ORDER_MARK) {
        head.drain(..BYTE_ORDER_MARK.len());
    }
    head
}

/// Whether the first bytes tell the format.
fn is_recognised(head: &[u8]) -> bool {
    is_native(head) || binary::is_binary(head) || formats().iter().any(|format| format.recognises(head))
}

/// How a file is to be read.
enum Choice {
    Native,
    Binary,
    Foreign(&'static dyn Format),
}

fn choose(head: &[u8], path: Option<&Path>, options: &Options) -> Result<Choice, WorkloadError> {
    let recognised = || formats().iter().copied().find(|format| format.recognises(head)).or_else(|| by_ending(path?));
    let choice = match options.from.as_deref() {
        Some(NATIVE) => Choice::Native,
        Some(BINARY) => Choice::Binary,
        Some(name) => Choice::Foreign(by_name(name)?),
        None if is_native(head) => Choice::Native,
        None if binary::is_binary(head) => Choice::Binary,
        None => {
            if let Some(format) = recognised() {
                Choice::Foreign(format)
            } else {
                companion(head, path)?;
                unknown(head, path)?;
                Choice::Native
            }
        }
    };
    if let Choice::Native | Choice::Binary = choice {
        options.check_own(&path.map_or("standard input".into(), |path| path.display().to_string()))?;
    }
    Ok(choice)
}

/// Refuses files that go with another one and hold no tasks themselves.
fn companion(head: &[u8], path: Option<&Path>) -> Result<(), WorkloadError> {
    const COMPANIONS: [(&str, &str); 4] = [
        ("\"callable_id_to_name\"", "deps.json"),
        ("\"chip_swimlane_level\"", "deps.json"),
        ("\"task_window_max\"", "deps.json"),
        ("\"blockIdx\"", "the topology (topo.json)"),
    ];
    let Some((_, main)) = COMPANIONS.iter().find(|(word, _)| contains(head, word)) else { return Ok(()) };
    let what = path.map_or("standard input".into(), |path| path.display().to_string());
    Err(WorkloadError::Input(format!("{what}: it goes with {main} and has no tasks of its own; name {main} instead")))
}

/// Refuses what is neither an operation of ours nor anything else that is known.
fn unknown(head: &[u8], path: Option<&Path>) -> Result<(), WorkloadError> {
    let start = head.trim_ascii_start();
    let is_named_like_ours = path.is_some_and(|path| path.to_string_lossy().contains(".jsonl"));
    if start.is_empty() || start.starts_with(b"{") || is_named_like_ours {
        return Ok(());
    }
    let what = path.map_or("<stdin>".into(), |path| path.display().to_string());
    let known: Vec<&str> = names().collect();
    let message = format!("no format begins like this; name it with --from, one of {}", known.join(", "));
    Err(WorkloadError::Line { path: what, line: 1, message })
}

/// What `--from` calls the formats.
fn names() -> impl Iterator<Item = &'static str> {
    formats().iter().map(|format| format.name()).chain([NATIVE, BINARY])
}

fn by_name(name: &str) -> Result<&'static dyn Format, WorkloadError> {
    formats()
        .iter()
        .copied()
        .find(|format| format.name() == name)
        .ok_or_else(|| WorkloadError::Input(format!("--from {name}: unknown format; {}", suggestion(name, names()))))
}

/// The format that files of this name usually have.
fn by_ending(path: &Path) -> Option<&'static dyn Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    formats().iter().copied().find(|format| format.endings().iter().any(|ending| name.ends_with(ending)))
}

/// Whether the first line is an operation of ours.
fn is_native(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or(head);
    line.trim_ascii().starts_with(b"{") && contains(line, "\"op\"")
}

fn contains(head: &[u8], word: &str) -> bool {
    memchr::memmem::find(head, word.as_bytes()).is_some()
}

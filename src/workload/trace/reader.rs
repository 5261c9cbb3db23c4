//! The native trace as a stream of operations.

use super::fields::{Entries, Op, named, twice, unknown_field};
use super::json::Fault;
use super::lines::{BYTE_ORDER_MARK, LONGEST, Lines, gzip_fault};
use super::policy::control;
use super::resolve::Names;
use super::submit::submit;
use super::usual;
use crate::workload::{Control, Operation, Source, Submit, Symbols, WorkloadError};
use std::io::{self, Read};

/// Scopes that may be open at the same time.
pub const MAX_SCOPES: u32 = 64;

/// How a trace begins.
const HEADER: &str = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"…"}"#;

/// Reads a trace operation by operation.
pub struct Reader {
    lines: Lines,
    path: String,
    names: Names,
    about: About,
    open_scopes: u32,
    phase: Phase,
}

/// What the header says.
#[derive(Default)]
struct About {
    title: Option<String>,
    /// How many timed commands there are, all of them right behind the header; `None` when they may stand anywhere.
    controls: Option<u64>,
}

/// Where a reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between header and end.
    Inside,
    /// Behind `done`; nothing may follow.
    Done,
    /// Behind the last line; open scopes are being closed.
    Ended,
}

/// What one line was.
enum Step {
    Operation(Operation),
    Control,
    Done,
}

impl Reader {
    /// Reads the header of a trace; `path` is for messages.
    ///
    /// # Errors
    /// When the input cannot be read or does not begin with a header.
    pub fn new(input: Box<dyn Read + Send>, path: &str) -> Result<Reader, WorkloadError> {
        let lines = Lines::new(input).map_err(|error| read_error(path, 1, error))?;
        let mut reader = Reader {
            lines,
            path: path.into(),
            names: Names::default(),
            about: About::default(),
            open_scopes: 0,
            phase: Phase::Inside,
        };
        reader.about = first_line(&mut reader.lines, path)?;
        Ok(reader)
    }

    /// The name in the header.
    pub fn title(&self) -> Option<&str> {
        self.about.title.as_deref()
    }

    /// Number of the line last read, from 1.
    pub fn number(&self) -> u64 {
        self.lines.number()
    }

    fn error(&self, message: String) -> WorkloadError {
        line_error(&self.path, self.lines.number(), message)
    }

    /// A timed command was read, which was known before the first operation.
    fn pass_control(&mut self) -> Result<(), WorkloadError> {
        match &mut self.about.controls {
            None => Ok(()),
            Some(left @ 1..) => {
                *left -= 1;
                Ok(())
            }
            Some(0) => Err(self.error(TOO_MANY.into())),
        }
    }

    /// Closes the innermost scope that the text leaves open.
    fn close_scope(&mut self) -> Option<Operation> {
        self.open_scopes = self.open_scopes.checked_sub(1)?;
        Some(Operation::ScopeEnd)
    }
}

impl Source for Reader {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        if self.phase == Phase::Inside
            && let Some(bytes) = usual::submit(self.lines.ahead(), &mut self.names, task)
        {
            self.lines.pass(bytes);
            return Ok(Some(Operation::Submit));
        }
        while self.phase != Phase::Ended {
            let number = self.lines.number() + 1;
            let step = match self.lines.next_line() {
                Ok(Some(line)) if is_blank(line) => continue,
                Ok(Some(_)) if self.phase == Phase::Done => {
                    Err("the program ended with \"done\" before; remove one".into())
                }
                Ok(Some(line)) => {
                    let names = (&mut self.names, &mut self.open_scopes);
                    text(line).and_then(|line| operation(line, number, names, task))
                }
                Ok(None) => {
                    self.phase = Phase::Ended;
                    break;
                }
                Err(error) => return Err(read_error(&self.path, number, error)),
            };
            match step.map_err(|message| self.error(message))? {
                Step::Operation(operation) => return Ok(Some(operation)),
                Step::Control => self.pass_control()?,
                Step::Done => self.phase = Phase::Done,
            }
        }
        Ok(self.close_scope())
    }

    fn symbols(&self) -> &Symbols {
        &self.names.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.names.buffers
    }

    fn origin(&self) -> Option<&str> {
        Some(&self.path)
    }

    fn has_lines(&self) -> bool {
        true
    }

    fn line(&self) -> Option<u64> {
        Some(self.lines.number())
    }
}

/// Reads the header and returns what it says.
fn first_line(lines: &mut Lines, path: &str) -> Result<About, WorkloadError> {
    loop {
        let found = match lines.next_line() {
            Ok(Some(line)) if is_blank(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)) => continue,
            Ok(Some(line)) => text(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)).and_then(header),
            Ok(None) => Err(format!("the trace is empty; it begins with {HEADER}")),
            Err(error) => return Err(read_error(path, lines.number() + 1, error)),
        };
        return found.map_err(|message| line_error(path, lines.number(), message));
    }
}

/// Finds the timed commands of a trace. Only lines that contain the word are parsed, and nothing behind the last command if
/// the header says how many there are.
pub fn controls(input: Box<dyn Read + Send>, path: &str) -> Result<Vec<Control>, WorkloadError> {
    let word = memchr::memmem::Finder::new(b"\"control\"");
    let mut lines = Lines::new(input).map_err(|error| read_error(path, 1, error))?;
    let announced = first_line(&mut lines, path)?.controls;
    let mut found = Vec::new();
    while announced != Some(found.len() as u64) {
        let number = lines.number() + 1;
        match lines.next_line() {
            Ok(Some(line)) if announced.is_some() && is_blank(line) => {}
            Ok(Some(line)) if announced.is_none() && word.find(line).is_none() => {}
            Ok(Some(line)) => match text(line).and_then(|line| control_line(line, number)) {
                Ok(None) if announced.is_some() => return Err(line_error(path, number, TOO_FEW.into())),
                Ok(control) => found.extend(control),
                Err(message) => return Err(line_error(path, number, message)),
            },
            Ok(None) if announced.is_some() => return Err(line_error(path, number - 1, TOO_FEW.into())),
            Ok(None) => break,
            Err(error) => return Err(read_error(path, number, error)),
        }
    }
    Ok(found)
}

fn control_line(line: &str, number: u64) -> Result<Option<Control>, Fault> {
    let mut entries = Entries::new(line)?;
    if entries.op == Op::Control { control(&mut entries, number).map(Some) } else { Ok(None) }
}

/// What is wrong when the header names fewer timed commands than there are.
const TOO_MANY: &str = "a control that \"controls\" in the header does not count; correct the number, or leave it out and \
                        controls may stand anywhere";
/// What is wrong when the header names more.
const TOO_FEW: &str = "fewer controls stand behind the header than its \"controls\" says; correct the number, or leave it out \
                       and controls may stand anywhere";

fn is_blank(line: &[u8]) -> bool {
    line.first() != Some(&b'{') && line.iter().all(u8::is_ascii_whitespace)
}

fn text(line: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(line).map_err(|error| {
        format!("not valid UTF-8 at byte {} of the line; save the file as UTF-8", error.valid_up_to() + 1)
    })
}

#[cold]
fn line_error(path: &str, line: u64, message: String) -> WorkloadError {
    WorkloadError::Line { path: path.into(), line: line.max(1), message: without_middle(message) }
}

/// A message that fits on a screen: of one with a long value in it, the beginning and the remedy at its end.
fn without_middle(message: String) -> String {
    const KEPT: usize = 500;
    let (end, start) = (message.char_indices().nth(KEPT), message.char_indices().nth_back(KEPT));
    match (end, start) {
        (Some((end, _)), Some((start, _))) if end < start => format!("{} … {}", &message[..end], &message[start..]),
        _ => message,
    }
}

/// The error of an input that cannot be read on. Damage inside gzip and endless lines have a place, trouble with the file has
/// not.
#[cold]
fn read_error(path: &str, line: u64, error: io::Error) -> WorkloadError {
    let path = path.into();
    if error.raw_os_error().is_some() {
        return WorkloadError::Io { path, source: error };
    }
    let message = match error.kind() {
        io::ErrorKind::FileTooLarge => {
            format!("a line of more than {} MiB; a trace has one operation a line", LONGEST >> 20)
        }
        _ => gzip_fault(&error),
    };
    WorkloadError::Line { path, line, message }
}

/// Reads the header line.
fn header(line: &str) -> Result<About, Fault> {
    let not_ours = |fault: &str| format!("{fault}; a trace begins with {HEADER}");
    let mut entries = Entries::new(line).map_err(|fault| not_ours(&fault))?;
    if entries.op != Op::Header {
        return Err(not_ours("no header before the first operation"));
    }
    let (mut format, mut version, mut title, mut controls) = (None, None, None, None);
    while let Some(key) = entries.next_other_key()? {
        let cursor = &mut entries.cursor;
        let again = match &*key {
            "format" => format.replace(named(&key, cursor.string())?).is_some(),
            "version" => version.replace(named(&key, cursor.integer())?).is_some(),
            "name" => title.replace(named(&key, cursor.string())?.into_owned()).is_some(),
            "controls" => controls.replace(named(&key, cursor.integer())?).is_some(),
            _ => return Err(unknown_field(&key, "header", &["op", "format", "version", "name", "controls"])),
        };
        if again {
            return Err(twice(&key));
        }
    }
    match (format.as_deref(), version) {
        (Some("ptosim-trace"), Some(1)) => Ok(About { title, controls }),
        (Some("ptosim-trace"), Some(other)) => {
            Err(format!("field \"version\": {other} is unknown; this program reads 1"))
        }
        (Some("ptosim-trace"), None) => Err(not_ours("header without \"version\"")),
        (Some(other), _) => Err(not_ours(&format!("field \"format\": \"{other}\" is not \"ptosim-trace\""))),
        (None, _) => Err(not_ours("header without \"format\"")),
    }
}

/// Reads one line behind the header.
fn operation(
    line: &str,
    number: u64,
    (names, open_scopes): (&mut Names, &mut u32),
    task: &mut Submit,
) -> Result<Step, Fault> {
    let mut entries = Entries::new(line)?;
    let operation = match entries.op {
        Op::Submit => {
            submit(&mut entries, names, task)?;
            Operation::Submit
        }
        Op::Buffer => buffer(&mut entries, names)?,
        Op::ScopeBegin => {
            bare(&mut entries, "scope_begin")?;
            if *open_scopes == MAX_SCOPES {
                return Err(format!(
                    "scope_begin: {MAX_SCOPES} scopes are open, the most there can be; close one before"
                ));
            }
            *open_scopes += 1;
            Operation::ScopeBegin
        }
        Op::ScopeEnd => {
            bare(&mut entries, "scope_end")?;
            let left = open_scopes.checked_sub(1);
            *open_scopes = left.ok_or("scope_end without scope_begin; remove it or open a scope before")?;
            Operation::ScopeEnd
        }
        Op::Control => return control(&mut entries, number).map(|_| Step::Control),
        Op::Header => return Err("a second header; a file holds one trace, so remove it".into()),
        Op::Done => return bare(&mut entries, "done").map(|()| Step::Done),
    };
    Ok(Step::Operation(operation))
}

/// Reads a line that has no field but its operation.
fn bare(entries: &mut Entries<'_>, op: &str) -> Result<(), Fault> {
    match entries.next_other_key()? {
        Some(key) => Err(unknown_field(&key, op, &["op"])),
        None => Ok(()),
    }
}

/// Reads a buffer declaration.
fn buffer(entries: &mut Entries<'_>, names: &mut Names) -> Result<Operation, Fault> {
    let (mut id, mut bytes) = (None, None);
    while let Some(key) = entries.next_other_key()? {
        let cursor = &mut entries.cursor;
        let again = match &*key {
            "id" => id.replace(named(&key, cursor.string())?).is_some(),
            "bytes" => bytes.replace(named(&key, cursor.integer())?).is_some(),
            _ => return Err(unknown_field(&key, "buffer", &["op", "id", "bytes"])),
        };
        if again {
            return Err(twice(&key));
        }
    }
    let id = id.ok_or("buffer without \"id\"; give its name")?;
    let bytes = bytes.ok_or_else(|| format!("buffer \"{id}\" without \"bytes\"; give its size"))?;
    let buffer = names.buffer_name(&id);
    names.bind(buffer, bytes);
    Ok(Operation::Buffer { buffer, bytes })
}

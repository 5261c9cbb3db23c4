//! One input file, unpacked and whole in memory, and the errors that point into it.

use super::super::WorkloadError;
use super::super::binary::map::Bytes;
use super::super::trace::{BYTE_ORDER_MARK, GZIP, gzip_fault, unpacked};
use serde::Deserialize;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Formats that are not read as a stream may have this many bytes, unpacked.
const LIMIT: u64 = 1 << 30;
/// Files of so many bytes are mapped instead of read.
const MAPPED: u64 = 1 << 20;
/// Characters of a value that a message shows.
const SHOWN: usize = 60;
/// Characters of another library's message that ours shows.
const MESSAGE: usize = 240;
/// Endings that a name does without in reports; the longer first.
const ENDINGS: [&str; 12] = [
    ".chrome.json",
    ".trace.json",
    ".wf.json",
    ".dax.xml",
    ".pytorch.json",
    ".json",
    ".stg",
    ".dot",
    ".gv",
    ".xml",
    ".dax",
    ".et",
];

/// The content of a file and where it came from.
#[derive(Debug)]
pub struct Input {
    /// Where it is; `None` when it did not come from a file.
    pub path: Option<PathBuf>,
    /// What messages call it.
    pub label: String,
    /// Its bytes, unpacked.
    pub bytes: Bytes,
}

impl Input {
    /// Reads a file; gzip is recognised by its first bytes.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or too large.
    pub fn load(path: &Path) -> Result<Input, WorkloadError> {
        let label = path.display().to_string();
        let file = File::open(path).map_err(|source| WorkloadError::Io { path: label.clone(), source })?;
        let size = file.metadata().map_or(0, |file| file.len());
        let mut input = match mapped(&file, size) {
            Some(bytes) => Input { path: None, label, bytes },
            None => Input::from_reader_of(Box::new(file), &label, size)?,
        };
        input.path = Some(path.into());
        Ok(input)
    }

    /// Reads a stream to its end.
    ///
    /// # Errors
    /// As [`Input::load`].
    pub fn from_reader(reader: Box<dyn Read + Send>, label: &str) -> Result<Input, WorkloadError> {
        Input::from_reader_of(reader, label, 0)
    }

    /// As [`Input::from_reader`], with room for so many bytes from the beginning.
    fn from_reader_of(reader: Box<dyn Read + Send>, label: &str, size: u64) -> Result<Input, WorkloadError> {
        let mut bytes = Vec::with_capacity(size.min(LIMIT) as usize + 64);
        let read = unpacked(reader).and_then(|reader| reader.take(LIMIT + 1).read_to_end(&mut bytes));
        read.map_err(|source| unreadable(label, source))?;
        if bytes.len() as u64 > LIMIT {
            let limit = LIMIT >> 30;
            return Err(WorkloadError::Input(format!(
                "{label}: more than {limit} GiB unpacked; convert a part of it, or write it in the native format, which is \
                 read as a stream"
            )));
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Input { path: None, label: label.into(), bytes: Bytes::Owned(bytes) })
    }

    /// The name of the file without folder and endings, for reports.
    #[must_use]
    pub fn title(&self) -> String {
        let Some(path) = &self.path else { return "stdin".into() };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        stem.unwrap_or(name).into()
    }

    /// A file in the same folder, if it is there.
    #[must_use]
    pub fn beside(&self, name: &str) -> Option<PathBuf> {
        let path = self.path.as_ref()?.with_file_name(name);
        path.is_file().then_some(path)
    }

    /// Its text.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&str, WorkloadError> {
        std::str::from_utf8(&self.bytes)
            .map_err(|error| self.error_at(error.valid_up_to(), "not valid UTF-8; save the file as UTF-8"))
    }

    /// Reads it as JSON; `remedy` says what the format looks like.
    ///
    /// # Errors
    /// When it is not JSON or not of this shape; names line, column and what is wrong.
    pub fn json<'a, T: Deserialize<'a>>(&'a self, remedy: &str) -> Result<T, WorkloadError> {
        serde_json::from_str(self.text()?).map_err(|error| self.json_error(&error, remedy))
    }

    /// The error of a JSON text.
    #[must_use]
    pub fn json_error(&self, error: &serde_json::Error, remedy: &str) -> WorkloadError {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        let what = shorten(what, MESSAGE);
        self.error_in(error.line() as u64, format!("column {}: {what}; {remedy}", error.column()))
    }

    /// An error at a byte of the text.
    #[must_use]
    pub fn error_at(&self, byte: usize, message: impl Display) -> WorkloadError {
        let before = &self.bytes[..byte.min(self.bytes.len())];
        self.error_in(memchr::memchr_iter(b'\n', before).count() as u64 + 1, message)
    }

    /// An error in a line of the text.
    #[must_use]
    pub fn error_in(&self, line: u64, message: impl Display) -> WorkloadError {
        WorkloadError::Line { path: self.label.clone(), line: line.max(1), message: message.to_string() }
    }

    /// An error that has no line.
    #[must_use]
    pub fn error(&self, message: impl Display) -> WorkloadError {
        WorkloadError::Input(format!("{}: {message}", self.label))
    }
}

/// A large file, mapped, if its bytes are its text.
fn mapped(file: &File, size: u64) -> Option<Bytes> {
    let bytes = (MAPPED..=LIMIT).contains(&size).then(|| Bytes::map(file).ok()).flatten()?;
    let is_text = !bytes.starts_with(&GZIP) && !bytes.starts_with(BYTE_ORDER_MARK);
    is_text.then_some(bytes)
}

/// The first characters of a value, for messages.
#[must_use]
pub fn shown(value: &str) -> String {
    shorten(value, SHOWN)
}

fn shorten(value: &str, limit: usize) -> String {
    match value.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.into(),
    }
}

/// The error of an input that cannot be read on.
fn unreadable(label: &str, source: io::Error) -> WorkloadError {
    if source.raw_os_error().is_some() {
        return WorkloadError::Io { path: label.into(), source };
    }
    WorkloadError::Input(format!("{label}: {}", gzip_fault(&source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> Input {
        Input::from_reader(Box::new(io::Cursor::new(bytes.to_vec())), "x.json").expect("memory can be read")
    }

    #[test]
    fn errors_name_line_and_column_and_stay_short() {
        let long = format!("[1,\n\"{}\"]", "y".repeat(10_000_000));
        let error = input(long.as_bytes()).json::<Vec<u8>>("give numbers").expect_err("a text").to_string();
        assert!(error.starts_with("x.json:2: column "), "{error}");
        assert!(error.ends_with("; give numbers") && error.len() < 400, "{} characters", error.len());
        let deep = "[".repeat(100_000);
        let error = input(deep.as_bytes()).json::<serde_json::Value>("less").expect_err("deep").to_string();
        assert!(error.contains("recursion limit"), "{error}");
        assert!(input(b"a\n\xff").text().expect_err("not UTF-8").to_string().starts_with("x.json:2: not valid UTF-8"));
    }

    #[test]
    fn the_byte_order_mark_is_not_content() {
        assert_eq!(input(b"\xEF\xBB\xBF[1]").json::<Vec<u8>>("").expect("valid"), [1]);
    }
}

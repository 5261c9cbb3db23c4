//! The files that a command reads and writes: none may be written twice, or be written although it is read.
//!
//! What counts is what a file is, not how its path is written. Standard output may be written by one option only; devices,
//! pipes and other files that are not replaced may be named as often as wanted.

use super::Failure;
use ptosim::workload::{self, trace::unpacked};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A file to be read, unpacked if it is gzip.
pub fn open(path: &Path) -> io::Result<BufReader<Box<dyn Read + Send>>> {
    Ok(BufReader::new(unpacked(Box::new(File::open(path)?))?))
}

/// The files of a command, each with its role.
#[derive(Default)]
pub struct Files {
    read: Vec<(&'static str, PathBuf)>,
    written: Vec<(&'static str, PathBuf)>,
}

/// What a path stands for.
#[derive(PartialEq, Eq)]
enum Place {
    /// Standard output.
    Stdout,
    /// A file that exists, by device and number.
    #[cfg(unix)]
    File(u64, u64),
    /// A path with every link followed.
    At(PathBuf),
}

impl Files {
    /// Adds a file that is read, if there is one; a name that is no path of a file, such as that of a generator, is none.
    pub fn reads(mut self, role: &'static str, path: Option<impl AsRef<Path>>) -> Files {
        self.read.extend(path.map(|path| (role, path.as_ref().to_owned())));
        self
    }

    /// Adds a workload with the files that its format, which may be named, reads beside it.
    pub fn reads_workload(self, spec: &str, from: Option<&str>) -> Files {
        let mut found = workload::files(spec, from).into_iter();
        let files = self.reads("the workload", Some(found.next().unwrap_or_else(|| spec.into())));
        found.fold(files, |files, path| files.reads("a file of the workload", Some(path)))
    }

    /// Adds a file that an option writes, if it was given.
    pub fn writes(mut self, option: &'static str, path: Option<impl AsRef<Path>>) -> Files {
        self.written.extend(path.map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// Refuses a file that is written twice, or read and written.
    pub fn check(&self) -> Result<(), Failure> {
        let read: Vec<_> = self.read.iter().filter_map(|(role, path)| Some((role, path, source(path)?))).collect();
        let mut written: Vec<(&str, Place)> = Vec::new();
        for (option, path) in &self.written {
            let (Some(place), shown) = (target(path), path.display()) else { continue };
            if let Some((other, _)) = written.iter().find(|(_, earlier)| *earlier == place) {
                return Err(Failure::Usage(format!(
                    "{other} and {option} both write {shown}; give them different files"
                )));
            }
            if let Some((role, input, _)) = read.iter().find(|(.., input)| *input == place) {
                let input = input.display();
                return Err(Failure::Usage(format!(
                    "{option} {shown} would replace {role} {input}; write to another file"
                )));
            }
            written.push((option, place));
        }
        Ok(())
    }
}

/// The file that is read from a path, if there is one.
fn source(path: &Path) -> Option<Place> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    existing(path, &metadata)
}

/// The file that is replaced, or comes into being, at a path; `None` for what is written to where it is.
fn target(path: &Path) -> Option<Place> {
    if path == Path::new("-") {
        return Some(Place::Stdout);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(parent).ok()?;
    if folder == Path::new("/dev") || folder.starts_with("/proc") {
        return None;
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => existing(path, &metadata),
        Ok(_) => None,
        Err(_) => Some(Place::At(folder.join(path.file_name()?))),
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have to look at the path, which may fail")]
fn existing(_path: &Path, metadata: &fs::Metadata) -> Option<Place> {
    use std::os::unix::fs::MetadataExt;
    Some(Place::File(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn existing(path: &Path, _metadata: &fs::Metadata) -> Option<Place> {
    fs::canonicalize(path).ok().map(Place::At)
}

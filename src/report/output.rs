//! Files that are either written whole or not at all.
//!
//! An [`Output`] is opened before a run, so that a bad path is found early, and filled beside its final place: in a file
//! without a name where the system has them, so that even a killed run leaves nothing behind, else in a temporary one.
//! [`Output::commit`] puts it into place in one step. Without that the old file stays as it was.
//! Devices, pipes and what is open already, such as `/dev/stdout`, are written directly. What has a name that ends in `.gz` is packed.

use flate2::{Compression, write::GzEncoder};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Why a file was not written; the one that stood there before is untouched.
#[derive(thiserror::Error, Debug)]
#[error("cannot write {path}: {source}")]
pub struct OutputError {
    /// The file.
    pub path: String,
    /// What the file system said.
    pub source: io::Error,
}

impl OutputError {
    /// Whether the reader at the other end of a pipe has gone, which is no reason to complain.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// A file in the making, or standard output.
#[derive(Debug)]
pub struct Output {
    path: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain(Target),
    Packed(Box<GzEncoder<Target>>),
}

#[derive(Debug)]
enum Target {
    Stdout(io::Stdout),
    /// A device, pipe or open file, which is written at once: there is nothing to keep.
    Device(File),
    #[cfg(target_os = "linux")]
    Unnamed(unnamed::Growing, PathBuf),
    Named(NamedTempFile, PathBuf),
}

impl Output {
    /// Starts a file at `path`; `-` is standard output.
    ///
    /// # Errors
    /// When nothing could be written there.
    pub fn open(path: &str) -> Result<Output, OutputError> {
        let target = Target::open(path).map_err(|source| OutputError { path: path.to_owned(), source })?;
        let is_packed = Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let form = if is_packed {
            Form::Packed(Box::new(GzEncoder::new(target, Compression::default())))
        } else {
            Form::Plain(target)
        };
        Ok(Output { path: path.to_owned(), form })
    }

    /// Writes content through a buffer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fill(
        &mut self,
        content: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let mut writer = BufWriter::new(&mut *self);
        let written = content(&mut writer).and_then(|()| writer.flush());
        drop(writer);
        written.map_err(|source| Output::error(&self.path, source))
    }

    /// Puts the file into its place, where it replaces an older one.
    ///
    /// # Errors
    /// When the file system refuses; the older file is still there.
    pub fn commit(self) -> Result<(), OutputError> {
        let Output { path, form } = self;
        let target = match form {
            Form::Plain(target) => Ok(target),
            Form::Packed(encoder) => encoder.finish(),
        };
        target.and_then(Target::commit).map_err(|source| OutputError { path, source })
    }

    /// The error that says this file cannot be written because of `source`.
    #[must_use]
    pub fn error(path: &str, source: io::Error) -> OutputError {
        OutputError { path: path.to_owned(), source }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.form {
            Form::Plain(target) => target.write(bytes),
            Form::Packed(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Plain(target) => target.flush(),
            // Packing piece by piece would take more room.
            Form::Packed(_) => Ok(()),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Target {
    fn open(path: &str) -> io::Result<Target> {
        if path == "-" {
            return Ok(Target::Stdout(io::stdout()));
        }
        #[cfg(target_os = "linux")]
        if let Some(file) = descriptor::open(Path::new(path)) {
            return file.map(Target::Device);
        }
        match fs::metadata(path) {
            Ok(old) if old.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(old) if !old.is_file() => File::options().write(true).open(path).map(Target::Device),
            Ok(old) if old.permissions().readonly() => Err(io::ErrorKind::PermissionDenied.into()),
            // A link stays; what it points to is replaced.
            Ok(old) => Target::beside(fs::canonicalize(path)?, Some(old.permissions())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Target::beside(path.into(), None),
            Err(error) => Err(error),
        }
    }

    #[cfg(target_os = "linux")]
    fn beside(place: PathBuf, permissions: Option<fs::Permissions>) -> io::Result<Target> {
        let Ok(file) = unnamed::create(folder(&place)) else { return Target::named(place, permissions) };
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        Ok(Target::Unnamed(unnamed::Growing::new(file), place))
    }

    #[cfg(not(target_os = "linux"))]
    fn beside(place: PathBuf, permissions: Option<fs::Permissions>) -> io::Result<Target> {
        Target::named(place, permissions)
    }

    fn named(place: PathBuf, permissions: Option<fs::Permissions>) -> io::Result<Target> {
        let file = temporary().make_in(folder(&place), |path| File::create_new(path))?;
        permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
        Ok(Target::Named(file, place))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Target::Stdout(stdout) => stdout,
            Target::Device(file) => file,
            #[cfg(target_os = "linux")]
            Target::Unnamed(file, _) => file,
            Target::Named(file, _) => file.as_file_mut(),
        }
    }

    fn commit(self) -> io::Result<()> {
        match self {
            Target::Stdout(mut stdout) => stdout.flush(),
            Target::Device(mut file) => file.flush(),
            #[cfg(target_os = "linux")]
            Target::Unnamed(file, place) => {
                let file = file.end()?;
                let named = temporary().make_in(folder(&place), |path| unnamed::name(&file, path))?.into_temp_path();
                if file.metadata()?.len() > SMALL && unnamed::exchange(&named, &place) {
                    // What has the temporary name now is the old file.
                    return named.close();
                }
                named.persist(place).map_err(|error| error.error)
            }
            Target::Named(file, place) => file.into_temp_path().persist(place).map_err(|error| error.error),
        }
    }
}

/// Bytes of a file that is put in the place of another by one call. That makes file systems write the new one to the disk before
/// they forget the old one, which takes longer than a large report took to be made; large ones exchange their names instead, and
/// reach the disk when the system finds the time, as new files do.
#[cfg(target_os = "linux")]
const SMALL: u64 = 1 << 20;

fn temporary() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".ptosim-").suffix(".tmp");
    builder
}

fn folder(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Files that vanish with the process until they are given a name.
#[cfg(target_os = "linux")]
mod unnamed {
    use rustix::fs::{
        AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, fallocate, fstatfs, linkat, open, renameat_with,
    };
    use std::fs::{self, File};
    use std::io::{self, Seek, Write};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    pub(super) fn create(folder: &Path) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        Ok(open(folder, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// A file that takes its room on the disk in large pieces ahead of what is written, where that is quicker.
    #[derive(Debug)]
    pub(super) struct Growing {
        file: File,
        length: u64,
        /// Where the room ends that was taken; 0 if none was.
        room: u64,
        /// Whether more is taken.
        takes_room: bool,
    }

    /// Room that is taken at once.
    const PIECE: u64 = 16 << 20;
    /// What must be left on the disk for others, so that nobody misses what is taken in advance.
    const LEFT: u64 = 4 << 30;
    /// The file system that writes a third faster where it has taken the room already. Others fill the room with zeros first, or
    /// look ahead by themselves.
    const EXT4: u64 = 0xef53;

    impl Growing {
        pub(super) fn new(file: File) -> Growing {
            Growing { file, length: 0, room: 0, takes_room: true }
        }

        /// The file without the room that was not needed.
        pub(super) fn end(self) -> io::Result<File> {
            if self.room > self.length {
                self.file.set_len(self.length)?;
            }
            Ok(self.file)
        }

        /// Takes room if what comes next needs it. A refusal is no error: the disk may have room enough for what is written.
        #[cold]
        fn take_room(&mut self) {
            let from = self.room.max(self.length);
            let is_worth_it = fstatfs(&self.file).is_ok_and(|disk| {
                disk.f_type as u64 == EXT4 && disk.f_bavail.saturating_mul(disk.f_bsize as u64) > LEFT
            });
            self.takes_room = is_worth_it && fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, PIECE).is_ok();
            if self.takes_room {
                self.room = from + PIECE;
            }
        }
    }

    impl Write for Growing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.takes_room && self.length > super::SMALL && self.length + bytes.len() as u64 > self.room {
                self.take_room();
            }
            let written = self.file.write(bytes)?;
            self.length += written as u64;
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    /// Lets a new and an old file exchange their names; false if there is no old one or the system cannot do that.
    pub(super) fn exchange(new: &Path, old: &Path) -> bool {
        let is_file = fs::symlink_metadata(old).is_ok_and(|old| old.is_file());
        is_file && renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok()
    }

    /// Gives `file` the name `path`; where the system cannot do that, the name gets a copy.
    pub(super) fn name(file: &File, path: &Path) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from).or_else(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                return Err(error);
            }
            let mut source: &File = file;
            source.rewind()?;
            io::copy(&mut source, &mut File::create_new(path)?).map(drop)
        })
    }
}

/// Files that are open already and have a name below `/proc`, by way of `/dev/stdout` or `/dev/fd/3` too. Others write to
/// them as well, so they are never replaced.
#[cfg(target_os = "linux")]
mod descriptor {
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};

    /// More links than the system follows.
    const MOST_LINKS: usize = 40;

    /// The open file that `path` names; `None` if it names a place in a folder. What is written to it comes behind what this
    /// process writes to the same descriptor.
    pub(super) fn open(path: &Path) -> Option<io::Result<File>> {
        let own = find(path)?;
        let own_folder = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
        let number = own.strip_prefix(own_folder).ok().and_then(Path::to_str);
        Some(match number {
            Some("1") => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            Some("2") => io::stderr().as_fd().try_clone_to_owned().map(File::from),
            _ => File::options().append(true).open(path),
        })
    }

    /// Follows links up to one that is a descriptor.
    fn find(path: &Path) -> Option<PathBuf> {
        let mut path = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            let folder = fs::canonicalize(super::folder(&path)).ok()?;
            if folder.starts_with("/proc") {
                return Some(folder.join(path.file_name()?));
            }
            path = folder.join(fs::read_link(&path).ok()?);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> Output {
        let mut output = Output::open(path.to_str().expect("a plain path")).expect("a writable place");
        output.write_all(text.as_bytes()).expect("room on the disk");
        output
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        for text in ["first", "second"] {
            let output = write(&path, text);
            assert_ne!(fs::read_to_string(&path).unwrap_or_default(), text);
            output.commit().expect("it is put into place");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_large_file_replaces_the_old_one_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        for letter in ["a", "b"] {
            let text = letter.repeat(3 << 20);
            write(&path, &text).commit().expect("it is put into place");
            assert!(fs::read_to_string(&path).expect("it is there") == text);
            assert_eq!(names(folder.path()), ["out.json"]);
        }
    }

    #[test]
    fn without_commit_the_old_file_stays_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        fs::write(&path, "old").expect("room on the disk");
        drop(write(&path, "new"));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "old");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_temporary_file_with_a_name_does_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        drop(Target::named(path.clone(), None).expect("a writable place"));
        assert!(names(folder.path()).is_empty());
        let mut target = Target::named(path.clone(), None).expect("a writable place");
        target.writer().write_all(b"new").expect("room on the disk");
        target.commit().expect("it is put into place");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn places_that_cannot_be_written_are_found_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("no/out.json");
        let locked = folder.path().join("locked.json");
        fs::write(&locked, "old").expect("room on the disk");
        let mut permissions = fs::metadata(&locked).expect("it is there").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&locked, permissions).expect("our own file");
        for path in [folder.path(), &missing, &locked] {
            let path = path.to_str().expect("a plain path");
            let message = Output::open(path).expect_err("not writable").to_string();
            assert!(message.starts_with(&format!("cannot write {path}: ")), "{message}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").expect("room on the disk");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("our own file");
        symlink(&path, &link).expect("links work");
        write(&link, "new").commit().expect("it is put into place");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
    }
}

//! A file that has its name only when it is whole.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use tripod_proto::code::Code;

use crate::failure::Failure;

/// After so many bytes they are made durable. All at once in the end they would hold up whoever else writes to this
/// disk, a node's journal above all.
const SYNC_EVERY_BYTES: usize = 4 << 20;

/// The file that is being written. It goes with this value, unless it was put in place.
pub(crate) struct Target {
    file: PathBuf,
    replace: bool,
    unfinished: NamedTempFile,
    unsynced_bytes: usize,
}

impl Target {
    /// Makes the unfinished file beside the final one.
    ///
    /// # Errors
    /// There is a file of that name, which is not to be replaced, or none can be made there.
    pub(crate) fn open(file: &Path, replace: bool) -> Result<Self, Failure> {
        if !replace && file.symlink_metadata().is_ok() {
            return Err(exists(file));
        }
        let Some(name) = file.file_name() else {
            return Err(Failure::new(Code::ValueIllegal, format!("{} is no name of a file", file.display())));
        };
        let mut prefix = name.to_os_string();
        prefix.push(".");
        let made = tempfile::Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(directory(file));
        let unfinished = made.map_err(|error| cannot_write(file, &error))?;
        Ok(Self { file: file.to_owned(), replace, unfinished, unsynced_bytes: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.put(bytes).map_err(|error| cannot_write(&self.file, &error))
    }

    /// [`Self::write`] for those who have a word of their own for what fails.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsynced_bytes += bytes.len();
        self.unfinished.write_all(bytes)?;
        if self.unsynced_bytes >= SYNC_EVERY_BYTES {
            self.unsynced_bytes = 0;
            self.unfinished.as_file().sync_data()?;
        }
        Ok(())
    }

    /// What the content is written to.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.unfinished
    }

    /// Makes the content durable.
    pub(crate) fn finish(self) -> Result<Self, Failure> {
        self.unfinished.as_file().sync_all().map_err(|error| cannot_write(&self.file, &error))?;
        Ok(self)
    }

    /// Where the unfinished file is.
    pub(crate) fn path(&self) -> PathBuf {
        self.unfinished.path().to_owned()
    }

    /// Gives the file its name, durably.
    pub(crate) fn put_in_place(self) -> Result<(), Failure> {
        let Self { file, replace, unfinished, .. } = self;
        let put = if replace { unfinished.persist(&file) } else { unfinished.persist_noclobber(&file) };
        put.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => exists(&file),
            _ => cannot_write(&file, &error.error),
        })?;
        File::open(directory(&file))
            .and_then(|directory| directory.sync_all())
            .map_err(|error| cannot_write(&file, &error))
    }
}

fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn exists(file: &Path) -> Failure {
    Failure::new(
        Code::BackupExists,
        format!(
            "{} exists and is left as it is; choose another name, or replace it with --force",
            file.display()
        ),
    )
}

/// The file cannot be written.
pub(crate) fn cannot_write(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Code::BackupIo,
        format!(
            "cannot write {}: {error}; check that its directory exists, its permissions and the free \
             space",
            file.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).expect("readable");
        names.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_put_in_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("b.snap");
        let mut given_up = Target::open(&file, false).expect("free");
        given_up.write(b"half").expect("written");
        assert!(!file.exists() && names(directory.path()).len() == 1);
        drop(given_up);
        assert!(names(directory.path()).is_empty(), "nothing is left of it");

        let mut target = Target::open(&file, false).expect("free");
        target.write(b"whole").expect("written");
        target.finish().expect("durable").put_in_place().expect("named");
        assert_eq!(fs::read(&file).expect("there"), b"whole");
        assert_eq!(names(directory.path()), ["b.snap"]);
    }

    #[test]
    fn an_existing_file_is_replaced_only_by_force() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("b.snap");
        let late = Target::open(&file, false).expect("free");
        fs::write(&file, b"mine").expect("written");
        for refused in [Target::open(&file, false).map(|_| ()), late.put_in_place()] {
            let told = refused.expect_err("refused").to_string();
            assert!(told.starts_with("T5103 backup-exists: ") && told.contains("--force"), "{told}");
        }
        assert_eq!(fs::read(&file).expect("there"), b"mine");
        assert_eq!(names(directory.path()), ["b.snap"]);

        let mut target = Target::open(&file, true).expect("by force");
        target.write(b"new").expect("written");
        target.put_in_place().expect("named");
        assert_eq!(fs::read(&file).expect("there"), b"new");
    }
}

//! The directory of a node's backups: names, owners, and which of them go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tripod_local::files;
use tripod_proto::code::Code;
use tripod_raft::backup;
use tripod_state::ids::{LogIndex, NodeId};
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::Failure;

/// Nodes may share a directory: each knows its own files by their names and leaves all others alone.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    directory: PathBuf,
    prefix: String,
    /// Of sealed ones. The cluster is in their names, as a hash, for nobody here can open them to look.
    sealed_prefix: String,
}

/// A backup by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) form: Form,
    pub(super) index: LogIndex,
    /// When it was last written to, as the file system says.
    pub(super) saved: SystemTime,
}

impl Found {
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Whether backups can be read by those who make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Sealed,
}

const SUFFIX: &str = ".snap";
const SEALED_SUFFIX: &str = ".snap.age";
const UNFINISHED: &str = ".partial";

impl Folder {
    pub(super) fn new(directory: &Path, node: NodeId, cluster_id: &str) -> Self {
        let cluster = xxh3_64(cluster_id.as_bytes());
        Self {
            directory: directory.to_owned(),
            prefix: format!("tripod-node-{node}-index-"),
            sealed_prefix: format!("tripod-node-{node}-of-{cluster:016x}-index-"),
        }
    }

    /// Where the backup of an index belongs. Names of one form sort as their indexes do.
    pub(super) fn file_of(&self, index: LogIndex, form: Form) -> PathBuf {
        let (prefix, suffix) = self.around(form);
        self.directory.join(format!("{prefix}{:020}{suffix}", index.0))
    }

    /// What stands before and behind the index.
    fn around(&self, form: Form) -> (&str, &'static str) {
        match form {
            Form::Plain => (&self.prefix, SUFFIX),
            Form::Sealed => (&self.sealed_prefix, SEALED_SUFFIX),
        }
    }

    /// Form and index of one of ours.
    fn named(&self, name: &str) -> Option<(Form, LogIndex)> {
        [Form::Plain, Form::Sealed].into_iter().find_map(|form| {
            let (prefix, suffix) = self.around(form);
            let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            digits.parse().ok().map(|index| (form, LogIndex(index)))
        })
    }

    /// Makes the directory, and takes away what a killed node left unfinished.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        files::create_dir_all(&self.directory).map_err(|error| self.failed(&error))?;
        for path in self.names()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_ours = name.starts_with(&self.prefix) || name.starts_with(&self.sealed_prefix);
            if is_ours && name.ends_with(UNFINISHED) {
                fs::remove_file(&path).map_err(|error| self.failed(&error))?;
            }
        }
        Ok(())
    }

    /// This node's backups, the oldest first.
    fn all(&self) -> Result<Vec<Found>, Failure> {
        let mut all = Vec::new();
        for path in self.names()? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some((form, index)) = self.named(&name) {
                let saved = path.metadata().and_then(|data| data.modified());
                let saved = saved.map_err(|error| self.failed(&error))?;
                all.push(Found { path, form, index, saved });
            }
        }
        // A node that begins to seal makes another one of an index at which nothing has happened since.
        all.sort_by_key(|found| (found.index, found.saved));
        Ok(all)
    }

    pub(super) fn newest(&self) -> Result<Option<Found>, Failure> {
        Ok(self.all()?.pop())
    }

    pub(super) fn count(&self) -> u32 {
        self.all().map_or(0, |all| u32::try_from(all.len()).unwrap_or(u32::MAX))
    }

    /// Refuses a directory with another cluster's backups under this node's names: they would be taken for ours, and
    /// removed one day. One that cannot be read is nobody's; those that are sealed say in their names whose they are.
    pub(super) fn check_owner(&self, cluster_id: &str) -> Result<(), Failure> {
        let newest = self.all()?.into_iter().rfind(|found| found.form == Form::Plain);
        let Some(newest) = newest else { return Ok(()) };
        match backup::verify(&newest.path) {
            Ok(contents) if contents.cluster_id != cluster_id => Err(Failure::new(
                Code::BackupElsewhere,
                format!(
                    "{} holds backups of cluster {}, and this is cluster {cluster_id}; give --backup-dir another directory, \
                 or move them away",
                    self.directory.display(),
                    contents.cluster_id
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Removes all but the newest.
    pub(super) fn keep_newest(&self, keep: u32) -> Result<(), Failure> {
        let all = self.all()?;
        let too_many = all.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
        for old in &all[..too_many] {
            fs::remove_file(&old.path).map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = fs::read_dir(&self.directory).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
        });
        entries.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::new(
            Code::BackupIo,
            format!(
                "--backup-dir {}: {error}; check its permissions and the free space",
                self.directory.display()
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(directory).expect("readable").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().expect("text")).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_newest_of_this_node_stay_and_nothing_of_others_is_touched() {
        let place = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(&place.path().join("new"), NodeId(1), "c");
        folder.prepare().expect("made");
        let directory = place.path().join("new");
        for index in [9, 100, 20_000] {
            fs::write(folder.file_of(LogIndex(index), Form::Plain), b"x").expect("written");
        }
        let other = Folder::new(&directory, NodeId(11), "c").file_of(LogIndex(1), Form::Plain);
        fs::write(&other, b"x").expect("written");
        fs::write(directory.join("tripod-node-1-index-mine.snap"), b"x").expect("written");
        fs::write(directory.join("tripod-node-1-index-00000000000000000007.snap.AbC.partial"), b"x")
            .expect("written");

        folder.prepare().expect("cleaned");
        folder.keep_newest(2).expect("removed");
        assert_eq!(folder.newest().expect("readable").map(|found| found.index), Some(LogIndex(20_000)));
        assert_eq!(folder.count(), 2);
        assert_eq!(
            names(&directory),
            [
                "tripod-node-1-index-00000000000000000100.snap",
                "tripod-node-1-index-00000000000000020000.snap",
                "tripod-node-1-index-mine.snap",
                "tripod-node-11-index-00000000000000000001.snap",
            ]
        );
    }

    #[test]
    fn sealed_ones_count_with_the_others_and_those_of_another_cluster_are_nobodys() {
        let place = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(place.path(), NodeId(1), "c");
        folder.prepare().expect("made");
        let write = |path: PathBuf| fs::write(path, b"x").expect("written");
        write(folder.file_of(LogIndex(5), Form::Plain));
        write(folder.file_of(LogIndex(7), Form::Sealed));
        let foreign = Folder::new(place.path(), NodeId(1), "another").file_of(LogIndex(99), Form::Sealed);
        write(foreign.clone());
        let half = place.path().join(format!("{}00.snap.age.AbC.partial", folder.sealed_prefix));
        write(half.clone());

        folder.prepare().expect("cleaned");
        assert!(!half.exists());
        let newest = folder.newest().expect("readable").expect("there");
        assert_eq!((newest.index, newest.form), (LogIndex(7), Form::Sealed));
        assert_eq!(folder.count(), 2);
        folder.keep_newest(1).expect("removed");
        assert_eq!(folder.newest().expect("readable"), Some(newest));
        assert_eq!(folder.count(), 1);
        assert!(foreign.exists(), "it is not ours");
    }

    #[test]
    fn of_two_forms_of_one_index_the_one_that_was_made_last_stays() {
        for (first, last) in [(Form::Plain, Form::Sealed), (Form::Sealed, Form::Plain)] {
            let place = tempfile::tempdir().expect("a directory");
            let folder = Folder::new(place.path(), NodeId(1), "c");
            for (form, seconds) in [(first, 1), (last, 2)] {
                let file = fs::File::create(folder.file_of(LogIndex(7), form)).expect("made");
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("set");
            }
            assert_eq!(folder.newest().expect("readable").map(|found| found.form), Some(last));
            folder.keep_newest(1).expect("removed");
            assert_eq!(folder.newest().expect("readable").map(|found| found.form), Some(last));
            assert_eq!(folder.count(), 1);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named_with_its_flag() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let folder = Folder::new(&file.path().join("below"), NodeId(1), "c");
        let told = folder.prepare().expect_err("no directory").to_string();
        assert!(told.contains("--backup-dir") && told.contains(&file.path().display().to_string()), "{told}");
    }
}

//! Whose data directory this is. A node that starts on another node's data could vote twice, so
//! the owner is written at the first start, in a file that people can read and in the log itself,
//! and both are compared at every later start.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tripod_local::files;
use tripod_state::ids::{FeatureLevel, NodeId};

use crate::base::advice;
use crate::base::error::StartError;
use crate::base::options::Options;
use crate::disk::{MetaKey, SledDisk};

/// The layout of the data directory that this program writes. Format 1 had no journal; a program that knows no
/// journal must not open a log that has one, as it would forget votes.
const FORMAT: u32 = 2;
/// What the file says while the directory holds what only builds above the first feature level understand. The
/// file tells the level beside it. The log goes on saying 2: builds of the first level read it, too.
const FORMAT_WITH_LEVEL: u32 = 3;
const FILE: &str = "identity.json";
const LOG_DIRECTORY: &str = "log";

/// The owner of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    cluster_id: String,
    node: u64,
    /// Version of the directory's layout.
    format: u32,
}

/// The owner as the file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OnFile {
    #[serde(flatten)]
    owner: Identity,
    /// The feature level that a build must support to start here; absent: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<FeatureLevel>,
}

impl OnFile {
    fn new(owner: &Identity, level: FeatureLevel) -> Self {
        let above = level > tripod_state::level::FIRST;
        let format = if above { FORMAT_WITH_LEVEL } else { FORMAT };
        Self { owner: Identity { format, ..owner.clone() }, level: above.then_some(level) }
    }

    /// Whether a build that supports levels up to `level_max` may use the directory.
    fn check(&self, level_max: FeatureLevel, file: &Path) -> Result<(), StartError> {
        let known = if level_max > tripod_state::level::FIRST { FORMAT_WITH_LEVEL } else { FORMAT };
        let place = file.display();
        if self.owner.format > known {
            return Err(StartError::Identity(format!(
                "T4102 identity-format: {place} has format {}, this program knows {known}; start a newer \
                 program{}",
                self.owner.format,
                damaged(file)
            )));
        }
        match self.level {
            Some(level) if level > level_max => Err(StartError::Identity(format!(
                "T4403 level-data: {place} says that its directory holds data of feature level {level}, this build \
                 supports {level_max} at most; start a newer build, or have the level lowered first: docs/runbooks/downgrade.md"
            ))),
            _ => Ok(()),
        }
    }
}

impl Identity {
    pub(crate) fn of(options: &Options) -> Self {
        Self { cluster_id: options.cluster_id.clone(), node: options.node.0, format: FORMAT }
    }

    /// Whose it is.
    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    /// Whether a build that supports levels up to `level_max` may use what is marked with a level. `place` is named
    /// in the refusal.
    pub(crate) fn check_level(
        &self,
        marked: FeatureLevel,
        level_max: FeatureLevel,
        place: &Path,
    ) -> Result<(), StartError> {
        OnFile::new(self, marked).check(level_max, place)
    }

    /// Whether a directory of `found` may be used by a node that was started as this one.
    pub(crate) fn compare(&self, found: &Self, place: &Path) -> Result<(), StartError> {
        let damaged = damaged(place);
        let place = place.display();
        if found.cluster_id != self.cluster_id {
            return Err(StartError::Identity(format!(
                "T4103 identity-cluster: {place} belongs to cluster {}, this node is started for cluster {}; give \
                 it the data directory of its own cluster, or correct the cluster id{damaged}",
                found.cluster_id, self.cluster_id
            )));
        }
        if found.node != self.node {
            return Err(StartError::Identity(format!(
                "T4104 identity-node: {place} belongs to node {}, this is node {}; every node needs a data \
                 directory of its own{damaged}",
                found.node, self.node
            )));
        }
        Ok(())
    }
}

/// Whose data directory this is, as its first start wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub cluster_id: String,
    pub node: NodeId,
}

/// The owner of a data directory; `None` if no node was ever started on it. Whether the rest of it fits is
/// found at the start. Blocks.
///
/// # Errors
/// The directory says whose it is, and that cannot be read.
pub fn owner(data: &Path) -> Result<Option<Owner>, StartError> {
    let found = read_file(&data.join(FILE))?;
    Ok(found.map(|found| Owner { cluster_id: found.owner.cluster_id, node: NodeId(found.owner.node) }))
}

/// The way back if the file says what it says because a bit of it was turned over. The log is not so easily mistaken:
/// each of its records has a checksum.
fn damaged(place: &Path) -> String {
    if place.file_name().is_none_or(|name| name != FILE) {
        return String::new();
    }
    format!(
        ". If it surely is this node's directory, that file is damaged: `rm {}` and start the node again, which asks \
         the log whose it is and writes the file anew",
        place.display()
    )
}

/// Has the file say which feature level the directory needs, durably, unless it does. Blocks.
///
/// # Errors
/// It cannot be read or written.
pub(crate) fn mark(data: &Path, wanted: &Identity, level: FeatureLevel) -> std::io::Result<()> {
    let (wanted, found) = (OnFile::new(wanted, level), read_file(&data.join(FILE)));
    if found.is_ok_and(|found| found.as_ref() == Some(&wanted)) {
        return Ok(());
    }
    write_file(data, &wanted)
}

/// Checks or creates the data directory and opens its log, as a build that supports levels up to `level_max`.
/// Blocks.
pub(crate) fn open_data(options: &Options, level_max: FeatureLevel) -> Result<SledDisk, StartError> {
    create_directory(&options.data)?;
    probe_writable(&options.data)?;
    let wanted = Identity::of(options);
    let file = options.data.join(FILE);
    let log = options.data.join(LOG_DIRECTORY);
    let known = read_file(&file)?;
    if let Some(found) = &known {
        found.check(level_max, &file)?;
        wanted.compare(&found.owner, &file)?;
        if !log.exists() {
            return Err(log_lost(options, &log));
        }
    }
    let mut disk = SledDisk::open(&log)?;
    let stored = disk.get::<Identity>(MetaKey::Identity)?;
    match &stored {
        Some(found) => {
            OnFile { owner: found.clone(), level: None }.check(level_max, &log)?;
            wanted.compare(found, &log)?;
        }
        // The file is written after the log, so a log that knows nothing replaced another one.
        None if known.is_some() => return Err(log_lost(options, &log)),
        None => {}
    }
    // An older format is raised here, before anything of the newer one is written.
    if stored.as_ref() != Some(&wanted) {
        disk.put(MetaKey::Identity, &wanted)?;
    }
    let level = known.as_ref().and_then(|found| found.level).unwrap_or(tripod_state::level::FIRST);
    let wanted = OnFile::new(&wanted, level);
    if known.as_ref() != Some(&wanted) {
        // Last, so that an interrupted first start is repeated and not taken for a lost log.
        write_file(&options.data, &wanted).map_err(|error| unwritable(&options.data, &error))?;
    }
    Ok(disk)
}

fn log_lost(options: &Options, log: &Path) -> StartError {
    StartError::Storage(format!(
        "T3103 log-missing: {} belongs to node {}, but the log in {} is gone; a node that forgot how it voted must \
         not vote again. {}",
        options.data.display(),
        options.node,
        log.display(),
        advice::rejoin(&options.data),
    ))
}

fn create_directory(data: &Path) -> Result<(), StartError> {
    if data.is_dir() {
        return Ok(());
    }
    let created = files::create_dir(data).and_then(|()| sync_parent(data));
    created.map_err(|error| {
        StartError::Storage(match error.kind() {
            ErrorKind::NotFound => format!(
                "T3109 data-parent: cannot create the data directory {}: its parent does not exist; create the \
                 parent or correct the path",
                data.display()
            ),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => not_written(data, &error),
            _ => format!(
                "T3110 data-create: cannot create the data directory {}: {error}; choose a path where this user \
                 may write",
                data.display()
            ),
        })
    })
}

/// Makes a new directory's name durable.
fn sync_parent(data: &Path) -> std::io::Result<()> {
    match data.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Finds a directory that takes nothing before sled does, whose text would not say what to do.
fn probe_writable(data: &Path) -> Result<(), StartError> {
    let probe = data.join(".probe");
    let written = files::create(&probe).and_then(|mut file| file.write_all(b"probe"));
    // A full disk may have room for the name.
    let removed = fs::remove_file(&probe);
    written.and(removed).map_err(|error| unwritable(data, &error))
}

fn unwritable(data: &Path, error: &Error) -> StartError {
    StartError::Storage(not_written(data, error))
}

/// What an operator is told of a data directory that takes nothing: it is full, or it refuses.
pub(crate) fn not_written(data: &Path, error: &Error) -> String {
    let place = data.display();
    match error.kind() {
        ErrorKind::StorageFull => format!(
            "T3107 data-full: there is no room to start in the data directory {place}: {error}; what is in it is \
             whole: free space on its file system (`df {place}` shows it) and start this node again"
        ),
        ErrorKind::QuotaExceeded => format!(
            "T3107 data-full: there is no room to start in the data directory {place}: {error}; what is in it is \
             whole: raise the quota of the user that this node runs as and start it again"
        ),
        ErrorKind::ReadOnlyFilesystem => format!(
            "T3108 data-readonly: cannot write to the data directory {place}: {error}; mount its file system for \
             writing (if the system itself made it read-only, its log names the error of the disk that was the \
             reason)"
        ),
        _ => format!(
            "T3108 data-readonly: cannot write to the data directory {place}: {error}; make it writable for the \
             user that this node runs as"
        ),
    }
}

fn read_file(file: &Path) -> Result<Option<OnFile>, StartError> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(StartError::Identity(format!(
                "T4101 identity-unreadable: cannot read {}: {error}; check its permissions",
                file.display()
            )));
        }
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        StartError::Identity(format!(
            "T4101 identity-unreadable: {} is not an identity file: {error}. The log knows whose it is: remove this \
             file and start the node again, which compares both and writes it anew",
            file.display()
        ))
    })
}

fn write_file(data: &Path, identity: &OnFile) -> std::io::Result<()> {
    let temporary: PathBuf = data.join("identity.json.tmp");
    let mut text = serde_json::to_vec_pretty(identity).expect("an identity is plain strings and numbers");
    text.push(b'\n');
    let mut file = files::create(&temporary)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&temporary, data.join(FILE))?;
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::golden::check_file;

    fn identity(format: u32) -> Identity {
        Identity { cluster_id: "golden".into(), node: 3, format }
    }

    fn check_golden(name: &str, level: u32, expected: &OnFile) {
        let directory = tempfile::tempdir().unwrap();
        mark(directory.path(), &identity(FORMAT), FeatureLevel(level)).unwrap();
        let today = fs::read(directory.path().join(FILE)).unwrap();
        fs::write(directory.path().join(FILE), check_file(name, &today)).unwrap();
        assert_eq!(read_file(&directory.path().join(FILE)).unwrap().as_ref(), Some(expected));
    }

    #[test]
    fn identities_stay_as_they_are() {
        check_golden("level1/identity.json", 1, &OnFile { owner: identity(2), level: None });
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(2)) };
        check_golden("level2/identity.json", 2, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(3)) };
        check_golden("level3/identity.json", 3, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(4)) };
        check_golden("level4/identity.json", 4, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(5)) };
        check_golden("level5/identity.json", 5, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(6)) };
        check_golden("level6/identity.json", 6, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(7)) };
        check_golden("level7/identity.json", 7, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(8)) };
        check_golden("level8/identity.json", 8, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(9)) };
        check_golden("level9/identity.json", 9, &expected);
        let expected = OnFile { owner: identity(3), level: Some(FeatureLevel(10)) };
        check_golden("level10/identity.json", 10, &expected);
    }

    #[test]
    fn a_directory_above_the_build_is_refused_and_one_that_was_marked_back_is_not() {
        let file = Path::new("identity.json");
        let refusal = |marked: u32, level_max: u32| {
            OnFile::new(&identity(FORMAT), FeatureLevel(marked)).check(FeatureLevel(level_max), file).err()
        };
        assert!(refusal(1, 1).is_none() && refusal(1, 2).is_none() && refusal(2, 2).is_none());
        assert!(refusal(2, 3).is_none() && refusal(3, 3).is_none());
        let told = refusal(2, 1).unwrap().to_string();
        assert!(told.starts_with("T4102 identity-format: ") && told.contains("knows 2"), "{told}");
        let told = refusal(3, 2).unwrap().to_string();
        assert!(told.starts_with("T4403 level-data: ") && told.contains("downgrade"), "{told}");
    }

    #[test]
    fn a_full_disk_is_not_called_read_only_and_each_has_its_own_next_step() {
        let told = |errno: Errno| not_written(Path::new("/data/1"), &errno.into());
        let full = told(Errno::ENOSPC);
        assert!(full.starts_with("T3107 data-full: ") && full.contains("`df /data/1`"), "{full}");
        assert!(!full.contains("writable"), "{full}");
        let quota = told(Errno::EDQUOT);
        assert!(quota.starts_with("T3107 data-full: ") && quota.contains("quota"), "{quota}");
        let read_only = told(Errno::EROFS);
        assert!(read_only.starts_with("T3108 data-readonly: ") && read_only.contains("mount"), "{read_only}");
        let refused = told(Errno::EACCES);
        assert!(refused.starts_with("T3108 data-readonly: ") && refused.contains("the user"), "{refused}");
        for text in [read_only, refused] {
            assert!(!text.contains("space"), "{text}");
        }
    }
}

//! Whose data directory this is. A node that starts on another node's data could vote twice, so
//! the owner is written at the first start, in a file that people can read and in the log itself,
//! and both are compared at every later start.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tripod_state::ids::NodeId;

use crate::StartError;
use crate::log_store::{MetaKey, SledDisk};
use crate::options::Options;
use crate::rejoin;

/// The newest layout of the data directory that this program knows, and the one it writes. Format 1 had no
/// journal; a program that knows no journal must not open a log that has one, as it would forget votes.
const FORMAT: u32 = 2;
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

impl Identity {
    pub(crate) fn of(options: &Options) -> Self {
        Self { cluster_id: options.cluster_id.clone(), node: options.node.0, format: FORMAT }
    }

    /// Whether a directory of `found` may be used by a node that was started as this one.
    pub(crate) fn compare(&self, found: &Self, place: &Path) -> Result<(), StartError> {
        let damaged = damaged(place);
        let place = place.display();
        if found.format > FORMAT {
            return Err(StartError::Identity(format!(
                "T4102 identity-format: {place} has format {}, this program knows {FORMAT}; start a newer \
                 program{damaged}",
                found.format
            )));
        }
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
    Ok(found.map(|found| Owner { cluster_id: found.cluster_id, node: NodeId(found.node) }))
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

/// Checks or creates the data directory and opens its log. Blocks.
pub(crate) fn open_data(options: &Options) -> Result<SledDisk, StartError> {
    create_directory(&options.data)?;
    probe_writable(&options.data)?;
    let wanted = Identity::of(options);
    let file = options.data.join(FILE);
    let log = options.data.join(LOG_DIRECTORY);
    let known = read_file(&file)?;
    if let Some(found) = &known {
        wanted.compare(found, &file)?;
        if !log.exists() {
            return Err(log_lost(options, &log));
        }
    }
    let mut disk = SledDisk::open(&log)?;
    let stored = disk.get::<Identity>(MetaKey::Identity)?;
    match &stored {
        Some(found) => wanted.compare(found, &log)?,
        // The file is written after the log, so a log that knows nothing replaced another one.
        None if known.is_some() => return Err(log_lost(options, &log)),
        None => {}
    }
    // An older format is raised here, before anything of the newer one is written.
    if stored.as_ref() != Some(&wanted) {
        disk.put(MetaKey::Identity, &wanted)?;
    }
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
        rejoin::advice(&options.data),
    ))
}

fn create_directory(data: &Path) -> Result<(), StartError> {
    if data.is_dir() {
        return Ok(());
    }
    let created = fs::create_dir(data).and_then(|()| sync_parent(data));
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
    let written = File::create(&probe).and_then(|mut file| file.write_all(b"probe"));
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

fn read_file(file: &Path) -> Result<Option<Identity>, StartError> {
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

fn write_file(data: &Path, identity: &Identity) -> std::io::Result<()> {
    let temporary: PathBuf = data.join("identity.json.tmp");
    let mut text = serde_json::to_vec_pretty(identity).expect("an identity is plain strings and numbers");
    text.push(b'\n');
    let mut file = File::create(&temporary)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&temporary, data.join(FILE))?;
    File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

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

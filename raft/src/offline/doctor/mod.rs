//! Looks at the data directory of a stopped node without changing a byte of it.
//!
//! sled and the journal repair what a crash left when they are opened, so it is a copy of both that is opened,
//! in a scratch directory; snapshots are read where they are. Whatever is damaged is described as the node
//! itself would at its start.
//!
//! | module | what |
//! |---|---|
//! | `scratch` | the copy, and the lock that keeps a node from starting meanwhile |
//! | `report` | what is found |
//! | `entry` | an entry of the log as JSON |
//! | `stopper` | the first entry that a node would stop at |
//! | `salvage` | a backup of what such a node holds, for a cluster that has lost its quorum |

mod entry;
mod report;
mod salvage;
mod scratch;
mod stopper;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde_json::Value;

use crate::base::failure::Failure;
use crate::base::types::{Entry, LogId};
use crate::disk::identity::Identity;
use crate::disk::journal::{self, Home as _};
use crate::disk::skipped::{self, Skipped};
use crate::disk::{Disk as _, DiskError, Loaded, MetaKey, RealFiles, SledDisk};
use crate::offline::backup;

use scratch::Scratch;
use stopper::Unreadable;

pub use crate::disk::journal::SegmentFacts;
pub use entry::EntryRow;
pub use report::{EntryId, LogFacts, Report, SnapshotFacts, VoteFacts};
pub use salvage::{Salvaged, salvage};

/// Files beside the log that say something of the node.
const NOTES: [&str; 3] = ["rejoining", "restored", skipped::FILE];
const IDENTITY: &str = "identity.json";

/// Why a directory could not be looked at. The texts are for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no data directory.
    #[error("{0}")]
    NoData(String),
    /// A node uses it.
    #[error("{0}")]
    Running(String),
    /// What was asked cannot be had of it.
    #[error("{0}")]
    Damaged(String),
    /// It cannot be read, or there is no room for the copy.
    #[error("{0}")]
    Io(String),
}

/// Looks at everything in `data`, with a copy of its log below `scratch`. Gives every entry of the log that
/// can be read to `each`, in order. Blocks.
///
/// # Errors
/// [`Error`]. Damage is no error: it is what [`Report::problems`] tells.
pub fn examine(data: &Path, scratch: &Path, each: &mut dyn FnMut(EntryRow)) -> Result<Report, Error> {
    look(data, scratch, &mut |entry| each(EntryRow::of(entry)))
}

fn look(data: &Path, scratch: &Path, each: &mut dyn FnMut(&Entry)) -> Result<Report, Error> {
    let copy = Scratch::of(data, scratch)?;
    let mut report = Report { data: data.display().to_string(), log_whole: true, ..Report::default() };
    report.identity = identity(data, &mut report.problems);
    look_at_snapshots(data, &mut report)?;
    let skipped = skipped(data)?;
    let saved = report.snapshots.iter().filter_map(|snapshot| snapshot.last).max();
    let mut unreadable = Unreadable::new(data, &skipped, saved.map_or(0, |saved| saved.index));
    look_at_log(&copy, &mut report, &mut |entry| {
        unreadable.take(entry);
        each(entry);
    });
    report.problems.extend(unreadable.problem());
    report.notes =
        NOTES.iter().filter(|note| data.join(note).exists()).map(|note| (*note).to_owned()).collect();
    report.judge();
    for problem in &mut report.problems {
        // The copy is gone when somebody reads this.
        *problem = copy.named_as_original(problem);
    }
    Ok(report)
}

/// What an operator has this node pass over.
fn skipped(data: &Path) -> Result<Skipped, Error> {
    let read = RealFiles::open(data).and_then(|files| Skipped::read(&files));
    read.map_err(|error| unreadable(data, &error))
}

fn identity(data: &Path, problems: &mut Vec<String>) -> Option<Value> {
    let read = fs::read(data.join(IDENTITY)).map_err(|error| error.to_string());
    let parsed = read.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    parsed
        .map_err(|problem| {
            problems.push(format!("T4101 identity-unreadable: {IDENTITY} cannot be read: {problem}"));
        })
        .ok()
}

fn look_at_log(copy: &Scratch, report: &mut Report, each: &mut dyn FnMut(&Entry)) {
    let mut facts = LogFacts::default();
    let mut each = |entry: Entry| {
        facts.count(&entry);
        each(&entry);
    };
    match read_log(copy, report, &mut each) {
        Ok(loaded) => {
            report.vote = loaded.vote.as_ref().map(VoteFacts::of);
            facts.committed = loaded.committed.map(|id| EntryId::of(&id));
            facts.purged = loaded.purged.map(|id| EntryId::of(&id));
        }
        Err(error) => {
            report.log_whole = false;
            report.problems.push(error.to_string());
        }
    }
    report.log = facts;
}

/// Opens the copy as a node would.
fn read_log(copy: &Scratch, report: &mut Report, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
    let home = SledDisk::open(&copy.log())?;
    let stored = home.get::<Identity>(MetaKey::Identity)?;
    report.log_identity = stored.and_then(|identity| serde_json::to_value(identity).ok());
    if let Some(journal) = home.journal()? {
        match RealFiles::open(&copy.journal()).and_then(|files| journal::inspect(&files, journal)) {
            Ok(segments) => report.journal = segments,
            Err(error) => report.problems.push(format!("T3102 log-io: the journal cannot be read: {error}")),
        }
    }
    let mut disk = journal::open(&copy.journal(), home, Failure::new())?;
    let loaded = disk.load(each);
    disk.reader().close();
    loaded
}

fn look_at_snapshots(data: &Path, report: &mut Report) -> Result<(), Error> {
    let place = data.join("snapshots");
    for name in snapshot_names(&place)? {
        let facts = match backup::verify(&place.join(&name)) {
            Ok(contents) => SnapshotFacts::whole(name, &contents),
            Err(error) => {
                report.problems.push(error.to_string());
                SnapshotFacts::damaged(name)
            }
        };
        report.snapshots.push(facts);
    }
    Ok(())
}

/// The snapshots in a directory, oldest first: names begin with the index.
fn snapshot_names(place: &Path) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = match fs::read_dir(place) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unreadable(place, &error)),
    };
    names.retain(|name| name.ends_with(".snap"));
    names.sort();
    Ok(names)
}

fn unreadable(place: &Path, error: &io::Error) -> Error {
    Error::Io(format!(
        "T5303 doctor-io: cannot read {}: {error}; run this as the user that the node runs as",
        place.display()
    ))
}

impl EntryId {
    fn of(id: &LogId) -> Self {
        Self { index: id.index, term: id.leader_id.term }
    }
}

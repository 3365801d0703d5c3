//! Makes the data directory of one node of a new cluster from a backup.
//!
//! Every node of the new cluster makes its own, and all come to the same: the same state, as of the same log
//! entry, with the same membership and a cluster id that no other cluster has. The directory gets its name
//! when all of it is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tripod_state::ids::{LogIndex, Term};
use tripod_state::{State, level};

use super::file::Content;
use super::{Contents, Error, Pace, Plan, RestoredNote, verify};
use crate::base::error::StartError;
use crate::base::failure::Failure;
use crate::base::options::{Options, Timing};
use crate::base::types::{COUNTED_MAX, LogId, Membership, Peer, Vote};
use crate::disk::identity::{self, Identity};
use crate::disk::{Change, Disk, DiskError, journal};
use crate::snapshot::{Form, Header, SnapshotStore};

/// The new cluster's log begins at a multiple of this. Ids come from log indexes, and the old cluster went on
/// behind the snapshot: a session that it opened then must not be somebody else's in the new one.
pub const INDEX_STEP: u64 = 1_000_000_000_000;

/// A directory that is ready for its node's first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The new cluster's id, which its nodes are to be started with.
    pub cluster_id: String,
    /// Where the new cluster's log begins.
    pub index: LogIndex,
    pub term: Term,
    /// What was in the file.
    pub contents: Contents,
}

/// Carries out a plan. Blocks, also on the disk.
///
/// # Errors
/// [`Error`]; nothing was changed, but that on a failing disk an unfinished directory may remain, whose name
/// the error tells.
pub fn restore(plan: &Plan) -> Result<Restored, Error> {
    restore_from(plan, || verify::read(&plan.file, Pace::unlimited()))
}

/// [`restore`] from a content that somebody has opened, in place of the file, whose name stays that of the plan.
///
/// # Errors
/// As for [`restore`].
pub fn restore_content(plan: &Plan, content: Box<dyn Content>) -> Result<Restored, Error> {
    restore_from(plan, || verify::read_content(&plan.file, content, Pace::unlimited()))
}

fn restore_from(
    plan: &Plan,
    read: impl FnOnce() -> Result<(Contents, Header, State), Error>,
) -> Result<Restored, Error> {
    plan.check()?;
    check_unused(&plan.data)?;
    let unfinished = unfinished(&plan.data)?;
    let (contents, header, state) = read()?;
    check_countable(plan, &contents)?;
    let cluster_id = plan.cluster_id(&contents);
    let state = state.restored(&cluster_id, plan.jobs);
    let header = first_header(plan, &cluster_id, &header, &state);
    let last = header.last_log_id.expect("it was just given one");
    let made = make(plan, &unfinished, &header, &state);
    let made = made.and_then(|()| put_in_place(&unfinished, &plan.data));
    if let Err(error) = made {
        // What cannot be removed either is named, and refused by the next attempt.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    let (index, term) = (LogIndex(last.index), Term(last.leader_id.term));
    Ok(Restored { cluster_id, index, term, contents })
}

/// Refuses whatever somebody may still need.
fn check_unused(data: &Path) -> Result<(), Error> {
    let mut entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", data, &error)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    Err(Error::Used(format!(
        "T5201 restore-used: {} is not empty, and a restored node begins with nothing else; choose a directory \
         that does not exist, or move this one away: `mv {} {}.old`",
        data.display(),
        data.display(),
        data.display()
    )))
}

/// The directory's name until it is whole, beside the final one.
fn unfinished(data: &Path) -> Result<PathBuf, Error> {
    let Some(name) = data.file_name() else {
        return Err(Error::Used(format!(
            "T5201 restore-used: {} is no name of a directory that could be made",
            data.display()
        )));
    };
    let mut unfinished = OsString::from(name);
    unfinished.push(".restoring");
    let unfinished = data.with_file_name(unfinished);
    if unfinished.symlink_metadata().is_ok() {
        return Err(Error::Used(format!(
            "T5201 restore-used: {} is there, from a restoration that was interrupted or still runs; if none runs, \
             remove it: `rm -r {}`",
            unfinished.display(),
            unfinished.display()
        )));
    }
    Ok(unfinished)
}

/// Refuses a file from whose end nobody can count on, as the new cluster does. Every checksum of it is right, so a program
/// wrote it, and none of ours.
fn check_countable(plan: &Plan, contents: &Contents) -> Result<(), Error> {
    let Contents { index, term, .. } = contents;
    if index.0 < COUNTED_MAX && term.0 < COUNTED_MAX {
        return Ok(());
    }
    Err(Error::Damaged(format!(
        "T5101 backup-damaged: {} is not what was saved: its last entry is {index} of term {term}, which no log reaches. \
         Do not use it: take another copy of it, or an older snapshot",
        plan.file.display()
    )))
}

/// What the new cluster's first snapshot says of itself.
fn first_header(plan: &Plan, cluster_id: &str, old: &Header, state: &State) -> Header {
    let voters: BTreeSet<u64> = plan.members.iter().map(|member| member.node.0).collect();
    let first = *voters.first().expect("this node is one of them");
    let (index, term) = old.last_log_id.map_or((0, 0), |id| (id.index, id.leader_id.term));
    let leader = openraft::impls::leader_id_adv::LeaderId { term: term + 1, node_id: first };
    let last = LogId::new(leader, (index / INDEX_STEP + 1) * INDEX_STEP);
    let nodes: BTreeMap<u64, Peer> =
        plan.members.iter().map(|member| (member.node.0, Peer { address: member.peer.clone() })).collect();
    let membership = openraft::Membership::new(vec![voters], nodes).expect("every voter has an address");
    Header {
        cluster_id: cluster_id.to_owned(),
        last_log_id: Some(last),
        membership: Membership::new(Some(last), membership),
        digest: state.digest(),
        form: Form::of(state),
    }
}

/// Makes everything that a node finds at its start.
fn make(plan: &Plan, directory: &Path, header: &Header, state: &State) -> Result<(), Error> {
    let options = Options {
        node: plan.node,
        cluster_id: header.cluster_id.clone(),
        data: directory.to_owned(),
        peer_listen: String::new(),
        initial: plan.members.clone(),
        timing: Timing::default(),
        snapshot_every_entries: 1,
        keep_entries: 1,
        state: crate::base::options::StateLimits::default(),
    };
    let home = identity::open_data(&options, level::NEWEST).map_err(|error| storage(&error))?;
    let journal = journal::open(&directory.join("journal"), home, Failure::new());
    let mut log = journal.map_err(|error| disk(&error))?;
    let written = begin_log(&mut log, header.last_log_id.expect("a first header has one"));
    log.reader().close();
    drop(log);
    written.map_err(|error| disk(&error))?;
    let io = |error: io::Error| failed("write", directory, &error);
    identity::mark(directory, &Identity::of(&options), state.level()).map_err(io)?;
    let snapshots = SnapshotStore::open_directory(&directory.join("snapshots")).map_err(io)?;
    snapshots.write(header, state).map_err(io)?;
    RestoredNote::in_directory(directory).set().map_err(io)
}

/// An empty log behind the snapshot. It says that everything up to there is purged, so that a node whose
/// snapshot is gone does not take itself for a new one; and it has a vote of that term, which no leader was
/// ever elected with.
fn begin_log(log: &mut impl Disk, last: LogId) -> Result<(), DiskError> {
    let mut entries: u64 = 0;
    log.load(&mut |_| entries += 1)?;
    assert!(entries == 0, "a new log has no entries");
    let vote = Vote::new(last.leader_id.term, last.leader_id.node_id);
    log.write(&[Change::Vote(vote), Change::Purge(last), Change::Committed(last)])?;
    log.sync()?;
    // So that damage of what was just written cannot be taken for a write that was never finished.
    log.rest().map(|_| ())
}

/// Gives the directory its name, durably.
fn put_in_place(unfinished: &Path, data: &Path) -> Result<(), Error> {
    let parent = match data.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let done = File::open(unfinished)
        .and_then(|directory| directory.sync_all())
        // An empty directory of that name is replaced; one that got something meanwhile is not.
        .and_then(|()| fs::rename(unfinished, data))
        .and_then(|()| File::open(parent)?.sync_all());
    done.map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => Error::Used(format!(
            "T5201 restore-used: {} is not empty any more; nothing in it was touched",
            data.display()
        )),
        ErrorKind::ResourceBusy | ErrorKind::CrossesDevices => Error::Io(format!(
            "T5203 restore-io: {} is a mount point and cannot be replaced: {error}; name a directory in it",
            data.display()
        )),
        _ => failed("name", data, &error),
    })
}

fn failed(action: &str, place: &Path, error: &io::Error) -> Error {
    Error::Io(format!(
        "T5203 restore-io: cannot {action} {}: {error}; check that its parent exists, its permissions and the free \
         space",
        place.display()
    ))
}

fn storage(error: &StartError) -> Error {
    Error::Io(error.to_string())
}

fn disk(error: &DiskError) -> Error {
    Error::Io(error.to_string())
}

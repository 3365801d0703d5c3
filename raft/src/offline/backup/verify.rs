//! Everything that a backup promises, checked without a cluster.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId, Term, TimeMs};
use tripod_state::snapshot::Counts;

use super::file::Content;
use super::pace::Pace;
use super::{Error, ReadOnlyFile};
use crate::disk::Blob;
use crate::snapshot::{self, Header, SnapshotError};

/// Bytes at the end of a file that are the hash of everything before the last frame.
const HASH_BYTES: usize = 8;

/// What a whole file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Version of the layout.
    pub format: u32,
    /// The cluster that it was saved in.
    pub cluster_id: String,
    /// The last entry in it.
    pub index: LogIndex,
    /// The term of that entry.
    pub term: Term,
    /// The voters as of that entry, with the addresses of their peer transport.
    pub voters: Vec<(NodeId, String)>,
    /// The log's time at that entry.
    pub now_ms: TimeMs,
    pub file_bytes: u64,
    /// xxh3 of everything before the last frame.
    pub file_hash: u64,
    /// The digest of the state in it.
    pub digest: u64,
    pub counts: Counts,
}

/// Reads a file from its beginning to its end: every checksum, every record, the hash and the state's digest.
/// Holds the state in memory. Blocks.
///
/// # Errors
/// [`Error::Damaged`], which says what is wrong and where, or [`Error::Io`].
pub fn verify(file: &Path) -> Result<Contents, Error> {
    verify_at(file, Pace::unlimited())
}

/// [`verify`] beside a node that serves.
///
/// # Errors
/// As for [`verify`].
pub fn verify_at(file: &Path, pace: Pace) -> Result<Contents, Error> {
    read(file, pace).map(|(contents, _, _)| contents)
}

/// [`verify_at`] of a content that somebody has opened; `path` is what errors call it.
///
/// # Errors
/// As for [`verify`].
pub fn verify_content(path: &Path, content: Box<dyn Content>, pace: Pace) -> Result<Contents, Error> {
    read_content(path, content, pace).map(|(contents, _, _)| contents)
}

/// [`verify`], with what was read.
pub(super) fn read(path: &Path, pace: Pace) -> Result<(Contents, Header, State), Error> {
    let file = ReadOnlyFile::open(path, pace).map_err(|error| unreadable(path, &error))?;
    read_blob(path, file)
}

/// [`verify_content`], with what was read.
pub(super) fn read_content(
    path: &Path,
    content: Box<dyn Content>,
    pace: Pace,
) -> Result<(Contents, Header, State), Error> {
    let opened = ReadOnlyFile::of(content, pace).map_err(|error| refused(path, &SnapshotError::Io(error)))?;
    read_blob(path, opened)
}

fn read_blob(path: &Path, file: Arc<dyn Blob>) -> Result<(Contents, Header, State), Error> {
    let mut counts = Counts::default();
    let whole = Arc::clone(&file);
    let read = snapshot::examine(file, &mut |record| counts.add(record));
    let (header, state) = read.map_err(|error| refused(path, &error))?;
    let (file_bytes, file_hash) = seal(&*whole).map_err(|error| unreadable(path, &error))?;
    Ok((contents(&header, &state, counts, (file_bytes, file_hash)), header, state))
}

fn contents(header: &Header, state: &State, counts: Counts, (file_bytes, file_hash): (u64, u64)) -> Contents {
    let last = header.last_log_id;
    let membership = header.membership.membership();
    let voters = membership.voter_ids().map(|voter| {
        let address = membership.get_node(&voter).map_or_else(String::new, |peer| peer.address.clone());
        (NodeId(voter), address)
    });
    Contents {
        format: header.layout(),
        cluster_id: header.cluster_id.clone(),
        index: LogIndex(last.map_or(0, |id| id.index)),
        term: Term(last.map_or(0, |id| id.leader_id.term)),
        voters: voters.collect(),
        now_ms: state.now_ms(),
        file_bytes,
        file_hash,
        digest: header.digest,
        counts,
    }
}

/// Size and hash of a file that was found whole.
fn seal(file: &dyn Blob) -> io::Result<(u64, u64)> {
    let size = file.size()?;
    let mut hash = [0; HASH_BYTES];
    file.read_at(size.saturating_sub(HASH_BYTES as u64), &mut hash)?;
    Ok((size, u64::from_le_bytes(hash)))
}

fn refused(path: &Path, error: &SnapshotError) -> Error {
    let place = path.display();
    match error {
        // What was sealed says so when it is cut or changed.
        SnapshotError::Io(error)
            if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            Error::Damaged(format!(
                "T5101 backup-damaged: {place} is not what was saved: {error}. Do not use it: take another copy of it, \
                 or an older snapshot"
            ))
        }
        SnapshotError::Io(error) => unreadable(path, error),
        SnapshotError::Version { .. } | SnapshotError::Level { .. } => Error::Damaged(format!(
            "T5102 backup-format: {place} cannot be read: {error}; use the program version that saved it, or a \
             newer one"
        )),
        SnapshotError::Magic => Error::Damaged(format!(
            "T5101 backup-damaged: {place} is no snapshot: {error}; name a file that `tripod snapshot save` wrote"
        )),
        _ => Error::Damaged(format!(
            "T5101 backup-damaged: {place} is not what was saved: {error}. Do not use it: take another copy of it, \
             or an older snapshot"
        )),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Io(format!(
        "T5104 backup-io: cannot read {}: {error}; check the path, its permissions and the disk",
        path.display()
    ))
}

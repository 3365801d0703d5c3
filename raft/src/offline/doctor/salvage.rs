//! A backup of everything that a stopped node holds: its newest snapshot, and all of its log behind that.
//!
//! Also what is not known to be committed: whoever wrote it may have been told that it was, when the nodes
//! that knew are lost. Its writers were told nothing, or that the outcome is unknown, otherwise.

use std::io;
use std::path::Path;

use openraft::EntryPayload;
use tripod_state::ids::{LogIndex, Term, TimeMs};
use tripod_state::{ApplyContext, Envelope, State};

use super::{EntryId, Error, Report, look};
use crate::base::codec;
use crate::base::types::{Entry, Membership};
use crate::disk::skipped::Skipped;
use crate::offline::backup;
use crate::snapshot::{self, Form, Header};

/// What was written to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Salvaged {
    /// The directory, as [`super::examine`] sees it.
    pub report: Report,
    pub cluster_id: String,
    /// The last entry in the file.
    pub last: EntryId,
    /// Entries in the file that the node did not know as committed.
    pub uncertain: u64,
    /// The voters, with the addresses of their peer transport.
    pub voters: Vec<(u64, String)>,
    /// Where the nodes told that clients reach them.
    pub clients: Vec<(u64, String)>,
}

/// Writes a snapshot of everything that the node of `data` holds to `out`. Blocks.
///
/// # Errors
/// [`Error`]; the directory is not changed, and what was written to `out` is of no use.
pub fn salvage(data: &Path, scratch: &Path, out: &mut dyn io::Write) -> Result<Salvaged, Error> {
    let (header, state) = newest_snapshot(data)?.unzip();
    let mut replay = Replay::new(header, state.unwrap_or_default(), super::skipped(data)?);
    let report = look(data, scratch, &mut |entry| replay.take(entry))?;
    let refused = |problem: String| {
        Error::Damaged(format!(
            "T5403 recover-damaged: {} cannot be made a backup: {problem}. Take another survivor, or a backup; \
             `tripod doctor {}` tells more",
            data.display(),
            data.display()
        ))
    };
    if !report.log_whole {
        return Err(refused(report.problems.join("; ")));
    }
    if let Some(problem) = replay.problem.take() {
        return Err(refused(problem));
    }
    let identity = report.log_identity.as_ref().and_then(|found| found["cluster_id"].as_str());
    let cluster_id = identity.ok_or_else(|| refused("it does not say to which cluster it belongs".into()))?;
    let Some(last) = replay.header.last_log_id else { return Err(refused("it holds nothing".into())) };
    replay.header.cluster_id = cluster_id.to_owned();
    replay.header.digest = replay.state.digest();
    replay.header.form = Form::of(&replay.state);
    snapshot::write_to(&mut *out, &replay.header, &replay.state).and_then(io::Write::flush).map_err(
        |error| {
            Error::Io(format!("T5104 backup-io: the backup cannot be written: {error}; check the free space"))
        },
    )?;
    let committed = report.applied_at_start;
    let membership = replay.header.membership.membership();
    let voters = membership.voter_ids().map(|voter| {
        (voter, membership.get_node(&voter).map_or_else(String::new, |peer| peer.address.clone()))
    });
    let clients = replay.state.members().into_iter().map(|(node, addresses)| (node.0, addresses.client));
    Ok(Salvaged {
        cluster_id: cluster_id.to_owned(),
        last: EntryId::of(&last),
        uncertain: last.index.saturating_sub(committed),
        voters: voters.collect(),
        clients: clients.collect(),
        report: report.clone(),
    })
}

/// The newest snapshot that is whole.
fn newest_snapshot(data: &Path) -> Result<Option<(Header, State)>, Error> {
    let place = data.join("snapshots");
    let names = super::snapshot_names(&place)?;
    Ok(names.into_iter().rev().find_map(|name| backup::read(&place.join(name)).ok()))
}

/// Applies the log to a state, as a node does when it starts.
struct Replay {
    header: Header,
    state: State,
    skipped: Skipped,
    problem: Option<String>,
}

impl Replay {
    fn new(header: Option<Header>, state: State, skipped: Skipped) -> Self {
        let header = header.unwrap_or_else(|| Header {
            cluster_id: String::new(),
            last_log_id: None,
            membership: Membership::default(),
            digest: 0,
            form: Form { level: tripod_state::level::FIRST, digest_version: State::DIGEST_VERSION },
        });
        Self { header, state, skipped, problem: None }
    }

    /// Takes the next entry, unless the snapshot has it.
    fn take(&mut self, entry: &Entry) {
        let id = entry.log_id;
        let next = self.header.last_log_id.map_or(0, |last| last.index + 1);
        if id.index < next || self.problem.is_some() {
            return;
        }
        if id.index > next {
            self.problem =
                Some(format!("the log begins at {}, but no whole snapshot reaches so far", id.index));
            return;
        }
        match &entry.payload {
            EntryPayload::Blank => {}
            EntryPayload::Membership(membership) => {
                self.header.membership = Membership::new(Some(id), membership.clone());
            }
            EntryPayload::Normal(command) => match codec::decode::<Envelope>(&command.payload) {
                Ok(envelope) => {
                    let now_ms = TimeMs(command.now_ms);
                    let term = Term(id.leader_id.term);
                    self.state.apply(&ApplyContext { index: LogIndex(id.index), term, now_ms }, envelope);
                }
                Err(_) if self.skipped.holds(id.index, &command.payload) => {}
                Err(error) => {
                    self.problem = Some(format!(
                        "the command at index {} cannot be decoded: {error}; use the program version of its cluster",
                        id.index
                    ));
                    return;
                }
            },
        }
        self.header.last_log_id = Some(id);
    }
}

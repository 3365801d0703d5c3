//! What the leader's front end keeps in memory: who was heard when. A new leader gives everybody time anew.

use bytes::Bytes;
use prost::Message as _;
use tripod_gateway::Liveness;

use super::Sign;
use super::wire::{Heard, Report};
use crate::engine::Patience;

/// Of all jobs. Empty on nodes that do not lead. A node that was heard since it is watched has a note.
#[derive(Default)]
pub(crate) struct PeerMemory {
    liveness: Liveness<Patience, ()>,
}

impl PeerMemory {
    /// Who was heard when.
    pub(crate) fn liveness(&self) -> &Liveness<Patience, ()> {
        &self.liveness
    }

    /// Answers another node's front end, or this one's.
    ///
    /// # Errors
    /// The bytes are no report.
    pub(crate) fn answer(&self, report: Bytes) -> Result<Bytes, String> {
        let report = Report::decode(report).map_err(|error| format!("signs of life: {error}"))?;
        let beats = report.beats.len() as u64;
        for Sign { job, member } in report.beats.into_iter().map(Sign::from) {
            self.liveness.hear(job, member, Some(()));
        }
        Ok(Heard { beats }.encode_to_vec().into())
    }
}

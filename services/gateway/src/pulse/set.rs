//! Sets of heartbeats: those of one agent's clients, which the leader keeps, so that the agent can say in a word which of
//! them were made again.

use std::fmt;

use bytes::Bytes;
use tripod_state::Scope;
use tripod_state::ids::{DurationMs, Incarnation, ServiceIncarnation, TaskId};

use super::{Beat, Sign};

/// Heartbeats of one set: an agent has a client for each accelerator of its host. The leader's state is locked against
/// apply while so many are looked up, as it is for a batch.
pub const BEATS_OF_A_SET_MAX: usize = 1024;

/// Whose set it is: 16 bytes that an agent has drawn and that nobody else is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BeatSession(pub [u8; 16]);

/// Which set is meant: the session has one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeatSetId {
    pub session: BeatSession,
    /// The agent's own word for what is in the set.
    pub digest: u64,
    /// How many heartbeats are in it.
    pub count: u32,
}

/// A heartbeat of a set, as [`Gateway::heartbeat`](crate::Gateway::heartbeat) is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetBeat {
    pub scope: Scope,
    pub task: TaskId,
    pub incarnation: Incarnation,
    /// When the client sends the next one, if it says so.
    pub interval: Option<DurationMs>,
}

/// What became of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetWord {
    /// It is not kept: by another leader, or no more, or there is no room.
    Unknown,
    /// It is kept, and its heartbeats are answered with this.
    Kept(ServiceIncarnation),
    /// Those that were made are heard, and each is answered as when the set was kept.
    Same,
    /// That cannot be said of all, and none was heard: each is to be told by itself.
    Differs,
}

/// What the leader is told of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetQuestion {
    pub(crate) id: BeatSetId,
    pub(crate) told: SetTold,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SetTold {
    /// What is in it, to be kept.
    Members(Vec<Beat>),
    /// Which were made again: a bit for each, the lowest bit of the first byte first. Empty: all.
    Made(Bytes),
}

impl fmt::Debug for BeatSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows it can speak for its agent.
        f.write_str("BeatSession")
    }
}

impl From<SetBeat> for Beat {
    fn from(beat: SetBeat) -> Self {
        let SetBeat { scope, task, incarnation, interval } = beat;
        Self { scope, task, incarnation, sign: Sign::Beat { interval } }
    }
}

/// Whether the heartbeat at this place of a set was made.
pub(crate) fn is_made(made: &[u8], place: usize) -> bool {
    made.is_empty() || made.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heartbeat_of_a_set_has_a_bit_and_no_bits_mean_all() {
        let places = |made: &[u8]| (0..12).filter(|place| is_made(made, *place)).collect::<Vec<_>>();
        assert_eq!(places(&[0b0000_0101, 0b0000_1000]), [0, 2, 11]);
        assert_eq!(places(&[0b1000_0000]), [7], "of those beyond nothing is said");
        assert!(places(&[0]).is_empty());
        assert_eq!(places(&[]).len(), 12);
    }

    #[test]
    fn a_session_is_shown_to_nobody() {
        assert_eq!(format!("{:?}", BeatSession([7; 16])), "BeatSession");
    }
}

//! What nodes' front ends tell the leader's. Encoded by hand-written messages: nobody else speaks this, and builds before
//! feature level 9 know no nodes of MindSpore.

use prost::Message;
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;

use super::Sign;

/// Signs of life.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Report {
    #[prost(message, repeated, tag = "1")]
    pub(super) beats: Vec<BeatOnWire>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BeatOnWire {
    #[prost(uint64, tag = "1")]
    job: u64,
    /// Of a node of a dynamic cluster.
    #[prost(uint64, tag = "2")]
    member: u64,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Heard {
    #[prost(uint64, tag = "1")]
    pub(super) beats: u64,
}

impl Report {
    pub(super) fn of(beats: impl IntoIterator<Item = Sign>) -> Self {
        Self { beats: beats.into_iter().map(BeatOnWire::from).collect() }
    }
}

impl From<Sign> for BeatOnWire {
    fn from(beat: Sign) -> Self {
        Self { job: beat.job.0, member: beat.member.0 }
    }
}

impl From<BeatOnWire> for Sign {
    fn from(wire: BeatOnWire) -> Self {
        Self { job: JobId(wire.job), member: Member(wire.member) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen, like all that nodes say to each other: another encoding is another feature level
    /// (docs/decisions/018-feature-levels.md).
    #[test]
    fn messages_of_level_9_stay_as_they_are() {
        let beats = [(300, 5), (2, 7)].map(|(job, member)| Sign { job: JobId(job), member: Member(member) });
        let bytes = Report::of(beats).encode_to_vec();
        assert_eq!(bytes, [10, 5, 8, 0xac, 2, 16, 5, 10, 4, 8, 2, 16, 7]);
        let read: Vec<Sign> = Report::decode(&bytes[..]).unwrap().beats.into_iter().map(Sign::from).collect();
        assert_eq!(read, beats);
        assert_eq!(Heard { beats: 300 }.encode_to_vec(), [8, 0xac, 2]);
    }
}

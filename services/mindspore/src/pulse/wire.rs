//! What nodes' front ends tell the leader's. Encoded by hand-written messages: nobody else speaks this, and builds before
//! feature level 9 know no nodes of MindSpore.

use bytes::Bytes;
use prost::Message;
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;
use tripod_state::mindspore::cluster::Incarnation;

use super::Beat;

/// Signs of life.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Report {
    #[prost(message, repeated, tag = "1")]
    pub(super) beats: Vec<BeatOnWire>,
    /// A question beside them.
    #[prost(message, optional, tag = "2")]
    pub(super) about: Option<About>,
}

/// What servers have answered to a switch.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct About {
    #[prost(uint64, tag = "1")]
    pub(super) job: u64,
    #[prost(uint64, tag = "2")]
    pub(super) switch: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BeatOnWire {
    #[prost(uint64, tag = "1")]
    job: u64,
    #[prost(uint64, tag = "2")]
    member: u64,
    /// Of a node of a parameter server's cluster. A build that does not know it takes the node for one of a dynamic
    /// cluster, where no node has that number, and hears nobody.
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
}

/// Whose sign of life it is, if that is known.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Process {
    #[prost(uint64, optional, tag = "1")]
    incarnation: Option<u64>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Heard {
    #[prost(uint64, tag = "1")]
    pub(super) beats: u64,
    /// To what was asked beside them.
    #[prost(message, repeated, tag = "2")]
    pub(super) answers: Vec<Said>,
}

/// What one server has answered.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Said {
    #[prost(uint32, tag = "1")]
    pub(super) rank: u32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) text: Bytes,
}

impl Report {
    pub(super) fn of(beats: impl IntoIterator<Item = Beat>) -> Self {
        Self { beats: beats.into_iter().map(BeatOnWire::from).collect(), about: None }
    }

    pub(super) fn about(job: JobId, switch: u64) -> Self {
        Self { beats: Vec::new(), about: Some(About { job: job.0, switch }) }
    }
}

impl From<Beat> for BeatOnWire {
    fn from(beat: Beat) -> Self {
        match beat {
            Beat::Topology { job, member } => Self { job: job.0, member: member.0, process: None },
            Beat::Cluster { job, member, incarnation } => {
                let process = Process { incarnation: incarnation.map(|process| process.0) };
                Self { job: job.0, member: member.0, process: Some(process) }
            }
        }
    }
}

impl From<BeatOnWire> for Beat {
    fn from(wire: BeatOnWire) -> Self {
        let (job, member) = (JobId(wire.job), Member(wire.member));
        match wire.process {
            None => Self::Topology { job, member },
            Some(process) => Self::Cluster { job, member, incarnation: process.incarnation.map(Incarnation) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen, like all that nodes say to each other: another encoding is another feature level
    /// (docs/decisions/018-feature-levels.md).
    #[test]
    fn messages_of_level_9_stay_as_they_are() {
        let of = |(job, member)| Beat::Topology { job: JobId(job), member: Member(member) };
        let beats = [(300, 5), (2, 7)].map(of);
        let bytes = Report::of(beats).encode_to_vec();
        assert_eq!(bytes, [10, 5, 8, 0xac, 2, 16, 5, 10, 4, 8, 2, 16, 7]);
        let read: Vec<Beat> = Report::decode(&bytes[..]).unwrap().beats.into_iter().map(Beat::from).collect();
        assert_eq!(read, beats);
        assert_eq!(Heard { beats: 300, answers: Vec::new() }.encode_to_vec(), [8, 0xac, 2]);
        assert_eq!(Report::about(JobId(2), 9).encode_to_vec(), [18, 4, 8, 2, 16, 9]);
        let answers = vec![Said { rank: 1, text: Bytes::from_static(b"{}") }];
        assert_eq!(Heard { beats: 0, answers }.encode_to_vec(), [18, 6, 8, 1, 18, 2, b'{', b'}']);
    }

    #[test]
    fn a_beat_of_a_parameter_servers_node_says_so_whether_or_not_its_process_is_known() {
        let of = |incarnation| Beat::Cluster { job: JobId(2), member: Member(7), incarnation };
        for (beat, bytes) in [
            (of(None), &[10, 6, 8, 2, 16, 7, 26, 0][..]),
            (of(Some(Incarnation(9))), &[10, 8, 8, 2, 16, 7, 26, 2, 8, 9]),
        ] {
            assert_eq!(Report::of([beat]).encode_to_vec(), bytes);
            let read: Vec<Beat> = Report::decode(bytes).unwrap().beats.into_iter().map(Beat::from).collect();
            assert_eq!(read, [beat]);
        }
    }
}

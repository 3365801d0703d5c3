//! What nodes' front ends tell the leader's of peers, and what it answers. Encoded by hand-written messages: nobody
//! else speaks this, and an older build answers nothing to it.

use bytes::Bytes;
use prost::Message;
use tripod_gateway::BeatAnswer;
use tripod_state::ids::JobId;
use tripod_state::ray::Peer;
use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};

use super::{Beat, Unfit, Usage};

/// Signs of life, and perhaps a question.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Report {
    #[prost(message, repeated, tag = "1")]
    pub(super) beats: Vec<BeatOnWire>,
    /// The job whose stores' usage is asked for.
    #[prost(uint64, optional, tag = "2")]
    pub(super) usage_of: Option<u64>,
    /// Builds that do not know it skip it: their tasks fail where they were begun.
    #[prost(message, repeated, tag = "3")]
    pub(super) unfit: Vec<UnfitOnWire>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BeatOnWire {
    #[prost(uint64, tag = "1")]
    job: u64,
    #[prost(bool, tag = "2")]
    is_store: bool,
    #[prost(uint64, tag = "3")]
    id: u64,
    #[prost(message, optional, tag = "4")]
    usage: Option<UsageOnWire>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UsageOnWire {
    #[prost(uint64, tag = "1")]
    used_bytes: u64,
    #[prost(uint64, tag = "2")]
    capacity_bytes: u64,
    #[prost(uint64, tag = "3")]
    spilled_bytes: u64,
}

/// An object cannot come to a store.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UnfitOnWire {
    #[prost(uint64, tag = "1")]
    job: u64,
    #[prost(uint64, tag = "2")]
    object: u64,
    #[prost(uint64, tag = "3")]
    store: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Verdicts {
    /// One for each beat.
    #[prost(message, repeated, tag = "1")]
    pub(super) told: Vec<Verdict>,
    #[prost(message, repeated, tag = "2")]
    pub(super) usage: Vec<StoreUsage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Verdict {
    #[prost(bool, tag = "1")]
    watched: bool,
    #[prost(uint64, tag = "2")]
    ttl_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoreUsage {
    #[prost(uint64, tag = "1")]
    pub(super) store: u64,
    #[prost(message, required, tag = "2")]
    pub(super) usage: UsageOnWire,
}

impl Report {
    pub(super) fn of(beats: impl IntoIterator<Item = Beat>) -> Self {
        Self { beats: beats.into_iter().map(BeatOnWire::from).collect(), ..Self::default() }
    }

    pub(super) fn of_unfit(unfit: impl IntoIterator<Item = Unfit>) -> Self {
        Self { unfit: unfit.into_iter().map(UnfitOnWire::from).collect(), ..Self::default() }
    }

    pub(super) fn encode(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

impl From<Beat> for BeatOnWire {
    fn from(beat: Beat) -> Self {
        let (is_store, id) = match beat.peer {
            Peer::Worker(worker) => (false, worker.0),
            Peer::Store(store) => (true, store.0),
        };
        Self { job: beat.job.0, is_store, id, usage: beat.usage.map(UsageOnWire::from) }
    }
}

impl From<BeatOnWire> for Beat {
    fn from(wire: BeatOnWire) -> Self {
        let peer =
            if wire.is_store { Peer::Store(StoreId(wire.id)) } else { Peer::Worker(WorkerId(wire.id)) };
        Self { job: JobId(wire.job), peer, usage: wire.usage.map(Usage::from) }
    }
}

impl From<Unfit> for UnfitOnWire {
    fn from(Unfit { job, object, store }: Unfit) -> Self {
        Self { job: job.0, object: object.0, store: store.0 }
    }
}

impl From<UnfitOnWire> for Unfit {
    fn from(wire: UnfitOnWire) -> Self {
        Self { job: JobId(wire.job), object: ObjectId(wire.object), store: StoreId(wire.store) }
    }
}

impl From<Usage> for UsageOnWire {
    fn from(usage: Usage) -> Self {
        let Usage { used_bytes, capacity_bytes, spilled_bytes } = usage;
        Self { used_bytes, capacity_bytes, spilled_bytes }
    }
}

impl From<UsageOnWire> for Usage {
    fn from(wire: UsageOnWire) -> Self {
        let UsageOnWire { used_bytes, capacity_bytes, spilled_bytes } = wire;
        Self { used_bytes, capacity_bytes, spilled_bytes }
    }
}

impl From<BeatAnswer> for Verdict {
    fn from(BeatAnswer { watched, ttl_ms }: BeatAnswer) -> Self {
        Self { watched, ttl_ms }
    }
}

impl From<Verdict> for BeatAnswer {
    fn from(Verdict { watched, ttl_ms }: Verdict) -> Self {
        Self { watched, ttl_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Frozen, like all that nodes say to each other: another encoding is another feature level
    /// (docs/decisions/018-feature-levels.md).
    #[test]
    fn messages_of_level_3_stay_as_they_are() {
        let usage = Usage { used_bytes: 1, capacity_bytes: 300, spilled_bytes: 3 };
        let beats = [
            Beat { job: JobId(300), peer: Peer::Worker(WorkerId(5)), usage: None },
            Beat { job: JobId(2), peer: Peer::Store(StoreId(7)), usage: Some(usage) },
        ];
        let report = Report { usage_of: Some(300), ..Report::of(beats) };
        let golden = "0a0508ac0218050a0f0802100118072207080110ac02180310ac02";
        assert_eq!(hex(&report.encode()), golden, "another encoding is another feature level");
        let told = vec![BeatAnswer { watched: true, ttl_ms: 3000 }.into(), BeatAnswer::default().into()];
        let usage = vec![StoreUsage { store: 7, usage: usage.into() }];
        let verdicts = Verdicts { told, usage };
        let golden = "0a05080110b8170a00120b08071207080110ac021803";
        assert_eq!(hex(&verdicts.encode_to_vec()), golden, "another encoding is another feature level");
    }

    /// Came after level 3 was released: a field that older builds skip, and that changes nothing of what they know.
    #[test]
    fn what_cannot_come_to_a_store_is_a_field_of_its_own() {
        let unfit = Unfit { job: JobId(300), object: ObjectId(5), store: StoreId(2) };
        let report = Report::of_unfit([unfit]);
        assert_eq!(hex(&report.encode()), "1a0708ac0210051802", "other builds read it");
        let read = Report::decode(report.encode()).unwrap();
        assert_eq!(read.unfit.into_iter().map(Unfit::from).collect::<Vec<_>>(), [unfit]);
    }

    #[test]
    fn beats_and_verdicts_round_trip() {
        let usage = Usage { used_bytes: 1, capacity_bytes: 2, spilled_bytes: 3 };
        let beats = [
            Beat { job: JobId(1), peer: Peer::Worker(WorkerId(0)), usage: None },
            Beat { job: JobId(2), peer: Peer::Store(StoreId(7)), usage: Some(usage) },
        ];
        let report = Report::decode(Report::of(beats).encode()).unwrap();
        let read: Vec<Beat> = report.beats.into_iter().map(Beat::from).collect();
        assert_eq!(read, beats);
        let told = BeatAnswer { watched: true, ttl_ms: 3000 };
        assert_eq!(
            BeatAnswer::from(Verdict::decode(Verdict::from(told).encode_to_vec().as_slice()).unwrap()),
            told
        );
    }
}

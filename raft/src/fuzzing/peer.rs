//! What nodes say to each other.

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, VoteRequest,
    VoteResponse,
};
use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer};

use crate::base::codec;
use crate::base::types::{Entry, Types, Vote};
use crate::care::divergence::Report;
use crate::care::rejoin::Question;
use crate::care::space::DiskStatus;
use crate::lead::outcome::Outcome;
use crate::peers::AppendAnswer;
use crate::peers::sanity::{Reach, answered};
use crate::peers::transfer::Offer;

/// How many kinds of messages there are.
pub const PEER_MESSAGES: u8 = 12;

/// Where the log of the node ends that hears them.
const HERE: Reach = Reach { term: 7, index: 100 };

/// A message of that kind with drawn content, as a peer sends it; `None` if what was drawn is none.
pub fn peer_message<'de, D: Deserializer<'de>>(kind: u8, drawn: D) -> Option<Vec<u8>> {
    fn made<'de, T: DeserializeOwned + Serialize, D: Deserializer<'de>>(drawn: D) -> Option<Vec<u8>> {
        T::deserialize(drawn).ok().map(|value| codec::encode(&value))
    }
    match kind % PEER_MESSAGES {
        0 => made::<AppendEntriesRequest<Types>, D>(drawn),
        1 => made::<VoteRequest<Types>, D>(drawn),
        2 => made::<TransferLeaderRequest<Types>, D>(drawn),
        3 => made::<Offer, D>(drawn),
        4 => made::<Question, D>(drawn),
        5 => made::<Report, D>(drawn),
        6 => made::<(u64, DiskStatus), D>(drawn),
        7 => made::<AppendEntriesResponse<Types>, D>(drawn),
        8 => made::<VoteResponse<Types>, D>(drawn),
        9 => made::<AppendAnswer, D>(drawn),
        10 => made::<Outcome, D>(drawn),
        _ => made::<SnapshotResponse<Types>, D>(drawn),
    }
}

/// A node hears a message of that kind: it is refused, or it is what is read when it is sent on, and the engine can count on
/// from where it ends.
///
/// # Panics
/// It does not, or cannot.
pub fn hear(kind: u8, bytes: &[u8]) {
    match kind % PEER_MESSAGES {
        0 => {
            if let Some(append) = read::<AppendEntriesRequest<Types>>(bytes)
                && HERE.append(&append).is_ok()
            {
                let ids = append.entries.iter().map(|entry| entry.log_id);
                for id in ids.chain(append.prev_log_id).chain(append.leader_commit) {
                    counts_on(id.index, id.leader_id.term);
                }
                counts_on(0, append.vote.leader_id.term);
            }
        }
        1 => {
            if let Some(asked) = read::<VoteRequest<Types>>(bytes)
                && HERE.vote(&asked.vote).and_then(|()| HERE.end(asked.last_log_id.as_ref())).is_ok()
            {
                counts_on(asked.last_log_id.map_or(0, |id| id.index), asked.vote.leader_id.term);
            }
        }
        2 => {
            if let Some(transfer) = read::<TransferLeaderRequest<Types>>(bytes)
                && HERE.vote(transfer.from_leader()).is_ok()
            {
                counts_on(0, transfer.from_leader().leader_id.term);
            }
        }
        3 => {
            if let Some(offer) = read::<Offer>(bytes)
                && HERE.vote(&offer.vote).and_then(|()| HERE.end(offer.last_log_id.as_ref())).is_ok()
            {
                counts_on(offer.last_log_id.map_or(0, |id| id.index), offer.vote.leader_id.term);
            }
        }
        4 => _ = read::<Question>(bytes),
        5 => _ = read::<Report>(bytes),
        6 => _ = read::<(u64, DiskStatus)>(bytes),
        7 => {
            if let Some(AppendEntriesResponse::HigherVote(vote)) = read::<AppendEntriesResponse<Types>>(bytes)
            {
                answer(&vote);
            }
        }
        8 => {
            if let Some(granted) = read::<VoteResponse<Types>>(bytes) {
                answer(&granted.vote);
            }
        }
        9 => {
            if let Some(AppendAnswer::HigherVote(vote)) = read::<AppendAnswer>(bytes) {
                answer(&vote);
            }
        }
        10 => _ = read::<Outcome>(bytes),
        _ => _ = read::<SnapshotResponse<Types>>(bytes),
    }
    let _ = read::<Entry>(bytes);
}

fn answer(vote: &Vote) {
    if answered(vote, HERE.term).is_ok() {
        counts_on(0, vote.leader_id.term);
    }
}

fn counts_on(index: u64, term: u64) {
    let fits = index.checked_add(1 << 32).is_some() && term.checked_add(1 << 32).is_some();
    assert!(fits, "index {index} of term {term} came through");
}

/// What is read is read again when it is written.
fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value: T = codec::decode(bytes).ok()?;
    let written = codec::encode(&value);
    let again: T =
        codec::decode(&written).unwrap_or_else(|error| panic!("it was read, and is not read again: {error}"));
    assert!(codec::encode(&again) == written, "it is written otherwise when it is read again");
    Some(value)
}

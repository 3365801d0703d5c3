//! Heartbeats of agents' clients as sets, which the leader keeps and agents tell in a word (`tripod.v1.Agents`).
//!
//! The gateway knows tasks and lives, and says with which service incarnation they are answered; agents know messages. Here
//! is what one is of the other: a set is called kept only if every client in it was answered what it would be answered now.

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use tripod_gateway::{BEATS_OF_A_SET_MAX, BeatSession, BeatSetId, Gateway, SetBeat, SetWord};
use tripod_proto::tripod::v1 as pb;
use tripod_state::Answer;
use tripod_state::ids::ServiceIncarnation;

use crate::agents::{Dialects, HEARTBEAT_L, HEARTBEAT_N, HEARTBEAT_T, heartbeat};
use crate::{l, n, t};

/// What becomes of a set.
pub(crate) async fn word(gateway: &Gateway, dialects: &Dialects, set: pb::BeatSet) -> pb::SetWord {
    let pb::BeatSet { session, digest, count, members, made } = set;
    // What has no session has no set.
    let Ok(session) = <[u8; 16]>::try_from(session.as_ref()) else { return pb::SetWord::Unknown };
    let id = BeatSetId { session: BeatSession(session), digest, count };
    if members.is_empty() {
        return told(gateway.heartbeats_again(id, made).await);
    }
    if members.len() > BEATS_OF_A_SET_MAX {
        return pb::SetWord::Unknown;
    }
    let mut beats = Vec::with_capacity(members.len());
    for member in &members {
        let Some(beat) = dialects.set_beat(member).await else { return pb::SetWord::Unknown };
        beats.push(beat);
    }
    let word = gateway.keep_heartbeats(id, beats).await;
    match word {
        // The leader would say `same` of answers that are not.
        SetWord::Kept(service) if !members.iter().all(|member| is_answered_with(member, service)) => {
            pb::SetWord::Unknown
        }
        word => told(word),
    }
}

fn told(word: SetWord) -> pb::SetWord {
    match word {
        SetWord::Unknown => pb::SetWord::Unknown,
        SetWord::Kept(_) => pb::SetWord::Kept,
        SetWord::Same => pb::SetWord::Same,
        SetWord::Differs => pb::SetWord::Differs,
    }
}

impl Dialects {
    /// `None`: it is no heartbeat, or there is no such job.
    async fn set_beat(&self, member: &pb::SetMember) -> Option<SetBeat> {
        let (message, deadline_ms) = (member.message.clone(), member.deadline_ms);
        let found = match member.path.as_str() {
            HEARTBEAT_N => self.n.set_beat(&heartbeat(message, deadline_ms).ok()?).await,
            HEARTBEAT_T => self.t.set_beat(heartbeat(message, deadline_ms).ok()?).await,
            HEARTBEAT_L => self.l.set_beat(&heartbeat(message, deadline_ms).ok()?).await,
            _ => return None,
        };
        found.ok()
    }
}

/// Whether the client of this heartbeat was answered what it is answered with this service incarnation.
fn is_answered_with(member: &pb::SetMember, service: ServiceIncarnation) -> bool {
    let answer = Answer::Registered { service };
    let expected = match member.path.as_str() {
        HEARTBEAT_N => encoded(n::Service::beat_answer(answer)),
        HEARTBEAT_T => encoded(t::Service::beat_answer(answer)),
        HEARTBEAT_L => encoded(l::Service::beat_answer(answer)),
        _ => None,
    };
    expected.is_some_and(|expected| expected == member.answer)
}

fn encoded<M: Message>(answer: Result<M, Status>) -> Option<Bytes> {
    answer.ok().map(|answer| answer.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use tripod_proto::xla::coordination as xla;

    use super::*;

    #[test]
    fn a_client_was_answered_with_one_service_incarnation_and_with_no_other() {
        let answer =
            |service_incarnation| xla::HeartbeatResponse { service_incarnation }.encode_to_vec().into();
        let member =
            |path: &str, answer| pb::SetMember { path: path.to_owned(), answer, ..Default::default() };
        let of_n = member(HEARTBEAT_N, answer(7));
        assert!(is_answered_with(&of_n, ServiceIncarnation(7)));
        assert!(!is_answered_with(&of_n, ServiceIncarnation(8)));
        assert!(is_answered_with(&member(HEARTBEAT_L, Bytes::new()), ServiceIncarnation(7)));
        assert!(!is_answered_with(&member(HEARTBEAT_L, answer(7)), ServiceIncarnation(7)));
        assert!(!is_answered_with(&member("/x/Other", answer(7)), ServiceIncarnation(7)));
    }
}

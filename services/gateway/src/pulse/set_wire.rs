//! Sets of heartbeats as they travel between two nodes' gateways.

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::tripod::peer::v1 as pb;
use tripod_proto::tripod::peer::v1::heartbeat_set_verdict::Word;
use tripod_state::ids::ServiceIncarnation;

use super::set::{BEATS_OF_A_SET_MAX, BeatSession, BeatSetId, SetQuestion, SetTold, SetWord};
use super::wire::{beat_of, heartbeat};

pub(super) fn encode_sets<'a>(sets: impl Iterator<Item = &'a SetQuestion>) -> Bytes {
    let sets = sets.map(encoded).collect();
    pb::HeartbeatBatch { beats: Vec::new(), sets }.encode_to_vec().into()
}

fn encoded(question: &SetQuestion) -> pb::HeartbeatSet {
    let BeatSetId { session, digest, count } = question.id;
    let (beats, made) = match &question.told {
        SetTold::Members(beats) => (beats.iter().copied().map(heartbeat).collect(), Bytes::new()),
        SetTold::Made(made) => (Vec::new(), made.clone()),
    };
    pb::HeartbeatSet { session: Bytes::copy_from_slice(&session.0), digest, count, beats, made }
}

/// # Errors
/// What is wrong with one.
pub(super) fn decoded(set: pb::HeartbeatSet) -> Result<SetQuestion, String> {
    let pb::HeartbeatSet { session, digest, count, beats, made } = set;
    let session = <[u8; 16]>::try_from(session.as_ref())
        .map_err(|_| format!("a set's session has {} bytes", session.len()))?;
    if beats.len() > BEATS_OF_A_SET_MAX {
        return Err(format!("a set of {} heartbeats, at most {BEATS_OF_A_SET_MAX}", beats.len()));
    }
    let id = BeatSetId { session: BeatSession(session), digest, count };
    let told = if beats.is_empty() {
        SetTold::Made(made)
    } else {
        SetTold::Members(beats.into_iter().map(beat_of).collect())
    };
    Ok(SetQuestion { id, told })
}

pub(super) fn verdict(word: SetWord) -> pb::HeartbeatSetVerdict {
    let (word, service) = match word {
        SetWord::Unknown => (Word::Unknown, None),
        SetWord::Kept(service) => (Word::Kept, Some(service.0)),
        SetWord::Same => (Word::Same, None),
        SetWord::Differs => (Word::Differs, None),
    };
    pb::HeartbeatSetVerdict { word: word.into(), service }
}

/// The leader's words on so many sets. One of an earlier build passes sets over, and so keeps none.
///
/// # Errors
/// What is wrong with the bytes.
pub(super) fn decode_words(verdicts: Bytes, expected: usize) -> Result<Vec<SetWord>, String> {
    let verdicts = pb::HeartbeatVerdicts::decode(verdicts)
        .map_err(|error| format!("verdicts on sets of heartbeats: {error}"))?
        .sets;
    if verdicts.is_empty() {
        return Ok(vec![SetWord::Unknown; expected]);
    }
    if verdicts.len() != expected {
        return Err(format!("verdicts on sets of heartbeats: {} for {expected}", verdicts.len()));
    }
    let word = |verdict: pb::HeartbeatSetVerdict| match (verdict.word(), verdict.service) {
        (Word::Kept, Some(service)) => SetWord::Kept(ServiceIncarnation(service)),
        (Word::Same, _) => SetWord::Same,
        (Word::Differs, _) => SetWord::Differs,
        (Word::Unknown | Word::Kept, _) => SetWord::Unknown,
    };
    Ok(verdicts.into_iter().map(word).collect())
}

#[cfg(test)]
mod tests {
    use tripod_state::Scope;
    use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};

    use super::super::wire::{decode_beats, encode_beats, encode_verdicts};
    use super::super::{Beat, Sign};
    use super::*;

    fn question(told: SetTold) -> SetQuestion {
        SetQuestion { id: BeatSetId { session: BeatSession([7; 16]), digest: u64::MAX, count: 2 }, told }
    }

    fn beat() -> Beat {
        let scope = Scope { job: JobId(3), service: None };
        let sign = Sign::Beat { interval: Some(DurationMs(5_000)) };
        Beat { scope, task: TaskId(1), incarnation: Incarnation(9), sign }
    }

    #[test]
    fn sets_round_trip() {
        let sets = [
            question(SetTold::Members(vec![beat(), beat()])),
            question(SetTold::Made(Bytes::from_static(&[3]))),
            question(SetTold::Made(Bytes::new())),
        ];
        let told = decode_beats(encode_sets(sets.iter())).unwrap();
        assert_eq!(told.sets, sets);
        assert!(told.beats.is_empty());
    }

    #[test]
    fn words_round_trip() {
        let words = [SetWord::Unknown, SetWord::Kept(ServiceIncarnation(0)), SetWord::Same, SetWord::Differs];
        let verdicts = encode_verdicts(std::iter::empty(), words.into_iter());
        assert_eq!(decode_words(verdicts, 4).unwrap(), words);
    }

    #[test]
    fn a_leader_of_an_earlier_build_keeps_no_set() {
        let passed_over = encode_verdicts(std::iter::empty(), std::iter::empty());
        assert_eq!(decode_words(passed_over, 2).unwrap(), [SetWord::Unknown; 2]);
    }

    #[test]
    fn another_number_of_words_is_none_and_a_broken_set_is_refused() {
        let one = encode_verdicts(std::iter::empty(), [SetWord::Same].into_iter());
        assert!(decode_words(one, 2).is_err());
        assert!(decode_words(Bytes::from_static(&[0xff; 9]), 1).is_err());
        let with = |session: &'static [u8], beats: usize| {
            let beats = vec![heartbeat(beat()); beats];
            let session = Bytes::from_static(session);
            let set = pb::HeartbeatSet { session, beats, ..pb::HeartbeatSet::default() };
            let batch = pb::HeartbeatBatch { beats: Vec::new(), sets: vec![set] };
            decode_beats(batch.encode_to_vec().into())
        };
        assert!(with(&[7; 16], BEATS_OF_A_SET_MAX).is_ok());
        assert!(with(&[7; 16], BEATS_OF_A_SET_MAX + 1).is_err());
        assert!(with(&[7; 15], 1).is_err());
    }

    #[test]
    fn sets_disturb_no_beats() {
        let told = decode_beats(encode_beats([beat()].into_iter())).unwrap();
        assert_eq!((told.beats, told.sets), (vec![beat()], Vec::new()));
    }
}

//! Batches of beats and verdicts as they travel between two nodes' gateways.

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::tripod::peer::v1 as pb;
use tripod_state::Scope;
use tripod_state::ids::{DurationMs, Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId};

use super::set::{SetQuestion, SetWord};
use super::{Beat, Sign, Suspicion, Verdict, set_wire};

/// What a node tells the leader in one message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) beats: Vec<Beat>,
    pub(crate) sets: Vec<SetQuestion>,
}

pub(super) fn encode_beats(beats: impl Iterator<Item = Beat>) -> Bytes {
    pb::HeartbeatBatch { beats: beats.map(heartbeat).collect(), sets: Vec::new() }.encode_to_vec().into()
}

pub(super) fn heartbeat(beat: Beat) -> pb::Heartbeat {
    pb::Heartbeat {
        job: beat.scope.job.0,
        service: beat.scope.service.map(|service| service.0),
        task: beat.task.0,
        incarnation: beat.incarnation.0,
        interval_ms: beat.interval().map(|interval| interval.0),
        connection: match beat.sign {
            Sign::Beat { .. } => None,
            Sign::Present { connection } | Sign::Gone { connection } => Some(connection),
        },
        gone: matches!(beat.sign, Sign::Gone { .. }),
    }
}

/// # Errors
/// What is wrong with the bytes.
pub(crate) fn decode_beats(batch: Bytes) -> Result<Told, String> {
    let batch = pb::HeartbeatBatch::decode(batch).map_err(|error| format!("heartbeat batch: {error}"))?;
    let sets = batch.sets.into_iter().map(set_wire::decoded).collect::<Result<_, _>>()?;
    Ok(Told { beats: batch.beats.into_iter().map(beat_of).collect(), sets })
}

pub(super) fn beat_of(beat: pb::Heartbeat) -> Beat {
    Beat {
        scope: Scope { job: JobId(beat.job), service: beat.service.map(ServiceIncarnation) },
        task: TaskId(beat.task),
        incarnation: Incarnation(beat.incarnation),
        sign: match beat.connection {
            None => Sign::Beat { interval: beat.interval_ms.map(DurationMs) },
            Some(connection) if beat.gone => Sign::Gone { connection },
            Some(connection) => Sign::Present { connection },
        },
    }
}

pub(crate) fn encode_verdicts(
    verdicts: impl Iterator<Item = Verdict>,
    words: impl Iterator<Item = SetWord>,
) -> Bytes {
    let verdicts = verdicts
        .map(|verdict| match verdict {
            Verdict::Alive { service, suspicion } => pb::HeartbeatVerdict {
                service: Some(service.0),
                applied_index: suspicion.map_or(0, |suspicion| suspicion.seen.0),
                suspect_ms: suspicion.map(|suspicion| suspicion.within.0),
            },
            Verdict::Look(applied) => {
                pb::HeartbeatVerdict { service: None, applied_index: applied.0, suspect_ms: None }
            }
        })
        .collect();
    let sets = words.map(set_wire::verdict).collect();
    pb::HeartbeatVerdicts { verdicts, sets }.encode_to_vec().into()
}

/// # Errors
/// What is wrong with the bytes, or that they are not one verdict a beat.
pub(super) fn decode_verdicts(verdicts: Bytes, expected: usize) -> Result<Vec<Verdict>, String> {
    let verdicts = pb::HeartbeatVerdicts::decode(verdicts)
        .map_err(|error| format!("heartbeat verdicts: {error}"))?
        .verdicts;
    if verdicts.len() != expected {
        return Err(format!("heartbeat verdicts: {} for {expected} beats", verdicts.len()));
    }
    let verdicts = verdicts.into_iter().map(|verdict| {
        let seen = LogIndex(verdict.applied_index);
        let Some(service) = verdict.service.map(ServiceIncarnation) else { return Verdict::Look(seen) };
        let within = verdict.suspect_ms.map(DurationMs);
        Verdict::Alive { service, suspicion: within.map(|within| Suspicion { within, seen }) }
    });
    Ok(verdicts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_none(sign: Sign) -> Beat {
        let scope = Scope { job: JobId(4), service: None };
        Beat { scope, task: TaskId(7), incarnation: Incarnation(0), sign }
    }

    #[test]
    fn beats_round_trip() {
        let beats = [
            Beat {
                scope: Scope { job: JobId(3), service: Some(ServiceIncarnation(0)) },
                task: TaskId(-1),
                incarnation: Incarnation(u64::MAX),
                sign: Sign::Beat { interval: Some(DurationMs(50_000)) },
            },
            of_none(Sign::Beat { interval: None }),
            of_none(Sign::Present { connection: 0 }),
            of_none(Sign::Gone { connection: u64::MAX }),
        ];
        assert_eq!(decode_beats(encode_beats(beats.into_iter())).unwrap().beats, beats);
    }

    #[test]
    fn verdicts_round_trip() {
        let service = ServiceIncarnation(0);
        let suspicion = Suspicion { within: DurationMs(0), seen: LogIndex(7) };
        let verdicts = [
            Verdict::Alive { service, suspicion: None },
            Verdict::Alive { service, suspicion: Some(suspicion) },
            Verdict::Look(LogIndex(12)),
        ];
        assert_eq!(
            decode_verdicts(encode_verdicts(verdicts.into_iter(), std::iter::empty()), 3).unwrap(),
            verdicts
        );
    }

    #[test]
    fn refuses_garbage_and_a_wrong_number_of_verdicts() {
        assert!(decode_beats(Bytes::from_static(&[0xff; 9])).is_err());
        assert!(decode_verdicts(Bytes::from_static(&[0xff; 9]), 1).is_err());
        let one = encode_verdicts([Verdict::Look(LogIndex(1))].into_iter(), std::iter::empty());
        assert!(decode_verdicts(one, 2).is_err());
    }
}

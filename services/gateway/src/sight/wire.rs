//! What a member tells of itself, as it travels between two nodes' gateways.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::tripod::peer::v1 as pb;
use tripod_state::ids::{Incarnation, JobId, LogIndex, NodeId, TaskId, Term};

use super::NodeSight;
use crate::held_processes::{HeldProcess, HeldState};
use crate::open_calls::{CallKind, CallOutcome, JobCalls, ShownCall, TaskCalls};

/// In the order of their numbers on the wire, from 1.
const KINDS: [CallKind; 7] = [
    CallKind::Registration,
    CallKind::Barrier,
    CallKind::Shutdown,
    CallKind::Devices,
    CallKind::Key,
    CallKind::Alive,
    CallKind::Tasks,
];
const OUTCOMES: [CallOutcome; 3] = [CallOutcome::Passed, CallOutcome::Refused, CallOutcome::HungUp];

pub(super) fn ask(job: JobId) -> Bytes {
    pb::SightQuestion { job_id: job.0 }.encode_to_vec().into()
}

/// # Errors
/// It is no such question.
pub(super) fn question(bytes: Bytes) -> Result<JobId, String> {
    let question = pb::SightQuestion::decode(bytes).map_err(|error| format!("a question: {error}"))?;
    Ok(JobId(question.job_id))
}

pub(super) fn encode(sight: &NodeSight) -> Bytes {
    let heard =
        sight.heard.iter().map(|(node, ago)| pb::MemberHeard { node_id: node.0, ms_ago: millis(*ago) });
    let tasks = sight.calls.tasks.iter().map(|(task, calls)| pb::TaskCalls {
        task_id: task.0,
        open: calls.open.iter().map(call).collect(),
        last: calls.last.iter().map(call).collect(),
    });
    let sight = pb::Sight {
        leader_id: sight.leader.map_or(0, |leader| leader.0),
        term: sight.term.0,
        committed_index: sight.committed.0,
        applied_index: sight.applied.0,
        contact_ms_ago: sight.contact_ago.map(millis),
        held_calls: sight.held_calls,
        flush_p99_us: sight.flush_p99.map(|p99| u64::try_from(p99.as_micros()).unwrap_or(u64::MAX)),
        flush_under_way_ms: sight.flush_under_way.map(millis),
        heard: heard.collect(),
        tasks: tasks.collect(),
        of_nobody: sight.calls.of_nobody,
        not_entered: sight.calls.not_entered,
        pause_ms: sight.pause.map(|(length, _)| millis(length)),
        pause_ended_ms_ago: sight.pause.map_or(0, |(_, ended)| millis(ended)),
        processes: sight.held.iter().map(|(task, held)| process(*task, held)).collect(),
    };
    sight.encode_to_vec().into()
}

/// # Errors
/// What is wrong with the bytes.
pub(super) fn decode(bytes: Bytes) -> Result<NodeSight, String> {
    let sight = pb::Sight::decode(bytes).map_err(|error| format!("an answer: {error}"))?;
    let heard = sight.heard.iter().map(|heard| (NodeId(heard.node_id), Duration::from_millis(heard.ms_ago)));
    let tasks = sight.tasks.iter().map(|task| {
        // A kind that a later build has added is left out.
        let shown = |calls: &[pb::WaitingCall]| calls.iter().filter_map(shown).collect();
        (TaskId(task.task_id), TaskCalls { open: shown(&task.open), last: shown(&task.last) })
    });
    Ok(NodeSight {
        leader: Some(sight.leader_id).filter(|leader| *leader != 0).map(NodeId),
        term: Term(sight.term),
        committed: LogIndex(sight.committed_index),
        applied: LogIndex(sight.applied_index),
        contact_ago: sight.contact_ms_ago.map(Duration::from_millis),
        held_calls: sight.held_calls,
        flush_p99: sight.flush_p99_us.map(Duration::from_micros),
        flush_under_way: sight.flush_under_way_ms.map(Duration::from_millis),
        heard: heard.collect(),
        calls: JobCalls {
            tasks: tasks.collect(),
            of_nobody: sight.of_nobody,
            not_entered: sight.not_entered,
        },
        pause: sight
            .pause_ms
            .map(|length| (Duration::from_millis(length), Duration::from_millis(sight.pause_ended_ms_ago))),
        held: sight.processes.iter().filter_map(held).collect(),
    })
}

fn process(task: TaskId, held: &HeldProcess) -> pb::ProcessHeld {
    pb::ProcessHeld {
        task_id: task.0,
        incarnation: held.incarnation.0,
        state: held.state.letter().to_owned(),
        waits_in: held.waits_in.clone(),
        since_ms_ago: millis(held.since),
    }
}

/// A state that a later build has added is left out.
fn held(process: &pb::ProcessHeld) -> Option<(TaskId, HeldProcess)> {
    let held = HeldProcess {
        incarnation: Incarnation(process.incarnation),
        state: HeldState::of_letter(&process.state)?,
        waits_in: process.waits_in.clone(),
        since: Duration::from_millis(process.since_ms_ago),
    };
    Some((TaskId(process.task_id), held))
}

fn call(call: &ShownCall) -> pb::WaitingCall {
    let (outcome, ended) =
        call.ended.map_or((0, Duration::ZERO), |(outcome, at)| (number(&OUTCOMES, &outcome), at));
    pb::WaitingCall {
        kind: number(&KINDS, &call.kind),
        subject: call.subject.clone(),
        since_ms_ago: millis(call.since),
        outcome,
        ended_ms_ago: millis(ended),
    }
}

fn shown(call: &pb::WaitingCall) -> Option<ShownCall> {
    let ended = match call.outcome {
        0 => None,
        outcome => Some((named(&OUTCOMES, outcome)?, Duration::from_millis(call.ended_ms_ago))),
    };
    Some(ShownCall {
        kind: named(&KINDS, call.kind)?,
        subject: call.subject.clone(),
        since: Duration::from_millis(call.since_ms_ago),
        ended,
    })
}

fn number<T: PartialEq>(all: &[T], one: &T) -> u32 {
    let place = all.iter().position(|other| other == one).expect("the list has all of them");
    u32::try_from(place + 1).expect("few")
}

fn named<T: Copy>(all: &[T], number: u32) -> Option<T> {
    all.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_as_it_was_written_and_nothing_else_is() {
        assert_eq!(question(ask(JobId(7))), Ok(JobId(7)));
        let ms = Duration::from_millis;
        let call = |kind, ended| ShownCall { kind, subject: "s".into(), since: ms(40), ended };
        let open: Vec<_> = KINDS.into_iter().map(|kind| call(kind, None)).collect();
        let last = OUTCOMES.into_iter().map(|outcome| call(CallKind::Key, Some((outcome, ms(3))))).collect();
        let calls = TaskCalls { open, last };
        let (incarnation, waits_in) = (Incarnation(7), "do_signal_stop".to_owned());
        let stopped = HeldProcess { incarnation, state: HeldState::Stopped, waits_in, since: ms(9) };
        let sight = NodeSight {
            leader: None,
            term: Term(3),
            committed: LogIndex(9),
            applied: LogIndex(8),
            contact_ago: Some(ms(4)),
            held_calls: 2,
            flush_p99: Some(Duration::from_micros(900)),
            flush_under_way: Some(ms(70)),
            heard: vec![(NodeId(2), ms(5))],
            calls: JobCalls { tasks: [(TaskId(3), calls)].into(), of_nobody: 1, not_entered: 6 },
            pause: Some((ms(2_100), ms(40))),
            held: [(TaskId(2), stopped)].into(),
        };
        assert_eq!(decode(encode(&sight)), Ok(sight));
        assert!(decode(Bytes::from_static(b"\xff")).is_err());
        let newer = pb::WaitingCall { kind: 99, ..Default::default() };
        assert_eq!(shown(&newer), None, "a later build's");
    }
}

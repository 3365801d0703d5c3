//! What happened, as messages.

use std::sync::Arc;

use tripod_gateway::{NodeEvent, NodeEventsSeen};
use tripod_proto::tripod::v1 as wire;
use tripod_state::events::{Event, JOB_BYTES_MAX, Kept, Listed, Position, What};
use tripod_state::ids::NodeId;

/// Events of one answer: all of a ring, whose events have more than a hundred bytes each.
pub(crate) const ANSWER_EVENTS_MAX: usize = 20_000;

/// Rings with their events, in the order in which those began.
pub(crate) fn answer(rings: Vec<Listed>) -> wire::EventsResponse {
    let mut events: Vec<(usize, Arc<Event>)> = Vec::new();
    let kept: Vec<Kept> = rings
        .into_iter()
        .enumerate()
        .map(|(ring, listed)| {
            events.extend(listed.events.into_iter().map(|event| (ring, event)));
            listed.kept
        })
        .collect();
    events.sort_by_key(|(ring, event)| (event.first, *ring));
    let left_out = events.len().saturating_sub(ANSWER_EVENTS_MAX);
    let shown = events.iter().skip(left_out).map(|(ring, event)| self::event(&kept[*ring], event));
    wire::EventsResponse {
        events: shown.collect(),
        rings: kept.iter().map(ring).collect(),
        left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
        ..wire::EventsResponse::default()
    }
}

/// What a node has seen itself.
pub(crate) fn of_node(
    node: NodeId,
    seen: NodeEventsSeen,
    wants: impl Fn(&NodeEvent) -> bool,
) -> wire::EventsResponse {
    let ring = wire::EventRing {
        since_ms: seen.since_ms,
        milestones_since_ms: seen.own_since_ms,
        made: seen.made,
        merged: seen.merged,
        dropped: seen.dropped,
        began_ms: seen.began_ms,
        ..wire::EventRing::default()
    };
    let event = |event: NodeEvent| {
        let NodeEvent { number, at_ms, until_ms, kind, name, text, times } = event;
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        wire::Event { number, at_ms, until_ms, kind, name, text, times, ..wire::Event::default() }
    };
    wire::EventsResponse {
        events: seen.events.into_iter().filter(|event| wants(event)).map(event).collect(),
        rings: vec![ring],
        told: true,
        of_node: node.0,
        ..wire::EventsResponse::default()
    }
}

pub(crate) fn position(position: Position) -> wire::EventPosition {
    wire::EventPosition { index: position.index.0, sequence: position.sequence }
}

fn place(kept: &Kept) -> (String, u64) {
    let known = kept.job.as_ref().map(|(id, name)| (name.to_string(), id.0));
    known.unwrap_or_default()
}

fn ring(kept: &Kept) -> wire::EventRing {
    let (job, job_id) = place(kept);
    wire::EventRing {
        job,
        job_id,
        ended: kept.ended,
        since_ms: kept.since.0,
        milestones_since_ms: kept.milestones_since.0,
        made: kept.made,
        merged: kept.merged,
        dropped: kept.dropped,
        share_bytes: JOB_BYTES_MAX,
        began_ms: kept.began.0,
    }
}

fn event(kept: &Kept, event: &Event) -> wire::Event {
    let (job, job_id) = place(kept);
    let tasks = event.tasks.ranges().iter();
    wire::Event {
        job,
        job_id,
        number: event.number,
        first: Some(position(event.first)),
        last: Some(position(event.last)),
        at_ms: event.at.0,
        until_ms: event.until.0,
        kind: event.what.kind().to_owned(),
        milestone: event.what.is_milestone(),
        tasks: tasks.map(|(first, last)| wire::TaskRange { first: first.0, last: last.0 }).collect(),
        times: event.times,
        name: event.what.name().unwrap_or_default().to_owned(),
        text: event.what.text().unwrap_or_default().to_owned(),
        detail: detail(&event.what),
    }
}

fn detail(what: &What) -> Option<wire::EventDetail> {
    let none = wire::EventDetail::default();
    Some(match what {
        What::JobCreated { tasks, .. } => wire::EventDetail { tasks: Some(*tasks), ..none },
        What::BarrierOpened { counter, first, timeout, .. } => wire::EventDetail {
            counter: Some(counter.0),
            first_task: Some(first.0),
            timeout_ms: Some(timeout.0),
            ..none
        },
        What::BarrierPassed { counter, last, after, tasks, .. } => wire::EventDetail {
            counter: Some(counter.0),
            last_task: Some(last.0),
            after_ms: Some(after.0),
            tasks: Some(*tasks),
            ..none
        },
        What::BarrierFailed { counter, .. } => wire::EventDetail { counter: Some(counter.0), ..none },
        What::TermChanged { term } => wire::EventDetail { term: Some(term.0), ..none },
        What::Drained { node, drained } => {
            wire::EventDetail { node_id: Some(node.0), drained: Some(*drained), ..none }
        }
        What::LevelChanged { from, to } => {
            wire::EventDetail { level_from: Some(from.0), level_to: Some(to.0), ..none }
        }
        What::JobNoted { .. }
        | What::JobDeleted
        | What::Registered
        | What::NewLife
        | What::Connected
        | What::Left
        | What::Ended { .. }
        | What::GivenUp
        | What::Failed { .. }
        | What::EndedByOthers { .. }
        | What::ErrorLatched { .. }
        | What::MembersChanged { .. }
        | What::WorkerLost { .. }
        | What::SchedulerTaskFailed { .. }
        | What::ObjectRebuilt { .. } => return None,
    })
}

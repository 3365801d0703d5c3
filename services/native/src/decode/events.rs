//! Which events are wanted.

use std::time::Duration;

use tonic::Status;
use tripod_gateway::NodeEvent;
use tripod_proto::tripod::v1 as wire;
use tripod_state::events::{Event, Position, What};
use tripod_state::ids::{LogIndex, TaskId, TimeMs};

/// Kinds that one request names.
const KINDS_MAX: usize = 32;
/// How long one node has a call wait.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// What an event must be to be wanted.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) since: TimeMs,
    pub(crate) until: Option<TimeMs>,
    pub(crate) task: Option<TaskId>,
    pub(crate) kinds: Vec<&'static str>,
    /// Changed behind that.
    pub(crate) after: Option<Position>,
    pub(crate) milestones_only: bool,
}

impl Filter {
    /// Of what a node has seen, which is of no task.
    pub(crate) fn wants_of_node(&self, event: &NodeEvent) -> bool {
        event.until_ms >= self.since.0
            && self.until.is_none_or(|until| event.at_ms <= until.0)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| *kind == event.kind))
    }

    pub(crate) fn wants(&self, event: &Event) -> bool {
        event.until >= self.since
            && self.until.is_none_or(|until| event.at <= until)
            && self.task.is_none_or(|task| event.tasks.is_empty() || event.tasks.contains(task))
            && (self.kinds.is_empty() || self.kinds.contains(&event.what.kind()))
            && self.after.is_none_or(|after| event.last > after)
            && (!self.milestones_only || event.what.is_milestone())
    }
}

/// A filter of the wire.
pub(crate) fn filter(filter: Option<wire::EventFilter>) -> Result<Filter, Status> {
    filter_of(filter, &What::KINDS)
}

/// The same for what a node has seen.
pub(crate) fn node_filter(filter: Option<wire::EventFilter>) -> Result<Filter, Status> {
    filter_of(filter, &NodeEvent::KINDS)
}

fn filter_of(filter: Option<wire::EventFilter>, all: &[&'static str]) -> Result<Filter, Status> {
    let wire::EventFilter { since_ms, until_ms, task_id, kinds } = filter.unwrap_or_default();
    if kinds.len() > KINDS_MAX {
        return Err(super::invalid("kinds", &format!("{} are more than {KINDS_MAX}", kinds.len())));
    }
    let known = |kind: String| {
        let known = all.iter().copied().find(|known| *known == kind);
        known
            .ok_or_else(|| super::invalid("kinds", &format!("`{}` is no kind of event", kind.escape_debug())))
    };
    Ok(Filter {
        since: TimeMs(since_ms),
        until: (until_ms > 0).then_some(TimeMs(until_ms)),
        task: task_id.map(TaskId),
        kinds: kinds.into_iter().map(known).collect::<Result<_, _>>()?,
        after: None,
        milestones_only: false,
    })
}

pub(crate) fn position(position: wire::EventPosition) -> Position {
    Position { index: LogIndex(position.index), sequence: position.sequence }
}

/// How long a call waits for something.
pub(crate) fn wait(wait_ms: u64) -> Duration {
    Duration::from_millis(wait_ms).min(WAIT_MAX)
}

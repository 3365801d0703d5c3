//! `tripod mindspore events`.

use serde::Serialize;
use tripod_client::wire;

use crate::view::count;

/// What `mindspore events` prints of one answer. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct EventsView {
    job: String,
    /// How many events are kept no more, since every node has them.
    missed: u64,
    /// The number of the next event.
    next: u64,
    events: Vec<EventView>,
}

#[derive(Debug, Serialize)]
struct EventView {
    number: u64,
    event: u32,
    /// `null`: it does not belong to the cluster any more.
    from: Option<String>,
    /// How many nodes do not have it yet.
    untold: u32,
}

impl EventsView {
    pub(crate) fn of(job: &str, answer: wire::MindsporeEvents) -> Self {
        let event = |event: wire::MindsporeEvent| EventView {
            number: event.number,
            event: event.event,
            from: Some(event.from).filter(|from| !from.is_empty()),
            untold: event.untold,
        };
        Self {
            job: job.to_owned(),
            missed: answer.missed,
            next: answer.next,
            events: answer.events.into_iter().map(event).collect(),
        }
    }

    /// Whether there is anything that was not told before.
    pub(crate) fn has_news(&self) -> bool {
        self.missed > 0 || !self.events.is_empty()
    }

    pub(crate) fn render(&self) -> String {
        let missed = match self.missed {
            0 => None,
            1 => Some("1 event is kept no more: every node has it".to_owned()),
            missed => Some(format!("{missed} events are kept no more: every node has them")),
        };
        let none = (!self.has_news()).then(|| format!("no event is kept; the next is {}", self.next));
        let events = self.events.iter().map(EventView::render);
        missed.into_iter().chain(none).chain(events).collect::<Vec<_>>().join("\n")
    }
}

impl EventView {
    fn render(&self) -> String {
        let Self { number, event, untold, .. } = self;
        let from = self.from.as_deref().unwrap_or("a node that is gone");
        let text = format!("{number}  event {event} from {from}");
        match untold {
            0 => text,
            untold => format!("{text}; {} not told yet", count(*untold, "node")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: wire::MindsporeEvents) -> String {
        EventsView::of("fl", answer).render()
    }

    #[test]
    fn an_event_is_a_line_and_those_that_are_gone_are_counted() {
        let event = wire::MindsporeEvent { number: 12, event: 3, from: "w0".into(), untold: 2 };
        let answer = wire::MindsporeEvents { events: vec![event], missed: 11, next: 13 };
        assert_eq!(
            shown(answer),
            "11 events are kept no more: every node has them\n12  event 3 from w0; 2 nodes not told yet"
        );
    }

    #[test]
    fn that_there_are_none_is_said() {
        let none = wire::MindsporeEvents { next: 4, ..Default::default() };
        assert_eq!(shown(none), "no event is kept; the next is 4");
    }
}

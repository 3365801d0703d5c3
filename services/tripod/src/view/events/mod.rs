//! What happened, as lines and as JSON.

mod line;
pub(crate) mod trace;

use serde::Serialize;
use tripod_client::wire;

use crate::args::moment::day_and_time;
use crate::output;

pub(crate) use line::EventLine;

/// An answer about events.
#[derive(Debug, Serialize)]
pub(crate) struct EventsView {
    #[serde(flatten)]
    pub(crate) head: HeadView,
    events: Vec<EventLine>,
}

/// What is kept, and who was asked.
#[derive(Debug, Serialize)]
pub(crate) struct HeadView {
    /// Milliseconds since the Unix epoch: since when all events are there, and since when milestones are.
    kept_since_ms: u64,
    milestones_since_ms: u64,
    merged: u64,
    dropped: u64,
    left_out: u32,
    share_bytes: u64,
    /// The node that answered: all have the same events.
    node: u64,
    index: u64,
    as_of_ms: u64,
    /// Why this is what the node remembers, and nothing newer; absent: a leader was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_memory: Option<String>,
    /// The job is gone.
    ended: bool,
    told: bool,
}

impl EventsView {
    pub(crate) fn of(answer: &wire::EventsResponse) -> Self {
        let node = (answer.of_node != 0).then_some(answer.of_node);
        let line = |event| EventLine::of(event).seen_by(node);
        Self { head: HeadView::of(answer), events: answer.events.iter().map(line).collect() }
    }

    /// What explains the others: the first thing that went wrong by itself.
    pub(crate) fn cause(&self) -> Option<&EventLine> {
        self.events.iter().find(|event| event.is_cause())
    }

    /// A head, and a line for each event; `by_job`: with the job of each.
    pub(crate) fn render(&self, by_job: bool) -> String {
        let lines = self.events.iter().map(|event| event.render(by_job));
        std::iter::once(self.head.render()).chain(lines).collect::<Vec<_>>().join("\n")
    }
}

impl HeadView {
    pub(crate) fn of(answer: &wire::EventsResponse) -> Self {
        let sum = |of: fn(&wire::EventRing) -> u64| answer.rings.iter().map(of).sum();
        let as_of = answer.as_of.clone().unwrap_or_default();
        let milestones_since_ms = since(&answer.rings, |ring| ring.milestones_since_ms);
        Self {
            // Of several rings only milestones were asked for.
            kept_since_ms: if answer.rings.len() > 1 {
                milestones_since_ms
            } else {
                since(&answer.rings, |ring| ring.since_ms)
            },
            milestones_since_ms,
            merged: sum(|ring| ring.merged),
            dropped: sum(|ring| ring.dropped),
            left_out: answer.left_out,
            share_bytes: answer.rings.first().map_or(0, |ring| ring.share_bytes),
            node: as_of.node_id,
            index: as_of.index,
            as_of_ms: as_of.now_ms,
            from_memory: answer.from_memory.then_some(as_of.why),
            ended: matches!(answer.rings.as_slice(), [ring] if ring.ended),
            told: answer.told,
        }
    }

    /// Why this may be old, if so.
    pub(crate) fn remembered(&self) -> Option<(u64, &str)> {
        self.from_memory.as_deref().map(|why| (self.node, why))
    }

    /// Whether the cluster does not tell events at all.
    pub(crate) fn is_untold(&self) -> bool {
        !self.told
    }

    pub(crate) fn render(&self) -> String {
        let since = match self.kept_since_ms {
            0 => "nothing was told yet".to_owned(),
            since => format!("kept since {}", day_and_time(since)),
        };
        let mut text = format!(
            "{since}, {} merged, {} dropped; node {} asked, 1 answered",
            self.merged, self.dropped, self.node
        );
        if self.milestones_since_ms < self.kept_since_ms {
            text.push_str(&format!("; milestones since {}", day_and_time(self.milestones_since_ms)));
        }
        if self.ended {
            text.push_str("; the job was deleted, so only its last milestones are kept");
        }
        if self.left_out > 0 {
            text.push_str(&format!("; {} older ones left out", self.left_out));
        }
        if let Some(why) = &self.from_memory {
            text.push_str(&format!(
                "; from memory as of {}: {}",
                day_and_time(self.as_of_ms),
                output::text(why)
            ));
        }
        text
    }
}

/// Since when rings are complete: behind the newest that one of them had to drop, else since the first one began.
fn since(rings: &[wire::EventRing], of: impl Fn(&wire::EventRing) -> u64) -> u64 {
    let with_gap = rings.iter().filter(|ring| of(ring) > ring.began_ms).map(&of).max();
    let began = || rings.iter().map(|ring| ring.began_ms).filter(|began| *began > 0).min();
    with_gap.or_else(began).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_loss_by_itself_is_the_cause() {
        let event = |kind: &str, number| wire::Event { kind: kind.into(), number, ..Default::default() };
        let of = |events| EventsView::of(&wire::EventsResponse { events, ..Default::default() });
        let cascade = [
            event("connected", 1),
            event("ended-by-others", 2),
            event("given-up", 3),
            event("barrier-failed", 4),
        ];
        let cause = of(cascade.to_vec()).cause().map(|cause| cause.render(false));
        assert!(cause.is_some_and(|cause| cause.contains("given-up")));
        assert!(of(cascade[..2].to_vec()).cause().is_none());
    }

    fn ring(began_ms: u64, since_ms: u64) -> wire::EventRing {
        wire::EventRing { began_ms, since_ms, ..wire::EventRing::default() }
    }

    #[test]
    fn a_ring_that_began_late_has_no_gap_and_one_that_dropped_something_has() {
        let of = |rings: &[wire::EventRing]| since(rings, |ring| ring.since_ms);
        assert_eq!((of(&[]), of(&[ring(0, 0)])), (0, 0));
        assert_eq!(of(&[ring(5, 5), ring(90, 90)]), 5);
        assert_eq!(of(&[ring(5, 5), ring(9, 70), ring(90, 90)]), 70);
    }
}

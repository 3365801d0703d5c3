//! What transcripts show of events.

use std::fmt::Write as _;

use tripod_state::State;
use tripod_state::ids::JobId;

use crate::show;

/// The events of a job, or of the cluster, with their places in the log.
pub(crate) fn look(state: &State, job: Option<JobId>, name: &str) -> String {
    let listed = match job {
        _ if name == "cluster" => Some(state.cluster_rings(|_| true)),
        Some(job) => state.events_of(job, |_| true),
        None => None,
    };
    let Some(tripod_state::events::Listed { kept, events }) = listed else {
        return "nothing is known".to_owned();
    };
    let mut said = format!("made {} merged {} dropped {}", kept.made, kept.merged, kept.dropped);
    for event in events {
        let ranges = event.tasks.ranges().iter().map(|(first, last)| format!("{first}-{last}"));
        let ranges = ranges.collect::<Vec<_>>().join(",");
        let (first, last) = (event.first, event.last);
        write!(
            said,
            "\n  #{} {}.{}..{}.{} {}..{} x{} [{ranges}] {}",
            event.number,
            first.index,
            first.sequence,
            last.index,
            last.sequence,
            event.at,
            event.until,
            event.times,
            show::plain(&event.what)
        )
        .expect("a string takes all");
    }
    said
}

//! The course that a graph takes: forward only, to one end.

use crate::check::Violation;
use crate::history::{GraphSeen, GraphState, Operation};

use super::seen::Graph;

/// Two ends, or something that came before what it had left behind.
pub(super) fn check(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    two_ends(subject, graph).or_else(|| went_back(subject, graph))
}

fn two_ends(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    let found = graph.found.iter().map(|(operation, seen)| (*operation, seen.state));
    let heard = graph.heard.iter().map(|(operation, _, seen)| (*operation, seen.state));
    let mut ends = found.chain(heard).filter(|(_, state)| state.is_end());
    let (first, end) = ends.next()?;
    let (other, _) = ends.find(|(_, other)| *other != end)?;
    let text = "it came to an end, and then to another one".to_owned();
    Some(Violation::new("two-ends", subject, text, &[first, other]))
}

fn went_back(subject: &str, graph: &Graph<'_>) -> Option<Violation> {
    let heard = graph.heard.iter().map(|(operation, _, seen)| (*operation, *seen));
    let known: Vec<(&Operation, GraphSeen)> = graph.found.iter().copied().chain(heard).collect();
    // What somebody was told had happened; who asks afterwards sees that, or more.
    for (later, seen) in &graph.found {
        for (earlier, before) in known.iter().filter(|(earlier, _)| earlier.completed < later.invoked) {
            if let Some(violation) = judge(subject, (earlier, *before), (later, *seen)) {
                return Some(violation);
            }
        }
    }
    // A stream may be late, but tells things in their order.
    for (place, (earlier, stream, before)) in graph.heard.iter().enumerate() {
        for (later, _, seen) in graph.heard[place + 1..].iter().filter(|(_, other, _)| other == stream) {
            if let Some(violation) = judge(subject, (earlier, *before), (later, *seen)) {
                return Some(violation);
            }
        }
    }
    None
}

fn judge(
    subject: &str,
    (earlier, before): (&Operation, GraphSeen),
    (later, after): (&Operation, GraphSeen),
) -> Option<Violation> {
    if !can_come_to(before.state, after.state) {
        let text = "it was in a state that it had left behind".to_owned();
        return Some(Violation::new("state-went-back", subject, text, &[earlier, later]));
    }
    match (before.progress_millionths, after.progress_millionths) {
        (Some(done), Some(less)) if less < done => {
            let text = format!("{done} millionths of it were done, and then {less}");
            Some(Violation::new("progress-fell", subject, text, &[earlier, later]))
        }
        _ => None,
    }
}

/// Whether a graph can be in the second state after it was in the first.
fn can_come_to(from: GraphState, to: GraphState) -> bool {
    let rank = |state: GraphState| match state {
        GraphState::Preparing => 0,
        GraphState::Unscheduled => 1,
        GraphState::Running => 2,
        GraphState::Cancelling => 3,
        GraphState::Succeeded | GraphState::Failed | GraphState::Cancelled => 4,
    };
    match (from, to) {
        (GraphState::Cancelling, GraphState::Succeeded) => false,
        _ if from.is_end() => from == to,
        _ => rank(from) <= rank(to),
    }
}

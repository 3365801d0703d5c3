//! Faults in words for this API: what the state machine says of them, and where there is one, the next command. The
//! coordination protocols have texts of their own; these are for people.

pub(crate) mod level;
pub(crate) mod member;
pub(crate) mod mindspore;
pub(crate) mod token;

use tripod_state::Fault;

/// A fault as one sentence without a full stop.
pub(crate) fn of(fault: &Fault) -> String {
    match fault {
        Fault::JobUnknown { name: Some(name) } => format!(
            "{}; see the jobs with `tripod job list`, or create it with `tripod job create {name} --tasks N`",
            fault.text()
        ),
        Fault::JobUnknown { name: None } => format!("{}; see the jobs with `tripod job list`", fault.text()),
        Fault::JobExists { name } => format!("{}; look at it with `tripod job show {name}`", fault.text()),
        Fault::JobSlotsTaken { .. } => {
            format!("{}; delete a job that has ended with `tripod job delete`", fault.text())
        }
        Fault::Member(refusal) => member::of_refusal(refusal),
        Fault::Level(refusal) => level::of_refusal(refusal),
        Fault::Mindspore(refusal) => mindspore::of_refusal(refusal, "JOB"),
        Fault::Token(refusal) => token::of_refusal(refusal),
        Fault::NotAuthorised(refusal) => format!("T1521 not-authorised: {}", refusal.text()),
        other => other.text(),
    }
}

/// Why a barrier failed, for those who know which one.
pub(crate) fn of_failed_barrier(fault: &Fault) -> String {
    match fault {
        Fault::Barrier { fault, .. } => fault.text(),
        other => of(other),
    }
}

/// Ids as one part of a sentence.
fn ids(ids: &[impl ToString]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

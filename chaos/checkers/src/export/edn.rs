//! Events as lines of EDN, one map each, as Jepsen writes a history: invocations and completions in the order of time.

use crate::history::{Micros, Operation, Outcome, Reply};

use super::processes::Processes;
use super::select::only_reads;

pub(super) const NIL: &str = "nil";

/// A call as two events.
#[derive(Debug)]
pub(super) struct Op {
    process: u64,
    /// The function that was called.
    f: &'static str,
    invoked: Micros,
    /// The value of the invocation, and of a completion that tells nothing more.
    asked: String,
    completed: Micros,
    ended: Ended,
    /// The value of the completion, if the call was answered.
    told: Option<String>,
}

/// How an event says that a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    /// Surely without effect.
    Fail,
    /// Perhaps with effect, and perhaps only later.
    Info,
}

impl Ended {
    pub(super) fn of(operation: &Operation) -> Self {
        match &operation.outcome {
            Outcome::Ok(Reply::Refused(_)) | Outcome::Fail(_) => Self::Fail,
            Outcome::Ok(_) => Self::Ok,
            // What changes nothing had no effect, and an open call costs a checker much.
            Outcome::Unknown(_) if only_reads(&operation.call) => Self::Fail,
            Outcome::Unknown(_) => Self::Info,
        }
    }

    fn keyword(self) -> &'static str {
        match self {
            Self::Ok => ":ok",
            Self::Fail => ":fail",
            Self::Info => ":info",
        }
    }
}

impl Op {
    /// `told`: the value of the completion if the call was answered, and is another one than `asked`.
    pub(super) fn new(
        processes: &mut Processes,
        operation: &Operation,
        f: &'static str,
        asked: String,
        told: Option<String>,
    ) -> Self {
        let ended = Ended::of(operation);
        Self {
            process: processes.of(operation),
            f,
            invoked: operation.invoked,
            asked,
            completed: operation.completed,
            ended,
            told: told.filter(|_| ended == Ended::Ok),
        }
    }
}

/// A text in quotation marks.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// All lines, and how many calls are in them.
pub(super) fn text(ops: &[Op]) -> (String, usize) {
    let mut events: Vec<(Micros, bool, &Op)> = Vec::with_capacity(ops.len() * 2);
    for op in ops {
        events.push((op.invoked, false, op));
        events.push((op.completed, true, op));
    }
    // Of one moment, invocations come first: what is called at the same time may take effect in any order.
    events.sort_by_key(|(at, completes, _)| (*at, *completes));
    let mut text = String::new();
    for (index, (at, completes, op)) in events.into_iter().enumerate() {
        let (kind, value) = if completes {
            (op.ended.keyword(), op.told.as_ref().unwrap_or(&op.asked))
        } else {
            (":invoke", &op.asked)
        };
        let Op { f, process, .. } = op;
        // Jepsen counts nanoseconds.
        let time = at.0.saturating_mul(1_000);
        text.push_str(&format!(
            "{{:type {kind}, :f :{f}, :value {value}, :process {process}, :time {time}, :index {index}}}\n"
        ));
    }
    (text, ops.len())
}

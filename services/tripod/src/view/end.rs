//! How a process ended, as it is printed.

use serde::Serialize;
use tripod_client::wire;
use tripod_state::task::How;

/// The end of a process in `job show`. A contract, as all of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EndView {
    /// How, in words.
    how: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    core_dumped: bool,
    out_of_memory: bool,
    /// By the clock of its host, since the Unix epoch.
    at_ms: u64,
    /// The last that it wrote to its standard error, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    tail: String,
}

impl EndView {
    pub(crate) fn of(end: &wire::ProcessEnd) -> Self {
        Self {
            how: how(end),
            exit_code: end.exit_code,
            signal: end.signal,
            core_dumped: end.core_dumped,
            out_of_memory: end.out_of_memory,
            at_ms: end.at_ms,
            tail: end.tail.clone(),
        }
    }

    pub(crate) fn how(&self) -> &str {
        &self.how
    }
}

/// What became of the process: words behind its name, the same as the other tasks are told.
pub(crate) fn how(end: &wire::ProcessEnd) -> String {
    let &wire::ProcessEnd { exit_code, signal, core_dumped, out_of_memory, .. } = end;
    let how = match (exit_code, signal) {
        (_, Some(signal)) => How::Signalled { signal, core_dumped, out_of_memory },
        (Some(code), None) => How::Exited { code },
        (None, None) => How::LauncherEnded,
    };
    how.to_string()
}

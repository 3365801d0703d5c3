//! The last lines of an agent's log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::output;

/// Lines that are kept: what fits on a screen beside the rest.
const LINES_MAX: usize = 6;
/// How the log begins to tell of an outage.
const OUTAGE: &str = "outage begins";

/// The last lines of a log, and what they were about. Cheap to clone; clones share the lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogTail {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<String>,
    outages: u32,
}

impl LogTail {
    /// Reads a log to its end. Warnings are passed on to standard error, or everything if `all`.
    pub(crate) async fn follow(self, log: impl AsyncRead + Unpin, all: bool) {
        let mut lines = BufReader::new(log).lines();
        // A log that cannot be read is as good as its end: there is nothing to show.
        while let Ok(Some(line)) = lines.next_line().await {
            if all || line.contains(" WARN ") || line.contains("ERROR ") {
                output::note(&format!("tripod run: agent: {line}"));
            }
            self.push(line);
        }
    }

    fn push(&self, line: String) {
        self.with(|inner| {
            inner.outages += u32::from(line.contains(OUTAGE));
            if inner.lines.len() == LINES_MAX {
                inner.lines.pop_front();
            }
            inner.lines.push_back(line);
        });
    }

    /// How often the cluster was away.
    pub(crate) fn outages(&self) -> u32 {
        self.with(|inner| inner.outages)
    }

    /// The last lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.with(|inner| inner.lines.iter().cloned().collect())
    }

    /// Lines are whole even if somebody panicked while holding them.
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_outages_counted() {
        let tail = LogTail::default();
        let log: String = (0..20).map(|n| format!("INFO line {n}\n")).collect();
        let log = format!("INFO tripod_agent: outage begins cause=\"x\"\n{log}");
        tail.clone().follow(log.as_bytes(), false).await;
        assert_eq!(tail.outages(), 1);
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, "INFO line 14"));
    }
}

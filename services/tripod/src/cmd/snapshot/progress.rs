//! How far long work has come, on standard error: every second on a terminal, every few seconds in a log.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::output;

/// Work that takes less says nothing.
const EVERY: Duration = Duration::from_secs(1);
/// The same where a line is kept.
const EVERY_IN_A_LOG: Duration = Duration::from_secs(5);
const MIB: u64 = 1 << 20;

fn every() -> Duration {
    if io::stderr().is_terminal() { EVERY } else { EVERY_IN_A_LOG }
}

/// Counts bytes, and now and then says how many.
pub(super) struct Progress {
    what: &'static str,
    about_bytes: u64,
    done_bytes: u64,
    every: Duration,
    said: Instant,
}

impl Progress {
    /// `about_bytes` is what there will be, more or less.
    pub(super) fn new(what: &'static str, about_bytes: u64) -> Self {
        Self { what, about_bytes, done_bytes: 0, every: every(), said: Instant::now() }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.done_bytes += bytes;
        if self.said.elapsed() >= self.every {
            self.said = Instant::now();
            output::note(&self.line());
        }
    }

    fn line(&self) -> String {
        let about = self.about_bytes.max(self.done_bytes);
        format!("{}: {} of about {} MiB", self.what, self.done_bytes / MIB, about.div_ceil(MIB))
    }
}

/// Says now and then for how long a file has been read, until this value goes: whoever reads it does not tell
/// how far it is.
pub(super) struct Ticker {
    _end: oneshot::Sender<()>,
}

impl Ticker {
    pub(super) fn start(what: &'static str, file: &Path) -> Self {
        let (end, mut ended) = oneshot::channel::<()>();
        let bytes = std::fs::metadata(file).map_or(0, |meta| meta.len());
        let (every, begun) = (every(), Instant::now());
        tokio::spawn(async move {
            while tokio::time::timeout(every, &mut ended).await.is_err() {
                output::note(&reading(what, bytes, begun.elapsed()));
            }
        });
        Self { _end: end }
    }
}

fn reading(what: &str, bytes: u64, since: Duration) -> String {
    format!("{what}: reading {} MiB, for {} s so far", bytes.div_ceil(MIB), since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_never_more_than_all() {
        let mut progress = Progress::new("saving", 10 * MIB);
        progress.add(4 * MIB);
        assert_eq!(progress.line(), "saving: 4 of about 10 MiB");
        progress.add(8 * MIB);
        assert_eq!(progress.line(), "saving: 12 of about 12 MiB");
    }

    #[test]
    fn a_file_that_is_read_is_told_with_its_size() {
        let text = reading("snapshot verify", 5 * MIB + 1, Duration::from_millis(7900));
        assert_eq!(text, "snapshot verify: reading 6 MiB, for 7 s so far");
    }
}

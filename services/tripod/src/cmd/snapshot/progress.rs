//! How far long work has come, on standard error.

use std::time::{Duration, Instant};

/// Work that takes less says nothing.
const EVERY: Duration = Duration::from_secs(1);
const MIB: u64 = 1 << 20;

/// Counts bytes, and says how many every second.
pub(super) struct Progress {
    what: &'static str,
    about_bytes: u64,
    done_bytes: u64,
    said: Instant,
}

impl Progress {
    /// `about_bytes` is what there will be, more or less.
    pub(super) fn new(what: &'static str, about_bytes: u64) -> Self {
        Self { what, about_bytes, done_bytes: 0, said: Instant::now() }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.done_bytes += bytes;
        if self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            eprintln!("{}", self.line());
        }
    }

    fn line(&self) -> String {
        let about = self.about_bytes.max(self.done_bytes);
        format!("{}: {} of about {} MiB", self.what, self.done_bytes / MIB, about.div_ceil(MIB))
    }
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
}

//! Everything that happens in a simulation, in one order, and its hash: equal hashes mean that two runs were
//! the same run.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use super::observation::SimTime;

/// A list of events. Only the hash grows with the run unless the lines are asked for.
#[derive(Default)]
pub struct EventLog {
    hasher: Xxh3,
    events: u64,
    lines: Option<Vec<String>>,
}

impl EventLog {
    /// `keep`: also keep the lines, to be read by people.
    #[must_use]
    pub fn new(keep: bool) -> Self {
        Self { lines: keep.then(Vec::new), ..Self::default() }
    }

    /// Notes what happened to whom.
    pub fn note(&mut self, at: SimTime, who: &str, what: fmt::Arguments<'_>) {
        let line = format!("{at:>10} {who:<5} {what}");
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        self.events += 1;
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    /// Of all events so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hasher.digest()
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The kept lines, oldest first.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events, hash {:016x}", self.events, self.hash())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: &[(u64, &str)]) -> EventLog {
        let mut log = EventLog::new(true);
        for (at, what) in events {
            log.note(SimTime(*at), "n1", format_args!("{what}"));
        }
        log
    }

    #[test]
    fn equal_runs_and_only_those_have_equal_hashes() {
        let run = log(&[(1, "leads"), (2, "crashes")]);
        assert_eq!(run.hash(), log(&[(1, "leads"), (2, "crashes")]).hash());
        for other in [&[(1, "leads")][..], &[(1, "leads"), (3, "crashes")], &[(2, "crashes"), (1, "leads")]] {
            assert_ne!(run.hash(), log(other).hash());
        }
        assert_eq!(run.events(), 2);
    }
}

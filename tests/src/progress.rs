//! What is told while tests run: every ending, and what still runs when nothing has ended for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After so long a silence it is told what runs.
const SILENCE: Duration = Duration::from_secs(60);

/// What runs, and when something was said last.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    said: Instant,
    running: BTreeMap<String, Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { said: Instant::now(), running: BTreeMap::new() }) }
    }

    /// A test begins.
    pub(crate) fn begins(&self, name: &str) {
        self.state().running.insert(name.to_owned(), Instant::now());
    }

    /// A test has ended.
    pub(crate) fn ended(&self, name: &str) {
        self.state().running.remove(name);
    }

    /// Says something at once.
    pub(crate) fn say(&self, line: &str) {
        let mut state = self.state();
        println!("{line}");
        state.said = Instant::now();
    }

    /// Tells what runs whenever nothing was said for a while, for as long as this is polled.
    pub(crate) async fn watch(&self) {
        loop {
            let left = self.state().said + SILENCE;
            tokio::time::sleep_until(left.into()).await;
            let line = self.state().after_silence(Instant::now());
            if let Some(line) = line {
                self.say(&line);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked has left nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is to be said, if nothing was said for so long.
    fn after_silence(&mut self, now: Instant) -> Option<String> {
        if now.duration_since(self.said) < SILENCE {
            return None;
        }
        self.said = now;
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by_key(|(_, since)| **since);
        let told =
            running.into_iter().map(|(name, since)| format!("{name} ({} s)", (now - *since).as_secs()));
        Some(format!("running: {}", told.collect::<Vec<_>>().join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_minute_of_silence_it_is_told_what_runs() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut state = State { said: begin, running: BTreeMap::new() };
        state.running.insert("b".to_owned(), begin);
        state.running.insert("a".to_owned(), after(30));
        assert_eq!(state.after_silence(after(59)), None);
        assert_eq!(state.after_silence(after(61)).as_deref(), Some("running: b (61 s), a (31 s)"));
        assert_eq!(state.after_silence(after(62)), None);
        state.running.remove("b");
        assert_eq!(state.after_silence(after(121)).as_deref(), Some("running: a (91 s)"));
    }

    #[test]
    fn what_ended_does_not_run() {
        let progress = Progress::new();
        progress.begins("a");
        progress.begins("b");
        progress.ended("a");
        assert_eq!(progress.state().running.keys().collect::<Vec<_>>(), ["b"]);
    }
}

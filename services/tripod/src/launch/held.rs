//! Whether the program's process runs, as Linux says it, and when that is worth telling.

use std::time::Duration;

use tokio::time::Instant;
use tripod_client::wire::ProcessState;

/// How often it is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a process that does not run is told again: nodes believe it for 15 s.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Looks in a row at which a process waits for a disk before that is told: each read does so for a moment.
const DISK_LOOKS: u32 = 3;

/// What was seen of the process, and told.
#[derive(Debug, Default)]
pub(super) struct Watch {
    in_disk: u32,
    /// When it was told last that it does not run; `None`: it is not told so, or runs again.
    told: Option<Instant>,
}

impl Watch {
    /// What is to be told after a look; `None`: nothing. An empty state says that it runs again.
    pub(super) fn look(&mut self, now: Instant, seen: Option<ProcessState>) -> Option<ProcessState> {
        let state = seen.as_ref().map_or("", |seen| seen.state.as_str());
        self.in_disk = if state == "D" { self.in_disk.saturating_add(1) } else { 0 };
        let is_held = matches!(state, "T" | "t") || self.in_disk >= DISK_LOOKS;
        if !is_held {
            return self.told.take().map(|_| ProcessState::default());
        }
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < TELL_EVERY) {
            return None;
        }
        self.told = Some(now);
        seen
    }
}

/// How the process with that number is; `None`: there is none.
pub(super) fn process(pid: u32) -> Option<ProcessState> {
    if pid == 0 {
        return None;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = letter(&stat)?.to_owned();
    // `0` says that it runs, or that this user may not know.
    let waits_in = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let waits_in = Some(waits_in.trim()).filter(|name| *name != "0").unwrap_or_default().to_owned();
    Some(ProcessState { state, waits_in })
}

/// The state in a line of `stat`. The name of the program stands before it in brackets, and may hold anything.
fn letter(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_behind_the_last_bracket() {
        assert_eq!(letter("4711 (a) b (c) T 1 2"), Some("T"));
        assert_eq!((letter("4711 (x)"), letter("")), (None, None));
        let own = process(std::process::id()).expect("this process");
        assert!(["R", "S", "D"].contains(&own.state.as_str()), "{own:?}");
        assert_eq!(process(0), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stops_is_told_at_once_and_again_and_what_waits_for_a_disk_when_it_lasts() {
        let seen = |state: &str| Some(ProcessState { state: state.into(), ..Default::default() });
        let mut watch = Watch::default();
        let mut look = |after: u64, state: &str| {
            let now = Instant::now() + Duration::from_secs(after);
            watch.look(now, seen(state)).map(|told| told.state)
        };
        assert_eq!(look(0, "S"), None);
        assert_eq!(look(1, "T").as_deref(), Some("T"));
        assert_eq!((look(2, "T"), look(5, "T")), (None, None));
        assert_eq!(look(6, "T").as_deref(), Some("T"));
        assert_eq!(look(7, "S").as_deref(), Some(""), "it runs again");
        assert_eq!(look(8, "S"), None);
        assert_eq!((look(9, "D"), look(10, "D")), (None, None));
        assert_eq!(look(11, "D").as_deref(), Some("D"));
        let mut ended = Watch::default();
        assert_eq!(ended.look(Instant::now(), None), None);
    }
}

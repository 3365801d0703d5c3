//! What the lines of a process tell of it, in the order in which it wrote them.

use std::collections::BTreeSet;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Numbers of processes.
pub(super) type Numbers = BTreeSet<usize>;

/// A time of this machine's clock, which all processes go by, in seconds since 1970.
pub(super) type Moment = f64;

/// One process of the program, in all of its lives.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The first one first.
    pub(super) lives: Vec<Life>,
    pub(super) steps: Vec<Step>,
    /// How often `tripod run` said that it begins the program again.
    pub(super) restarts: usize,
}

/// From its registration to its death.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) pid: i32,
    /// When it was registered, and had called nobody yet.
    pub(super) begun: Moment,
    pub(super) killed: Option<Kill>,
}

/// It was alive before, and dead after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kill {
    pub(super) before: Moment,
    pub(super) after: Moment,
}

/// A step that was made.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) number: u64,
    /// With whom.
    pub(super) live: Numbers,
    /// Before it asked who is alive, and got the list.
    pub(super) asked: Moment,
    /// When it knew that all of them have made it.
    pub(super) ended: Moment,
    /// The place of the life that made it among [`History::lives`].
    pub(super) life: usize,
}

impl History {
    /// Adds what a line tells. Other programs' lines tell nothing.
    ///
    /// # Errors
    /// The example says it in other words than these tests know.
    pub(super) fn note(&mut self, line: &str) -> Result<()> {
        if line.starts_with("tripod run: ") && line.contains("it is begun again in") {
            self.restarts += 1;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return Ok(()) };
        match event["event"].as_str() {
            Some("begun") => {
                let pid = event["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
                let pid = pid.with_context(|| format!("no process id in {line}"))?;
                self.lives.push(Life { pid, begun: moment(&event, "time")?, killed: None });
            }
            Some("step") => {
                let number = event["step"].as_u64().with_context(|| format!("no step in {line}"))?;
                let live = event["live"].as_array().into_iter().flatten();
                let live = live.filter_map(|process| usize::try_from(process.as_u64()?).ok()).collect();
                let life =
                    self.lives.len().checked_sub(1).context("a step of a process that has not begun")?;
                let (asked, ended) = (moment(&event, "asked")?, moment(&event, "time")?);
                self.steps.push(Step { number, live, asked, ended, life });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Now, by the clock that the program goes by.
pub(super) fn now() -> Result<Moment> {
    let since = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
    Ok(since.as_secs_f64())
}

fn moment(event: &Value, name: &str) -> Result<Moment> {
    event[name].as_f64().with_context(|| format!("no `{name}` in {event}"))
}

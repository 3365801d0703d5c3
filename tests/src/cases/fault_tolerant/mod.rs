//! `examples/jax_fault_tolerant.py`, each process below a `tripod run` that begins it again: whoever dies, the others go on
//! without it, and with it when it is back.

mod bad_input;
mod history;
mod kills;
mod lists;
mod process;
mod program;
mod rounds;

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::cases::Given;

/// One test of a release of jax that has `live_devices`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Three processes, on the cluster that tests share.
    Kills,
    /// Five processes, and a cluster whose nodes die too.
    Rounds,
    /// Who comes back with other devices, and a job in which nobody may come back.
    BadInput,
}

impl Part {
    /// Longer than every limit inside, which say better what was late.
    pub(crate) fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Kills => 600,
            Self::Rounds => 1800,
            Self::BadInput => 400,
        })
    }

    /// Roughly what it takes on two cores, in seconds.
    pub(super) fn usual_s(self) -> u32 {
        match self {
            Self::Kills => 40,
            Self::Rounds => 270,
            Self::BadInput => 25,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kills => "fault tolerant",
            Self::Rounds => "fault tolerant rounds",
            Self::BadInput => "fault tolerant bad input",
        })
    }
}

/// Runs it.
pub(super) async fn run(given: Given<'_>, release: &str, part: Part) -> Result<String> {
    let python = given.settings.python(release)?;
    match part {
        Part::Kills => kills::run(given, python, release).await,
        Part::Rounds => rounds::run(python, given.folder).await,
        Part::BadInput => bad_input::run(given, python, release).await,
    }
}

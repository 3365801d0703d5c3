//! One session.

use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::mars::command::Labels;
use crate::mars::ids::Name;
use crate::memory::{Weigh, of_list, of_text};

/// A client's namespace for graphs, chunks and tileables.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) name: Name,
    pub(crate) labels: Labels,
    pub(crate) created: TimeMs,
    /// When its last graph ended, or it was created.
    pub(crate) last_idle: TimeMs,
    /// Derived.
    #[serde(skip)]
    pub(crate) tally: Tally,
}

/// How much a session, or a job, holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tally {
    pub(crate) graphs: u64,
    /// Those that run.
    pub(crate) running: u64,
    pub(crate) chunks: u64,
    pub(crate) uploads: u64,
    pub(crate) upload_bytes: u64,
    pub(crate) mutables: u64,
    /// What chunks take of which no task was submitted yet.
    pub(crate) waiting_bytes: u64,
}

impl Weigh for Session {
    fn outside(&self) -> u64 {
        let texts = self.labels.iter().map(|(name, value)| of_text(name.len()) + of_text(value.len()));
        texts.fold(of_list::<(String, String)>(self.labels.len()) + self.name.outside(), u64::saturating_add)
    }

    fn changing(&self) -> u64 {
        0
    }
}

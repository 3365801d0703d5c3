//! What becomes of a command that another node forwarded, as it is told to that node.

use serde::{Deserialize, Serialize};
use tripod_state::Reply;
use tripod_state::ids::LogIndex;

use crate::base::error::{Applied, JOB_FULL, ProposeError, STATE_FULL};

/// The outcome of one forwarded command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Applied(u64, Reply),
    NoLeader(String),
    Unknown(String),
    /// Or memory: builds that know no such limits say so of a disk, and the text says what it is.
    DiskFull(String),
    /// Only of a command that needs more than the first level, which only builds send that can read this.
    Level(String),
}

impl From<Result<Applied, ProposeError>> for Outcome {
    fn from(result: Result<Applied, ProposeError>) -> Self {
        match result {
            Ok(applied) => Self::Applied(applied.index.0, applied.reply),
            Err(ProposeError::Unknown(reason)) => Self::Unknown(reason),
            Err(
                ProposeError::DiskFull(reason)
                | ProposeError::JobFull(reason)
                | ProposeError::StateFull(reason),
            ) => Self::DiskFull(reason),
            Err(ProposeError::Level(reason)) => Self::Level(reason),
            // Only `Unknown` may have taken effect. That it is this node that is full or stopping
            // does not concern the asker, who will find another leader.
            Err(
                ProposeError::NoLeader(reason)
                | ProposeError::Overloaded(reason)
                | ProposeError::Stopped(reason),
            ) => Self::NoLeader(reason),
        }
    }
}

impl From<Outcome> for Result<Applied, ProposeError> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Applied(index, reply) => Ok(Applied { index: LogIndex(index), reply }),
            Outcome::NoLeader(reason) => Err(ProposeError::NoLeader(reason)),
            Outcome::Unknown(reason) => Err(ProposeError::Unknown(reason)),
            Outcome::DiskFull(reason) if reason.starts_with(JOB_FULL) => Err(ProposeError::JobFull(reason)),
            Outcome::DiskFull(reason) if reason.starts_with(STATE_FULL) => {
                Err(ProposeError::StateFull(reason))
            }
            Outcome::DiskFull(reason) => Err(ProposeError::DiskFull(reason)),
            Outcome::Level(reason) => Err(ProposeError::Level(reason)),
        }
    }
}

//! Sessions: the memory that makes a repeated command take effect once.

pub(crate) mod table;

use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, TimeMs};

/// What changes sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Answers [`crate::Answer::Session`].
    Open,
    /// Forgets the session and its replies.
    Close { session: SessionId },
    /// Proposed by the leader: closes sessions that were last used before this log time.
    ExpireIdle { before_ms: TimeMs },
}

//! What a front end is told when the cluster cannot answer.

use tripod_port::Short;
use tripod_raft::ProposeError;

/// Why the cluster could not answer. Everything else is a [`tripod_state::Reply`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Outage {
    /// There was no leader for as long as calls are held.
    #[error("no leader for {waited_ms} ms: {last}")]
    NoLeader { waited_ms: u64, last: String },
    /// The command may have taken effect, and it cannot be found out any more.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Too many calls wait on this node.
    #[error("overloaded: {0}")]
    Overloaded(String),
    /// The command would make the state grow, and the disks are full. It was not executed, and another
    /// attempt is in vain until there is room; the text names the nodes.
    #[error("{0}")]
    DiskFull(String),
    /// The command needs memory, and its job takes as much as a job may. It was not executed, and another attempt is in
    /// vain until something of the job was deleted; the text names the job and the setting.
    #[error("{0}")]
    JobFull(String),
    /// The command needs memory, and all jobs together take as much as they may. As above; the text names the largest
    /// jobs and the setting.
    #[error("{0}")]
    StateFull(String),
    /// The command needs a higher feature level than the one in force. It was not executed; the text names the
    /// nodes that hold the level down, and what to do.
    #[error("{0}")]
    Level(String),
    /// This node is stopping.
    #[error("node is stopping")]
    Stopping,
}

impl Outage {
    /// Why a question to the leader, which changes nothing, was not answered.
    pub(crate) fn of_question(error: ProposeError) -> Self {
        match error {
            ProposeError::Stopped(_) => Self::Stopping,
            error => Self::NoLeader { waited_ms: 0, last: error.to_string() },
        }
    }
}

/// There is no room on this node for what a call needs.
impl From<Short> for Outage {
    fn from(short: Short) -> Self {
        Self::Overloaded(short.to_string())
    }
}

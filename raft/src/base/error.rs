//! What became of a proposal, and why a node did not start.

use tripod_state::Reply;
use tripod_state::ids::{FeatureLevel, LogIndex, NodeId};

/// How the text of a refusal begins, for want of room in one job and in all together.
pub(crate) const JOB_FULL: &str = "T2211 job-full";
pub(crate) const STATE_FULL: &str = "T2212 state-full";

/// A committed and applied command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub index: LogIndex,
    pub reply: Reply,
}

/// Why a proposal or a read did not come through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nobody leads, or the leader cannot be reached. Nothing was sent; try again.
    #[error("no leader: {0}")]
    NoLeader(String),
    /// The command may or may not have taken effect. Only a stamped command may be sent again.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// A bounded queue is full. Nothing was sent.
    #[error("overloaded: {0}")]
    Overloaded(String),
    /// The command would make the state grow, and the disks are full. Nothing was sent; the text names
    /// the nodes.
    #[error("{0}")]
    DiskFull(String),
    /// The command needs memory, and its job takes as much as a job may. Nothing was appended; the text names the job.
    #[error("{0}")]
    JobFull(String),
    /// The command needs memory, and the state takes as much as it may. Nothing was appended; the text names the
    /// largest jobs.
    #[error("{0}")]
    StateFull(String),
    /// The command needs a higher feature level than the one in force. Nothing was appended; the text names the
    /// nodes that hold it down.
    #[error("{0}")]
    Level(String),
    /// This node is stopping, or its storage failed.
    #[error("node stopped: {0}")]
    Stopped(String),
}

/// Why a member did not say what it was asked about itself. Nothing was changed; it can be asked again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeSilence {
    /// Its port refuses connections: the process is down.
    #[error("its port refuses connections")]
    PortRefuses,
    /// It has not answered in time: frozen, overloaded, or cut off.
    #[error("it does not answer in time")]
    Silent,
    /// Its address is none.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It answers, and does not say it: an earlier build, or one that starts.
    #[error("it does not say: {0}")]
    Refuses(String),
    #[error("it is not a member")]
    NoMember,
}

/// Why a node did not start. Each names the file or port and the next step.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Identity(String),
    #[error("{0}")]
    Storage(String),
    #[error("{0}")]
    Network(String),
}

/// That a leader which knows no levels was asked for a newer command.
pub(crate) fn leader_too_old(leader: NodeId, needs: FeatureLevel) -> ProposeError {
    ProposeError::Level(format!(
        "T4401 level-low: this needs feature level {needs}, and the cluster is at 1: its leader, node {leader}, runs \
         a build that supports level 1 only; upgrade it: docs/runbooks/rolling-upgrade.md"
    ))
}

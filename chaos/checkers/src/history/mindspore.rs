//! What the nodes of MindSpore's clusters do, and what they are told by calls to their own addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Job, LifeId, NodeName, Rank, Round};

/// Among whom ranks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterRole {
    Worker,
    Server,
}

impl ClusterRole {
    fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Server => "server",
        }
    }
}

/// One process of one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterNode {
    pub job: Job,
    /// Which of the clusters that the job has one after the other.
    pub round: Round,
    pub name: NodeName,
    pub role: ClusterRole,
    pub life: LifeId,
}

/// What a node does or hears.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// It asks for a place in the cluster. [`super::Reply::Rank`], or [`super::Reply::Done`] where the answer is not the
    /// rank that it has for good.
    Join,
    /// It asks which rank it has for good. [`super::Reply::Rank`].
    ReadRank,
    /// It tells all nodes something, once. [`super::Reply::Done`].
    Tell { event: u32 },
    /// It has nothing left to do. [`super::Reply::Done`].
    Finish,
    /// Its process is ended on purpose, whatever it would still be told. [`super::Reply::Done`].
    End,
    /// It is told its rank, and who belongs to the cluster. [`super::Reply::Done`], as of the others below.
    HearMembers { rank: Rank, members: Vec<ListedNode> },
    /// It is told what a node has told all.
    HearEvent { event: u32 },
    /// It is told that all have finished.
    HearFinish,
}

/// A node in a list of all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListedNode {
    pub role: ClusterRole,
    pub rank: Rank,
    /// Empty: not told.
    pub name: NodeName,
    pub life: LifeId,
}

impl Act {
    /// As reports count it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Join => "node-joins",
            Self::ReadRank => "node-reads-rank",
            Self::Tell { .. } => "node-tells",
            Self::Finish => "node-finishes",
            Self::End => "node-ends",
            Self::HearMembers { .. } => "node-hears-members",
            Self::HearEvent { .. } => "node-hears-event",
            Self::HearFinish => "node-hears-finish",
        }
    }

    /// Whether it must be replicated before it is answered.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Join | Self::Tell { .. })
    }
}

impl fmt::Display for ClusterNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, round, name, role, life } = self;
        write!(f, "{} {name} of {job} #{round}, life {life}", role.word())
    }
}

impl fmt::Display for ListedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, rank, name, life } = self;
        write!(f, "{} {rank}: {name}, life {life}", role.word())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join => f.write_str("joins"),
            Self::ReadRank => f.write_str("reads its rank"),
            Self::Tell { event } => write!(f, "tells all {event}"),
            Self::Finish => f.write_str("finishes"),
            Self::End => f.write_str("is ended"),
            Self::HearMembers { rank, members } => {
                write!(f, "hears that it has rank {rank} among ")?;
                for (place, member) in members.iter().enumerate() {
                    write!(f, "{}{member}", if place == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::HearEvent { event } => write!(f, "hears {event}"),
            Self::HearFinish => f.write_str("hears that all have finished"),
        }
    }
}

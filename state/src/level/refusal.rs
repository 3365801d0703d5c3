//! Why a command was refused for the sake of the feature level.

use serde::{Deserialize, Serialize};

use crate::ids::{FeatureLevel, JobName, NodeId};

/// A refusal; the state is unchanged, and no session remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// The command needs a higher level than the one in force.
    TooLow {
        /// As [`super::Kind::name`] has it.
        command: String,
        needs: FeatureLevel,
        level: FeatureLevel,
    },
    /// The level was to be raised to one that is not above it.
    NotAbove { asked: FeatureLevel, level: FeatureLevel },
    /// The level was to be raised, but this node has an id and nobody has heard what it supports.
    NotHeard { node: NodeId },
    /// The level was to be pinned above where it is, or below the first.
    NoPin { asked: FeatureLevel, level: FeatureLevel },
    /// The level was to be lowered, but notes of jobs need a higher one. `jobs`: the first of them by id.
    Notes { needs: FeatureLevel, count: u64, jobs: Vec<JobName> },
    /// The level was to be lowered, but drained nodes need a higher one.
    Drained { needs: FeatureLevel, nodes: Vec<NodeId> },
    /// The level was to be lowered, but schedulers of jobs need a higher one. `jobs`: the first of them by id.
    Schedulers { needs: FeatureLevel, count: u64, jobs: Vec<JobName> },
    /// The level was to be lowered, but MindSpore clusters of jobs need a higher one. `jobs`: the first of them by id.
    Clusters { needs: FeatureLevel, count: u64, jobs: Vec<JobName> },
    /// The level was to be lowered, but schedulers of jobs have something that needs a higher one: tasks with needs,
    /// workers that say what they have, cancelled tasks, objects that were described, or tasks of graphs. `jobs`: the
    /// first of them by id.
    Scheduled { needs: FeatureLevel, count: u64, jobs: Vec<JobName> },
    /// The level was to be lowered, but sessions of jobs need a higher one. `jobs`: the first of them by id.
    Sessions { needs: FeatureLevel, count: u64, jobs: Vec<JobName> },
    /// The level was to be lowered, but nodes are to be protected at least as somebody has said, and that needs a higher one.
    Floor { needs: FeatureLevel },
}

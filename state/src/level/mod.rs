//! The feature level: which commands, records and messages every member of the cluster understands.
//!
//! A build supports levels from a lowest to a highest. The level in force is in the state; a state that does not
//! say is at the first one, like that of builds which knew no levels. Whoever leads proposes to raise it when all
//! members support more, and an operator lowers it, to go back to an older build. A command that needs more than
//! the level in force is refused by every replica alike, and nothing of that refusal is remembered: what a build
//! of the level in force cannot read must not come into the state.
//!
//! | module | what |
//! |---|---|
//! | `table` | one row for every kind of command: its name, the level that it needs, whether the state grows by it |
//! | `rule` | what commands mean otherwise from a level on |
//! | `apply` | the commands about the level, and what keeps it from being lowered |
//! | `earlier` | what is asked of a cluster whose level does not have a command yet |
//! | `replies` | which replies a build of an earlier level could not read |
//! | `refusal` | why a command was refused |

mod apply;
mod earlier;
mod refusal;
mod replies;
mod rule;
mod table;

use serde::{Deserialize, Serialize};

use crate::ids::{FeatureLevel, NodeId};

pub use refusal::Refusal;
pub use rule::Rule;
pub use table::Kind;

/// The level of builds that knew no levels.
pub const FIRST: FeatureLevel = FeatureLevel(1);
/// The highest level that a node of this build supports unless it is told otherwise.
pub const NEWEST: FeatureLevel = FeatureLevel(11);

/// What changes the level. These commands are part of level 2 and are proposed only when all members support
/// that, whatever level is in force; so they are never stamped, and no reply to one is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Proposed by the leader: all of `heard` support the level.
    Raise { to: FeatureLevel, heard: Vec<NodeId> },
    /// An operator lowers the level, or leaves it where it is, and wants it not to be raised. The second part is
    /// remembered by each node outside of the state, because a state at a low level has no room for it.
    Pin {
        level: FeatureLevel,
        /// Who wants it, for people.
        by: String,
    },
    /// An operator wants the level to be raised again when all members support more.
    Unpin { by: String },
}

/// The level in force.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Levels {
    pub(crate) level: FeatureLevel,
}

impl Default for Levels {
    fn default() -> Self {
        Self { level: FIRST }
    }
}

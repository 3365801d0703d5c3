//! The feature level on a running node: what this build supports, what the others do, when the level is raised,
//! and what is refused for its sake. What it means for commands is `tripod_state::level`.
//!
//! | module | what |
//! |---|---|
//! | `own` | what this node says that it supports |
//! | `inherit` | the pin of a node that a snapshot has told nothing of it |
//! | `survey` | what every member says, asked now |
//! | `gate` | which commands the leader takes |
//! | `keeper` | while the node runs: raises the level, on the leader, and asks for a pin, elsewhere |
//! | `handler` | takes what an operator asks |
//! | `marks` | what the data directory says of the level that it needs |

mod gate;
mod handler;
mod inherit;
mod keeper;
mod marks;
mod own;
mod survey;

use tripod_state::ids::FeatureLevel;

pub(crate) use gate::LevelGate;
pub(crate) use handler::LevelHandler;
pub use handler::{LevelError, LevelRequest, Levels, MemberLevel};
pub(crate) use marks::Marks;
pub(crate) use own::Own;
pub(crate) use survey::Survey;

/// What people call this build.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// What an operator is told of a node whose build is too old for the cluster.
pub(crate) fn too_old(node: u64, supported: FeatureLevel, level: FeatureLevel) -> String {
    format!(
        "T4402 level-old: node {node} runs a build that supports feature level {supported} at most, and the cluster \
         is at level {level}; start it with the build that the other nodes run (`tripod level show` lists them), or \
         have the level lowered first: docs/runbooks/downgrade.md"
    )
}

//! Who proposed a command, and what only the state can judge of that.
//!
//! A port that asks who calls says with a command whom its caller has proved to be, by a certificate or a token:
//! [`crate::Command::By`]. Where it does not, or the feature level has no room for it, a command is whoever's it was before.
//! Effects are authorised here and not requests: which session, which life of a task and which node a command is about the
//! state alone knows, and it refuses alike on every replica. What a role may call at all is decided before anything is proposed.
//!
//! | module | what |
//! |---|---|
//! | `who` | identities, and their paths as certificates have them |
//! | `authorise` | the rules |
//! | `registrants` | whose the present lives of tasks are |
//! | `floor` | below what no node is to serve |
//! | `refusal` | why a command was refused |

mod authorise;
mod floor;
mod refusal;
pub(crate) mod registrants;
mod who;

use serde::{Deserialize, Serialize};

use crate::command::Command;

pub use floor::{Command as IdentityCommand, Floor, Mode};
pub use refusal::Refusal;
pub use who::Identity;

/// A command, and who proposed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    pub identity: Identity,
    #[serde(deserialize_with = "crate::nesting::deserialize")]
    pub command: Command,
}

/// What a command is without what stands around it.
pub(crate) struct Taken {
    pub(crate) command: Command,
    /// Its caller's transport says that an earlier attempt was sent.
    pub(crate) retried: bool,
    /// The outermost, if there are several: that of the node that proposed it.
    pub(crate) by: Option<Identity>,
}

impl Command {
    /// The command of a caller that has proved to be this.
    #[must_use]
    pub fn by(self, identity: Identity) -> Self {
        Self::By(Box::new(By { identity, command: self }))
    }

    /// Takes off what stands around it.
    pub(crate) fn taken_apart(self) -> Taken {
        let (mut command, mut retried, mut by) = (self, false, None);
        loop {
            command = match command {
                Self::Retried(inner) => {
                    retried = true;
                    *inner
                }
                Self::By(inner) => {
                    by = by.or(Some(inner.identity));
                    inner.command
                }
                command => return Taken { command, retried, by },
            };
        }
    }

    /// The command within what stands around it.
    #[must_use]
    pub fn plain(&self) -> &Self {
        let mut command = self;
        loop {
            command = match command {
                Self::Retried(inner) => inner,
                Self::By(inner) => &inner.command,
                command => return command,
            };
        }
    }
}

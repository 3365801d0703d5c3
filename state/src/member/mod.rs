//! The nodes: which there are, what changes among them, and where they listen.
//!
//! Who votes is decided by membership entries of the log, which are the consensus engine's own. The
//! [`registry`] follows them ([`crate::State::follow_members`]) and adds what they do not hold: which
//! ids were given, and to whom, so that an id never comes back, and the one change that is under way, so that
//! whoever leads can finish it.
//!
//! | module | what |
//! |---|---|
//! | `addresses` | the nodes' public addresses, as they announced them |
//! | `change` | what an operator wants, and how it ended |
//! | `registry` | ids, and the change under way |
//! | `names` | which certificate belongs to which id |
//! | `refusal` | why a command was refused |
//! | `apply` | the commands |

mod addresses;
mod apply;
mod change;
pub(crate) mod names;
mod refusal;
pub mod registry;

use serde::{Deserialize, Serialize};

use crate::ids::{CertificateName, ChangeId, NodeId};

pub use addresses::{Addresses, HostPort};
pub use change::{Change, Ending, Finished, Open};
pub use refusal::Refusal;
pub use registry::{Claim, Listed, Node, Registry, Suffrage};

/// What changes the registry and the members' addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A node tells where it listens. Repeated at every start; the last one wins.
    Announce { node: NodeId, addresses: Addresses },
    /// Begins a change of the members, unless one is under way; the same one again goes on. Whether it
    /// is wise was judged by the leader, who proposes it.
    Begin {
        change: Change,
        /// Who wants it, for people.
        by: String,
    },
    /// A node with an empty data directory wants an id, and to be added.
    Join {
        /// `HOST:PORT` of its peer transport.
        peer: String,
        /// 64 random bits that it wrote down before it asked, so that it may ask again.
        token: u64,
    },
    /// The operator gives up on the change under way. It ends where that leaves the voters agreed.
    Cancel { change: ChangeId },
    /// The leader has done what a change asked for, or knows that it cannot be done.
    End { change: ChangeId, ending: Ending },
    /// A node is to lead nothing and to have no clients from now on, while it goes on voting; or it is to have both
    /// again. Repeated without harm.
    Drain { node: NodeId, drained: bool },
    /// A node's certificate calls it so. The first name of an id stays for as long as there is that node, and whoever takes
    /// its place has another id. Repeated without harm. Needs feature level 11.
    Bind { node: NodeId, name: CertificateName },
}

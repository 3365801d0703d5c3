//! What workers of dynamic clusters ask, and what they are told.
//!
//! | message | what it becomes | answer |
//! |---|---|---|
//! | 0 registration | a command | 3 with rank and number of nodes, or `success=false` with the reason |
//! | 1 unregistration | a command | 3 done, 4 unknown node, 5 not complete yet; the digit is the body, too |
//! | 2 heartbeat | a sign of life for the leader | 3 with state, number of nodes and how many are silent; nothing to a node that is unknown |
//! | 6 write | a command | none, when it is durable on a quorum as well |
//! | 7 read | a linearizable read | valid with name and value, or invalid with the name |
//! | 8 delete | a command | valid, or invalid if there was none |
//! | 9 host names | a linearizable read | valid with the names by rank as JSON, or invalid with none while the cluster is not complete |
//! | others | nothing | none, as upstream, where only handlers of users answer |
//!
//! | module | holds |
//! |---|---|
//! | `asked` | from a frame to what is asked |
//! | `answer` | from what the state said to a frame |
//! | `session` | one connection's messages, and which dialect they are answered in |
//! | `messages` | what waits for its turn, and how long that is of use when its client has gone |

mod answer;
mod asked;
mod messages;
mod session;

pub(crate) use self::messages::patience;
pub(crate) use self::session::Session;

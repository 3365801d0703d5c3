//! What nodes of the parameter server tell their scheduler, on the connection that they open to it. What they are told on
//! their own ports is not here.
//!
//! | command | what it becomes | answer |
//! |---|---|---|
//! | 1 REGISTER | a command | id and rank; refused: rank 4294967295, which ends a node of 2.0 |
//! | 2 HEARTBEAT | a sign of life for the leader | what the cluster does, and all nodes |
//! | 4 `FETCH_METADATA` | a linearizable read | all nodes, or to releases before 2.0 all servers |
//! | 5 FINISH, 10 `SCALE_OUT_DONE`, 11 `SCALE_IN_DONE`, 12 `SEND_EVENT` | a command | what was asked; refused: none |
//! | 15 to 23, 25 | nothing | an empty one, which says that it was not done |
//! | 0 TERMINATE | nothing | none |
//! | others | nothing | the connection ends |
//!
//! An answer has the meta of its request. Heartbeats are answered at once, whatever is held before them; all else in its
//! order.
//!
//! | module | holds |
//! |---|---|
//! | `asked` | from a frame to what is asked |
//! | `answer` | from what the state said to a frame |
//! | `release` | which of two families of releases a node is of, by what it says |
//! | `roster` | all nodes, as every heartbeat is answered |
//! | `bound` | which process a connection belongs to |
//! | `session` | one connection's messages |
//! | `conversation` | in which order they are answered |

mod answer;
mod asked;
mod bound;
mod conversation;
mod release;
mod roster;
mod session;

pub(crate) use self::answer::on_wire;
pub(crate) use self::conversation::converse;
pub(crate) use self::roster::Roster;
pub(crate) use self::session::Session;

//! Who leads, and what it takes: proposals, reads, giving the lead away, and giving it up. Knows nobody who looks after
//! a node, and no node.
//!
//! | module | what |
//! |---|---|
//! | `leadership` | who leads, as this node knows |
//! | `leader_signs` | whose appends come in |
//! | `elections` | how often leaders came |
//! | `fitness` | when a leader gives up leading |
//! | `hand_over`, `first_answer` | leadership for another node, and back if nobody takes it |
//! | `suspicion` | a leader whose process has ended is replaced at once |
//! | `submit`, `gathering`, `outcome` | proposals here, many at once, and what becomes of those of others |
//! | `leader_link`, `forward`, `batch_numbers`, `last_contact` | calls to the leader, proposals elsewhere in their order, and when it answered last |
//! | `read_index`, `held_votes` | linearizable reads, and what proves them |

mod batch_numbers;
pub(crate) mod elections;
mod first_answer;
pub(crate) mod fitness;
pub(crate) mod forward;
pub(crate) mod gathering;
pub(crate) mod hand_over;
pub(crate) mod held_votes;
pub(crate) mod last_contact;
pub(crate) mod leader_link;
pub(crate) mod leader_signs;
pub(crate) mod leadership;
pub(crate) mod outcome;
pub(crate) mod read_index;
pub(crate) mod submit;
pub(crate) mod suspicion;

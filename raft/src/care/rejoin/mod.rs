//! A voter whose data is gone comes back under its own id without doing harm.
//!
//! Raft counts on a voter to remember how it voted and what it acknowledged. One that has forgotten both,
//! and votes, can make a leader of a node that lacks acknowledged entries. So a node that starts without
//! data asks the others before it takes part in anything:
//!
//! * Nobody knows it as a node that had data, and a majority (itself included) could be asked: it is a
//!   first start, and it forms the cluster with the others, or joins those that did.
//! * Somebody does: it has lost its data. It writes that down, and keeps silent until **all** other voters
//!   have answered, none of them in a later term than a leader among them. A candidate that holds a
//!   forgotten vote of this node would be in a later term, and whatever this node acknowledged is in that
//!   leader's log. Then it takes the leader's entries, but gives no vote and does not stand for election
//!   before it has applied everything that the leader's log held at that moment.
//!
//! | module | what |
//! |---|---|
//! | `survey` | the questions, the answers, and what follows from them |
//! | `forming` | whom a node of a first start waits for |
//! | `acknowledged` | what this node remembers of the others |
//! | `older` | whether a directory is an older copy of its node's data |
//! | `marker` | the note that the data was lost, for the next start |
//! | `task` | asks, waits and opens the gate |

mod acknowledged;
mod forming;
mod marker;
mod older;
mod survey;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use acknowledged::Acknowledged;
pub(crate) use forming::Forming;
pub(crate) use marker::Marker;
pub(crate) use older::Returning;
#[cfg(test)]
pub(crate) use survey::PeerState;
pub(crate) use survey::Question;
pub(crate) use task::{Asked, Newcomer, Respondent};

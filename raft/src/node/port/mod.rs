//! The peer port: the two services that hand each message to the part that answers it, and what is looked at before.
//!
//! | module | what |
//! |---|---|
//! | `server` | opens the port, and answers peers' Raft messages |
//! | `leader_service` | answers what followers ask of the leader |
//! | `sanity` | refuses what no peer can mean |
//! | `inspect` | reads what others propose before it is appended |
//! | `teller` | who may say what the certificate of a node calls it |
//! | `seldom` | lines of the log that a caller could cause without an end |

mod inspect;
mod leader_service;
mod sanity;
mod seldom;
mod server;
mod teller;

pub(super) use inspect::Inspector;
pub(super) use leader_service::LeaderService;
pub(super) use sanity::Sanity;
pub(super) use seldom::Seldom;
pub(super) use server::{RaftService, bind, serve};

//! What is for one user of a machine: files, directories and sockets that others can neither read nor replace.
//!
//! A path says nothing about who made what is there. Names in `/tmp` can be guessed, and taken before we come; who owns
//! a directory can replace everything in it, and who may write to its parent can replace the directory. So owners are
//! looked at, and all the way up. Whom a socket serves is decided by who has connected, not by its mode alone. And whoever
//! connects takes an open file of the process, of which there are only so many.
//!
//! What this crate does not know: what the files hold, what is said over the sockets, tokio.
//!
//! Invariants:
//! * Root is no exception: a directory of another user is not ours because we could write to it.
//! * Root itself is trusted, as nothing keeps it from anything, and so is who owns `/`: in a user namespace the machine's
//!   root has another number.
//! * What is tightened is said.
//!
//! | module | what |
//! |---|---|
//! | `files` | making files and directories that nobody else reads |
//! | `tighten` | a directory of an earlier build that others may enter |
//! | `directory` | a directory of our own, or a refusal |
//! | `trusted_path` | whether others could replace what lies at a path |
//! | `connections` | how many connections a process takes, all in all and from one address |
//! | `peers` | who has connected to a socket, and who listens at one |
//! | `refused` | why something is not private |
//! | `user` | users, by their numbers |

mod connections;
mod directory;
pub mod files;
mod peers;
mod refused;
mod tighten;
mod trusted_path;
mod user;

pub use connections::{ConnectionLimits, ConnectionPermit, Connections, FILES_RESERVED, Full};
pub use directory::{Loose, PrivateDirectory};
pub use peers::{Peers, Stranger, UIDS_MAX, check_listener};
pub use refused::NotPrivate;
pub use tighten::tighten;
pub use trusted_path::{check_path, check_socket};

//! TLS below every protocol: certificates and keys from files, whom they name, how connections are protected by them, and
//! how they are replaced while a process runs.
//!
//! A process has one [`Tls`], read from a directory. Of it are made a [`ServerTls`] for each port and a [`ClientTls`] for
//! whatever connects. Both take what is current for each connection anew, so replaced files need no restart, and nothing of
//! an earlier connection is used again: no tickets, no early data.
//!
//! # What this crate does not know
//!
//! * Protocols, ports, sockets and gRPC: it wraps any byte stream. It sits between the socket and whatever reads frames.
//! * What a name may do: it says which [`Identity`](tripod_identity::Identity) a certificate proves, and whether one of
//!   that kind belongs on this port.
//!
//! # Invariants
//!
//! * A certificate counts only with a chain to a root of the kind of its name, within its dates, not revoked, for the usage
//!   that its side of the connection has, and with exactly one name of this cluster.
//! * A handshake ends within [`HANDSHAKE_TIME`].
//! * Files that do not hold together are not taken; what was current stays.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `limits` | every bound |
//! | `files`, `fault` | reading files, and what is wrong with one |
//! | `signatures` | which signatures of handshakes are believed |
//! | `roots`, `chain` | which roots are believed, and whether a certificate holds |
//! | `material` | what a process proves itself with, and whom it believes |
//! | `tls` | what is current, and how it is replaced |
//! | `server`, `server_stream`, `rewound` | the accepting side, whose handshake is made as its bytes are read |
//! | `client` | the connecting side |
//! | `believed` | what a client believes that has no certificate |
//! | `peers` | both sides between nodes |
//! | `presented` | whom the other side of a connection has proved to be |
//! | `outcome`, `handshakes` | how handshakes end, and how often each has |
//! | `port`, `mode` | what a port is for, and whether it is protected |

mod believed;
mod chain;
mod client;
mod fault;
mod files;
mod handshakes;
mod limits;
mod material;
mod mode;
mod outcome;
mod peers;
mod port;
mod presented;
mod rewound;
mod roots;
mod server;
mod server_stream;
mod signatures;
mod tls;

pub use client::{ClientStream, ClientTls};
pub use fault::Fault;
pub use files::{CERTIFICATE_FILE, CLIENT_ROOTS_FILE, KEY_FILE, REVOKED_FILE, ROOTS_FILE};
pub use handshakes::Handshakes;
pub use limits::{HANDSHAKE_TIME, RELOAD_EVERY};
pub use mode::{Mode, Unknown};
pub use outcome::{Outcome, refusal};
pub use peers::{Dialled, PeerTls};
pub use port::Port;
pub use presented::{Presented, Proved};
pub use rewound::Rewound;
pub use server::ServerTls;
pub use server_stream::ServerStream;
pub use tls::Tls;

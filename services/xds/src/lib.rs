//! xDS: a gRPC client that dials `xds:///JOB:1` is told by any node where all nodes listen for that job,
//! and to make a call again whose node went away.
//!
//! What this crate does not know: what the calls are (it never sees one), how membership and jobs are
//! replicated (it reads them through a [`tripod_gateway::Gateway`]), and on which port it is served (the
//! binary adds it to the routes of the client port).
//!
//! Invariants:
//! * Every node tells the same of the same state, under the same versions: they are made of the content.
//! * A node tells no addresses before it has seen everything that was acknowledged before it started. A
//!   port that another job has been given since would lead a client to that job.
//! * Whether a job exists decides about its endpoints only: clients do not recover from the rest's absence.
//! * An address is an IP address: gRPC refuses the whole message for a single name in it.
//! * A slow client costs one message of memory and is told the newest state next, not every one between.
//!
//! | module | what |
//! |---|---|
//! | `service` | the RPCs, and how they are mounted |
//! | `manners` | how its calls may end when their node stops |
//! | `session` | one stream: what its client asked for and was told |
//! | `kind` | the types of resources, and how jobs are named in them |
//! | `resources` | the messages |
//! | `directory` | which job is where, kept up to date |
//! | `names` | the addresses behind host names |
//! | `front_end` | xDS as the binary composes it |
//! | `bootstrap` | what a client must be given |

mod bootstrap;
mod directory;
mod front_end;
mod kind;
mod manners;
mod names;
mod resources;
mod service;
mod session;

pub use bootstrap::bootstrap;
pub use front_end::Xds;
pub use manners::MANNERS;

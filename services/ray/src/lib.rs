//! The scheduler of the Ray of August 2016, in front of the replicated one: its clients of that time, unmodified, and
//! our own, which say a little more.
//!
//! A call is decoded to a request of the domain, given to the gateway, and its answer is encoded; any node takes any
//! call. On the node that leads, the engine plans, tells workers and object stores what they are to do, and watches
//! them. `README.md` beside this crate has a table of all calls.
//!
//! # What this crate does not know
//!
//! * Rules: which worker gets a task, when an object is deallocated, what a death means. They are in
//!   `tripod_state::ray`; the engine asks the state for a plan, and the state checks it again when it comes back.
//! * Replication: who leads, what is in a log. It sees a [`tripod_gateway::Gateway`] and nothing below.
//! * Values: it looks into one only for the ids of objects.
//! * Ports, signals, files: the binary has [`Scheduler`] in its list of front ends.
//!
//! # Invariants
//!
//! * What a client sends is translated or refused; nothing ends a process, and a refusal changes nothing.
//! * A header that cannot be read refuses the call: it is never taken for none.
//! * Whatever is to be done is in the state before it is done, so that a new leader does it again: at least once. A
//!   worker of 2016 is given a task twice only by two leaders.
//! * The orders for one peer are given one after the other. Peers do not wait for each other.
//! * Signs of life stay out of the log. After an election everybody has time anew, and a pause of this process
//!   counts for nobody.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `node` | what the binary mounts and runs |
//! | `scheduler`, `store` | `/Scheduler/*` and `/ObjStore/*` of 2016 |
//! | `native`, `batch_stream`, `membership` | `tripod.v1.Ray`, `RayLine` and `Membership` |
//! | `front` | the way from a call to the gateway and back |
//! | `caller` | what a call's headers say |
//! | `admit` | whether a worker or a store may be where it says that it is |
//! | `admitted` | whether a caller may make the calls that its batch has, and be what it registers |
//! | `decode`, `batch`, `values` | requests to the domain's |
//! | `graph`, `shown`, `failed` | what is shown: to clients of 2016, to people, in the place of a failed object |
//! | `status` | the one table from refusals and outages to codes, texts and reasons |
//! | `oversize` | around services: the answer to messages that cannot be decoded |
//! | `manners` | how each call may end when its node stops |
//! | `leader` | who leads, as clients are told |
//! | `pulse` | signs of life, from any node to the leader |
//! | `engine` | what the leader does; see its page |

mod admit;
mod admitted;
mod batch;
mod batch_stream;
mod caller;
mod decode;
mod engine;
mod failed;
mod front;
mod graph;
mod leader;
mod manners;
mod membership;
mod native;
mod node;
mod oversize;
mod pulse;
mod scheduler;
mod shown;
mod status;
mod store;
mod values;

pub use engine::{Connect, Connecting, Patience};
pub use manners::MANNERS;
pub use node::{MESSAGE_BYTES_MAX, Scheduler};
pub use pulse::Usage;

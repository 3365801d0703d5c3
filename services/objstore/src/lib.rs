//! An object store: one daemon a machine that keeps objects in shared memory, for the processes of that machine and
//! for other stores.
//!
//! Processes reach it over a unix socket and get objects without a copy: small ones inside messages, large ones as
//! descriptors of sealed memory. Stores fetch objects from each other when the scheduler orders it. Cold objects go
//! to disk when memory is short. A store keeps no decision: what is to be where is the scheduler's business, and a
//! store that the scheduler gave up drops everything and begins anew under a new id.
//!
//! What this crate does not know: what is in an object (that of Mars' chunks `tripod-chunk-data` does), which tasks there are, how the scheduler decides, and how its
//! nodes agree. The command line is the binary's.
//!
//! Invariants:
//! * A finished object never changes: its memory is sealed against writing before anybody can get it.
//! * Memory and disk are never taken beyond their limits; beyond them there is a refusal.
//! * An object that somebody holds is not moved to disk.
//! * An object that became ready is reported until the scheduler has answered, in order, and counts once. Of what its maker
//!   reports the store does so only if the maker is gone, or after a while.
//! * No request ends the process: what was fatal in the store of August 2016 is an error to whoever asked.
//!
//! | module | what |
//! |---|---|
//! | `store`, `config`, `error` | starting, settings, and why it ends |
//! | `incarnation` | what belongs to one registration |
//! | `table`, `forgotten` | the states of objects, pure |
//! | `shelf` | objects: their states and bytes, room, waiting, writing |
//! | `made` | what a writer says of an object besides its bytes |
//! | `value`, `memory`, `mapping`, `spill` | bytes on the heap, in sealed memory, mapped, on disk |
//! | `service`, `tell`, `chunks` | `/ObjStore/*`, many of its calls in one, and objects as streams |
//! | `chunk_data` | its objects as chunks of tensors and frames, which `tripod-chunk-data` serves |
//! | `callers` | whose orders are taken, and who gets objects |
//! | `delivery`, `fetch`, `peers`, `rounds` | objects on their way here, and when they are given up |
//! | `local` | the protocol for processes of this machine, both sides |
//! | `relay` | messages between those processes and the cluster |
//! | `fuzzing` | both sides of that protocol, as they are fuzzed |
//! | `scheduler` | registration, heartbeats, reports |

mod callers;
mod chunk_data;
mod chunks;
mod config;
mod delivery;
mod error;
mod fetch;
mod forgotten;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod incarnation;
pub mod local;
mod made;
mod mapping;
mod memory;
mod peers;
mod relay;
mod rounds;
mod scheduler;
mod service;
mod shelf;
mod spill;
mod store;
mod table;
mod tell;
mod value;

pub use config::Config;
pub use error::Error;
pub use ids::{ObjectId, Run, StoreId};
pub use made::{Made, Teller};
pub use store::{Store, run};

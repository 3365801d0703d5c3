//! What every front end stands on (to be written).

mod backend;
mod gateway;
mod memory;

pub use backend::{Backend, Future};
pub use gateway::{Consistency, Gateway, Outage};
pub use memory::MemoryBackend;

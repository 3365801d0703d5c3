//! Workers and drivers of the scheduler, in Rust.

mod id;
pub mod value;

pub use id::ObjectId;

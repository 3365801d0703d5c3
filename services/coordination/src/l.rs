//! Dialect L, `xla.DistributedRuntimeService`: jaxlib before 0.4.14, where it does not use the
//! coordination service.
//!
//! Every call that waits says how long, or the job does, and the state has no clock: [`waiting_call`] watches
//! the time of the calls that this node holds.

mod decode;
mod encode;
mod exchange;
mod service;
pub(crate) mod status;
pub(crate) mod topology;
mod waiting_call;
mod wire;

pub(crate) use service::Service;

//! Stores as a scheduler, other stores and processes of the same machine see them: over the wire, with a scheduler
//! that does as it is told.

mod bench;
mod callers;
mod chunks;
mod delivery;
mod hostile;
mod local;
mod peer;
mod relay;
mod reports;
mod scheduler;
mod service;
mod support;

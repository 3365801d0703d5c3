//! Values of flags that more than one command takes, and how they are written.

pub(crate) mod added;
pub(crate) mod audit_flags;
pub(crate) mod backup_flags;
pub(crate) mod host_port;
pub(crate) mod initial;
pub(crate) mod job_flags;
pub(crate) mod lifetime;
pub(crate) mod members;
pub(crate) mod memory_flags;
pub(crate) mod moment;
pub(crate) mod newcomer;
pub(crate) mod port_range;
pub(crate) mod seconds;
pub(crate) mod state_flags;
pub(crate) mod timing;
pub(crate) mod tls_flags;
pub(crate) mod token_file;
pub(crate) mod ui;

#[cfg(test)]
mod hostile_test;

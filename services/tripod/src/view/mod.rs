//! What is printed, as data: pure functions from answers of the cluster to JSON and tables.

pub(crate) mod backup;
pub(crate) mod barrier;
pub(crate) mod cluster;
mod count;
pub(crate) mod doctor;
pub(crate) mod end;
pub(crate) mod events;
#[cfg(test)]
mod hostile;
pub(crate) mod job;
pub(crate) mod job_ports;
pub(crate) mod key;
pub(crate) mod level;
pub(crate) mod mars;
pub(crate) mod members;
pub(crate) mod mindspore;
mod origin;
pub(crate) mod ray;
pub(crate) mod recovery;
pub(crate) mod scheduled;
pub(crate) mod setting;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod time;
pub(crate) mod token;

pub(crate) use count::{count, counted};

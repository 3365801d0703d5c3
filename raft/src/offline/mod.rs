//! What is done with files while no node runs on them. Knows no running node, and not the writer of its log.

pub mod backup;
pub mod doctor;
pub mod repair;

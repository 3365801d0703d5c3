//! Histories of a model that makes no mistakes, for the mistakes that tests then plant in them.

mod executor;
mod mutation;
pub(super) mod small;

pub(super) use executor::{Executor, Slot};
pub(super) use mutation::Tally;

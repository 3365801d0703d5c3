//! A node's storage in memory, which survives the end of the node as a real disk does: with what was synced,
//! and with as much of the rest as chance will have.
//!
//! | module | what |
//! |---|---|
//! | `disk` | all of one node's storage, for simulations of whole nodes |
//! | `files` | one directory |
//! | `home` | where entries live in the end, in place of sled |
//! | `medium` | the order of operations over all of them, and the crash |
//! | `dice` | random numbers of a seed |

mod dice;
mod disk;
mod files;
mod home;
mod medium;

#[cfg(test)]
mod tests;

pub use disk::SimulatedDisk;

#[cfg(test)]
pub(crate) use medium::Loss;
#[cfg(test)]
pub(in crate::disk::journal) use {dice::Dice, home::SimHome};
pub(crate) use {files::SimFiles, medium::Medium};

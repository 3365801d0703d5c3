//! Faults of disks and clocks: power cuts, full disks, flipped bits, flushes that are slow, fail or lie, and
//! wall clocks that jump. Each is a plain call on a running [`Cluster`](crate::cluster::Cluster).
//!
//! | fault | type | needs |
//! |---|---|---|
//! | power cut of one node, of several, of all | [`Disks::cut`] | root, loop devices, `mkfs.ext4`, `cc` |
//! | power cut that tears what was not flushed | [`Shim::cut`] | `cc` |
//! | full disk, filled and freed while the node runs | [`Disk::fill`], [`Disk::free`] | root |
//! | flipped bit, in a node that is stopped or runs | [`Flip`] | |
//! | file cut short, gone, or another node's | [`Harm`] | |
//! | flushes slow, stalled, failing, swallowed; writes failing | [`Controls`] | `cc` |
//! | wall clock jumps; monotonic time goes on as it was | [`Controls::shift_wall_clock`] | `cc` |
//!
//! What a machine cannot do is said by [`Skip`], before anything is started.
//!
//! # Why a power cut is no copy of the image
//! A copy of a device takes milliseconds in which the device goes on changing, so that it may hold a late
//! block without the earlier one that its writer had flushed before: a state that no cut makes, and for which
//! a journal is blamed wrongly. Freezing the file system first would flush it, and stopping the process does
//! not stop the kernel's own writers. So the file system is shut down (ext4's `shutdown` request, without
//! flushing its log) in the microseconds after SIGKILL: from then on nothing is written, and the device holds
//! what it held at one instant. The image is then mounted again as after a cut. `preload/cut.c` tells what
//! this does not model.

mod controls;
mod disk;
mod disks;
mod flip;
mod harm;
mod mounts;
mod shim;
mod structure;
mod survey;
mod toolchain;
mod unflushed;
mod witness;

pub use controls::{Controls, Counts};
pub use disk::{Disk, FileSystem};
pub use disks::Disks;
pub use flip::{Flip, files};
pub use harm::Harm;
pub use mounts::Skip;
pub use shim::Shim;
pub use structure::{FileKind, FileRegion};
pub use survey::{Outcome, Survey, Trial};
pub use unflushed::{Mercy, Taken};
pub use witness::{Verdict, Witness};

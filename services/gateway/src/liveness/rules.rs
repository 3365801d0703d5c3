//! How long peers of one kind may be silent.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

/// The rules about silence of one kind of peers. The default is what one is told whose job is not known.
pub trait Rules: Copy + Default + Send + Sync + 'static {
    /// By what a peer of a job is told from the others.
    type Peer: Copy + Ord + Hash + Debug + Send + 'static;

    /// The time to live of each of so many peers.
    fn ttl(&self, peers: usize) -> Duration;

    /// What one of so many peers is told, in milliseconds: it may differ from peer to peer, so that they do not beat all
    /// at once.
    fn ttl_ms(&self, peer: Self::Peer, peers: usize) -> u64;

    /// How long one of so many may be silent before it is given up. `regular`: it promised to beat, or is asked for signs
    /// of life.
    fn allowance(&self, peer: Self::Peer, regular: bool, peers: usize) -> Duration;
}

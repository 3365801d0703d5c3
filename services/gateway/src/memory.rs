//! A backend without replication: commands apply to a [`State`] at once. For tests of front ends.

/// One state, always leader.
pub struct MemoryBackend {}

//! What looks after a running node, each by itself. None knows another, but for the question of who was removed, which is
//! that of who lost its data.
//!
//! | module | what |
//! |---|---|
//! | `membership` | who the members are, while the cluster runs |
//! | `level` | which feature level all members support, and what is refused for its sake |
//! | `divergence` | whether the states of all nodes are equal |
//! | `space` | full disks, and what is refused then |
//! | `rejoin` | a node whose data is gone comes back without doing harm |

pub(crate) mod divergence;
pub(crate) mod level;
pub(crate) mod membership;
pub(crate) mod rejoin;
pub(crate) mod space;

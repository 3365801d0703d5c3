//! The scheduler of the Ray of August 2016, in front of the replicated one.

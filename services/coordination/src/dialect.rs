//! The protocols that share this crate.

/// Which protocol a call came in. They differ in field numbers, in the check of the service
/// incarnation and in how a payload names a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `xla.coordination`: jaxlib 0.10.0 and later.
    N,
    /// `tensorflow`: jaxlib up to 0.9.2, and TensorFlow.
    T,
    /// `xla.DistributedRuntimeService`: jaxlib before 0.4.14. Its errors carry no payload.
    L,
}

//! The dialects of the coordination service that have a service of their own on the wire.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// Which of them a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `xla.coordination.CoordinationService`: jaxlib from 0.10.0 on.
    N,
    /// `tensorflow.CoordinationService`: jaxlib before, and TensorFlow.
    T,
}

impl Dialect {
    /// Either, as chance decides.
    pub(super) fn draw(random: &mut StdRng) -> Self {
        if random.random_bool(0.5) { Self::N } else { Self::T }
    }

    /// A letter for names.
    pub(super) fn letter(self) -> char {
        match self {
            Self::N => 'n',
            Self::T => 't',
        }
    }
}

//! Why nothing came of a message.

use std::fmt;

/// How a message ended that was not answered as its sender wished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There was no connection: nothing was sent.
    Unsent(String),
    /// It may have been done, or may be yet.
    Unanswered(String),
    /// The answer was no.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(why) => write!(f, "not sent: {why}"),
            Self::Unanswered(why) => write!(f, "not answered: {why}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

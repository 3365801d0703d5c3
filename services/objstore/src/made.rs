//! What a writer says of an object besides its bytes.

use crate::ids::Run;

/// Which attempt made an object, and who tells the scheduler. An attempt alone: the store tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    pub run: Option<Run>,
    pub teller: Teller,
}

/// Who tells the scheduler that an object became ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Teller {
    /// At once.
    #[default]
    Store,
    /// The process that wrote it, with the end of its attempt, which it has to tell anyway. The store tells only of what
    /// is still there after a second, or when the process is gone.
    Maker,
}

impl From<Option<Run>> for Made {
    fn from(run: Option<Run>) -> Self {
        Self { run, teller: Teller::Store }
    }
}

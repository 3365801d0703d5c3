//! What a process is told when it cannot have what it asks for.

use tonic::Code;

use crate::ids::ObjectId;
use crate::shelf::{GetError, SealFailed, Why, WriteError};
use crate::table::Refusal;

/// A refusal as it is told.
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

pub(super) fn not_writing(id: ObjectId) -> Answer {
    Answer::new(Code::NotFound, format!("this connection does not write object {id}"))
}

pub(super) fn write_refused(error: &WriteError) -> Answer {
    let code = match error {
        WriteError::Refused(Refusal::Exists(_)) => Code::AlreadyExists,
        WriteError::Refused(_) => Code::NotFound,
        WriteError::Reserve(_) => Code::ResourceExhausted,
    };
    Answer::new(code, error.to_string())
}

pub(super) fn seal_refused(error: &SealFailed) -> Answer {
    let code = match error {
        SealFailed::Refused(_) => Code::NotFound,
        SealFailed::MappingLeft(_) | SealFailed::Broken(_) => Code::FailedPrecondition,
    };
    Answer::new(code, error.to_string())
}

pub(super) fn get_refused(error: &GetError) -> Answer {
    let code = match error {
        GetError::Deallocated(_) => Code::NotFound,
        GetError::Lost(_) => Code::DataLoss,
        GetError::Reserve(_) | GetError::TooLarge { .. } | GetError::GivenUp { why: Why::Full(_), .. } => {
            Code::ResourceExhausted
        }
        GetError::GivenUp { why: Why::Unreachable(_), .. } => Code::Aborted,
        GetError::Ended => Code::Cancelled,
    };
    Answer::new(code, error.to_string())
}

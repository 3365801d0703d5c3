//! The codes of errors: of whole calls, and of single keys.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tripod_proto::mars::v1::ChunkError;
use tripod_proto::metadata::RETRY_AFTER_MS;

use crate::index::OutOfRange;
use crate::layout::Illegal;
use crate::limits::QUOTA_RETRY;
use crate::mutable::MutableError;
use crate::rows::RowsError;
use crate::store::ObjectError;

/// What is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Trouble {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn message(self) -> ChunkError {
        ChunkError { code: u32::try_from(i32::from(self.code)).unwrap_or(2), message: self.text }
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        Self::new(status.code(), status.message())
    }
}

impl From<OutOfRange> for Trouble {
    fn from(error: OutOfRange) -> Self {
        Self::new(Code::OutOfRange, error.to_string())
    }
}

impl From<RowsError> for Trouble {
    fn from(error: RowsError) -> Self {
        let code = match error {
            RowsError::OutOfRange(_) | RowsError::TooLarge => Code::OutOfRange,
            RowsError::Damaged(_) => Code::DataLoss,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Illegal> for Trouble {
    fn from(error: Illegal) -> Self {
        Self::new(Code::FailedPrecondition, error.to_string())
    }
}

impl From<ObjectError> for Trouble {
    fn from(error: ObjectError) -> Self {
        let code = match error {
            ObjectError::Gone(_) => Code::NotFound,
            ObjectError::Damaged(_) => Code::DataLoss,
            ObjectError::NoRoom(_) => Code::ResourceExhausted,
            ObjectError::Unavailable(_) => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<MutableError> for Trouble {
    fn from(error: MutableError) -> Self {
        let code = match error {
            MutableError::Epoch { .. } | MutableError::Sealed { .. } => Code::Aborted,
            MutableError::Quota { .. } | MutableError::Chunks(_) => Code::ResourceExhausted,
            MutableError::Illegal(_) | MutableError::Reused { .. } => Code::InvalidArgument,
            MutableError::OutOfRange(_) => Code::OutOfRange,
            MutableError::Damaged { .. } | MutableError::Diverged { .. } => Code::DataLoss,
            MutableError::Disk { .. } => Code::Unavailable,
            MutableError::Behind { .. } => Code::FailedPrecondition,
        };
        Self::new(code, error.to_string())
    }
}

/// The status of a whole call. With a refusal for want of room comes when to try again.
impl From<Trouble> for Status {
    fn from(trouble: Trouble) -> Self {
        let mut status = Self::new(trouble.code, trouble.text);
        if trouble.code == Code::ResourceExhausted {
            let retry_ms = u64::try_from(QUOTA_RETRY.as_millis()).unwrap_or(u64::MAX);
            status.metadata_mut().insert(RETRY_AFTER_MS, MetadataValue::from(retry_ms));
        }
        status
    }
}

/// Something that waited on another thread ended otherwise than it should.
pub(crate) fn panicked(error: &tokio::task::JoinError) -> Status {
    Status::internal(format!("a part of the call ended: {error}"))
}

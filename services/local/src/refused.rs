//! Why something is not private.

use std::io;
use std::path::{Path, PathBuf};

use tripod_proto::code::Code;

/// Why something cannot be used as what only this user can change.
#[derive(Debug, thiserror::Error)]
pub enum NotPrivate {
    /// Others could read, enter or replace it.
    #[error("{code}: {path} {why}; {next}", code = Code::NotPrivate, path = .path.display())]
    Refused { path: PathBuf, why: String, next: String },
    /// The system would not tell, or would not make it.
    #[error("{path}: {cause}", path = .path.display())]
    Io { path: PathBuf, cause: io::Error },
}

impl NotPrivate {
    pub(crate) fn refused(path: &Path, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), why: why.into(), next: next.into() }
    }

    pub(crate) fn io(path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), cause: cause.into() }
    }

    /// Whether there is nothing at the path.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

impl From<NotPrivate> for io::Error {
    fn from(error: NotPrivate) -> Self {
        match error {
            NotPrivate::Io { cause, .. } => cause,
            refused @ NotPrivate::Refused { .. } => {
                Self::new(io::ErrorKind::PermissionDenied, refused.to_string())
            }
        }
    }
}

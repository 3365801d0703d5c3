//! What is wrong with files of TLS.

use std::path::Path;

use tripod_proto::code::Code;

/// Why files cannot be used: which, why, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {text}; next: {next}")]
pub struct Fault {
    code: Code,
    text: String,
    next: String,
}

impl Fault {
    /// That there is something wrong with a file.
    pub(crate) fn file(path: &Path, why: impl std::fmt::Display, next: impl Into<String>) -> Self {
        Self { code: Code::TlsFile, text: format!("{} {why}", path.display()), next: next.into() }
    }

    /// That the time of a certificate has not come, or is over.
    pub(crate) fn expired(path: &Path, why: impl std::fmt::Display, next: impl Into<String>) -> Self {
        Self { code: Code::TlsExpired, ..Self::file(path, why, next) }
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }
}

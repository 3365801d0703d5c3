//! Why a command failed, and the exit code that says so. Exit codes are a contract: 0 done, 1 failed,
//! 2 wrong usage, 3 nobody could be reached.

use std::fmt;
use std::process::ExitCode;

/// A failure as one clear line.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was understood and tried.
    Failed(String),
    /// The command line is wrong.
    Usage(String),
    /// No node could answer.
    Unreachable(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Usage(text) | Self::Unreachable(text)) = self;
        f.write_str(text)
    }
}

impl From<tripod_client::Error> for Failure {
    fn from(error: tripod_client::Error) -> Self {
        let text = error.to_string();
        match error {
            tripod_client::Error::Config(_) => Self::Usage(text),
            tripod_client::Error::Unavailable { .. } => Self::Unreachable(text),
            tripod_client::Error::OutcomeUnknown { .. } | tripod_client::Error::Refused { .. } => {
                Self::Failed(text)
            }
        }
    }
}

impl From<tripod_agent::Error> for Failure {
    fn from(error: tripod_agent::Error) -> Self {
        let text = error.to_string();
        match error {
            tripod_agent::Error::Config(_) => Self::Usage(text),
            tripod_agent::Error::Listen(_) | tripod_agent::Error::Serve { .. } => Self::Failed(text),
        }
    }
}

/// Standard output is gone or full: nobody reads on.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("cannot write the output: {error}"))
    }
}

//! Why an agent does not run.

/// Why an agent did not start, or had to end. The text names what failed, why, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong; nothing was opened.
    #[error("{0}")]
    Config(String),
    /// A place to listen at could not be opened.
    #[error("{0}")]
    Listen(String),
    /// What was opened cannot be served, or not any longer.
    #[error("cannot serve {place}: {cause}")]
    Serve { place: String, cause: String },
}

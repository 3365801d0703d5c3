//! Why a store cannot run. Each error names what failed and what to do next.

use std::io;
use std::path::PathBuf;

use tripod_chunk_data::mutable::DirectoryError;

/// Why a store did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is wrong; nothing was begun.
    #[error("{0}")]
    Config(String),
    #[error("the store cannot listen at {address}: {cause}; next: pick a free address with --listen")]
    Listen { address: String, cause: io::Error },
    #[error(
        "the socket {path} for processes of this machine cannot be made: {cause}; next: pick a directory of your own \
         with a short name with --directory", path = .path.display()
    )]
    Socket { path: PathBuf, cause: io::Error },
    #[error(
        "the directory {path} for spilled objects cannot be used: {cause}; next: pick one that can be written to with \
         --directory", path = .path.display()
    )]
    SpillDirectory { path: PathBuf, cause: io::Error },
    #[error(
        "the directory {path} is used by another object store; next: end that one, or pick another directory with \
         --directory", path = .path.display()
    )]
    SpillDirectoryTaken { path: PathBuf },
    #[error(transparent)]
    MutableDirectory(#[from] DirectoryError),
    /// The scheduler will not have this store.
    #[error("the scheduler at {endpoint} refuses the store: {message}; next: `tripod ray status`")]
    Refused { endpoint: String, message: String },
    /// The scheduler ordered it.
    #[error("the scheduler ordered this store to end; next: `tripod ray status` says which stores it knows")]
    ToldToEnd,
    /// The store's own server ended.
    #[error("the store's server at {address} ended: {cause}; next: start the store again")]
    Server { address: String, cause: String },
}

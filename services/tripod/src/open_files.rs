//! How many files this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What a process has everywhere.
const FILES_USUAL: u64 = 1_024;

/// Raises the limit as far as the system allows without more rights, and gives what holds then. Connections of clients,
/// and objects in shared memory, are open files.
pub(crate) fn raise() -> u64 {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map(|()| hard));
    match raised {
        Ok(files) => files,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            getrlimit(Resource::RLIMIT_NOFILE).map_or(FILES_USUAL, |(soft, _)| soft)
        }
    }
}

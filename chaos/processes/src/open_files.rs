//! How many files this process and those that it starts may have open: a socket is one.

use anyhow::{Context as _, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as it goes.
///
/// # Errors
/// That is not far enough for so many; the text says what to do.
pub fn raise_for(needed: u64) -> anyhow::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).context("the limit of open files")?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("cannot raise the limit of open files")?;
    ensure!(
        most >= needed,
        "this needs {needed} open files in one process, and {most} are allowed; next: `ulimit -Hn {needed}` as root, or \
         ask for fewer"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_kernel_allows_is_refused_with_what_to_do() {
        raise_for(16).unwrap();
        let refused = raise_for(u64::MAX).unwrap_err().to_string();
        assert!(refused.contains("ulimit -Hn"), "{refused}");
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, hard, "as far as it goes");
    }
}

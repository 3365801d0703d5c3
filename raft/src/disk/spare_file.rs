//! What is done while a process has no open file to spare.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use tripod_backoff::Backoff;

/// Between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
/// Between two words to the operator.
const WORD_EVERY: Duration = Duration::from_secs(10);

/// Opens what storage cannot do without, and waits for as long as all open files that the process, or the system, may have
/// are taken: by then somebody has closed one, and what would be told otherwise is that the disk failed, which ends the
/// node. Meanwhile a write waits as it does for a slow disk, and a leader gives up leading.
pub(super) fn wait_for<T>(place: &Path, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut backoff = BACKOFF;
    let mut told: Option<Instant> = None;
    loop {
        let error = match open() {
            Err(error) if is_exhausted(&error) => error,
            done => return done,
        };
        if told.is_none_or(|told| told.elapsed() >= WORD_EVERY) {
            tracing::warn!(
                file = %place.display(),
                %error,
                "T3119 files-exhausted: this node waits until an open file is closed; next: raise the limit (`ulimit -Hn`, LimitNOFILE=)"
            );
            told = Some(Instant::now());
        }
        thread::sleep(backoff.pause());
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    [Errno::EMFILE, Errno::ENFILE].iter().any(|full| error.raw_os_error() == Some(*full as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f6_storage_waits_while_all_files_are_taken_and_fails_for_everything_else() {
        let mut attempts = 0;
        let opened = wait_for(Path::new("segment"), || {
            attempts += 1;
            match attempts {
                1 => Err(io::Error::from_raw_os_error(Errno::EMFILE as i32)),
                2 => Err(io::Error::from_raw_os_error(Errno::ENFILE as i32)),
                _ => Ok(attempts),
            }
        });
        assert_eq!(opened.unwrap(), 3);
        let failed =
            wait_for(Path::new("segment"), || Err::<(), _>(io::Error::from(io::ErrorKind::NotFound)));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

//! What can be known of how a program ended besides its status: whether memory ran out, and what it wrote last.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tripod_state::task::TAIL_BYTES_MAX;

use crate::output;

/// This process's standard error.
const OWN_STDERR: &str = "/proc/self/fd/2";
/// Bytes that are passed on at a time.
const CHUNK_BYTES: usize = 8 << 10;

/// What is known before a program begins, to be compared with afterwards.
#[derive(Debug)]
pub(super) struct Before {
    out_of_memory_kills: Option<u64>,
    /// How long the file is that its standard error goes to, if that is a file.
    stderr_bytes: Option<u64>,
}

/// The last bytes that came by a pipe. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Before {
    /// As it is now.
    pub(super) fn look() -> Self {
        let stderr = std::fs::metadata(OWN_STDERR).ok().filter(std::fs::Metadata::is_file);
        Self { out_of_memory_kills: out_of_memory_kills(), stderr_bytes: stderr.map(|file| file.len()) }
    }

    /// Whether the kernel has ended a process of this control group since, for want of memory. Whose it was it does not say.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.out_of_memory_kills.zip(out_of_memory_kills()).is_some_and(|(before, after)| after > before)
    }

    /// The last that was written to standard error since, if it goes to a file that can be read.
    pub(super) fn last_words(&self) -> String {
        let words = self.stderr_bytes.and_then(|begin| end_of_file(Path::new(OWN_STDERR), begin).ok());
        bounded(&words.unwrap_or_default())
    }
}

impl Tail {
    /// Passes everything on to this process's standard error, and keeps the end of it.
    pub(super) async fn follow(self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK_BYTES];
        // A pipe that cannot be read is as good as its end.
        while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
            output::of_program(&chunk[..length]);
            self.keep(&chunk[..length]);
        }
    }

    /// What came last.
    pub(super) fn words(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bounded(&kept.iter().copied().collect::<Vec<_>>())
    }

    fn keep(&self, more: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(more);
        let surplus = kept.len().saturating_sub(TAIL_BYTES_MAX);
        kept.drain(..surplus);
    }
}

/// The last bytes of a file, of those from `begin` on.
fn end_of_file(path: &Path, begin: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(TAIL_BYTES_MAX as u64).max(begin.min(length));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As text, within the bound in bytes also where bytes were replaced.
fn bounded(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let surplus = text.len().saturating_sub(TAIL_BYTES_MAX);
    text[text.ceil_char_boundary(surplus)..].to_owned()
}

/// How often the kernel has ended a process of this process's control group for want of memory, where there are groups of the
/// second version.
fn out_of_memory_kills() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let events = Path::new("/sys/fs/cgroup").join(group.trim_start_matches('/')).join("memory.events");
    kills_in(&std::fs::read_to_string(events).ok()?)
}

fn kills_in(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_whom_it_ended_for_want_of_memory() {
        assert_eq!(kills_in("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(kills_in("low 0\n"), None);
    }

    #[test]
    fn of_a_file_the_end_is_read_and_nothing_of_before() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "of before|Traceback\nboom\n").expect("written");
        let end = |begin| end_of_file(file.path(), begin).expect("read");
        assert_eq!(end(10), b"Traceback\nboom\n");
        assert_eq!(end(1_000), b"", "it was made shorter meanwhile");
        std::fs::write(file.path(), "x".repeat(5_000)).expect("written");
        assert_eq!((end(0).len(), end(4_990).len()), (TAIL_BYTES_MAX, 10));
    }

    #[test]
    fn last_words_are_bounded_also_where_bytes_are_no_text() {
        let text = bounded(&[0xff; TAIL_BYTES_MAX]);
        assert!(text.len() <= TAIL_BYTES_MAX && text.chars().all(|letter| letter == '\u{fffd}'), "{text}");
        assert_eq!(bounded(b"boom\n"), "boom\n");
    }

    #[tokio::test]
    async fn what_comes_by_a_pipe_is_kept_at_its_end() {
        let tail = Tail::default();
        tail.clone().follow(b"last words\n".as_slice()).await;
        assert_eq!(tail.words(), "last words\n");
        tail.keep(&[b'y'; 3 * TAIL_BYTES_MAX]);
        assert_eq!(tail.words(), "y".repeat(TAIL_BYTES_MAX));
    }
}

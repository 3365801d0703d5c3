//! Elections that nobody planned: on a machine that is too busy a leader may lose its place, and the next one
//! starts every timer again. Who judges how soon a silent task is declared dead must know of it.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;

use tripod_checkers::history::Recorder;
use tripod_processes::cluster::Cluster;
use tripod_processes::workload::Clock;

/// What a node writes when it begins to lead and starts every timer.
const WORDS: &str = "timers armed";
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Reads along in the nodes' logs until it is dropped.
pub(super) struct Timers(JoinHandle<()>);

impl Timers {
    /// Notes in the record whenever a node starts its timers.
    pub(super) fn watch(cluster: &Cluster, recorder: Recorder, clock: Clock) -> Self {
        let mut logs: Vec<Log> = cluster.ids().map(|node| Log::at_end_of(cluster.log(node))).collect();
        Self(tokio::spawn(async move {
            loop {
                if logs.iter_mut().any(Log::tells_of_timers) {
                    recorder.timers_restarted(clock.now());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }))
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A log that grows.
struct Log {
    path: PathBuf,
    read_bytes: u64,
    /// The beginning of a line whose end was not there yet.
    rest: String,
}

impl Log {
    fn at_end_of(path: PathBuf) -> Self {
        let read_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Self { path, read_bytes, rest: String::new() }
    }

    /// Whether the lines that came since the last look say so. A log that cannot be read says nothing.
    fn tells_of_timers(&mut self) -> bool {
        let Ok(text) = read_from(&self.path, self.read_bytes) else { return false };
        self.read_bytes += text.len() as u64;
        self.rest.push_str(&String::from_utf8_lossy(&text));
        let told = self.rest.contains(WORDS);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        self.rest.drain(..whole);
        told
    }
}

fn read_from(path: &Path, at: u64) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_new_lines_are_read_and_none_is_missed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "INFO timers armed term=1").unwrap();
        let mut log = Log::at_end_of(file.path().to_owned());
        assert!(!log.tells_of_timers());
        write!(file, "INFO something\nINFO timers ar").unwrap();
        assert!(!log.tells_of_timers());
        writeln!(file, "med term=2").unwrap();
        assert!(log.tells_of_timers());
        assert!(!log.tells_of_timers());
    }
}

//! Where a test writes, and what is kept of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The part of a test's folder where its nodes have their data and logs.
pub(crate) const CLUSTER: &str = "cluster";

/// The folder of one test.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    folder: PathBuf,
}

impl Logs {
    /// The one of that name among the results; nothing is made yet.
    pub(crate) fn new(results: &Path, name: &str) -> Self {
        Self { folder: results.join(name) }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An empty folder, whatever an earlier run has left there.
    ///
    /// # Errors
    /// It cannot be emptied or made.
    pub(crate) fn clear(&self) -> Result<()> {
        let folder = self.folder.display();
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).with_context(|| format!("cannot empty {folder}"))?;
        }
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {folder}"))
    }

    /// Puts what a failed attempt has written where neither another attempt nor another run takes it away. `None` if it
    /// has written nothing, or there is no such place.
    pub(crate) fn keep(&self) -> Option<PathBuf> {
        let name = self.folder.file_name()?.to_str()?;
        let mut places =
            (1..).map(|number: u32| self.folder.with_file_name(format!("{name}.failed-{number}")));
        let place = places.find(|place| !place.exists())?;
        fs::rename(&self.folder, &place).ok()?;
        // A path that can be pasted elsewhere is worth more than the one that we were given.
        Some(place.canonicalize().unwrap_or(place))
    }

    /// Removes the data of nodes, which nobody reads after a test that has passed; their logs stay.
    pub(crate) fn shed_data(&self) {
        let Ok(entries) = fs::read_dir(self.folder.join(CLUSTER)) else { return };
        for entry in entries.filter_map(Result::ok) {
            if entry.path().is_dir() {
                // What cannot be removed now is removed by the next run.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_stays_whatever_comes_after() {
        let results = tempfile::tempdir().unwrap();
        let logs = Logs::new(results.path(), "agent-kill-0.12.0.1");
        assert_eq!(logs.keep(), None);
        let mut kept = Vec::new();
        for attempt in ["first", "second"] {
            logs.clear().unwrap();
            fs::write(logs.folder().join("log"), attempt).unwrap();
            kept.push(logs.keep().unwrap());
        }
        logs.clear().unwrap();
        let read = |folder: &PathBuf| fs::read_to_string(folder.join("log")).unwrap();
        assert_eq!(kept.iter().map(read).collect::<Vec<_>>(), ["first", "second"]);
        assert!(kept[1].ends_with("agent-kill-0.12.0.1.failed-2"), "{kept:?}");
        assert!(fs::read_dir(logs.folder()).unwrap().next().is_none());
    }

    #[test]
    fn data_go_and_logs_stay() {
        let results = tempfile::tempdir().unwrap();
        let logs = Logs::new(results.path(), "test");
        logs.shed_data();
        let cluster = logs.folder().join(CLUSTER);
        fs::create_dir_all(cluster.join("node-1/journal")).unwrap();
        fs::write(cluster.join("node-1.log"), "log").unwrap();
        logs.shed_data();
        assert!(!cluster.join("node-1").exists() && cluster.join("node-1.log").exists());
    }
}

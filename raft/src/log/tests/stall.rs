//! Whether a disk that does not answer is seen to do so.

use std::sync::mpsc;
use std::time::Duration;

use tripod_wait::until;

use super::*;

/// A disk that does not come back from its rest before somebody lets it.
struct Stalling {
    inner: SledDisk,
    released: mpsc::Receiver<()>,
}

impl Disk for Stalling {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        self.inner.load(each)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        self.inner.write(changes)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.inner.sync()
    }

    fn rest(&mut self) -> Result<Option<Duration>, DiskError> {
        // An error: the test has let go of it.
        let _ = self.released.recv();
        Ok(None)
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.inner.reader()
    }
}

/// The writer asks the disk for what nobody waits for, and everything that comes then waits behind it: a leader whose
/// disk stalled there led on.
#[tokio::test]
async fn a_disk_that_stalls_while_the_log_rests_does_not_answer() {
    let directory = TempDir::new().unwrap();
    let inner = SledDisk::open(&directory.path().join("log")).unwrap();
    let (release, released) = mpsc::channel();
    let store = LogStore::open(Stalling { inner, released }, Failure::new()).unwrap();
    until("a disk that does not answer", || store.flushes().under_way()).await;
    drop(release);
    until("a disk that has answered", || store.flushes().under_way().is_none().then_some(())).await;
    store.close();
}

//! A disk that fails an incoming snapshot once, when nobody waits for it any more.

use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::*;
use crate::disk::{Blob, Files, RealFiles, Work};

/// A sync that is under way, and that fails when it is let go on. Every later one succeeds at once, as the
/// kernel has it: it tells an error once.
#[derive(Default)]
struct Sickness {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Well,
    UnderWay,
    Failed,
}

impl Sickness {
    /// Waits here, and fails, if it is the first.
    fn strike(&self) -> io::Result<()> {
        let mut stage = self.stage.lock();
        if *stage != Stage::Well {
            return Ok(());
        }
        *stage = Stage::UnderWay;
        self.changed.wait_while(&mut stage, |stage| *stage != Stage::Failed);
        Err(io::Error::other("planted"))
    }

    fn is_under_way(&self) -> bool {
        *self.stage.lock() == Stage::UnderWay
    }

    fn fail(&self) {
        *self.stage.lock() = Stage::Failed;
        self.changed.notify_all();
    }
}

/// Files of which one sync fails.
struct SickFiles {
    inner: RealFiles,
    sickness: Arc<Sickness>,
}

struct SickBlob {
    inner: Arc<dyn Blob>,
    sickness: Arc<Sickness>,
}

impl Blob for SickBlob {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset_bytes, buffer)
    }

    fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset_bytes, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sickness.strike()?;
        self.inner.sync_data()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_len(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

impl Files for SickFiles {
    fn create(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let inner = self.inner.create(name)?;
        Ok(Arc::new(SickBlob { inner, sickness: self.sickness.clone() }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        self.inner.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn place(&self) -> &str {
        self.inner.place()
    }
}

/// A receiver whose disk may fail.
fn receiver() -> (TempDir, Arc<Sickness>, SnapshotStore) {
    let directory = TempDir::new().unwrap();
    let sickness = Arc::new(Sickness::default());
    let inner = RealFiles::open(&directory.path().join("receiver")).unwrap();
    let files = Arc::new(SickFiles { inner, sickness: sickness.clone() });
    let snapshots = SnapshotStore::open(files, Work::Threads).unwrap();
    (directory, sickness, snapshots)
}

/// Begins a transfer of everything, and goes away while its sync is under way.
async fn abandoned(leader: &Leader, snapshots: &SnapshotStore, sickness: &Sickness) {
    let (chunks, into) = (whole(leader.chunks(0).await), snapshots.clone());
    let call = tokio::spawn(async move { take(chunks, &into).await.is_ok() });
    while !sickness.is_under_way() {
        assert!(!call.is_finished(), "the sync waits");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_sync_that_failed_after_its_call_had_gone_is_not_forgotten() {
    let (_directory, sickness, snapshots) = receiver();
    let leader = Leader::new(1, 9).await;
    abandoned(&leader, &snapshots, &sickness).await;

    // All of it is here, so the next call brings nothing and syncs what the first one wrote.
    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, leader.file.offer.bytes);
    let (rest, into) = (whole(leader.chunks(here).await), snapshots.clone());
    let next = tokio::spawn(async move { take(rest, &into).await.err() });
    sickness.fail();
    // Whether it finds the failure before its own sync or instead of it.
    let refused = next.await.unwrap().expect("what the disk failed is refused");
    assert!([Code::Aborted, Code::Unknown].contains(&refused.code()), "{refused:?}");

    assert_eq!(held(&leader.question(), &snapshots, anybody).await.unwrap(), 0);
    assert!(take(whole(leader.chunks(0).await), &snapshots).await.is_ok());
}

#[tokio::test]
async fn a_file_that_the_disk_failed_meanwhile_is_sent_from_the_beginning() {
    let (_directory, sickness, snapshots) = receiver();
    let leader = Leader::new(1, 9).await;
    abandoned(&leader, &snapshots, &sickness).await;
    sickness.fail();
    let deadline = Instant::now() + tripod_wait::deadline();
    while held(&leader.question(), &snapshots, anybody).await.unwrap() > 0 {
        assert!(Instant::now() < deadline, "the failure is never seen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(take(whole(leader.chunks(0).await), &snapshots).await.is_ok());
}

//! Backups that a node makes by itself: at what times, what becomes of the old ones, and what is told of them.
//!
//! Each is written like that of `tripod snapshot save`: under another name, read again from its beginning to its end,
//! and only then given its name. Old ones go when a newer one is whole, never before.

mod folder;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tripod_gateway::LastBackup;
use tripod_native::{Backups, Newest};
use tripod_proto::code::Code;
use tripod_raft::Handle;
use tripod_raft::backup::{self, Contents, Pace, Saving};

use crate::backups::folder::{Folder, Form, Found};
use crate::failure::Failure;
use crate::sealed::{Outer, Recipient, Sink};
use crate::view::time::now_ms;

/// How long a backup waits for a leader who says what was acknowledged. After that it holds what this node has, which
/// is what one wants most when there is no quorum.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(10);
/// After an attempt that failed.
const RETRY_MAX: Duration = Duration::from_mins(1);

/// What an operator asks for.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) directory: PathBuf,
    pub(crate) every: Duration,
    /// At least one.
    pub(crate) keep: u32,
    /// Who can open them; nobody: they are not sealed.
    pub(crate) recipients: Vec<Recipient>,
}

impl Plan {
    fn form(&self) -> Form {
        if self.recipients.is_empty() { Form::Plain } else { Form::Sealed }
    }
}

/// Makes backups until it is dropped.
pub(crate) async fn run(plan: Plan, handle: Handle, told: watch::Sender<Option<Backups>>, last: LastBackup) {
    let node = handle.status().node;
    let cluster_id = handle.status().cluster_id;
    let folder = Folder::new(&plan.directory, node, &cluster_id);
    let keeper = Keeper { plan, folder, cluster_id, handle, told, last };
    keeper.begin().await;
    loop {
        tokio::time::sleep(keeper.until_due()).await;
        if let Err(failure) = keeper.make().await {
            keeper.tell_failure(&failure);
            tokio::time::sleep(keeper.plan.every.min(RETRY_MAX)).await;
        }
    }
}

struct Keeper {
    plan: Plan,
    folder: Folder,
    cluster_id: String,
    handle: Handle,
    told: watch::Sender<Option<Backups>>,
    last: LastBackup,
}

impl Keeper {
    /// Looks at what is there from earlier lives.
    async fn begin(&self) {
        self.told.send_replace(Some(Backups {
            directory: self.plan.directory.display().to_string(),
            every_ms: u64::try_from(self.plan.every.as_millis()).unwrap_or(u64::MAX),
            keep: self.plan.keep,
            ..Backups::default()
        }));
        let folder = self.folder.clone();
        let looked = aside(move || {
            folder.prepare()?;
            let newest = folder.newest()?;
            if let Some(found) = &newest
                && found.form == Form::Plain
            {
                backup::verify_at(&found.path, Pace::default()).map_err(failed)?;
                return Ok((newest, now_ms()));
            }
            // Nobody here opens a sealed one again; it was verified before it got its name.
            let verified_ms = newest.as_ref().map_or(0, |found| ms(found.saved));
            Ok((newest, verified_ms))
        });
        match looked.await {
            Ok((Some(found), verified_ms)) => self.tell(&found, verified_ms),
            Ok((None, _)) => {}
            Err(failure) => self.tell_failure(&failure),
        }
    }

    /// From now on. What was made before a restart counts.
    fn until_due(&self) -> Duration {
        let newest = self.folder.newest().ok().flatten();
        let age = newest.map(|found| found.saved.elapsed().unwrap_or_default());
        age.map_or(Duration::ZERO, |age| self.plan.every.saturating_sub(age))
    }

    async fn make(&self) -> Result<(), Failure> {
        // What it brings is told by the index in the file.
        let _ = tokio::time::timeout(BARRIER_TIMEOUT, self.handle.read_barrier()).await;
        let saving = self.handle.save_own_snapshot().map_err(failed)?;
        let (folder, cluster_id, plan) = (self.folder.clone(), self.cluster_id.clone(), self.plan.clone());
        let made = aside(move || {
            folder.prepare()?;
            folder.check_owner(&cluster_id)?;
            let made = write(&folder, &plan, saving)?;
            folder.keep_newest(plan.keep)?;
            Ok(made)
        });
        let Made { found, contents, outer } = made.await?;
        let file = found.path.display();
        match outer {
            None => {
                tracing::info!(%file, index = contents.index.0, bytes = contents.file_bytes, "backup made");
            }
            // What `tripod snapshot verify --hash` asks for.
            Some(Outer { bytes, hash }) => {
                let hash = format!("{hash:016x}");
                tracing::info!(%file, index = contents.index.0, bytes, %hash, "sealed backup made");
            }
        }
        self.tell(&found, now_ms());
        Ok(())
    }

    fn tell(&self, found: &Found, verified_ms: u64) {
        self.last.note(found.saved);
        let kept = self.folder.count();
        let newest =
            Newest { file: found.name(), index: found.index.0, saved_ms: ms(found.saved), verified_ms };
        self.told.send_modify(|told| {
            let told = told.get_or_insert_default();
            (told.kept, told.newest, told.failure) = (kept, Some(newest), None);
        });
    }

    fn tell_failure(&self, failure: &Failure) {
        tracing::warn!(%failure, "no backup was made; it is tried again");
        let (kept, failure) = (self.folder.count(), failure.to_string());
        self.told.send_modify(|told| {
            let told = told.get_or_insert_default();
            (told.kept, told.failure) = (kept, Some(failure));
        });
    }
}

/// A backup that is whole and has its name.
struct Made {
    found: Found,
    contents: Contents,
    /// What a sealed one is to those who cannot open it.
    outer: Option<Outer>,
}

/// Writes and verifies. Blocks.
fn write(folder: &Folder, plan: &Plan, mut saving: Saving) -> Result<Made, Failure> {
    let form = plan.form();
    let path = folder.file_of(saving.index, form);
    // One that was made at this index before has the same content.
    let mut sink = Sink::open(&path, true, &plan.recipients)?;
    let mut walk = Pace::default().walk();
    while let Some(part) = saving.parts.blocking_recv() {
        let part = part.map_err(failed)?;
        sink.write(&part)?;
        std::thread::sleep(walk.step(part.len()));
    }
    let written = sink.finish()?;
    let contents = written.verify(Pace::default())?;
    let outer = written.outer();
    written.put_in_place()?;
    let found = Found { path, form, index: contents.index, saved: SystemTime::now() };
    Ok(Made { found, contents, outer })
}

/// Runs what blocks where it stops nobody.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Failure::new(Code::Defect, "the backup was cut short; see the log")))
}

/// What the node itself says about its state or a file.
fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::told(Code::BackupIo, error.to_string())
}

fn ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

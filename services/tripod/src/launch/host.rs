//! Where the program runs and as which process, for people who look at the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tripod_client::{Client, wire};

use crate::operator;

/// Registrations that may wait to be told; one is usual.
const WAITING_MAX: usize = 16;
/// How long one may take to be told. It matters to nobody but those who look.
const LIMIT: Duration = Duration::from_secs(60);

/// The number of the program's process, while it runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<AtomicU32>);

impl Running {
    /// The program was started; `None`: it has ended already.
    pub(super) fn began(&self, pid: Option<u32>) {
        self.0.store(pid.unwrap_or(0), Ordering::Relaxed);
    }

    /// It has ended.
    pub(super) fn ended(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// 0: it does not run.
    fn pid(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Tells the job this machine's name, the program's process and who started this one, for each registration that is sent
/// there, until nobody can send any more.
pub(super) fn note(
    client: Client,
    job: &str,
    task: u32,
    (running, launcher): (Running, String),
) -> mpsc::Sender<u64> {
    let (sender, mut registered) = mpsc::channel(WAITING_MAX);
    let (job, task) = (job.to_owned(), i32::try_from(task).unwrap_or(i32::MAX));
    tokio::spawn(async move {
        let Some(host) = operator::host() else { return };
        while let Some(incarnation) = registered.recv().await {
            let (host, launcher) = (host.clone(), launcher.clone());
            let origin = wire::TaskOrigin { host, pid: running.pid(), launcher, ..Default::default() };
            match timeout(LIMIT, client.jobs().note_origin(&job, task, incarnation, &origin)).await {
                Ok(Ok(())) => {}
                // A cluster of an earlier level, for example.
                Ok(Err(error)) => tracing::debug!(%error, "nobody was told where the program runs"),
                Err(_) => tracing::debug!("the cluster does not answer; nobody knows where the program runs"),
            }
        }
    });
    sender
}

//! Where the program runs and as which process, for people who look at the job.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tripod_client::{Client, Error, wire};

use crate::launch::held::{self, LOOK_EVERY, Watch};
use crate::operator;

/// Registrations that may wait to be told; one is usual.
const WAITING_MAX: usize = 16;
/// How long one may take to be told. It matters to nobody but those who look.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to tell that the program does not run: it is told again.
const HELD_LIMIT: Duration = Duration::from_secs(3);

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
/// there, and while the process does not run, until nobody can send any more.
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
        let (mut life, mut watch) = (None, Watch::default());
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                next = registered.recv() => {
                    let Some(incarnation) = next else { return };
                    life = Some(incarnation);
                    let (host, launcher) = (host.clone(), launcher.clone());
                    let origin = wire::TaskOrigin { host, pid: running.pid(), launcher, ..Default::default() };
                    let jobs = client.jobs();
                    tell(LIMIT, jobs.note_origin(&job, task, incarnation, &origin)).await;
                }
                _ = looks.tick(), if life.is_some() => {
                    let seen = held::process(running.pid());
                    if let (Some(incarnation), Some(state)) = (life, watch.look(Instant::now(), seen)) {
                        let jobs = client.jobs();
                        tell(HELD_LIMIT, jobs.note_process((&job, &host), task, incarnation, state)).await;
                    }
                }
            }
        }
    });
    sender
}

/// What is not heard matters to nobody but those who look.
async fn tell(limit: Duration, telling: impl Future<Output = Result<(), Error>>) {
    match timeout(limit, telling).await {
        Ok(Ok(())) => {}
        // A cluster of an earlier level, for example.
        Ok(Err(error)) => tracing::debug!(%error, "nobody was told where the program runs, and how"),
        Err(_) => {
            tracing::debug!("the cluster does not answer; nobody knows where the program runs, and how");
        }
    }
}

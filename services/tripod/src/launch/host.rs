//! Where the program runs, for people who look at the job.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tripod_client::Client;

use crate::operator;

/// Registrations that may wait to be told; one is usual.
const WAITING_MAX: usize = 16;
/// How long one may take to be told. It matters to nobody but those who look.
const LIMIT: Duration = Duration::from_secs(60);

/// Tells the job this machine's name for each registration that is sent there, until nobody can send any more.
pub(super) fn note(client: Client, job: &str, task: u32) -> mpsc::Sender<u64> {
    let (sender, mut registered) = mpsc::channel(WAITING_MAX);
    let (job, task) = (job.to_owned(), i32::try_from(task).unwrap_or(i32::MAX));
    tokio::spawn(async move {
        let Some(host) = operator::host() else { return };
        while let Some(incarnation) = registered.recv().await {
            match timeout(LIMIT, client.jobs().note_host(&job, task, incarnation, &host)).await {
                Ok(Ok(())) => {}
                // A cluster of an earlier level, for example.
                Ok(Err(error)) => tracing::debug!(%error, "nobody was told where the program runs"),
                Err(_) => tracing::debug!("the cluster does not answer; nobody knows where the program runs"),
            }
        }
    });
    sender
}

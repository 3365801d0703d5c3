//! A cluster that does not answer is told again and again, until it has heard.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tripod_client::Error;

/// For how long. By then silence has told it: who dies before its first heartbeat is waited for longest, for a minute.
const TELL_AGAIN_LIMIT: Duration = Duration::from_secs(300);
/// Rest between two calls, which may have failed at once.
const TELL_AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// Makes a call until the cluster has answered, and be it by a refusal.
pub(super) async fn until_heard<Call: Future<Output = Result<(), Error>>>(mut call: impl FnMut() -> Call) {
    let deadline = Instant::now() + TELL_AGAIN_LIMIT;
    loop {
        match call().await {
            Ok(()) => return,
            Err(Error::Unavailable { .. }) if Instant::now() < deadline => sleep(TELL_AGAIN_PAUSE).await,
            Err(error) => {
                tracing::debug!(%error, "nobody was told that the program ended");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    fn unavailable() -> Error {
        Error::Unavailable { what: "job end-task", waited: Duration::from_secs(10), attempts: Vec::new() }
    }

    /// How many calls are made of a cluster that answers the one of that number, and in what way.
    async fn calls(answered: u64, answer: fn() -> Result<(), Error>) -> u64 {
        let made = Cell::new(0);
        until_heard(|| {
            made.set(made.get() + 1);
            ready(if made.get() == answered { answer() } else { Err(unavailable()) })
        })
        .await;
        made.get()
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_was_away_is_told_when_it_answers_and_not_again() {
        assert_eq!(calls(1, || Ok(())).await, 1);
        assert_eq!(calls(20, || Ok(())).await, 20);
        assert_eq!(calls(3, || Err(Error::Config("refused".to_owned()))).await, 3);
        let begin = Instant::now();
        assert!(calls(u64::MAX, || Ok(())).await > 1);
        assert!(begin.elapsed() < TELL_AGAIN_LIMIT * 2, "it is told for ever");
    }
}

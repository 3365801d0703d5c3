//! What a connection says of its client before the client says it.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionCalls;
use crate::stop::Stopping;

/// For how long at most it is told: no first heartbeat comes later.
pub const PRESENCE_TOLD_FOR: Duration = Duration::from_secs(183 * 24 * 3600);

/// For how long at most it is told that a connection has ended: whoever was not heard since is given up without that.
const END_TOLD_FOR: Duration = Duration::from_secs(120);
/// How often, while nobody hears it.
const END_TOLD_EVERY: Duration = Duration::from_millis(500);

/// Has it told that a connection stands, at once and after each of these times, until `tell` gives that this is enough; and
/// that it stands no more, if its client ended it, until `tell` gives that it was heard. `tell` is given a number that no
/// other connection has, and whether it has ended; it gives whether it is to be told again.
pub async fn tell_presence<Told>(
    calls: &ConnectionCalls,
    stopping: &Stopping,
    every: Duration,
    tell: impl Fn(u64, bool) -> Told + Send,
) where
    Told: Future<Output = bool> + Send,
{
    let connection = RandomState::new().hash_one(());
    let until = Instant::now() + PRESENCE_TOLD_FOR;
    while tell(connection, false).await && Instant::now() < until {
        tokio::select! {
            biased;
            () = calls.ended() => {
                // Nobody may hear it at once: a leader can end together with a client.
                let until = Instant::now() + END_TOLD_FOR;
                // A connection that we end says nothing about its client.
                while !stopping.is_begun() && tell(connection, true).await && Instant::now() < until {
                    tokio::time::sleep(END_TOLD_EVERY).await;
                }
                return;
            }
            () = tokio::time::sleep(every) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    const EVERY: Duration = Duration::from_secs(20);

    /// What is told of a connection that ends after 30 s, of which nobody hears the end before it is told so many times.
    async fn told(heard_at: usize) -> Vec<bool> {
        let calls = ConnectionCalls::default();
        let ending = calls.clone();
        tokio::spawn(async move {
            let _open = ending.open();
            tokio::time::sleep(Duration::from_secs(30)).await;
        });
        let told = Mutex::new(Vec::new());
        tell_presence(&calls, &Stopping::never(), EVERY, |_, gone| {
            let mut told = told.lock();
            told.push(gone);
            let ends = told.iter().filter(|gone| **gone).count();
            std::future::ready(ends < heard_at)
        })
        .await;
        told.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_nobody_hears_is_told_again_for_two_minutes() {
        assert_eq!(told(1).await, [false, false, true], "once, if it is heard");
        assert_eq!(told(3).await, [false, false, true, true, true]);
        let ends = told(usize::MAX).await.into_iter().filter(|gone| *gone).count();
        assert!((200..300).contains(&ends), "{ends}");
    }
}

//! What a connection says of its client before the client says it.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionCalls;
use crate::stop::Stopping;

/// For how long at most it is told: no first heartbeat comes later.
pub const PRESENCE_TOLD_FOR: Duration = Duration::from_secs(183 * 24 * 3600);

/// Has it told that a connection stands, at once and after each of these times, until `tell` gives that this is enough; and
/// once that it stands no more, if its client ended it. `tell` is given a number that no other connection has, and whether
/// it has ended.
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
                // A connection that we end says nothing about its client.
                if !stopping.is_begun() {
                    tell(connection, true).await;
                }
                return;
            }
            () = tokio::time::sleep(every) => {}
        }
    }
}

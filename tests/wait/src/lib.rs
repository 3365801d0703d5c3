//! How tests wait: for a condition, never for a time, and with one deadline that nobody tunes.
//!
//! The deadline is far above what anything takes on a machine of usual speed. Whoever passes it measures how fast
//! the machine is at that moment, other programs included, and gets as much more as it is slower. A test that
//! fails by this deadline therefore met something that does not happen, not something that is slow.
//!
//! What this crate does not know: anything of Tripod.
//!
//! | module | what |
//! |---|---|
//! | `nobody` | an address at which nobody listens, for those who connect in vain |
//! | [`speed`] | how much slower than usual the machine is |

mod nobody;
pub mod speed;

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

pub use nobody::Nobody;

/// How long anything may take on a machine of usual speed.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks of a test that has the clock of its runtime, which may be a paused one.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// Pause between two looks of a test that has a thread. Its looks are often whole commands.
const BLOCKING_LOOK_PAUSE: Duration = Duration::from_millis(20);

/// [`PATIENCE`] on this machine, in which it is measured by now.
#[must_use]
pub fn deadline() -> Duration {
    scaled(PATIENCE)
}

/// A limit that is meant for a machine of usual speed, on this one.
#[must_use]
pub fn scaled(limit: Duration) -> Duration {
    limit.mul_f64(speed::scale())
}

/// Looks until there is something to see, and gives it.
///
/// The time is that of tokio's clock. Where that is paused, nothing is measured and the deadline is exact.
///
/// # Panics
/// There was nothing before the deadline; the text names `what`.
pub async fn until<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    until_async(what, || {
        let seen = look();
        async move { seen }
    })
    .await
}

/// The same with a look that has to wait itself. One that never ends is given up at the deadline.
///
/// # Panics
/// As [`until`].
pub async fn until_async<T, F>(what: impl Display, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looks = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    };
    within(what, looks).await
}

/// The outcome of something that must come.
///
/// # Panics
/// It did not come before the deadline; the text names `what`.
pub async fn within<F: Future>(what: impl Display, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    if let Ok(outcome) = tokio::time::timeout(PATIENCE, &mut future).await {
        return outcome;
    }
    // Under a paused clock the real speed says nothing, and two runs of one seed must be equal.
    let more = if is_paused().await { Duration::ZERO } else { speed::now_and_here().more(PATIENCE) };
    match tokio::time::timeout(more, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("waited {:?} in vain for {what}", PATIENCE + more),
    }
}

/// Looks until there is something to see, and gives it; for tests without a runtime.
///
/// # Panics
/// There was nothing before the deadline; the text names `what`.
pub fn until_blocking<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let mut limit = PATIENCE;
    let mut measured = false;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if begun.elapsed() >= limit {
            assert!(!measured, "waited {limit:?} in vain for {what}");
            measured = true;
            limit += speed::now_and_here().more(PATIENCE);
        }
        std::thread::sleep(BLOCKING_LOOK_PAUSE);
    }
}

/// Whether tokio's clock stands still but for jumps: then hours of it pass in no time at all.
async fn is_paused() -> bool {
    let (virtual_begin, begin) = (tokio::time::Instant::now(), Instant::now());
    tokio::time::sleep(Duration::from_secs(1)).await;
    virtual_begin.elapsed() > begin.elapsed() * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_condition_ends_the_wait() {
        let mut looks = 0;
        let seen = until("three looks", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(seen.await, 3);
        assert_eq!(within("five", async { 5 }).await, 5);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "in vain for the moon")]
    async fn what_never_comes_is_named() {
        until::<()>("the moon", || None).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "in vain for an answer")]
    async fn a_look_that_never_ends_is_given_up() {
        until_async("an answer", std::future::pending::<Option<()>>).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_is_known() {
        assert!(is_paused().await);
        tokio::time::resume();
        assert!(!is_paused().await);
    }

    #[test]
    fn a_blocking_wait_ends_with_what_was_seen() {
        let mut looks = 0;
        let seen = until_blocking("two looks", || {
            looks += 1;
            (looks == 2).then_some("seen")
        });
        assert_eq!(seen, "seen");
    }
}

//! Waiting for a condition. There is no other reason to sleep in these tests.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};
pub use tripod_wait::scaled;

/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until there is an answer. `limit` is meant for a machine of usual speed, and grows on a
/// slower one.
///
/// # Errors
/// The first error of `look`, or that there was no answer within `limit`.
pub async fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let limit = scaled(limit);
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("{what}: not within {limit:?}");
        }
        sleep(LOOK_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_errors_and_deadlines_end_the_wait() {
        let mut looks = 0;
        let count = || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        };
        assert_eq!(until("three", Duration::from_secs(9), count).await.unwrap(), 3);
        let broken = until::<()>("never", Duration::from_secs(9), || bail!("broken")).await;
        assert_eq!(broken.unwrap_err().to_string(), "broken");
        let late = until::<()>("the moon", Duration::from_millis(30), || Ok(None)).await.unwrap_err();
        assert!(late.to_string().starts_with("the moon: not within"), "{late}");
    }
}

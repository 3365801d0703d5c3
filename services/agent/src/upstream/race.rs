//! The first of several nodes to show that it can serve.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinSet;

/// Why an address did not do.
pub(crate) type Failure = (String, String);

/// Tries the addresses in their order and gives the first success. Each is given a head start over the
/// next; one that fails costs nothing. What is still under way then is dropped.
pub(crate) async fn first<T, F, Fut>(
    addresses: Vec<String>,
    head_start: Duration,
    dial: F,
    mut failed: impl FnMut(Failure),
) -> Option<T>
where
    T: Send + 'static,
    F: Fn(String) -> Fut,
    Fut: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut waiting = addresses.into_iter().peekable();
    let mut running = JoinSet::new();
    loop {
        if let Some(address) = waiting.next() {
            running.spawn(dial(address));
        }
        let more = waiting.peek().is_some();
        tokio::select! {
            ended = running.join_next() => match ended {
                None => return None,
                Some(Ok(Ok(success))) => return Some(success),
                Some(Ok(Err(failure))) => failed(failure),
                Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            },
            () = tokio::time::sleep(head_start), if more => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const HEAD_START: Duration = Duration::from_millis(30);

    /// Dials addresses such as `20:ok` and `5:bad`: milliseconds, and what comes of it.
    async fn winner(addresses: &[&str]) -> (Option<String>, usize, Duration) {
        let begun = Instant::now();
        let dial = |address: String| async move {
            let (delay_ms, outcome) = address.split_once(':').expect("two parts");
            tokio::time::sleep(Duration::from_millis(delay_ms.parse().expect("a number"))).await;
            if outcome == "ok" { Ok(address) } else { Err((address.clone(), "bad".to_owned())) }
        };
        let mut failures = 0;
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        let won = first(addresses, HEAD_START, dial, |_| failures += 1).await;
        (won, failures, begun.elapsed())
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[tokio::test(start_paused = true)]
    async fn the_preferred_one_wins_unless_another_is_clearly_nearer() {
        assert_eq!(winner(&["20:ok", "0:ok"]).await, (Some("20:ok".into()), 0, ms(20)));
        assert_eq!(winner(&["60:ok", "0:ok"]).await, (Some("0:ok".into()), 0, ms(30)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_refuses_costs_nothing_and_one_that_swallows_a_head_start() {
        assert_eq!(winner(&["0:bad", "1:ok"]).await, (Some("1:ok".into()), 1, ms(1)));
        assert_eq!(winner(&["99999:ok", "1:ok"]).await, (Some("1:ok".into()), 0, ms(31)));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_wins_when_all_fail() {
        assert_eq!(winner(&["5:bad", "2:bad"]).await, (None, 2, ms(7)));
        assert_eq!(winner(&[]).await, (None, 0, ms(0)));
    }
}

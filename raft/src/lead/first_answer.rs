//! The best of several who are asked at once, without waiting for ever for one that says nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

/// Asks all of them; gives the position of the first one that says yes. Those before it are waited for only so
/// long: one that is paused or cut off is silent until its question times out, and whoever asks holds up
/// the cluster meanwhile. Later than that, whoever says yes first is good enough. `None`: nobody does.
pub(super) async fn first_yes(
    questions: impl IntoIterator<Item = impl Future<Output = bool>>,
    patience: Duration,
) -> Option<usize> {
    let numbered = questions.into_iter().enumerate();
    let mut asked: FuturesUnordered<_> =
        numbered.map(|(position, question)| async move { (position, question.await) }).collect();
    let mut silent: BTreeSet<usize> = (0..asked.len()).collect();
    let mut best: Option<usize> = None;
    let deadline = Instant::now() + patience;
    loop {
        let is_settled = |best: &usize| silent.first().is_none_or(|first| best < first);
        if let Some(best) = best.filter(is_settled) {
            return Some(best);
        }
        tokio::select! {
            biased;
            answer = asked.next() => {
                let Some((position, yes)) = answer else { return best };
                silent.remove(&position);
                if yes {
                    best = Some(best.map_or(position, |known| known.min(position)));
                }
            }
            () = tokio::time::sleep_until(deadline), if best.is_some() => return best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(150);

    /// Answers after so many milliseconds.
    async fn after(delay_ms: u64, answer: bool) -> bool {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        answer
    }

    /// Who is chosen, and after how many milliseconds.
    async fn chosen(answers: &[(u64, bool)]) -> (Option<usize>, u128) {
        let begun = Instant::now();
        let questions = answers.iter().map(|(delay_ms, answer)| after(*delay_ms, *answer));
        let chosen = first_yes(questions, PATIENCE).await;
        (chosen, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_is_preferred_though_another_answers_sooner() {
        assert_eq!(chosen(&[(100, true), (1, true)]).await, (Some(0), 100));
        assert_eq!(chosen(&[(1, true), (600, true)]).await, (Some(0), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_silent_is_not_waited_for_beyond_the_patience() {
        assert_eq!(chosen(&[(600, true), (1, true)]).await, (Some(1), 150));
        assert_eq!(chosen(&[(600, false), (600, false), (40, true)]).await, (Some(2), 150));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_says_no_is_passed_over_at_once() {
        assert_eq!(chosen(&[(1, false), (2, true), (600, true)]).await, (Some(1), 2));
        assert_eq!(chosen(&[(600, true), (1, false), (2, true)]).await, (Some(2), 150));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_are_slow_the_first_yes_counts() {
        assert_eq!(chosen(&[(500, true), (400, true), (300, false)]).await, (Some(1), 400));
        assert_eq!(chosen(&[(600, false), (500, false)]).await, (None, 600));
        assert_eq!(chosen(&[]).await, (None, 0));
    }
}

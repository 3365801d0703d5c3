//! Whether a silence of many is this node's own.

use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ids::JobId;

use super::{Liveness, Rules, Silence};

/// With fewer peers, more than half of them may well be one machine.
const CROWD: usize = 4;

/// Whether so much silence is rather this node's own deafness. It counts once: who is still silent after another
/// time to live is given up. One for each job that is watched.
#[derive(Debug)]
pub struct Deafness<P> {
    /// When it last waited, and for how many.
    waited: Option<Instant>,
    /// Peers that fell silent lately.
    lately: Vec<(Instant, P)>,
}

impl<P> Default for Deafness<P> {
    fn default() -> Self {
        Self { waited: None, lately: Vec::new() }
    }
}

impl<P: Copy + PartialEq> Deafness<P> {
    /// Of those who are overdue, whom to give up now: all of them or nobody, who is given another time to live then.
    pub fn given_up<R: Rules<Peer = P>, N: Copy>(
        &mut self,
        liveness: &Liveness<R, N>,
        job: JobId,
        rules: R,
        silence: Silence<P>,
    ) -> Vec<P> {
        let ttl = rules.ttl(silence.regular);
        if silence.overdue.is_empty() || !self.suspects_itself(&silence, ttl) {
            return silence.overdue;
        }
        tracing::warn!(
            job = job.0,
            silent_lately = self.lately.len(),
            silent_now = silence.overdue.len(),
            watched = silence.regular,
            "more than half of all peers fell silent within one time to live, so this node may be the one that is \
             cut off; it waits"
        );
        liveness.put_off(job, &silence.overdue, ttl);
        Vec::new()
    }

    fn suspects_itself(&mut self, silence: &Silence<P>, ttl: Duration) -> bool {
        let now = Instant::now();
        self.lately.retain(|(at, _)| now - *at < ttl);
        for peer in &silence.overdue {
            if !self.lately.iter().any(|(_, known)| known == peer) {
                self.lately.push((now, *peer));
            }
        }
        let many = silence.regular >= CROWD && self.lately.len() * 2 > silence.regular;
        // Long enough for the peers that were put off to be looked at once more.
        let waited = self.waited.is_some_and(|at| now - at < ttl * 3);
        if !many || waited {
            return false;
        }
        self.waited = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Short;
    use super::*;

    fn silence(overdue: &[u64], regular: usize) -> Silence<u64> {
        Silence { overdue: overdue.to_vec(), regular }
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_half_in_one_ttl_is_suspected_once() {
        let (mut deafness, ttl) = (Deafness::default(), Duration::from_secs(3));
        assert!(!deafness.suspects_itself(&silence(&[1, 2], 5), ttl), "two of five");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(deafness.suspects_itself(&silence(&[3], 5), ttl), "three of five within one ttl");
        tokio::time::advance(ttl).await;
        assert!(!deafness.suspects_itself(&silence(&[1, 2, 3], 5), ttl), "it has waited");
    }

    /// Beats of all peers stay in this node's queues for a while, and then they are heard again; or they are not.
    #[tokio::test(start_paused = true)]
    async fn f23_nobody_is_given_up_for_a_silence_of_more_than_half_that_ends_within_one_ttl() {
        const JOB: JobId = JobId(1);
        for comes_back in [true, false] {
            let (liveness, mut deafness) = (Liveness::<Short, ()>::default(), Deafness::default());
            let watched: Vec<(u64, bool)> = (0..6).map(|peer| (peer, true)).collect();
            liveness.begin(JOB, Short);
            liveness.watch(JOB, &watched, Some(Duration::from_secs(15)));
            let mut given_up = Vec::new();
            for tick in 0..400 {
                tokio::time::advance(Duration::from_millis(100)).await;
                let (_, silence) = liveness.tick(JOB);
                given_up.extend(deafness.given_up(&liveness, JOB, Short, silence));
                let waits = deafness.waited.is_some();
                for peer in 0..6 {
                    // Two of six are heard all the time.
                    if peer < 2 || (comes_back && waits && tick % 10 == 0) {
                        liveness.hear(JOB, peer, None);
                    }
                }
                let left = watched.iter().filter(|(peer, _)| !given_up.contains(peer)).copied();
                liveness.watch(JOB, &left.collect::<Vec<_>>(), None);
            }
            assert!(deafness.waited.is_some(), "it suspected itself");
            let silent = if comes_back { &[][..] } else { &[2, 3, 4, 5] };
            assert_eq!(given_up, silent);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_that_is_spread_over_time_or_of_few_is_believed() {
        let (mut deafness, ttl) = (Deafness::default(), Duration::from_secs(3));
        for id in 0..5 {
            assert!(!deafness.suspects_itself(&silence(&[id], 5), ttl));
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        assert!(!deafness.suspects_itself(&silence(&[1, 2, 3], 3), ttl), "one machine, perhaps");
    }
}

//! Holding the answer to a beat while another task of the job may be about to be given up: the caller
//! then hears of it when it happens, and not half a heartbeat timeout later.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tripod_state::task::Beat as Opinion;
use tripod_state::{Fault, Reply, Topic};

use super::{Beat, Pulse, Suspicion};
use crate::outage::Outage;

/// What the leader's timers and the replication of an expiry take, generously.
const EXPIRY_TAKES: Duration = Duration::from_millis(250);
/// Until when an answer may be held, and until when it must be given, in thousandths of the heartbeat
/// timeout. The client gives up, and ends its process, at 500.
const HELD_UNTIL: u32 = 450;
const ANSWERED_UNTIL: u32 = 475;
/// What must be left at least of the client's patience at these two times.
const HELD_SPARE: Duration = Duration::from_millis(400);
const ANSWERED_SPARE: Duration = Duration::from_millis(200);

impl Pulse {
    /// Gives `reply` after the time of the suspect is up, or the fault that ends this task before.
    pub(super) async fn linger(
        &self,
        beat: Beat,
        reply: Reply,
        suspicion: Suspicion,
        arrived: Instant,
        timeout: Duration,
    ) -> Result<Reply, Outage> {
        let within = Duration::from_millis(suspicion.within.0);
        let Some(held) = held_for(arrived.elapsed(), within, timeout) else { return Ok(reply) };
        // A node that is full keeps nobody waiting for what may not even come.
        let Ok(_waiting) = self.calls.enter() else { return Ok(reply) };
        let again = async {
            sleep_until(arrived + held).await;
            // The client's next beat counts from the answer, so this is when it must have been heard.
            let left = latest(timeout, ANSWERED_UNTIL, ANSWERED_SPARE).saturating_sub(arrived.elapsed());
            self.told_within(beat, left).await
        };
        tokio::select! {
            biased;
            fault = self.refused(beat, suspicion) => Ok(Err(fault)),
            told = again => Ok(told?.reply),
        }
    }

    /// Resolves when this node's own state refuses the task for a reason that came after the leader's
    /// word.
    async fn refused(&self, beat: Beat, suspicion: Suspicion) -> Fault {
        if self.backend.wait_applied(suspicion.seen).await.is_err() {
            // The node is stopping, which the next question to the leader will say.
            return std::future::pending().await;
        }
        let mut polls = self.hub.watch(Topic::Polls(beat.scope.job));
        let mut tasks = self.hub.watch(Topic::Tasks(beat.scope.job));
        loop {
            if let Opinion::Refused(fault) = self.opinion(beat) {
                return fault;
            }
            tokio::select! {
                () = polls.changed() => {}
                () = tasks.changed() => {}
            }
        }
    }
}

/// How long after its arrival a beat is held that has been here for `waited` when it is told that a
/// suspect may be given up `within` so long. `None` if the client cannot wait until then: half a
/// timeout after an answer that is given at once, its next beat comes little later than the news.
fn held_for(waited: Duration, within: Duration, timeout: Duration) -> Option<Duration> {
    let held = waited.saturating_add(within).saturating_add(EXPIRY_TAKES);
    (held <= latest(timeout, HELD_UNTIL, HELD_SPARE)).then_some(held)
}

/// So many thousandths of the timeout, if that leaves at least `spare` of the half that the client
/// waits.
fn latest(timeout: Duration, thousandths: u32, spare: Duration) -> Duration {
    (timeout * thousandths / 1000).min((timeout / 2).saturating_sub(spare))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_beat_is_held_until_the_suspect_is_given_up_and_a_little_longer() {
        assert_eq!(held_for(ms(0), ms(3000), ms(10_000)), Some(ms(3250)));
        assert_eq!(held_for(ms(1000), ms(3000), ms(10_000)), Some(ms(4250)));
        assert_eq!(held_for(ms(0), ms(0), ms(2000)), Some(ms(250)));
    }

    #[test]
    fn a_beat_is_not_held_if_the_client_cannot_wait_so_long() {
        assert_eq!(held_for(ms(0), ms(4250), ms(10_000)), Some(ms(4500)));
        assert_eq!(held_for(ms(0), ms(4251), ms(10_000)), None);
        assert_eq!(held_for(ms(1251), ms(3000), ms(10_000)), None);
        assert_eq!(held_for(ms(0), ms(0), ms(1000)), None, "the spare time counts with a short timeout");
        assert_eq!(held_for(ms(1), ms(u64::MAX), ms(10_000)), None);
    }

    #[test]
    fn the_last_word_comes_after_the_hold_and_before_the_client_gives_up() {
        for timeout in [1_300, 2_000, 10_000, 100_000, 86_400_000].map(ms) {
            let held = latest(timeout, HELD_UNTIL, HELD_SPARE);
            let answered = latest(timeout, ANSWERED_UNTIL, ANSWERED_SPARE);
            assert!(held < answered && answered + ANSWERED_SPARE <= timeout / 2, "{timeout:?}");
        }
    }
}

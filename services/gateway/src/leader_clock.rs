//! How long the way to the leader is, how far its clock is from this node's, and what time the log has: asked when somebody
//! looks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::time::{Instant, timeout};
use tripod_state::State;
use tripod_state::ids::{FeatureLevel, NodeId, TimeMs};

use crate::backend::look;
use crate::clock;
use crate::gateway::Gateway;
use crate::peers::Channel;

/// From this feature level on whoever leads answers.
const SINCE: FeatureLevel = FeatureLevel(11);
/// Who looks sees everything else without it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Of an answer: microseconds since 1970, and the time with which it stamps the log.
const ANSWER_BYTES: usize = 8 + 8;

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeaderClock {
    pub leader: NodeId,
    /// From the question to the answer, with what both processes needed for it.
    pub round_trip: Duration,
    /// Seconds by which the leader's clock is ahead of this node's; behind, if negative. Wrong by half of the round trip
    /// at most.
    pub offset_seconds: f64,
    /// With what the leader stamps the log now. That is not its machine's clock, if somebody has set it, or if the log was
    /// ahead of it.
    pub log_time: TimeMs,
}

impl Gateway {
    /// Asks the leader for the time; `None` on the leader itself, without one, and if it does not answer within half a
    /// second or belongs to a cluster of an earlier level.
    pub async fn leader_clock(&self) -> Option<LeaderClock> {
        let leader = self.leadership().borrow().leader?;
        let is_known = look(self.backend.as_ref(), State::level) >= SINCE;
        if !is_known || leader == self.admin().status().node {
            return None;
        }
        let (began, before) = (Instant::now(), micros());
        let asked = timeout(PATIENCE, self.ask_leader(Channel::CLOCK, &Bytes::new())).await.ok()?.ok()?;
        let round_trip = began.elapsed();
        let (theirs, log_time) = decode(asked)?;
        let half = i128::try_from(round_trip.as_micros() / 2).ok()?;
        let log_time = TimeMs(log_time.0.saturating_add(clock::millis(round_trip / 2)));
        Some(LeaderClock { leader, round_trip, offset_seconds: seconds(theirs - (before + half)), log_time })
    }

    /// The time of the log now: what is compared with when the state says that something happened. This node's own clock may
    /// be far from it, and is taken only where this node leads or the leader does not answer. As long as
    /// [`Self::leader_clock`].
    pub async fn log_time(&self) -> TimeMs {
        let told = self.leader_clock().await.map_or_else(|| self.now(), |clock| clock.log_time);
        told.max(look(self.backend.as_ref(), State::now_ms))
    }
}

/// The time as it is answered by a node that stamps with `log_time`.
pub(crate) fn answer(log_time: TimeMs) -> Bytes {
    let mut bytes = BytesMut::with_capacity(ANSWER_BYTES);
    bytes.put_u64(u64::try_from(micros()).unwrap_or_default());
    bytes.put_u64(log_time.0);
    bytes.freeze()
}

fn decode(mut answer: Bytes) -> Option<(i128, TimeMs)> {
    (answer.len() == ANSWER_BYTES).then(|| (i128::from(answer.get_u64()), TimeMs(answer.get_u64())))
}

/// Of the machine's clock, which people compare their logs by.
fn micros() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_micros()).unwrap_or(i128::MAX)
}

/// Of clocks that are less than a century apart.
fn seconds(micros: i128) -> f64 {
    let length = u64::try_from(micros.unsigned_abs()).unwrap_or(u64::MAX);
    let seconds = Duration::from_micros(length).as_secs_f64();
    if micros < 0 { -seconds } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_ahead_or_behind() {
        assert!((seconds(1_500_000) - 1.5).abs() < 1e-9 && (seconds(-250_000) + 0.25).abs() < 1e-9);
        let (told, log_time) = decode(answer(TimeMs(7))).expect("a time");
        assert!((micros() - told).abs() < 60_000_000 && log_time == TimeMs(7));
        assert_eq!(decode(Bytes::from_static(b"short")), None);
    }

    #[tokio::test]
    async fn a_leader_has_no_way_to_itself_and_its_own_clock_is_the_logs() {
        let (gateway, backend) = Gateway::in_memory_at(TimeMs(5_000_000));
        assert_eq!(gateway.leader_clock().await, None);
        let now = gateway.log_time().await;
        assert!((5_000_000..6_000_000).contains(&now.0), "{now:?}");
        backend.depose();
        assert_eq!(gateway.leader_clock().await, None);
    }
}

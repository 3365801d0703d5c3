//! How long the way to the leader is, and how far its clock is from this node's: asked when somebody looks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::time::{Instant, timeout};
use tripod_state::State;
use tripod_state::ids::{FeatureLevel, NodeId};

use crate::backend::look;
use crate::gateway::Gateway;
use crate::peers::Channel;

/// From this feature level on whoever leads answers.
const SINCE: FeatureLevel = FeatureLevel(11);
/// Who looks sees everything else without it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Of an answer: microseconds since 1970.
const ANSWER_BYTES: usize = 8;

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeaderClock {
    pub leader: NodeId,
    /// From the question to the answer, with what both processes needed for it.
    pub round_trip: Duration,
    /// Seconds by which the leader's clock is ahead of this node's; behind, if negative. Wrong by half of the round trip
    /// at most.
    pub offset_seconds: f64,
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
        let theirs = decode(asked)?;
        let half = i128::try_from(round_trip.as_micros() / 2).ok()?;
        Some(LeaderClock { leader, round_trip, offset_seconds: seconds(theirs - (before + half)) })
    }
}

/// The time as it is answered.
pub(crate) fn answer() -> Bytes {
    let mut bytes = BytesMut::with_capacity(ANSWER_BYTES);
    bytes.put_u64(u64::try_from(micros()).unwrap_or_default());
    bytes.freeze()
}

fn decode(mut answer: Bytes) -> Option<i128> {
    (answer.len() == ANSWER_BYTES).then(|| i128::from(answer.get_u64()))
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
        let told = decode(answer()).expect("a time");
        assert!((micros() - told).abs() < 60_000_000);
        assert_eq!(decode(Bytes::from_static(b"short")), None);
    }

    #[tokio::test]
    async fn a_leader_has_no_way_to_itself() {
        let (gateway, backend) = Gateway::in_memory();
        assert_eq!(gateway.leader_clock().await, None);
        backend.depose();
        assert_eq!(gateway.leader_clock().await, None);
    }
}

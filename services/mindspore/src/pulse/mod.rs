//! Signs of life: every node tells the leader whom it has heard, in batches. They never touch the log.
//!
//! | module | holds |
//! |---|---|
//! | `conversation`, `wire` | how it is told |
//! | `heard` | the leader's memory |

mod conversation;
mod heard;
mod wire;

use std::time::Duration;

use tripod_gateway::{Batches, Gateway};
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;
use tripod_state::mindspore::cluster::Incarnation;

use self::conversation::Beats;

pub(crate) use self::heard::PeerMemory;

/// How long a heartbeat waits for the leader. Its node waits for an answer for 10 s, and sends the next one anyway.
const PATIENCE: Duration = Duration::from_secs(5);

/// One sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Of a node of a dynamic cluster.
    Topology { job: JobId, member: Member },
    /// Of a node of a parameter server's cluster, and which process of it that is, if it is known.
    Cluster { job: JobId, member: Member, incarnation: Option<Incarnation> },
}

/// One of those that the leader hears of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    job: JobId,
    member: Member,
}

/// The telling side, on every node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pulse(Batches<Beats>);

impl Pulse {
    /// Must be called within a tokio runtime.
    pub(crate) fn start(gateway: Gateway) -> Self {
        Self(Batches::start(Beats::new(gateway)))
    }

    /// Tells the leader of one sign of life. If there is none, nobody counts what it did not hear.
    pub(crate) async fn beat(&self, beat: Beat) {
        let sign = match beat {
            Beat::Topology { job, member } => Sign { job, member },
            // Nobody watches them yet.
            Beat::Cluster { job, member, incarnation } => {
                tracing::trace!(job = job.0, ?member, ?incarnation, "a node of a parameter server lives");
                return;
            }
        };
        match tokio::time::timeout(PATIENCE, self.0.ask(sign)).await {
            Ok(Ok(())) => {}
            Ok(Err(outage)) => tracing::debug!(%outage, "a heartbeat of a MindSpore node is not told"),
            Err(_) => tracing::debug!("a heartbeat of a MindSpore node is not told in time"),
        }
    }
}

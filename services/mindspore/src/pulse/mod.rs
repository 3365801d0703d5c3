//! Signs of life: every node tells the leader whom it has heard, in batches. They never touch the log.
//!
//! | module | holds |
//! |---|---|
//! | `gathered` | heartbeats, which nobody waits for, gathered for a moment |
//! | `conversation`, `wire` | how they are told |
//! | `heard` | the leader's memory |
//! | `switches` | what servers have answered to what an operator told them all |

mod conversation;
mod gathered;
mod heard;
mod switches;
mod wire;

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tripod_gateway::{Batches, Channel, Gateway, Outage};
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;
use tripod_state::mindspore::cluster::Incarnation;

use self::conversation::Beats;
use self::gathered::Gathered;
use self::wire::{Heard, Report};

pub(crate) use self::heard::PeerMemory;

/// How long a sign of life waits for the leader. A node that registers waits for an answer for longer, and one that beats
/// sends the next one anyway.
const PATIENCE: Duration = Duration::from_secs(5);

/// One sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Of a node of a dynamic cluster.
    Topology { job: JobId, member: Member },
    /// Of a node of a parameter server's cluster. `None`: whichever of its processes it is that lives.
    Cluster { job: JobId, member: Member, incarnation: Option<Incarnation> },
}

/// Who gives signs of life: a node, and for one of a parameter server's cluster its process.
pub(crate) type Peer = (Member, Option<Incarnation>);

/// The telling side, on every node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pulse {
    asking: Batches<Beats>,
    gathered: Gathered,
}

impl Pulse {
    /// Must be called within a tokio runtime.
    pub(crate) fn start(gateway: Gateway) -> Self {
        let gathered = Gathered::start(gateway.clone());
        Self { asking: Batches::start(Beats::new(gateway)), gathered }
    }

    /// Tells the leader of a heartbeat, soon and with others. Nobody waits for that.
    pub(crate) fn note(&self, beat: Beat) {
        self.gathered.note(beat);
    }

    /// Has the leader know of one sign of life. If there is no leader, nobody counts what it did not hear.
    pub(crate) async fn told(&self, beat: Beat) {
        match tokio::time::timeout(PATIENCE, self.asking.ask(beat)).await {
            Ok(Ok(())) => {}
            Ok(Err(outage)) => tracing::debug!(%outage, "a sign of life of a MindSpore node is not told"),
            Err(_) => tracing::debug!("a sign of life of a MindSpore node is not told in time"),
        }
    }
}

/// What servers have answered to a switch, by rank, as far as whoever leads has heard it: a leader that was elected
/// meanwhile has not.
///
/// # Errors
/// [`Outage`].
pub(crate) async fn switch_answers(
    gateway: &Gateway,
    job: JobId,
    switch: u64,
) -> Result<Vec<(u32, Bytes)>, Outage> {
    let question = Report::about(job, switch).encode_to_vec().into();
    let answer = gateway.ask_leader(Channel::MINDSPORE, &question).await?;
    let heard = Heard::decode(answer)
        .map_err(|error| Outage::NoLeader { waited_ms: 0, last: format!("the leader's answer: {error}") })?;
    Ok(heard.answers.into_iter().map(|said| (said.rank, said.text)).collect())
}

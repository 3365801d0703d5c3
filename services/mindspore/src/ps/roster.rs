//! All nodes of a cluster, as every heartbeat is answered. Of a thousand nodes one asks every three milliseconds, and what
//! they are told changes rarely: it is written once for all of them.

use bytes::Bytes;
use futures::FutureExt as _;
use prost::Message as _;
use tokio::sync::Mutex;
use tripod_gateway::{Consistency, Gateway, Outage, Watch};
use tripod_proto::mindspore::ps_core::HeartbeatRespMessage;
use tripod_state::ids::JobId;
use tripod_state::{DomainId, Scope, State, Topic};

use super::answer;

/// What is told of all, as this node knew it a moment ago.
#[derive(Debug, Clone, Default)]
pub(crate) struct All {
    /// The nodes as they stand in an answer to a heartbeat.
    pub(crate) nodes: Bytes,
    /// Whether a worker is dead, or the first server.
    pub(crate) is_vital_lost: bool,
}

/// Of one port.
#[derive(Default)]
pub(crate) struct Roster(Mutex<Option<Kept>>);

struct Kept {
    job: JobId,
    changes: Watch,
    all: All,
}

impl Roster {
    /// All nodes of the job's cluster.
    ///
    /// # Errors
    /// [`Outage`].
    pub(crate) async fn all(&self, gateway: &Gateway, scope: Scope) -> Result<All, Outage> {
        let mut kept = self.0.lock().await;
        if let Some(kept) = kept.as_mut()
            && kept.job == scope.job
            && kept.changes.changed().now_or_never().is_none()
        {
            return Ok(kept.all.clone());
        }
        // Before the state is looked at: what changes later is noticed.
        let changes = gateway.watch(Topic::Domain(DomainId::Mindspore, scope.job));
        let all = gateway.read(Consistency::Local, |state| All::of(state, scope)).await?;
        *kept = Some(Kept { job: scope.job, changes, all: all.clone() });
        Ok(all)
    }
}

impl All {
    fn of(state: &State, scope: Scope) -> Self {
        // Without its job there is no cluster, and soon no port.
        let nodes = state.cluster_nodes(scope).unwrap_or_default();
        let servers_meta = nodes.iter().filter_map(answer::meta).collect();
        let list = HeartbeatRespMessage { servers_meta, ..Default::default() };
        let is_vital_lost = state.cluster(scope).is_ok_and(|view| view.is_vital_lost);
        Self { nodes: list.encode_to_vec().into(), is_vital_lost }
    }
}

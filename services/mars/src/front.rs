//! The way from a call to the cluster and back: whose job it is, ask, and what is told beside every answer.

use bytes::Bytes;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};
use tripod_gateway::{Consistency, Gateway, JobBinding, Outage};
use tripod_proto::mars::v1 as pb;
use tripod_proto::metadata;
use tripod_state::{Answer, Command, Reply, Scope, State};
use tripod_tile::Helpers;

use crate::chunk_keys::ChunkKeys;
use crate::figures::Figures;
use crate::status;
use crate::tiling::Turns;

/// The trailer of an answer that says that there is no leader, or that it cannot be asked: where it is, if somebody knows.
const LEADER: &str = "leader-address";

/// What all calls of a node share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) gateway: Gateway,
    pub(crate) cluster_id: String,
    pub(crate) turns: Turns,
    pub(crate) helpers: Helpers,
    pub(crate) figures: Figures,
    pub(crate) chunk_keys: ChunkKeys,
}

/// A gateway as the calls of one port see it.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) shared: Shared,
    pub(crate) binding: JobBinding,
}

impl Front {
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// The job that a call is about.
    pub(crate) async fn scope(&self, metadata: &MetadataMap) -> Result<Scope, Status> {
        let wanted = metadata.get(metadata::JOB).and_then(|name| name.to_str().ok());
        // The host that was dialled says nothing here: nodes are dialled by addresses.
        match self.binding.find(self.gateway(), wanted, None).await {
            Ok(Ok(job)) => Ok(Scope { job, service: None }),
            Ok(Err(fault)) => Err(status::of_fault(&fault)),
            Err(outage) => Err(self.led(status::of_outage(&outage)).await),
        }
    }

    /// Replicates a command and gives its answer.
    pub(crate) async fn submit(&self, command: Command) -> Result<Answer, Status> {
        self.told(self.gateway().submit(command).await).await
    }

    /// What became of a command, as its client is told.
    pub(crate) async fn told(&self, reply: Result<Reply, Outage>) -> Result<Answer, Status> {
        match status::answer(reply) {
            Err(outage) if status::is_outage(&outage) => Err(self.led(outage).await),
            answered => answered,
        }
    }

    /// Looks at the state. Keep it short: apply waits.
    pub(crate) async fn read<T>(
        &self,
        freshness: Consistency,
        look: impl FnOnce(&State) -> T + Send,
    ) -> Result<T, Status> {
        match self.gateway().read(freshness, look).await {
            Ok(found) => Ok(found),
            Err(outage) => Err(self.led(status::of_outage(&outage)).await),
        }
    }

    /// Looks at a fork of the state, on a thread: for what may be a hundred thousand of something.
    pub(crate) async fn read_aside<T: Send + 'static>(
        &self,
        freshness: Consistency,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Status> {
        match self.gateway().read_aside(freshness, move |_, state| look(state)).await {
            Ok(found) => Ok(found),
            Err(outage) => Err(self.led(status::of_outage(&outage)).await),
        }
    }

    /// As of when an answer is.
    pub(crate) fn header(&self) -> pb::Header {
        let now = *self.gateway().leadership().borrow();
        pb::Header {
            cluster_id: self.shared.cluster_id.clone(),
            leader_id: now.leader.map_or(0, |leader| leader.0),
            term: now.term.0,
            applied_index: self.gateway().applied_index().0,
        }
    }

    /// An outage, with where the leader is if this node knows one.
    async fn led(&self, mut outage: Status) -> Status {
        let leader = self.gateway().leadership().borrow().leader;
        let members = self.gateway().read(Consistency::Local, State::members).await.unwrap_or_default();
        let leads = members.into_iter().find(|(node, _)| Some(*node) == leader);
        let address = leads.and_then(|(_, addresses)| MetadataValue::try_from(addresses.client).ok());
        if let Some(address) = address {
            outage.metadata_mut().insert(LEADER, address);
        }
        outage
    }
}

/// Bytes of all parts, one after the other.
pub(crate) fn joined(parts: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(parts) {
        Ok([only]) => only,
        Err(parts) => parts.concat().into(),
    }
}

//! The front end on one node, as the binary composes it.

use std::sync::Arc;

use bytes::Bytes;
use tripod_dial::Dialler;
use tripod_gateway::{Channel, FrontEnd, Future, Gateway, JobBinding, Outage, PortKind};
use tripod_port::{Framed, Manner};
use tripod_state::Scope;
use tripod_state::ids::JobId;

use crate::calls::{self, Calls, Dial};
use crate::connection::{self, Complaints, Port};
use crate::engine::{Engine, Patience};
use crate::ps::Roster;
use crate::pulse::{self, PeerMemory, Pulse};
use crate::queries::{self, Unanswered};

/// The ports that speak it: one for each job.
pub const PORT: PortKind = PortKind::Own("mindspore");

/// One for each node; cheap to clone.
#[derive(Clone)]
pub struct Mindspore {
    gateway: Gateway,
    pulse: Pulse,
    heard: Arc<PeerMemory>,
    calls: Calls,
    dialler: Dialler,
    patience: Patience,
    complaints: Complaints,
}

impl Mindspore {
    /// That of a node. Must be called once for a gateway, within a tokio runtime.
    #[must_use]
    pub fn new(gateway: &Gateway, dialler: &Dialler) -> Self {
        Self::with_patience(gateway, dialler, Patience::default())
    }

    /// One with other rules about silence: for tests.
    #[must_use]
    pub fn with_patience(gateway: &Gateway, dialler: &Dialler, patience: Patience) -> Self {
        let heard = Arc::<PeerMemory>::default();
        let answering = Arc::clone(&heard);
        gateway.answer_peers(Channel::MINDSPORE, Arc::new(move |report| answering.answer(report)));
        Self {
            gateway: gateway.clone(),
            pulse: Pulse::start(gateway.clone()),
            heard,
            calls: Calls::new(calls::by(dialler)),
            dialler: dialler.clone(),
            patience,
            complaints: Complaints::default(),
        }
    }

    /// The same that connects to nodes by another network: for tests.
    #[must_use]
    pub fn dialling(self, dial: Dial) -> Self {
        Self { calls: Calls::new(dial), ..self }
    }

    /// What federated learning runs at, as each server of the job's cluster says: text of JSON, by rank. It changes nothing,
    /// and any node asks.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn query_instance(&self, scope: Scope) -> Result<Vec<(u32, Bytes)>, Unanswered> {
        queries::query_instance(&self.gateway, &self.calls, scope).await
    }

    /// What servers have answered to what an operator told them all, by rank. Only whoever led then knows: of another
    /// leader there are fewer, or none.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn switch_answers(&self, job: JobId, switch: u64) -> Result<Vec<(u32, Bytes)>, Outage> {
        pulse::switch_answers(&self.gateway, job, switch).await
    }
}

impl FrontEnd for Mindspore {
    fn name(&self) -> &'static str {
        "mindspore"
    }

    fn serves(&self, port: PortKind) -> bool {
        port == PORT
    }

    fn framed(&self, binding: &JobBinding) -> Option<Framed> {
        let port = Port {
            gateway: self.gateway.clone(),
            binding: binding.clone(),
            pulse: self.pulse.clone(),
            complaints: self.complaints.clone(),
            roster: Arc::new(Roster::default()),
            calls: self.calls.clone(),
            dialler: self.dialler.clone(),
        };
        let framed =
            Framed::new(move |accepted, stopping| connection::serve(port.clone(), accepted, stopping));
        Some(framed.within(connection::TIMEOUTS))
    }

    fn manners(&self) -> &'static [Manner] {
        &[]
    }

    /// Notices silence and tells nodes what there is to tell whenever this node leads.
    fn background(&self) -> Option<Future<()>> {
        let Self { gateway, heard, calls, complaints, patience, .. } = self.clone();
        Some(Box::pin(Engine { gateway, heard, calls, complaints, patience }.run()))
    }
}

//! The front end on one node, as the binary composes it.

use std::sync::Arc;

use tripod_gateway::{Channel, FrontEnd, Future, Gateway, JobBinding, PortKind};
use tripod_port::{Framed, Manner};

use crate::connection::{self, Complaints, Port};
use crate::engine::{self, Patience};
use crate::ps::Roster;
use crate::pulse::{PeerMemory, Pulse};

/// The ports that speak it: one for each job.
pub const PORT: PortKind = PortKind::Own("mindspore");

/// One for each node; cheap to clone.
#[derive(Clone)]
pub struct Mindspore {
    gateway: Gateway,
    pulse: Pulse,
    heard: Arc<PeerMemory>,
    patience: Patience,
    complaints: Complaints,
}

impl Mindspore {
    /// That of a node. Must be called once for a gateway, within a tokio runtime.
    #[must_use]
    pub fn new(gateway: &Gateway) -> Self {
        Self::with_patience(gateway, Patience::default())
    }

    /// One with other rules about silence: for tests.
    #[must_use]
    pub fn with_patience(gateway: &Gateway, patience: Patience) -> Self {
        let heard = Arc::<PeerMemory>::default();
        let answering = Arc::clone(&heard);
        gateway.answer_peers(Channel::MINDSPORE, Arc::new(move |report| answering.answer(report)));
        Self {
            gateway: gateway.clone(),
            pulse: Pulse::start(gateway.clone()),
            heard,
            patience,
            complaints: Complaints::default(),
        }
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
        };
        let framed =
            Framed::new(move |accepted, stopping| connection::serve(port.clone(), accepted, stopping));
        Some(framed.within(connection::TIMEOUTS))
    }

    fn manners(&self) -> &'static [Manner] {
        &[]
    }

    /// Notices silence whenever this node leads.
    fn background(&self) -> Option<Future<()>> {
        let Self { gateway, heard, patience, .. } = self.clone();
        Some(Box::pin(engine::run(gateway, heard, patience)))
    }
}

//! The scheduler's front end on one node, as the binary composes it.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::service::Routes;
use tripod_dial::{Dialler, Named, Rule};
use tripod_gateway::{Channel, FrontEnd, Future, Gateway, JobBinding, PortKind};
use tripod_port::Manner;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::ray::obj_store_server::ObjStoreServer;
use tripod_proto::ray::scheduler_server::SchedulerServer;
use tripod_proto::tripod::v1::membership_server::MembershipServer;
use tripod_proto::tripod::v1::ray_line_server::RayLineServer;
use tripod_proto::tripod::v1::ray_server::RayServer;
use tripod_state::ids::JobId;
use tripod_state::ray::ids::StoreId;

use crate::engine::{self, Connect, Links, Patience};
use crate::front::Front;
use crate::leader::{self, Known};
use crate::manners::MANNERS;
use crate::oversize::Oversize;
use crate::pulse::{PeerMemory, Pulse, Usage};
use crate::{batch_stream, membership, native, scheduler, store};

/// Bytes of one message that are decoded: a batch of many tasks, or a function with what it captured. What is larger
/// belongs into an object.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// One for each node; cheap to clone.
#[derive(Clone)]
pub struct Scheduler {
    gateway: Gateway,
    pulse: Pulse,
    memory: Arc<PeerMemory>,
    leader: Known,
    patience: Patience,
    links: Links,
    dialler: Dialler,
}

impl Scheduler {
    /// The scheduler of a node, which connects to workers and stores as the dialler does. Must be called once for a
    /// gateway, within a tokio runtime.
    #[must_use]
    pub fn new(gateway: &Gateway, dialler: Dialler) -> Self {
        let links = dialler.clone();
        let connect: Connect = Arc::new(move |endpoint| {
            let links = links.clone();
            Box::pin(async move { links.connect_to_worker(endpoint, Named::Noted).await })
        });
        Self { dialler, ..Self::with_patience(gateway, Patience::default()).connecting(connect) }
    }

    /// One with other rules about silence, which connects to whatever is registered: for tests.
    #[must_use]
    pub fn with_patience(gateway: &Gateway, patience: Patience) -> Self {
        let memory = Arc::<PeerMemory>::default();
        let answering = Arc::clone(&memory);
        gateway.answer_peers(Channel::RAY, Arc::new(move |report| answering.answer(report)));
        Self {
            gateway: gateway.clone(),
            pulse: Pulse::start(gateway.clone()),
            memory,
            leader: leader::keep(gateway.clone()),
            patience,
            links: Links::default(),
            dialler: Dialler::new(Rule::any()),
        }
    }

    /// How full the stores of a job are, as they told the leader. Empty where it does not say.
    pub async fn usage(&self, job: JobId) -> HashMap<StoreId, Usage> {
        self.pulse.usage(job).await.unwrap_or_default()
    }

    /// The same with another way to workers and stores: for simulations.
    #[must_use]
    pub fn connecting(self, connect: Connect) -> Self {
        Self { links: Links::over(connect), ..self }
    }
}

impl FrontEnd for Scheduler {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn serves(&self, _port: PortKind) -> bool {
        true
    }

    fn add_to(&self, routes: Routes, binding: &JobBinding) -> Routes {
        let front = Front {
            gateway: self.gateway.clone(),
            binding: binding.clone(),
            pulse: self.pulse.clone(),
            leader: self.leader.clone(),
            dialler: self.dialler.clone(),
        };
        let scheduler = SchedulerServer::new(scheduler::Service::new(front.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        let ray = RayServer::new(native::Service::new(front.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        let batches = RayLineServer::new(batch_stream::Service::new(front.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        routes
            .add_service(Oversize(scheduler))
            .add_service(Oversize(ray))
            .add_service(Oversize(batches))
            .add_service(Oversize(ObjStoreServer::new(store::Service::new(front.clone()))))
            .add_service(Oversize(MembershipServer::new(membership::Service::new(front))))
    }

    fn manners(&self) -> &'static [Manner] {
        MANNERS
    }

    /// Plans, gives orders and watches whenever this node leads.
    fn background(&self) -> Option<Future<()>> {
        let Self { gateway, memory, patience, links, .. } = self.clone();
        Some(Box::pin(engine::run(gateway, memory, patience, links)))
    }
}

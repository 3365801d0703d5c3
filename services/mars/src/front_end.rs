//! The front end on one node, as the binary composes it.

use tonic::service::Routes;
use tripod_dial::Dialler;
use tripod_gateway::{FrontEnd, Future, Gateway, JobBinding, PortKind};
use tripod_port::Manner;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::mars::v1::scheduler_server::SchedulerServer;
use tripod_tile::Helpers;

use crate::chunk_keys::ChunkKeys;
use crate::engine::{self, Connect};
use crate::figures::{self, Figures};
use crate::front::{Front, Shared};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::manners::MANNERS;
use crate::oversize::Oversize;
use crate::service::Service;
use crate::tiling::Turns;

/// One for each node; cheap to clone.
#[derive(Clone)]
pub struct Mars {
    shared: Shared,
    connect: Connect,
}

impl Mars {
    /// That of a node, which connects to object stores as the dialler does.
    #[must_use]
    pub fn new(gateway: &Gateway, dialler: &Dialler) -> Self {
        let shared = Shared {
            gateway: gateway.clone(),
            cluster_id: gateway.admin().status().cluster_id,
            turns: Turns::new(),
            helpers: Helpers::Refused,
            figures: figures::unknown(),
            chunk_keys: ChunkKeys::default(),
        };
        Self { shared, connect: engine::by(dialler) }
    }

    /// The same with another way to object stores: for tests.
    #[must_use]
    pub fn connecting(self, connect: Connect) -> Self {
        Self { connect, ..self }
    }

    /// The same that knows how full object stores are.
    #[must_use]
    pub fn with_figures(mut self, figures: Figures) -> Self {
        self.shared.figures = figures;
        self
    }

    /// The same for whose graphs operators that only delay, fail or take memory are there: for tests.
    #[must_use]
    pub fn with_helpers(mut self) -> Self {
        self.shared.helpers = Helpers::ForTests;
        self
    }
}

impl FrontEnd for Mars {
    fn name(&self) -> &'static str {
        "mars"
    }

    fn serves(&self, port: PortKind) -> bool {
        matches!(port, PortKind::Client | PortKind::Job)
    }

    fn add_to(&self, routes: Routes, binding: &JobBinding) -> Routes {
        let front = Front { shared: self.shared.clone(), binding: binding.clone() };
        let scheduler = SchedulerServer::new(Service::new(front))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        routes.add_service(Oversize(scheduler))
    }

    fn manners(&self) -> &'static [Manner] {
        MANNERS
    }

    /// Proposes what is due, and has object stores seal, whenever this node leads.
    fn background(&self) -> Option<Future<()>> {
        let Self { shared, connect } = self.clone();
        Some(Box::pin(engine::run(shared.gateway, connect)))
    }
}

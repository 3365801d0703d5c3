//! xDS as the binary composes it.

use tonic::service::Routes;
use tripod_gateway::{FrontEnd, Gateway, JobBinding, PortKind};
use tripod_port::Manner;

use crate::manners::MANNERS;
use crate::service::add_to;

/// The aggregated discovery service, on the client port.
pub struct Xds {
    gateway: Gateway,
}

impl Xds {
    #[must_use]
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

impl FrontEnd for Xds {
    fn name(&self) -> &'static str {
        "xds"
    }

    fn serves(&self, port: PortKind) -> bool {
        port == PortKind::Client
    }

    fn add_to(&self, routes: Routes, _binding: &JobBinding) -> Routes {
        add_to(routes, &self.gateway)
    }

    fn manners(&self) -> &'static [Manner] {
        MANNERS
    }
}

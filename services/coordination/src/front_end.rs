//! The protocol as the binary composes it.

use tonic::service::Routes;
use tripod_gateway::{FrontEnd, Future, Gateway, JobBinding, PortKind};
use tripod_port::{Direct, Manner};

use crate::manners::MANNERS;
use crate::push::{self, Connect};
use crate::routes::{direct, routes};

/// All dialects, agents, and the telling of tasks. One for each node.
pub struct Coordination {
    gateway: Gateway,
    /// How tasks are connected to that are to be told of errors; `None`: nobody is told.
    connect: Option<Connect>,
}

impl Coordination {
    /// One that tells tasks of errors over connections that `connect` makes.
    #[must_use]
    pub fn telling(gateway: Gateway, connect: Connect) -> Self {
        Self { gateway, connect: Some(connect) }
    }

    /// One that tells nobody: for tests and simulations.
    #[must_use]
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway, connect: None }
    }
}

impl FrontEnd for Coordination {
    fn name(&self) -> &'static str {
        "coordination"
    }

    fn serves(&self, _port: PortKind) -> bool {
        true
    }

    fn add_to(&self, others: Routes, binding: &JobBinding) -> Routes {
        let own = routes(&self.gateway, binding).into_axum_router().reset_fallback();
        others.into_axum_router().merge(own).into()
    }

    fn direct(&self, binding: &JobBinding) -> Vec<Direct> {
        direct(&self.gateway, binding)
    }

    fn manners(&self) -> &'static [Manner] {
        MANNERS
    }

    fn background(&self) -> Option<Future<()>> {
        let (gateway, connect) = (self.gateway.clone(), self.connect.clone()?);
        Some(Box::pin(push::run_over(gateway, connect)))
    }
}

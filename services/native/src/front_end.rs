//! The API as the binary composes it.

use tokio::sync::watch;
use tonic::service::Routes;
use tripod_audit::Auditor;
use tripod_gate::Mode;
use tripod_gateway::{FrontEnd, Gateway, JobBinding, PortKind};
use tripod_port::{Direct, Manner};
use tripod_state::identity::Mode as Protection;

use crate::manners::MANNERS;
use crate::service::{add_to, cluster_service, direct};
use crate::{Backups, JobPorts};

/// `tripod.v1` and `grpc.health.v1`, on the client port.
pub struct Native {
    gateway: Gateway,
    job_ports: watch::Receiver<JobPorts>,
    backups: watch::Receiver<Option<Backups>>,
    auditor: Auditor,
    authorise: Mode,
    protection: Protection,
}

impl Native {
    /// `job_ports` is what the node tells about its job ports, at any time, and `backups` about those that it makes by
    /// itself, if it does.
    #[must_use]
    pub fn new(
        gateway: Gateway,
        job_ports: watch::Receiver<JobPorts>,
        backups: watch::Receiver<Option<Backups>>,
    ) -> Self {
        let (auditor, authorise) = (Auditor::default(), Mode::Off);
        Self { gateway, job_ports, backups, auditor, authorise, protection: Protection::Off }
    }

    /// The same, whose calls that change who takes part, the level or tokens, or end a job, are written down there.
    #[must_use]
    pub fn audited_by(self, auditor: Auditor) -> Self {
        Self { auditor, ..self }
    }

    /// The same of a node that does this with calls that their callers may not make.
    #[must_use]
    pub fn authorising(self, authorise: Mode) -> Self {
        Self { authorise, ..self }
    }

    /// The same of a node that is protected so.
    #[must_use]
    pub fn protected(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// One whose node has no job ports and makes no backups: for tests and simulations.
    #[must_use]
    pub fn alone(gateway: Gateway) -> Self {
        Self::new(gateway, watch::channel(JobPorts::default()).1, watch::channel(None).1)
    }
}

impl FrontEnd for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn serves(&self, port: PortKind) -> bool {
        port == PortKind::Client
    }

    fn add_to(&self, routes: Routes, _binding: &JobBinding) -> Routes {
        let told = (&self.job_ports, &self.backups);
        let (authorise, protection) = (self.authorise, self.protection);
        let cluster = cluster_service(&self.gateway, told, &self.auditor, (authorise, protection));
        add_to(routes, &self.gateway, cluster, (&self.auditor, authorise, protection))
    }

    fn direct(&self, _binding: &JobBinding) -> Vec<Direct> {
        direct(&self.gateway)
    }

    fn manners(&self) -> &'static [Manner] {
        MANNERS
    }
}

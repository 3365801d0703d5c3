//! The services and how they are mounted.

mod cluster;
mod diagnose;
mod direct_kv;
mod events;
mod jobs;
mod kv;
mod levels;
mod members;
mod mindspore;
mod sessions;
mod snapshots;
mod tokens;

use std::sync::Arc;

use tokio::sync::watch;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tripod_audit::Auditor;
use tripod_gate::Mode;
use tripod_gateway::Gateway;
use tripod_port::Direct;
use tripod_proto::tripod::v1::cluster_server::ClusterServer;
use tripod_proto::tripod::v1::diagnose_server::DiagnoseServer;
use tripod_proto::tripod::v1::events_server::EventsServer;
use tripod_proto::tripod::v1::jobs_server::JobsServer;
use tripod_proto::tripod::v1::kv_server::KvServer;
use tripod_proto::tripod::v1::levels_server::LevelsServer;
use tripod_proto::tripod::v1::mindspore_server::MindsporeServer;
use tripod_proto::tripod::v1::sessions_server::SessionsServer;
use tripod_proto::tripod::v1::snapshots_server::SnapshotsServer;
use tripod_proto::tripod::v1::tokens_server::TokensServer;
use tripod_state::identity::Mode as Protection;

use crate::{Backups, JobPorts, health};

/// A value at its limit plus key and framing must reach the state machine, which refuses what is too
/// large with a better text than the decoder has.
const REQUEST_BYTES_MAX: usize = 66 << 20;

/// What a node says of itself: `job_ports` is what it tells about its job ports, at any time, `backups` about those that it
/// makes by itself, if it does, `authorise` what it does with calls that their callers may not make, and `protection` how it
/// is protected.
pub(crate) fn cluster_service(
    gateway: &Gateway,
    (job_ports, backups): (&watch::Receiver<JobPorts>, &watch::Receiver<Option<Backups>>),
    auditor: &Auditor,
    (authorise, protection): (Mode, Protection),
) -> cluster::Service {
    cluster::Service::new(gateway.clone(), job_ports.clone(), backups.clone(), auditor.clone(), authorise)
        .protected(protection)
}

/// Adds the services of `tripod.v1`, and `grpc.health.v1`, to the routes of a port. Calls that change something of the
/// cluster are written down by `auditor`; `authorise` is what the node does with calls that their callers may not make.
pub(crate) fn add_to(
    routes: Routes,
    gateway: &Gateway,
    cluster: cluster::Service,
    (auditor, authorise, protection): (&Auditor, Mode, Protection),
) -> Routes {
    let tokens = tokens::Service::new(gateway.clone(), auditor.clone(), authorise).protected(protection);
    let kv = kv_server(Arc::new(kv::Service::new(gateway.clone())));
    routes
        .add_service(ClusterServer::new(cluster))
        .add_service(DiagnoseServer::new(diagnose::Service::new(gateway.clone())))
        .add_service(LevelsServer::new(levels::Service::new(gateway.clone(), auditor.clone())))
        .add_service(JobsServer::new(jobs::Service::new(gateway.clone(), auditor.clone())))
        .add_service(EventsServer::new(events::Service::new(gateway.clone())))
        .add_service(MindsporeServer::new(mindspore::Service::new(gateway.clone())))
        .add_service(SessionsServer::new(sessions::Service::new(gateway.clone())))
        .add_service(SnapshotsServer::new(snapshots::Service::new(gateway.clone(), auditor.clone())))
        .add_service(TokensServer::new(tokens))
        .add_service(kv)
        .add_service(HealthServer::new(health::Service::new(gateway.clone())))
}

/// Those that are called past the router: the ones that are called often.
pub(crate) fn direct(gateway: &Gateway) -> Vec<Direct> {
    vec![Direct::of(direct_kv::DirectKv::new(Arc::new(kv::Service::new(gateway.clone()))))]
}

/// The service that is generated, around ours.
fn kv_server(service: Arc<kv::Service>) -> KvServer<kv::Service> {
    KvServer::from_arc(service)
        .max_decoding_message_size(REQUEST_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip)
}

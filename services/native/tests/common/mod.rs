//! What the test programs of this crate share.

use tokio::sync::watch;
use tonic::service::Routes;
use tripod_gateway::Gateway;
use tripod_native::JobPorts;

/// Everything of this crate.
pub(crate) fn routes(gateway: &Gateway) -> Routes {
    let (ports, backups) = (watch::channel(JobPorts::default()).1, watch::channel(None).1);
    tripod_native::add_to(Routes::default(), gateway, &ports, &backups)
}

//! How each call may end when its node stops: the row for the port.

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server as ads;
use tripod_port::{Ending, Manner, MethodKind};

/// Of the service of the front end.
pub const MANNERS: &[Manner] = &[Manner {
    service: ads::SERVICE_NAME,
    kind: MethodKind::Streaming,
    other: Ending::Once,
    methods: &[],
    poll_over: "",
}];

//! How each call may end when its node stops: the rows for the port.

use tonic_health::pb::health_server as health;
use tripod_port::{Ending, Manner, Method, MethodKind};
use tripod_proto::tripod::v1::{
    cluster_server, jobs_server, kv_server, levels_server, mindspore_server, sessions_server,
    snapshots_server, tokens_server,
};

/// Of all services of the front end.
pub const MANNERS: &[Manner] = &[
    Manner::own(cluster_server::SERVICE_NAME, &[]),
    Manner::own(levels_server::SERVICE_NAME, &[]),
    // Who waits for events asks for those behind a number, so again is the same.
    Manner::own(
        mindspore_server::SERVICE_NAME,
        &[Method::new("Events", Ending::Repeatable), Method::new("Switch", Ending::Own).with_value()],
    ),
    Manner::own(jobs_server::SERVICE_NAME, &[]),
    Manner::own(sessions_server::SERVICE_NAME, &[]),
    Manner::own(snapshots_server::SERVICE_NAME, &[Method::new("Save", Ending::Own).streaming()]),
    Manner::own(tokens_server::SERVICE_NAME, &[]),
    Manner::own(kv_server::SERVICE_NAME, &[Method::new("Put", Ending::Own).with_value()]),
    Manner {
        service: health::SERVICE_NAME,
        kind: MethodKind::OneMessage,
        // Whoever watches a node's health watches again when the connection ends.
        other: Ending::Repeatable,
        methods: &[Method::new("Watch", Ending::Repeatable).streaming()],
        poll_over: "",
    },
];

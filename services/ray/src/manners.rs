//! How each call may end when its node stops: the rows for the port.

use tripod_port::Ending::{Once, Own};
use tripod_port::{Manner, Method, MethodKind};
use tripod_proto::ray::{obj_store_server, scheduler_server};
use tripod_proto::tripod::v1::{membership_server, ray_line_server, ray_server};

/// Of all services of the front end.
pub const MANNERS: &[Manner] = &[
    of_2016(scheduler_server::SERVICE_NAME, SCHEDULER),
    of_2016(obj_store_server::SERVICE_NAME, &[Method::new("StreamObjTo", Once).streaming()]),
    Manner::own(ray_server::SERVICE_NAME, &[]),
    Manner { kind: MethodKind::Streaming, ..Manner::own(ray_line_server::SERVICE_NAME, &[]) },
    Manner::own(membership_server::SERVICE_NAME, &[Method::new("Heartbeat", Own).beating()]),
];

const SCHEDULER: &[Method] = &[
    Method::new("ExportFunction", Once).with_value(),
    Method::new("ExportReusableVariable", Once).with_value(),
    Method::new("PutObj", Once).with_value(),
    Method::new("SubmitTask", Once).with_value(),
];

const fn of_2016(service: &'static str, methods: &'static [Method]) -> Manner {
    Manner { service, kind: MethodKind::OneMessage, other: Once, methods, poll_over: "" }
}

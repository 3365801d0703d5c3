//! How each call may end when its node stops: the rows for the port.
//!
//! The methods of the dialects that may be made twice, with the outcome of one, are those that look, or wait for something
//! that the state remembers.

use tripod_port::Ending::{Once, Own, Poll, Repeatable};
use tripod_port::{Ending, Manner, Method, MethodKind};
use tripod_proto::tensorflow::coordination_service_server as t;
use tripod_proto::tensorflow::eager::eager_service_server as eager;
use tripod_proto::tensorflow::worker_service_server as worker;
use tripod_proto::tripod::v1::agents_server as agents;
use tripod_proto::xla::coordination::coordination_service_server as n;
use tripod_proto::xla::distributed_runtime_service_server as l;

use crate::text::POLL_OVER;

/// Of all services of the front end.
pub const MANNERS: &[Manner] = &[
    dialect(n::SERVICE_NAME, N),
    dialect(t::SERVICE_NAME, T),
    dialect(l::SERVICE_NAME, L),
    dialect(worker::SERVICE_NAME, &[]),
    dialect(eager::SERVICE_NAME, &[]),
    Manner::own(
        agents::SERVICE_NAME,
        &[Method::new("Beat", Own).beating().streaming(), Method::new("WatchMembers", Own).streaming()],
    ),
];

const N: &[Method] = &[
    of("RegisterTask", Repeatable),
    of("Heartbeat", Repeatable).beating(),
    of("ShutdownTask", Repeatable),
    of("WatchTasks", Repeatable),
    of("InsertKeyValue", Once).with_value(),
    of("GetKeyValue", Repeatable),
    of("TryGetKeyValue", Repeatable),
    of("IncrementKeyValue", Once),
    of("GetKeyValueDir", Repeatable),
    of("DeleteKeyValue", Once),
    of("Barrier", Repeatable),
    of("CancelBarrier", Once),
    of("GetAliveTasks", Repeatable),
    of("PollForError", Poll),
    of("ReportErrorToService", Once).with_value(),
];

const T: &[Method] = &[
    of("RegisterTask", Repeatable),
    of("Heartbeat", Repeatable).beating(),
    of("WaitForAllTasks", Repeatable),
    of("ShutdownTask", Repeatable),
    of("ResetTask", Once),
    of("ReportErrorToTask", Once).with_value(),
    of("ReportErrorToService", Once).with_value(),
    of("GetTaskState", Repeatable),
    of("WatchJobState", Repeatable),
    of("InsertKeyValue", Once).with_value(),
    of("GetKeyValue", Repeatable),
    of("TryGetKeyValue", Repeatable),
    of("IncrementKeyValue", Once),
    of("GetKeyValueDir", Repeatable),
    of("DeleteKeyValue", Once),
    of("Barrier", Repeatable),
    of("CancelBarrier", Once),
    of("GetAliveTasks", Repeatable),
    of("PollForError", Poll),
];

const L: &[Method] = &[
    of("Connect", Repeatable),
    of("EnumerateDevices", Repeatable),
    of("Heartbeat", Repeatable).beating(),
    // It does not say who leaves, so two calls count as two nodes.
    of("Shutdown", Once),
    of("KeyValueGet", Repeatable),
    of("KeyValueSet", Once).with_value(),
    of("WaitAtBarrier", Repeatable),
];

const fn of(name: &'static str, ending: Ending) -> Method {
    Method::new(name, ending)
}

const fn dialect(service: &'static str, methods: &'static [Method]) -> Manner {
    Manner { service, kind: MethodKind::Unary, other: Once, methods, poll_over: POLL_OVER }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;
    use prost_types::{FileDescriptorSet, MethodDescriptorProto};

    use super::*;

    fn row(service: &str) -> &'static Manner {
        MANNERS.iter().find(|row| row.service == service).expect("a row")
    }

    #[test]
    fn only_what_may_be_made_twice_may_be_cut() {
        for service in ["xla.coordination.CoordinationService", "tensorflow.CoordinationService"] {
            let row = row(service);
            assert_eq!(row.ending("GetKeyValue"), Repeatable);
            assert_eq!(row.ending("ShutdownTask"), Repeatable);
            assert_eq!(row.ending("PollForError"), Poll);
            for once in ["InsertKeyValue", "IncrementKeyValue", "DeleteKeyValue", "NewerThanThis"] {
                assert_eq!(row.ending(once), Once, "{once}");
            }
        }
        let l = row("xla.DistributedRuntimeService");
        assert_eq!([l.ending("WaitAtBarrier"), l.ending("Shutdown")], [Repeatable, Once]);
        assert_eq!(row("tripod.v1.Agents").ending("WatchMembers"), Own);
    }

    #[test]
    fn every_method_of_the_dialects_has_a_row_and_there_is_no_other() {
        let files = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("descriptors").file;
        for (service, methods) in [(n::SERVICE_NAME, N), (t::SERVICE_NAME, T), (l::SERVICE_NAME, L)] {
            let described = files.iter().find_map(|file| {
                let name = |service: &str| format!("{}.{service}", file.package());
                file.service.iter().find(|described| name(described.name()) == service)
            });
            let described = described.expect("it is described");
            let described: BTreeSet<&str> =
                described.method.iter().map(MethodDescriptorProto::name).collect();
            let rows: BTreeSet<&str> = methods.iter().map(|method| method.name).collect();
            assert_eq!(rows, described, "{service}");
            assert_eq!(rows.len(), methods.len(), "{service}: twice");
        }
    }
}

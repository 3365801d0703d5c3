//! RPCs as figures speak of them: by a word for their protocol, and whether they wait for what others do.

use crate::rpc::Rpc;

/// What the paths of a protocol's services begin with, and its word. The first that fits counts.
const DIALECTS: &[(&str, &str)] = &[
    ("xla.coordination.", "N"),
    ("xla.", "L"),
    ("tensorflow.", "T"),
    ("tripod.peer.", "peer"),
    ("tripod.", "tripod"),
    ("mars.", "mars"),
    ("grpc.health.", "health"),
    ("envoy.", "xds"),
];
/// That of services without a package: the scheduler of the Ray of 2016, its workers and stores.
const WITHOUT_PACKAGE: &str = "ray";

/// Methods whose calls may wait for as long as their caller likes, for what others do. How long they take says nothing of us.
const WAITING: &[&str] = &[
    "Barrier",
    "Connect",
    "EnumerateDevices",
    "Events",
    "GetAliveTasks",
    "GetKeyValue",
    "KeyValueGet",
    "PollForError",
    "RegisterTask",
    "Shutdown",
    "ShutdownTask",
    "WaitAtBarrier",
    "WaitChunkGraph",
    "WaitForAllTasks",
    "WaitTileableGraph",
    "WatchJobState",
    "WatchTasks",
];

impl Rpc {
    /// The word for its protocol: one of a few.
    #[must_use]
    pub fn dialect(self) -> &'static str {
        let service = self.service();
        let found = DIALECTS.iter().find(|(begin, _)| service.starts_with(begin));
        found.map_or(WITHOUT_PACKAGE, |(_, dialect)| dialect)
    }

    /// `Service/Method`, without the package: with [`Self::dialect`] no other RPC is called so.
    #[must_use]
    pub fn call(self) -> String {
        let service = self.service();
        format!("{}/{}", service.rsplit('.').next().unwrap_or(service), self.method())
    }

    /// Whether its calls may wait for what others do.
    #[must_use]
    pub fn waits(self) -> bool {
        WAITING.contains(&self.method())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_service_with_a_package_has_a_word_of_its_own_protocol() {
        for rpc in Rpc::ALL {
            let has_package = rpc.service().contains('.');
            assert_eq!(has_package, rpc.dialect() != WITHOUT_PACKAGE, "{}", rpc.path());
        }
    }

    #[test]
    fn no_two_rpcs_have_one_name() {
        let names: BTreeSet<_> = Rpc::ALL.iter().map(|rpc| (rpc.dialect(), rpc.call())).collect();
        assert_eq!(names.len(), Rpc::ALL.len());
    }

    #[test]
    fn whoever_waits_is_an_rpc() {
        let methods: BTreeSet<&str> = Rpc::ALL.iter().map(|rpc| rpc.method()).collect();
        assert!(WAITING.iter().all(|method| methods.contains(method)), "{WAITING:?}");
        assert!(WAITING.is_sorted());
        let barrier = Rpc::of_path("/xla.coordination.CoordinationService/Barrier").expect("an RPC");
        assert_eq!((barrier.dialect(), barrier.waits()), ("N", true));
        let put = Rpc::of_path("/xla.DistributedRuntimeService/KeyValueSet").expect("an RPC");
        assert_eq!((put.dialect(), put.waits()), ("L", false));
    }
}

//! Which calls there are, and what may be done with each: the one table.
//!
//! *Stamped* calls change something, or record an arrival, so sending one again must not do it twice:
//! the stamp makes every attempt get the first one's outcome. The others only look, or only wait, and
//! may be sent as often as connections break. `PollForError` records that its task polls, but each
//! attempt has to take the place of the one before, which a remembered outcome would prevent.

use std::fmt;

/// The protocol of a call, told by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// `xla.coordination.CoordinationService`: jaxlib 0.10.0 and later.
    N,
    /// `tensorflow.CoordinationService`: jaxlib up to 0.9.2, and TensorFlow.
    T,
    /// `xla.DistributedRuntimeService`: jaxlib up to 0.4.14.
    L,
    /// Services of a TensorFlow server that a coordinator is asked for by mistake; the node answers.
    Foreign,
}

const SERVICES: [(&str, Dialect); 5] = [
    ("xla.coordination.CoordinationService", Dialect::N),
    ("tensorflow.CoordinationService", Dialect::T),
    ("xla.DistributedRuntimeService", Dialect::L),
    ("tensorflow.WorkerService", Dialect::Foreign),
    ("tensorflow.eager.EagerService", Dialect::Foreign),
];

/// What a call waits for, as an operator would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Until all tasks have come.
    Register,
    Heartbeat,
    /// Until there is an error.
    Poll,
    /// Until the key exists.
    Get,
    Barrier,
    /// Until task states change.
    Watch,
    /// Until all tasks leave.
    Shutdown,
    /// Nothing that takes long.
    Other,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Register,
        Self::Heartbeat,
        Self::Poll,
        Self::Get,
        Self::Barrier,
        Self::Watch,
        Self::Shutdown,
        Self::Other,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Register => "register",
            Self::Heartbeat => "heartbeat",
            Self::Poll => "poll",
            Self::Get => "get",
            Self::Barrier => "barrier",
            Self::Watch => "watch",
            Self::Shutdown => "shutdown",
            Self::Other => "other",
        })
    }
}

/// A call as the agent treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) dialect: Dialect,
    pub(crate) kind: Kind,
    pub(crate) stamped: bool,
}

const STAMPED: bool = true;
const FREE: bool = false;

/// Methods of N and T; their meanings are the same in both.
const COORDINATION: [(&str, Kind, bool); 21] = [
    ("RegisterTask", Kind::Register, STAMPED),
    ("Heartbeat", Kind::Heartbeat, FREE),
    ("ShutdownTask", Kind::Shutdown, STAMPED),
    ("ResetTask", Kind::Other, STAMPED),
    ("ReportErrorToService", Kind::Other, STAMPED),
    ("InsertKeyValue", Kind::Other, STAMPED),
    ("IncrementKeyValue", Kind::Other, STAMPED),
    ("DeleteKeyValue", Kind::Other, STAMPED),
    ("Barrier", Kind::Barrier, STAMPED),
    ("CancelBarrier", Kind::Other, STAMPED),
    ("GetAliveTasks", Kind::Barrier, STAMPED),
    ("WaitForAllTasks", Kind::Barrier, STAMPED),
    ("PollForError", Kind::Poll, FREE),
    ("GetKeyValue", Kind::Get, FREE),
    ("TryGetKeyValue", Kind::Other, FREE),
    ("GetKeyValueDir", Kind::Other, FREE),
    ("WatchTasks", Kind::Watch, FREE),
    ("WatchJobState", Kind::Watch, FREE),
    ("GetTaskState", Kind::Other, FREE),
    ("GetJobState", Kind::Other, FREE),
    ("ReportErrorToTask", Kind::Other, FREE),
];

/// Methods of L.
const RUNTIME: [(&str, Kind, bool); 7] = [
    ("Connect", Kind::Register, STAMPED),
    ("EnumerateDevices", Kind::Barrier, STAMPED),
    ("KeyValueSet", Kind::Other, STAMPED),
    ("WaitAtBarrier", Kind::Barrier, STAMPED),
    ("Shutdown", Kind::Shutdown, STAMPED),
    ("KeyValueGet", Kind::Get, FREE),
    ("Heartbeat", Kind::Heartbeat, FREE),
];

/// The call of a path such as `/package.Service/Method`; `None` for a service that is not passed on. A
/// method that is not in the table is passed on for the node to refuse.
pub(crate) fn find(path: &str) -> Option<Call> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let (_, dialect) = SERVICES.into_iter().find(|(name, _)| *name == service)?;
    let methods: &[(&str, Kind, bool)] = match dialect {
        Dialect::N | Dialect::T => &COORDINATION,
        Dialect::L => &RUNTIME,
        Dialect::Foreign => &[],
    };
    let known = methods.iter().find(|(name, ..)| *name == method);
    let (kind, stamped) = known.map_or((Kind::Other, FREE), |(_, kind, stamped)| (*kind, *stamped));
    Some(Call { dialect, kind, stamped })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;

    use super::*;

    #[test]
    fn a_path_tells_dialect_and_kind() {
        let call = find("/xla.coordination.CoordinationService/Barrier").expect("known");
        assert_eq!(call, Call { dialect: Dialect::N, kind: Kind::Barrier, stamped: true });
        let call = find("/xla.DistributedRuntimeService/Heartbeat").expect("known");
        assert_eq!(call, Call { dialect: Dialect::L, kind: Kind::Heartbeat, stamped: false });
        let call = find("/tensorflow.WorkerService/GetStatus").expect("passed on");
        assert_eq!((call.dialect, call.stamped), (Dialect::Foreign, false));
        for strange in ["", "/", "/tripod.v1.Kv/Put", "/xla.coordination.CoordinationService", "x"] {
            assert_eq!(find(strange), None, "{strange}");
        }
    }

    #[test]
    fn every_method_of_the_descriptors_is_in_the_table() {
        #[derive(Clone, PartialEq, prost::Message)]
        struct Method {
            #[prost(string, tag = "1")]
            name: String,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        struct Service {
            #[prost(string, tag = "1")]
            name: String,
            #[prost(message, repeated, tag = "2")]
            methods: Vec<Method>,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        struct File {
            #[prost(string, tag = "2")]
            package: String,
            #[prost(message, repeated, tag = "6")]
            services: Vec<Service>,
        }
        #[derive(Clone, PartialEq, prost::Message)]
        struct Files {
            #[prost(message, repeated, tag = "1")]
            files: Vec<File>,
        }

        let files = Files::decode(tripod_proto::DESCRIPTORS).expect("descriptors").files;
        let of_service = |wanted: &str| -> BTreeSet<String> {
            let services = files.iter().flat_map(|file| {
                file.services
                    .iter()
                    .map(move |service| (format!("{}.{}", file.package, service.name), service))
            });
            let methods =
                services.filter(|(name, _)| name == wanted).flat_map(|(_, service)| &service.methods);
            methods.map(|method| method.name.clone()).collect()
        };
        let table = |methods: &[(&str, Kind, bool)]| -> BTreeSet<String> {
            methods.iter().map(|(name, ..)| (*name).to_owned()).collect()
        };
        let known = table(&COORDINATION);
        for service in ["xla.coordination.CoordinationService", "tensorflow.CoordinationService"] {
            let methods = of_service(service);
            assert!(methods.len() >= 15, "{service}: {methods:?}");
            assert!(methods.is_subset(&known), "{service}: {:?}", methods.difference(&known));
        }
        let legacy = of_service("xla.DistributedRuntimeService");
        assert!(legacy.is_subset(&table(&RUNTIME)), "{legacy:?}");
    }

    #[test]
    fn the_readme_has_the_same_table() {
        let readme = include_str!("../README.md");
        let cells = |line: &'static str| -> Vec<&'static str> { line.split('|').map(str::trim).collect() };
        let rows: Vec<Vec<&str>> = readme.lines().filter(|line| line.starts_with("| `")).map(cells).collect();
        let mut listed = BTreeSet::new();
        for row in rows {
            let [_, method, dialects, treatment, ..] = row[..] else { panic!("{row:?}") };
            let method = method.trim_matches('`');
            for dialect in dialects.split_whitespace() {
                let service = match dialect {
                    "N" => SERVICES[0].0,
                    "T" => SERVICES[1].0,
                    "L" => SERVICES[2].0,
                    other => panic!("{other}"),
                };
                let call = find(&format!("/{service}/{method}")).expect("passed on");
                let expected = match treatment {
                    "stamped" => (true, false),
                    "free" => (false, false),
                    "batch" => (false, true),
                    other => panic!("{other}"),
                };
                assert_eq!((call.stamped, call.kind == Kind::Heartbeat), expected, "{dialect} {method}");
                listed.insert((dialect == "L", method));
            }
        }
        let of = |legacy: bool, methods: &'static [(&'static str, Kind, bool)]| {
            methods.iter().map(move |(name, ..)| (legacy, *name))
        };
        let table: BTreeSet<_> = of(false, &COORDINATION).chain(of(true, &RUNTIME)).collect();
        assert_eq!(listed, table);
    }
}

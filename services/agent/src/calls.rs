//! Which calls there are, and what may be done with each: the one table.
//!
//! See [`Repeat`] for how each may be sent again when it was sent and not answered.

use std::fmt;

use tripod_port::Ending;

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

/// What a write says of neither its task nor its life: the cluster is told by whose connection it came.
pub(crate) const INSERT_T: &str = "/tensorflow.CoordinationService/InsertKeyValue";

/// What gives every client of a host the same answer, which may be long.
pub(crate) const ENUMERATE_DEVICES: &str = "/xla.DistributedRuntimeService/EnumerateDevices";

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

impl Kind {
    /// Whether such a call waits for what others do, and may be held for days.
    pub(crate) fn is_held(self) -> bool {
        !matches!(self, Self::Heartbeat | Self::Other)
    }
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

/// How a call may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// As it is: it only looks.
    Free,
    /// With the stamp of its first attempt, so that every attempt gets the first one's outcome.
    Stamped,
    /// With the stamp of its first attempt; and if that one's session has expired, with another one, for
    /// the cluster also knows by what it says that it is the same call again. Such calls record an arrival
    /// and may wait for days. The stamp still counts: a late copy of an attempt would take the place of
    /// the one that waits.
    Recognised,
}

/// A call as the agent treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) dialect: Dialect,
    pub(crate) kind: Kind,
    pub(crate) repeat: Repeat,
    /// How it may end when the agent stops.
    pub(crate) ending: Ending,
}

/// What the table says of a method.
type Row = (&'static str, Kind, Repeat, Ending);

/// Methods of N and T; their meanings are the same in both.
const COORDINATION: [Row; 21] = [
    ("RegisterTask", Kind::Register, Repeat::Recognised, Ending::Repeatable),
    ("Heartbeat", Kind::Heartbeat, Repeat::Free, Ending::Repeatable),
    ("ShutdownTask", Kind::Shutdown, Repeat::Stamped, Ending::Repeatable),
    ("ResetTask", Kind::Other, Repeat::Stamped, Ending::Once),
    ("ReportErrorToService", Kind::Other, Repeat::Stamped, Ending::Once),
    ("InsertKeyValue", Kind::Other, Repeat::Stamped, Ending::Once),
    ("IncrementKeyValue", Kind::Other, Repeat::Stamped, Ending::Once),
    ("DeleteKeyValue", Kind::Other, Repeat::Stamped, Ending::Once),
    ("Barrier", Kind::Barrier, Repeat::Recognised, Ending::Repeatable),
    ("CancelBarrier", Kind::Other, Repeat::Stamped, Ending::Once),
    ("GetAliveTasks", Kind::Barrier, Repeat::Stamped, Ending::Repeatable),
    ("WaitForAllTasks", Kind::Barrier, Repeat::Recognised, Ending::Repeatable),
    ("PollForError", Kind::Poll, Repeat::Recognised, Ending::Poll),
    ("GetKeyValue", Kind::Get, Repeat::Free, Ending::Repeatable),
    ("TryGetKeyValue", Kind::Other, Repeat::Free, Ending::Repeatable),
    ("GetKeyValueDir", Kind::Other, Repeat::Free, Ending::Repeatable),
    ("WatchTasks", Kind::Watch, Repeat::Free, Ending::Repeatable),
    ("WatchJobState", Kind::Watch, Repeat::Free, Ending::Repeatable),
    ("GetTaskState", Kind::Other, Repeat::Free, Ending::Repeatable),
    ("GetJobState", Kind::Other, Repeat::Free, Ending::Once),
    ("ReportErrorToTask", Kind::Other, Repeat::Free, Ending::Once),
];

/// Methods of L.
const RUNTIME: [Row; 7] = [
    ("Connect", Kind::Register, Repeat::Recognised, Ending::Repeatable),
    ("EnumerateDevices", Kind::Barrier, Repeat::Recognised, Ending::Repeatable),
    ("KeyValueSet", Kind::Other, Repeat::Stamped, Ending::Once),
    ("WaitAtBarrier", Kind::Barrier, Repeat::Stamped, Ending::Repeatable),
    ("Shutdown", Kind::Shutdown, Repeat::Stamped, Ending::Once),
    ("KeyValueGet", Kind::Get, Repeat::Free, Ending::Repeatable),
    ("Heartbeat", Kind::Heartbeat, Repeat::Free, Ending::Repeatable),
];

/// The call of a path such as `/package.Service/Method`; `None` for a service that is not passed on. A
/// method that is not in the table is passed on for the node to refuse.
pub(crate) fn find(path: &str) -> Option<Call> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let (_, dialect) = SERVICES.into_iter().find(|(name, _)| *name == service)?;
    let methods: &[Row] = match dialect {
        Dialect::N | Dialect::T => &COORDINATION,
        Dialect::L => &RUNTIME,
        Dialect::Foreign => &[],
    };
    let known = methods.iter().find(|(name, ..)| *name == method);
    let (_, kind, repeat, ending) =
        known.copied().unwrap_or((method, Kind::Other, Repeat::Free, Ending::Once));
    Some(Call { dialect, kind, repeat, ending })
}

/// Whether the table has the method of a path, and not only its service.
pub(crate) fn is_listed(path: &str) -> bool {
    let Some((_, method)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return false;
    };
    let methods: &[Row] = match find(path).map(|call| call.dialect) {
        Some(Dialect::N | Dialect::T) => &COORDINATION,
        Some(Dialect::L) => &RUNTIME,
        Some(Dialect::Foreign) | None => &[],
    };
    methods.iter().any(|(name, ..)| *name == method)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;

    use super::*;

    #[test]
    fn a_path_tells_dialect_and_kind() {
        let call = find("/xla.coordination.CoordinationService/Barrier").expect("known");
        let ending = Ending::Repeatable;
        assert_eq!(
            call,
            Call { dialect: Dialect::N, kind: Kind::Barrier, repeat: Repeat::Recognised, ending }
        );
        let call = find("/xla.DistributedRuntimeService/Heartbeat").expect("known");
        assert_eq!(call, Call { dialect: Dialect::L, kind: Kind::Heartbeat, repeat: Repeat::Free, ending });
        let call = find("/tensorflow.WorkerService/GetStatus").expect("passed on");
        assert_eq!((call.dialect, call.repeat), (Dialect::Foreign, Repeat::Free));
        for strange in ["", "/", "/tripod.v1.Kv/Put", "/xla.coordination.CoordinationService", "x"] {
            assert_eq!(find(strange), None, "{strange}");
            assert!(!is_listed(strange), "{strange}");
        }
    }

    #[test]
    fn a_method_that_is_not_in_the_table_is_passed_on_and_not_listed() {
        assert!(is_listed("/xla.coordination.CoordinationService/Barrier"));
        assert!(is_listed("/xla.DistributedRuntimeService/KeyValueSet"));
        for path in
            ["/xla.coordination.CoordinationService/KeyValueSet", "/tensorflow.WorkerService/GetStatus"]
        {
            assert!(find(path).is_some() && !is_listed(path), "{path}");
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
        let table = |methods: &[Row]| -> BTreeSet<String> {
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
    fn a_stop_gives_back_what_a_stop_of_a_node_gives_back() {
        for (service, dialect) in SERVICES {
            let row = tripod_coordination::MANNERS.iter().find(|row| row.service == service);
            let row = row.expect("nodes serve it");
            let methods: &[Row] = if dialect == Dialect::L { &RUNTIME } else { &COORDINATION };
            for (method, ..) in methods {
                // Nodes answer at once what they do not know.
                if let Some(of_nodes) = row.method(method) {
                    let call = find(&format!("/{service}/{method}")).expect("passed on");
                    assert_eq!(call.ending, of_nodes.ending, "{service} {method}");
                }
            }
        }
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
                    "stamped" => (Repeat::Stamped, false),
                    "recognised" => (Repeat::Recognised, false),
                    "free" => (Repeat::Free, false),
                    "batch" => (Repeat::Free, true),
                    other => panic!("{other}"),
                };
                assert_eq!((call.repeat, call.kind == Kind::Heartbeat), expected, "{dialect} {method}");
                listed.insert((dialect == "L", method));
            }
        }
        let of =
            |legacy: bool, methods: &'static [Row]| methods.iter().map(move |(name, ..)| (legacy, *name));
        let table: BTreeSet<_> = of(false, &COORDINATION).chain(of(true, &RUNTIME)).collect();
        assert_eq!(listed, table);
    }
}

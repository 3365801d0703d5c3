//! The policy: what each crate may depend on, and who may depend on crates that are not ours.

/// What a crate of the workspace may depend on among the crates of the workspace.
pub(super) struct Ours {
    pub(super) package: &'static str,
    pub(super) may: &'static [&'static str],
    /// And these in its tests.
    pub(super) dev: &'static [&'static str],
    pub(super) because: &'static str,
}

/// What tests of every crate may use: it knows nothing of Tripod.
pub(super) const FOR_TESTS: &[&str] = &["tripod-lines", "tripod-wait"];

/// A protocol of clients. The binary and the fuzzer may depend on each of them, and nothing else of the product.
pub(super) struct FrontEnd {
    pub(super) package: &'static str,
    /// What it may use in its tests, besides.
    pub(super) dev: &'static [&'static str],
}

/// What every front end may depend on. None of them sees raft.
pub(super) const FRONT_END_MAY: &[&str] = &[
    "tripod-audit",
    "tripod-backoff",
    "tripod-dial",
    "tripod-gate",
    "tripod-gateway",
    "tripod-local",
    "tripod-port",
    "tripod-proto",
    "tripod-state",
    "tripod-tls",
    "tripod-token",
];

/// Front ends that stand on a crate of their own which sees nothing of nodes: frames that others read as well, how graphs
/// are cut, and how facts are judged.
pub(super) const OWN: &[(&str, &str)] = &[
    ("tripod-mars", "tripod-tile"),
    ("tripod-mindspore", "tripod-mindspore-wire"),
    ("tripod-native", "tripod-sight"),
    ("tripod-web", "tripod-sight"),
];

/// Who depends on front ends, because it composes nodes of them.
pub(super) const COMPOSE: &[&str] = &["tripod", "tripod-fuzz"];

pub(super) const FRONT_ENDS: &[FrontEnd] = &[
    FrontEnd { package: "tripod-coordination", dev: &[] },
    FrontEnd { package: "tripod-echo", dev: &[] },
    FrontEnd { package: "tripod-mars", dev: &["tripod-ray"] },
    FrontEnd { package: "tripod-mindspore", dev: &[] },
    FrontEnd { package: "tripod-native", dev: &["tripod-client", "tripod-identity"] },
    FrontEnd { package: "tripod-ray", dev: &[] },
    FrontEnd { package: "tripod-web", dev: &["tripod-identity"] },
    FrontEnd { package: "tripod-xds", dev: &["tripod-coordination"] },
];

pub(super) const OURS: &[Ours] = &[
    Ours { package: "tripod-proto", may: &[], dev: &[], because: "messages on the wire know no logic" },
    Ours { package: "tripod-state", may: &[], dev: &[], because: "the state machine sees nothing of ours" },
    Ours {
        package: "tripod-tile",
        may: &[],
        dev: &[],
        because: "how tensors are cut follows from the graph alone",
    },
    Ours {
        package: "tripod-local",
        may: &["tripod-proto"],
        dev: &[],
        because: "whose a file or a socket is knows nothing of what it is for",
    },
    Ours {
        package: "tripod-audit",
        may: &["tripod-local"],
        dev: &[],
        because: "how lines prove each other is the same whatever is written down",
    },
    Ours {
        package: "tripod-backoff",
        may: &[],
        dev: &[],
        because: "how to rest is the same whatever is tried again",
    },
    Ours {
        package: "tripod-identity",
        may: &[],
        dev: &[],
        because: "who somebody is says nothing of what that one may do",
    },
    Ours {
        package: "tripod-sight",
        may: &[],
        dev: &[],
        because: "what is wrong follows from the facts alone, however they came",
    },
    Ours {
        package: "tripod-tls",
        may: &["tripod-identity", "tripod-proto"],
        dev: &[],
        because: "how bytes are protected, and whom a certificate names, knows nothing of what they say",
    },
    Ours {
        package: "tripod-token",
        may: &["tripod-identity", "tripod-state"],
        dev: &[],
        because: "whether a token is believed follows from its text and the state alone",
    },
    Ours {
        package: "tripod-gate",
        may: &["tripod-identity"],
        // Its list of RPCs is compared with the messages.
        dev: &["tripod-proto"],
        because: "who may call what is a table, whatever the calls mean",
    },
    Ours {
        package: "tripod-raft",
        may: &[
            "tripod-backoff",
            "tripod-dial",
            "tripod-gate",
            "tripod-local",
            "tripod-proto",
            "tripod-state",
            "tripod-tls",
        ],
        dev: &[],
        because: "raft carries the state",
    },
    Ours {
        package: "tripod-dial",
        may: &["tripod-gate", "tripod-identity", "tripod-proto", "tripod-tls"],
        dev: &[],
        because: "whom one connects to, and how, is the same for everybody",
    },
    Ours {
        package: "tripod-mindspore-wire",
        may: &["tripod-proto"],
        dev: &[],
        because: "frames are the same for who serves them and who passes them on",
    },
    Ours {
        package: "tripod-port",
        may: &["tripod-gate", "tripod-local", "tripod-proto", "tripod-tls"],
        // Both ends of a stream of calls are tried against each other.
        dev: &["tripod-calls"],
        because: "how connections are accepted and left is the same for every protocol, and for agents",
    },
    Ours {
        package: "tripod-gateway",
        may: &[
            "tripod-backoff",
            "tripod-gate",
            "tripod-identity",
            "tripod-local",
            "tripod-port",
            "tripod-proto",
            "tripod-raft",
            "tripod-state",
            "tripod-token",
        ],
        dev: &[],
        because: "the gateway is the only way to raft for front ends",
    },
    Ours {
        package: "tripod-agent",
        may: &[
            "tripod-beats",
            "tripod-calls",
            "tripod-dial",
            "tripod-local",
            "tripod-mindspore-wire",
            "tripod-port",
            "tripod-proto",
        ],
        dev: &["tripod-coordination", "tripod-gateway", "tripod-mindspore", "tripod-native", "tripod-state"],
        because: "the agent passes bytes on, by streams as other clients do, and shares with the nodes only how connections are accepted, and with clients how they are made",
    },
    Ours {
        package: "tripod-chunk-data",
        may: &["tripod-dial", "tripod-local", "tripod-proto"],
        dev: &[],
        because: "how chunks are read and written knows nothing of where objects are, nor of who leads",
    },
    Ours {
        package: "tripod-objstore",
        may: &[
            "tripod-backoff",
            "tripod-chunk-data",
            "tripod-client",
            "tripod-dial",
            "tripod-local",
            "tripod-proto",
        ],
        dev: &[],
        because: "a store is a client: it keeps no decision",
    },
    Ours {
        package: "tripod-worker",
        may: &["tripod-backoff", "tripod-client", "tripod-dial", "tripod-objstore", "tripod-proto"],
        dev: &["tripod-gateway", "tripod-ray", "tripod-state"],
        because: "workers and drivers know only the wire, and the store of their own machine",
    },
    Ours {
        package: "tripod-beats",
        may: &["tripod-proto"],
        dev: &[],
        because: "what an agent knows of heartbeats is the same for agents that are only played",
    },
    Ours {
        package: "tripod-calls",
        may: &["tripod-proto"],
        dev: &[],
        because: "how calls share a stream is the same whoever makes them, and whatever they mean",
    },
    Ours {
        package: "tripod-client",
        may: &["tripod-backoff", "tripod-calls", "tripod-dial", "tripod-proto", "tripod-tls"],
        dev: &[],
        because: "a client knows only the wire, and how one connects",
    },
    Ours {
        package: "tripod-load",
        may: &["tripod-beats", "tripod-calls", "tripod-client", "tripod-dial", "tripod-proto"],
        dev: &[],
        because: "a load generator is a client",
    },
    Ours {
        package: "tripod",
        may: &[
            "tripod-agent",
            "tripod-audit",
            "tripod-backoff",
            "tripod-client",
            "tripod-dial",
            "tripod-gate",
            "tripod-gateway",
            "tripod-identity",
            "tripod-load",
            "tripod-local",
            "tripod-objstore",
            "tripod-port",
            "tripod-proto",
            "tripod-raft",
            "tripod-sight",
            "tripod-state",
            "tripod-tls",
            "tripod-token",
            "tripod-worker",
        ],
        dev: &["tripod-processes"],
        because: "the binary composes everything and nothing builds on it",
    },
    Ours {
        package: "tripod-checkers",
        may: &[],
        dev: &[],
        because: "a history is judged alike, wherever it comes from",
    },
    Ours {
        package: "tripod-processes",
        may: &[
            "tripod-calls",
            "tripod-checkers",
            "tripod-client",
            "tripod-load",
            "tripod-proto",
            "tripod-wait",
            "tripod-worker",
        ],
        dev: &[],
        because: "faults hit processes through the wire",
    },
    Ours {
        package: "tripod-simulation",
        may: &[
            "tripod-checkers",
            "tripod-coordination",
            "tripod-dial",
            "tripod-gateway",
            "tripod-mars",
            "tripod-mindspore",
            "tripod-native",
            "tripod-port",
            "tripod-proto",
            "tripod-raft",
            "tripod-ray",
            "tripod-state",
        ],
        dev: &[],
        because: "the simulation runs whole nodes in one process",
    },
    Ours {
        package: "tripod-bench",
        may: &["tripod-client", "tripod-load", "tripod-processes", "tripod-proto"],
        dev: &[],
        because: "what is measured is what a client sees of processes",
    },
    Ours {
        package: "tripod-chaos",
        may: &[
            "tripod-bench",
            "tripod-checkers",
            "tripod-client",
            "tripod-processes",
            "tripod-raft",
            "tripod-simulation",
            "tripod-state",
            "tripod-wait",
        ],
        dev: &["tripod-calls", "tripod-load", "tripod-proto", "tripod-worker"],
        because: "runs compose faults, clients and checkers, and nothing builds on them",
    },
    Ours {
        package: "tripod-fuzz",
        may: &[
            "tripod-agent",
            "tripod-chunk-data",
            "tripod-dial",
            "tripod-gateway",
            "tripod-lines",
            "tripod-objstore",
            "tripod-port",
            "tripod-proto",
            "tripod-raft",
            "tripod-state",
            "tripod-worker",
        ],
        dev: &[],
        because: "whatever reads bytes of others is fuzzed, each crate by what it shows",
    },
    Ours {
        package: "tripod-tests",
        may: &["tripod-client", "tripod-processes", "tripod-proto", "tripod-state", "tripod-wait"],
        dev: &[],
        because: "whole programs are tested through the wire",
    },
    Ours {
        package: "tripod-lines",
        may: &[],
        dev: &[],
        because: "connections are the same whatever they carry",
    },
    Ours {
        package: "tripod-wait",
        may: &[],
        dev: &[],
        because: "how to wait is the same whatever is waited for",
    },
    Ours { package: "xtask", may: &[], dev: &[], because: "checks must build when nothing else does" },
];

/// Who may depend on a crate that is not ours.
pub(super) struct Theirs {
    pub(super) crates: &'static [&'static str],
    pub(super) normal: Users,
    /// These may use it in their tests.
    pub(super) dev: Users,
    pub(super) because: &'static str,
}

/// Some crates of ours.
pub(super) enum Users {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

impl Users {
    pub(super) fn have(&self, package: &str) -> bool {
        match self {
            Self::These(some) => some.contains(&package),
            Self::AllBut(some) => !some.contains(&package),
        }
    }
}

pub(super) const THEIRS: &[Theirs] = &[
    Theirs {
        crates: &["openraft", "sled"],
        normal: Users::These(&["tripod-raft"]),
        dev: Users::These(&["tripod-raft"]),
        because: "one crate knows how the log is replicated and stored",
    },
    Theirs {
        crates: &["prometheus-client"],
        normal: Users::These(&["tripod-web"]),
        dev: Users::These(&["tripod-web"]),
        because: "one crate knows how figures are told",
    },
    Theirs {
        crates: &["rustls", "rustls-pki-types", "rustls-webpki", "tokio-rustls", "arc-swap"],
        normal: Users::These(&["tripod-tls"]),
        dev: Users::These(&["tripod-tls"]),
        because: "one crate knows how connections are protected",
    },
    Theirs {
        crates: &["age"],
        normal: Users::These(&["tripod"]),
        dev: Users::These(&["tripod"]),
        because: "whoever reads and writes files of operators seals and opens them",
    },
    Theirs {
        crates: &["x509-parser"],
        normal: Users::These(&["tripod-tls", "tripod"]),
        dev: Users::These(&["tripod-tls"]),
        because: "one crate reads whom certificates name, and one revokes them by their files",
    },
    Theirs {
        crates: &["tonic-health"],
        normal: Users::These(&["tripod-native"]),
        dev: Users::These(&["tripod-native"]),
        because: "readiness is decided in the gateway, and told by front ends",
    },
    Theirs {
        crates: &["bincode"],
        normal: Users::These(&["tripod-raft"]),
        dev: Users::These(&["tripod-raft", "tripod-state"]),
        because: "the codec stays behind one file with a version byte",
    },
    Theirs {
        crates: &["prost", "prost-types", "tonic", "tonic-prost", "tonic-prost-build", "protox"],
        normal: Users::AllBut(WIRELESS),
        dev: Users::AllBut(WIRELESS),
        because: "the wire ends where the domain begins",
    },
];

/// Who knows no message.
const WIRELESS: &[&str] = &[
    "tripod-audit",
    "tripod-backoff",
    "tripod-checkers",
    "tripod-echo",
    "tripod-identity",
    "tripod-local",
    "tripod-state",
    "tripod-tile",
    "tripod-tls",
    "tripod-wait",
    "xtask",
];

/// Everything that the state machine may be built from.
pub(super) const STATE_MAY: &[&str] = &["bytes", "imbl", "serde", "thiserror", "xxhash-rust"];

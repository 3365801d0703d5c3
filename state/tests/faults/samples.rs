//! At least one of every fault, and a transcript of what a table of faults says of each. Every front end reads this file
//! in its own tests: a transcript that changes is a code or a text that its clients see changed.

use std::fmt::Write as _;
use std::path::Path;

use tripod_state::ids::{
    BarrierCounter, BarrierName, CertificateName, ChangeId, FeatureLevel, Incarnation, JobName, Key, NodeId,
    NodeName, ServiceIncarnation, TaskId, TaskVersion, TimeMs, TokenId,
};
use tripod_state::mindspore::cluster::ClusterState;
use tripod_state::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::runtime::Call;
use tripod_state::{
    Asked, BarrierFault, Fault, Leaving, identity, level, mars, member, mindspore, ray, runtime, token,
};

/// Samples by pattern. The match has no wildcard: what has no sample does not compile.
macro_rules! samples {
    ($name:ident() -> $of:ty { $($pattern:pat => [$($sample:expr),+ $(,)?],)* }) => {
        fn $name() -> Vec<$of> {
            let _ = |one: &$of| match one {
                $($pattern => {})*
            };
            vec![$($($sample),+),*]
        }
    };
}

/// Compares what `say` makes of every fault with a file of the crate that is tested. `UPDATE_EXPECT=1` writes it; review
/// the difference.
pub(crate) fn check_transcript(file: &str, say: impl Fn(&Fault) -> String) {
    let mut said = String::new();
    for fault in all() {
        writeln!(said, "{fault:?}\n{}\n", say(&fault)).expect("a string");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, said).expect("the checkout is writable");
    } else {
        let written = std::fs::read_to_string(&path).expect("the transcript is part of the crate");
        assert_eq!(said, written, "{file}: UPDATE_EXPECT=1 writes what is said now");
    }
}

fn all() -> Vec<Fault> {
    let mut all = plain();
    let (barrier, counter) = (BarrierName::from("b"), BarrierCounter(2));
    let barriers = barriers().into_iter();
    all.extend(barriers.map(|fault| Fault::Barrier { barrier: barrier.clone(), counter, fault }));
    all.extend(of_runtime().into_iter().map(Fault::Runtime));
    all.extend(of_members().into_iter().map(Fault::Member));
    all.extend(of_level().into_iter().map(Fault::Level));
    all.extend(of_schedulers().into_iter().map(Fault::Ray));
    all.extend(of_clusters().into_iter().map(Fault::Mindspore));
    all.extend(of_sessions().into_iter().map(Fault::Mars));
    all.extend(of_tokens().into_iter().map(Fault::Token));
    all.extend(of_identities().into_iter().map(Fault::NotAuthorised));
    all
}

fn reported() -> Box<Fault> {
    Box::new(Fault::Reported { task: TaskId(1), code: 13, message: "boom".to_owned() })
}

fn silent() -> Box<Fault> {
    Box::new(Fault::HeartbeatTimeout { task: TaskId(2) })
}

fn barrier_failed() -> Box<Fault> {
    let fault = BarrierFault::Cancelled { by: TaskId(1) };
    Box::new(Fault::Barrier { barrier: BarrierName::from("end"), counter: BarrierCounter(0), fault })
}

fn key() -> Key {
    Key::from("a/b")
}

fn asked(asked: Asked) -> Fault {
    Fault::TaskUnknown { task: TaskId(9), asked }
}

samples! {
    plain() -> Fault {
        Fault::JobUnknown { .. } => [
            Fault::JobUnknown { name: None },
            Fault::JobUnknown { name: Some(JobName::from("train")) },
        ],
        Fault::ServiceMismatch { .. } => [
            Fault::ServiceMismatch { requested: ServiceIncarnation(1), current: ServiceIncarnation(2) },
        ],
        Fault::TaskUnknown { .. } => [
            asked(Asked::Register),
            asked(Asked::Heartbeat),
            asked(Asked::Disconnect),
            asked(Asked::Report),
            asked(Asked::Poll),
            asked(Asked::State),
        ],
        Fault::RegistrationReplaced => [Fault::RegistrationReplaced],
        Fault::RegisteredInError { .. } => [
            Fault::RegisteredInError { task: TaskId(1), existing: reported() },
        ],
        Fault::Restarted { .. } => [Fault::Restarted { task: TaskId(1) }],
        Fault::RegistrationFailed { .. } => [
            Fault::RegistrationFailed { cause: barrier_failed() },
            Fault::RegistrationFailed { cause: silent() },
        ],
        Fault::BeatInError { .. } => [Fault::BeatInError { task: TaskId(1), existing: reported() }],
        Fault::BeatUnregistered { .. } => [Fault::BeatUnregistered { task: TaskId(1) }],
        Fault::BeatOfOtherLife { .. } => [
            Fault::BeatOfOtherLife { task: TaskId(1), expected: Incarnation(5), got: Incarnation(6) },
        ],
        Fault::HeartbeatTimeout { .. } => [*silent()],
        Fault::TasksUnhealthy { .. } => [
            Fault::TasksUnhealthy { tasks: (1..=4).map(TaskId).collect() },
        ],
        Fault::AlreadyDisconnected { .. } => [Fault::AlreadyDisconnected { task: TaskId(1) }],
        Fault::ReporterNotConnected => [Fault::ReporterNotConnected],
        Fault::ReportWithoutCode => [Fault::ReportWithoutCode],
        Fault::Reported { .. } => [
            *reported(),
            Fault::Reported { task: TaskId(1), code: 1, message: "cancelled".to_owned() },
            Fault::Reported { task: TaskId(1), code: 99, message: String::new() },
        ],
        Fault::Unheard { .. } => [Fault::Unheard { cause: silent() }],
        Fault::ShutdownFailed { .. } => [
            Fault::ShutdownFailed { cause: barrier_failed() },
            Fault::ShutdownFailed { cause: reported() },
        ],
        Fault::PollUnregistered { .. } => [Fault::PollUnregistered { task: TaskId(1) }],
        Fault::PollInError { .. } => [Fault::PollInError { task: TaskId(1), existing: reported() }],
        Fault::PollReplaced => [Fault::PollReplaced],
        Fault::PollerLeft => [Fault::PollerLeft],
        Fault::PollReleased => [Fault::PollReleased],
        // Each of its kinds: below.
        Fault::Barrier { .. } => [*barrier_failed()],
        Fault::ArrivalReplaced { .. } => [
            Fault::ArrivalReplaced { barrier: BarrierName::from("b"), counter: BarrierCounter(2) },
        ],
        Fault::KeyExists { .. } => [Fault::KeyExists { key: key() }],
        Fault::KeyMissing { .. } => [Fault::KeyMissing { asked: "/a//b".to_owned() }],
        Fault::NotAnInteger { .. } => [Fault::NotAnInteger { value: "x".to_owned() }],
        Fault::IncrementOverflow { .. } => [
            Fault::IncrementOverflow { value: i64::MAX, increment: 1 },
        ],
        Fault::VersionMismatch { .. } => [
            Fault::VersionMismatch { key: key(), expected: 1, current: 2 },
            Fault::VersionMismatch { key: key(), expected: 1, current: 0 },
        ],
        Fault::NotInAliveSet { .. } => [Fault::NotInAliveSet { task: TaskId(1) }],
        Fault::VersionAhead { .. } => [
            Fault::VersionAhead { asked: TaskVersion(7), current: TaskVersion(3) },
        ],
        Fault::JobExists { .. } => [Fault::JobExists { name: JobName::from("train") }],
        Fault::JobNameInvalid { .. } => [Fault::JobNameInvalid { name: "A\nb".to_owned() }],
        Fault::JobSpecInvalid { .. } => [
            Fault::JobSpecInvalid { field: "tasks".to_owned(), reason: "there must be one".to_owned() },
        ],
        Fault::JobSlotsTaken { .. } => [Fault::JobSlotsTaken { slots: 100 }],
        Fault::SessionExpired => [Fault::SessionExpired],
        Fault::ReplyForgotten => [Fault::ReplyForgotten],
        Fault::SessionWindow { .. } => [Fault::SessionWindow { limit: 16 }],
        Fault::LimitExceeded { .. } => [
            Fault::LimitExceeded { what: "bytes of a key".to_owned(), limit: 4_096, actual: 5_000 },
        ],
        // Each of their refusals: below.
        Fault::Runtime(_) => [Fault::Runtime(runtime::Refusal::BarrierUsed)],
        Fault::Member(_) => [Fault::Member(member::Refusal::NodeUnknown { node: NodeId(3) })],
        Fault::Level(_) => [Fault::Level(level::Refusal::NotHeard { node: NodeId(3) })],
        Fault::Ray(_) => [Fault::Ray(ray::Refusal::SessionExpired)],
        Fault::Mindspore(_) => [Fault::Mindspore(mindspore::Refusal::NotInitialized)],
        Fault::StampReused => [Fault::StampReused],
        Fault::Mars(_) => [Fault::Mars(mars::Refusal::NoStore)],
        Fault::Token(_) => [Fault::Token(token::Refusal::Unknown { token: TokenId(8) })],
        Fault::NotAuthorised(_) => [Fault::NotAuthorised(identity::Refusal::OtherJob)],
    }
}

samples! {
    barriers() -> BarrierFault {
        BarrierFault::TimedOut { .. } => [BarrierFault::TimedOut {
            arrived: 1,
            total: 4,
            first: TaskId(0),
            missing: vec![TaskId(1), TaskId(2)],
        }],
        BarrierFault::UnknownMember { .. } => [BarrierFault::UnknownMember { task: TaskId(9) }],
        BarrierFault::ConflictingTasks => [BarrierFault::ConflictingTasks],
        BarrierFault::ListMissing => [BarrierFault::ListMissing],
        BarrierFault::NotAMember { .. } => [BarrierFault::NotAMember { task: TaskId(1) }],
        BarrierFault::MemberInError { .. } => [
            BarrierFault::MemberInError { task: TaskId(1), existing: reported() },
        ],
        BarrierFault::MemberLost { .. } => [
            BarrierFault::MemberLost { task: TaskId(2), reason: Leaving::Error(silent()) },
            BarrierFault::MemberLost { task: TaskId(1), reason: Leaving::Disconnected },
            BarrierFault::MemberLost { task: TaskId(1), reason: Leaving::ConnectedAgain },
        ],
        BarrierFault::CounterMismatch { .. } => [
            BarrierFault::CounterMismatch { called: BarrierCounter(1) },
        ],
        BarrierFault::Cancelled { .. } => [BarrierFault::Cancelled { by: TaskId(1) }],
        BarrierFault::CancelOfOtherInstance { .. } => [
            BarrierFault::CancelOfOtherInstance { called: BarrierCounter(1) },
        ],
        BarrierFault::CancelAfterEnd { .. } => [
            BarrierFault::CancelAfterEnd { result: None },
            BarrierFault::CancelAfterEnd { result: Some(reported()) },
        ],
        BarrierFault::StaleArrival { .. } => [
            BarrierFault::StaleArrival { task: TaskId(2), reason: Leaving::Error(silent()) },
            BarrierFault::StaleArrival { task: TaskId(1), reason: Leaving::Disconnected },
        ],
    }
}

samples! {
    of_runtime() -> runtime::Refusal {
        runtime::Refusal::NotInitializing => [runtime::Refusal::NotInitializing],
        runtime::Refusal::NotRunning { .. } => [
            runtime::Refusal::NotRunning { call: Call::Put },
            runtime::Refusal::NotRunning { call: Call::Heartbeat },
        ],
        runtime::Refusal::TaskUnknown { .. } => [
            runtime::Refusal::TaskUnknown { task: TaskId(9), tasks: 2 },
            runtime::Refusal::TaskUnknown { task: TaskId(-1), tasks: 2 },
        ],
        runtime::Refusal::Replaced { .. } => [runtime::Refusal::Replaced { task: TaskId(1) }],
        runtime::Refusal::Lost { .. } => [runtime::Refusal::Lost { task: TaskId(1) }],
        runtime::Refusal::BarrierUsed => [runtime::Refusal::BarrierUsed],
        runtime::Refusal::BarrierSpoiled => [runtime::Refusal::BarrierSpoiled],
        runtime::Refusal::TimedOut { .. } => [
            runtime::Refusal::TimedOut { call: Call::Connect, waited_ms: 1_500 },
            runtime::Refusal::TimedOut { call: Call::Barrier, waited_ms: 300 },
        ],
    }
}

samples! {
    of_members() -> member::Refusal {
        member::Refusal::InProgress { .. } => [member::Refusal::InProgress {
            open: Box::new(member::Open {
                id: ChangeId(77),
                change: member::Change::Remove { node: NodeId(3) },
                node: NodeId(3),
                by: "root@ops".to_owned(),
                since: TimeMs(0),
                cancelled: false,
            }),
        }],
        member::Refusal::NodeUnknown { .. } => [member::Refusal::NodeUnknown { node: NodeId(3) }],
        member::Refusal::NodeRemoved { .. } => [member::Refusal::NodeRemoved { node: NodeId(3) }],
        member::Refusal::AddressTaken { .. } => [
            member::Refusal::AddressTaken { node: NodeId(3), peer: "10.0.0.3:7701".to_owned() },
        ],
        member::Refusal::HadData { .. } => [member::Refusal::HadData { node: NodeId(3) }],
        member::Refusal::NotOpen { .. } => [member::Refusal::NotOpen { change: ChangeId(77) }],
        member::Refusal::NameBound { .. } => [
            member::Refusal::NameBound { node: NodeId(3), bound: CertificateName::from("n3") },
        ],
        member::Refusal::NameTaken { .. } => [
            member::Refusal::NameTaken { node: NodeId(3), name: CertificateName::from("n3") },
        ],
        member::Refusal::NameInvalid { .. } => [member::Refusal::NameInvalid { node: NodeId(3) }],
    }
}

fn jobs() -> Vec<JobName> {
    vec![JobName::from("train"), JobName::from("eval")]
}

samples! {
    of_level() -> level::Refusal {
        level::Refusal::TooLow { .. } => [level::Refusal::TooLow {
            command: "ray/put".to_owned(),
            needs: FeatureLevel(3),
            level: FeatureLevel(2),
        }],
        level::Refusal::NotAbove { .. } => [
            level::Refusal::NotAbove { asked: FeatureLevel(2), level: FeatureLevel(3) },
        ],
        level::Refusal::NotHeard { .. } => [level::Refusal::NotHeard { node: NodeId(3) }],
        level::Refusal::NoPin { .. } => [
            level::Refusal::NoPin { asked: FeatureLevel(9), level: FeatureLevel(3) },
        ],
        level::Refusal::Notes { .. } => [
            level::Refusal::Notes { needs: FeatureLevel(2), count: 2, jobs: jobs() },
        ],
        level::Refusal::Drained { .. } => [
            level::Refusal::Drained { needs: FeatureLevel(2), nodes: vec![NodeId(2), NodeId(3)] },
        ],
        level::Refusal::Schedulers { .. } => [
            level::Refusal::Schedulers { needs: FeatureLevel(3), count: 2, jobs: jobs() },
        ],
        level::Refusal::Clusters { .. } => [
            level::Refusal::Clusters { needs: FeatureLevel(9), count: 2, jobs: jobs() },
        ],
        level::Refusal::Scheduled { .. } => [
            level::Refusal::Scheduled { needs: FeatureLevel(10), count: 2, jobs: jobs() },
        ],
        level::Refusal::Sessions { .. } => [
            level::Refusal::Sessions { needs: FeatureLevel(10), count: 2, jobs: jobs() },
        ],
        level::Refusal::Floor { .. } => [level::Refusal::Floor { needs: FeatureLevel(11) }],
    }
}

samples! {
    of_schedulers() -> ray::Refusal {
        ray::Refusal::FunctionUnknown { .. } => [
            ray::Refusal::FunctionUnknown { name: FunctionName("m.f".into()) },
        ],
        ray::Refusal::WorkerUnknown { .. } => [ray::Refusal::WorkerUnknown { worker: WorkerId(3) }],
        ray::Refusal::WorkerExpired { .. } => [ray::Refusal::WorkerExpired { worker: WorkerId(3) }],
        ray::Refusal::StoreUnknown { .. } => [ray::Refusal::StoreUnknown { store: StoreId(2) }],
        ray::Refusal::StoreExpired { .. } => [ray::Refusal::StoreExpired { store: StoreId(2) }],
        ray::Refusal::NoStore { .. } => [
            ray::Refusal::NoStore { host: "10.0.0.9".to_owned(), address: String::new() },
            ray::Refusal::NoStore { host: "h".to_owned(), address: "10.0.0.9:1".to_owned() },
        ],
        ray::Refusal::ObjectUnknown { .. } => [ray::Refusal::ObjectUnknown { object: ObjectId(7) }],
        ray::Refusal::ObjectDeallocated { .. } => [
            ray::Refusal::ObjectDeallocated { object: ObjectId(7) },
        ],
        ray::Refusal::ArgumentUnknown { .. } => [
            ray::Refusal::ArgumentUnknown { place: 1, object: ObjectId(7) },
        ],
        ray::Refusal::ArgumentDeallocated { .. } => [
            ray::Refusal::ArgumentDeallocated { place: 1, object: ObjectId(7) },
        ],
        ray::Refusal::Invalid { .. } => [
            ray::Refusal::Invalid { field: "slots".to_owned(), reason: "too many".to_owned() },
        ],
        ray::Refusal::NotOwned { .. } => [
            ray::Refusal::NotOwned { process: WorkerId(3), object: ObjectId(7) },
        ],
        ray::Refusal::TooFewReferences { .. } => [
            ray::Refusal::TooFewReferences { object: ObjectId(7), held: 1, dropped: 2 },
        ],
        ray::Refusal::AliasedAlready { .. } => [
            ray::Refusal::AliasedAlready { alias: ObjectId(7), target: ObjectId(8) },
        ],
        ray::Refusal::AliasOfItself { .. } => [ray::Refusal::AliasOfItself { alias: ObjectId(7) }],
        ray::Refusal::AliasCycle { .. } => [
            ray::Refusal::AliasCycle { alias: ObjectId(7), target: ObjectId(8) },
        ],
        ray::Refusal::AliasOfValue { .. } => [ray::Refusal::AliasOfValue { alias: ObjectId(7) }],
        ray::Refusal::ReadyAlias { .. } => [
            ray::Refusal::ReadyAlias { object: ObjectId(7), target: ObjectId(8) },
        ],
        ray::Refusal::ContainedAlready { .. } => [
            ray::Refusal::ContainedAlready { object: ObjectId(7) },
        ],
        ray::Refusal::IsDriver { .. } => [ray::Refusal::IsDriver { worker: WorkerId(3) }],
        ray::Refusal::OtherAttempt { .. } => [
            ray::Refusal::OtherAttempt { operation: OperationId(4) },
        ],
        ray::Refusal::SessionExpired => [ray::Refusal::SessionExpired],
        ray::Refusal::AnswerForgotten => [ray::Refusal::AnswerForgotten],
        ray::Refusal::SessionWindow { .. } => [ray::Refusal::SessionWindow { limit: 64 }],
        ray::Refusal::Full { .. } => [ray::Refusal::Full { what: "workers".to_owned(), limit: 10 }],
    }
}

samples! {
    of_clusters() -> mindspore::Refusal {
        mindspore::Refusal::NodeUnknown { .. } => [mindspore::Refusal::NodeUnknown { node: node() }],
        mindspore::Refusal::NodeLeft { .. } => [mindspore::Refusal::NodeLeft { node: node() }],
        mindspore::Refusal::OtherRole { .. } => [
            mindspore::Refusal::OtherRole { node: node(), role: mindspore::Role::Server },
        ],
        mindspore::Refusal::Full { .. } => [
            mindspore::Refusal::Full { role: mindspore::Role::Worker, places: 2 },
        ],
        mindspore::Refusal::NotInitialized => [mindspore::Refusal::NotInitialized],
        mindspore::Refusal::Replaced { .. } => [mindspore::Refusal::Replaced { node: node() }],
        mindspore::Refusal::NotFormed => [mindspore::Refusal::NotFormed],
        mindspore::Refusal::Ending => [mindspore::Refusal::Ending],
        mindspore::Refusal::NotReady { .. } => [
            mindspore::Refusal::NotReady { state: ClusterState::ScaleOut, nodes: 0 },
            mindspore::Refusal::NotReady { state: ClusterState::Ready, nodes: 2 },
        ],
        mindspore::Refusal::WorkersFixed => [mindspore::Refusal::WorkersFixed],
        mindspore::Refusal::NothingToScale => [mindspore::Refusal::NothingToScale],
        mindspore::Refusal::NoServer { .. } => [mindspore::Refusal::NoServer { node: node() }],
        mindspore::Refusal::FirstServer { .. } => [mindspore::Refusal::FirstServer { node: node() }],
        mindspore::Refusal::NotAbortable => [mindspore::Refusal::NotAbortable],
        mindspore::Refusal::Outdated { .. } => [
            mindspore::Refusal::Outdated { planned: 7, current: 9 },
        ],
    }
}

samples! {
    of_sessions() -> mars::Refusal {
        mars::Refusal::SessionUnknown { .. } => [mars::Refusal::SessionUnknown { session: "s".to_owned() }],
        mars::Refusal::SessionExists { .. } => [mars::Refusal::SessionExists { session: "s".into() }],
        mars::Refusal::GraphUnknown { .. } => [
            mars::Refusal::GraphUnknown { kind: mars::GraphKind::Tileable, key: "g".to_owned() },
        ],
        mars::Refusal::GraphExists { .. } => [
            mars::Refusal::GraphExists { kind: mars::GraphKind::Chunk, key: "g".into() },
        ],
        mars::Refusal::GraphRuns { .. } => [mars::Refusal::GraphRuns {
            kind: mars::GraphKind::Tileable,
            key: "g".into(),
            state: mars::GraphState::Running,
        }],
        mars::Refusal::NotNext { .. } => [
            mars::Refusal::NotNext { kind: mars::GraphKind::Chunk, key: "g".to_owned(), expected: 4, got: 8 },
        ],
        mars::Refusal::NotOpen { .. } => [
            mars::Refusal::NotOpen { kind: mars::GraphKind::Tileable, key: "g".to_owned() },
        ],
        mars::Refusal::Node { .. } => [
            mars::Refusal::Node { key: "a:0".to_owned(), reason: "is there twice".to_owned() },
        ],
        mars::Refusal::ChunkGone { .. } => [mars::Refusal::ChunkGone { key: "a:0".to_owned() }],
        mars::Refusal::FitsNowhere { .. } => [mars::Refusal::FitsNowhere {
            key: "a:0".to_owned(),
            needs: "8000 thousandths of a CPU".to_owned(),
        }],
        mars::Refusal::TileableUnknown { .. } => [mars::Refusal::TileableUnknown { key: "a".to_owned() }],
        mars::Refusal::TooFewReferences { .. } => [
            mars::Refusal::TooFewReferences { key: "a".to_owned(), held: 1, dropped: 2 },
        ],
        mars::Refusal::MutableUnknown { .. } => [mars::Refusal::MutableUnknown { name: "m".to_owned() }],
        mars::Refusal::MutableExists { .. } => [mars::Refusal::MutableExists { name: "m".into() }],
        mars::Refusal::MutableDiffers { .. } => [mars::Refusal::MutableDiffers { name: "m".into() }],
        mars::Refusal::MutableState { .. } => [
            mars::Refusal::MutableState { name: "m".into(), state: mars::MutableState::Lost },
        ],
        mars::Refusal::NoStore => [mars::Refusal::NoStore],
        mars::Refusal::RequestReused { .. } => [mars::Refusal::RequestReused { request: "r-1".to_owned() }],
        mars::Refusal::Invalid { .. } => [
            mars::Refusal::Invalid { field: "counts".to_owned(), reason: "must be at least 1".to_owned() },
        ],
        mars::Refusal::SchedulerFull { .. } => [
            mars::Refusal::SchedulerFull { what: "objects".to_owned(), limit: 10 },
        ],
    }
}

fn node() -> NodeName {
    NodeName::from("srv-a")
}

samples! {
    of_tokens() -> token::Refusal {
        token::Refusal::Unknown { .. } => [token::Refusal::Unknown { token: TokenId(7) }],
        token::Refusal::Taken { .. } => [token::Refusal::Taken { token: TokenId(7) }],
        token::Refusal::Invalid { .. } => [
            token::Refusal::Invalid { field: "lifetime".to_owned(), reason: "must be above 0".to_owned() },
        ],
        token::Refusal::Ended { .. } => [token::Refusal::Ended { token: TokenId(7) }],
        token::Refusal::Bootstrapped { .. } => [token::Refusal::Bootstrapped { name: "alice".to_owned() }],
    }
}

samples! {
    of_identities() -> identity::Refusal {
        identity::Refusal::Malformed => [identity::Refusal::Malformed],
        identity::Refusal::OtherJob => [identity::Refusal::OtherJob],
        identity::Refusal::OtherTask { .. } => [identity::Refusal::OtherTask { task: TaskId(4) }],
        identity::Refusal::OtherProcess { .. } => [identity::Refusal::OtherProcess { task: TaskId(4) }],
        identity::Refusal::OtherNode { .. } => [identity::Refusal::OtherNode { node: NodeId(3) }],
        identity::Refusal::NodesOnly => [identity::Refusal::NodesOnly],
        identity::Refusal::OperatorsOnly => [identity::Refusal::OperatorsOnly],
    }
}

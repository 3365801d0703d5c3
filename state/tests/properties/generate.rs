//! Random commands over few names, so that they meet.

use std::net::IpAddr;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::barrier::REGISTER_BARRIER;
use tripod_state::ids::{
    BarrierCounter, BarrierName, ChangeId, ClientId, DurationMs, FeatureLevel, Incarnation, JobId, NodeId,
    Sequence, ServiceIncarnation, SessionId, TaskId, TimeMs,
};
use tripod_state::job::{Listener, Poll, Spec};
use tripod_state::limits::{BARRIER_NAME_BYTES_MAX, KEY_BYTES_MAX, REPORT_BYTES_MAX};
use tripod_state::{Command, Scope, Stamp, barrier, job, kv, level, member, runtime, session, task};

const SERVICE: ServiceIncarnation = ServiceIncarnation(99);

/// One entry of a log.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) after_ms: u64,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) command: Command,
}

/// Two jobs (1 and 2) and a session (3) to begin with.
pub(crate) fn prologue() -> Vec<Command> {
    vec![create("a", spec(3, false, Poll::Hold)), create("b", spec(2, true, Poll::Hold)), open()]
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    let stamp = prop_oneof![4 => Just(None), 1 => stamp().prop_map(Some)];
    (select(vec![0, 0, 0, 100, 6_000]), stamp, command()).prop_map(|(after_ms, stamp, command)| Step {
        after_ms,
        stamp,
        command,
    })
}

/// Of sessions whose ids are log indexes, of clients and of nodes.
fn session_id() -> impl Strategy<Value = SessionId> {
    select(vec![
        SessionId(3),
        SessionId(4),
        SessionId::of_client(7),
        SessionId::of_client(u128::MAX),
        SessionId::of_node(7),
        SessionId::of_node(8),
    ])
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (session_id(), 0_u64..12, 0_u64..8).prop_map(|(session, sequence, acknowledged)| Stamp {
        session,
        sequence: Sequence(sequence),
        acknowledged_below: Sequence(acknowledged),
    })
}

/// Boxed: the whole tree by value is larger than a test's stack in an unoptimised build.
fn command() -> impl Strategy<Value = Command> {
    (select(vec![false, false, false, true]), plain_command()).prop_map(|(retried, command)| {
        // Sessions are not a matter of any call that could be marked.
        let markable = !matches!(command, Command::Session(_));
        if retried && markable { Command::Retried(Box::new(command)) } else { command }
    })
}

fn plain_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        12 => tasks().prop_map(Command::Task).boxed(),
        10 => barriers().prop_map(Command::Barrier).boxed(),
        4 => keys().prop_map(Command::Kv).boxed(),
        12 => runtimes().prop_map(Command::Runtime).boxed(),
        1 => jobs().boxed(),
        2 => sessions().prop_map(Command::Session).boxed(),
        1 => (1_u64..3, "[ab]").prop_map(|(node, client)| announce(node, client)),
        2 => member_change(),
        1 => levels(),
        1 => ("[abc]", "[xy]?").prop_map(|(name, note)| Command::Job(job::Command::Note { name, note })),
    ]
}

fn levels() -> impl Strategy<Value = Command> {
    let by = String::new;
    (0_u32..8, vec((1_u64..3).prop_map(NodeId), 0..3), select(vec![0, 1, 2])).prop_map(
        move |(level, heard, which)| {
            let level = FeatureLevel(level);
            Command::Level(match which {
                0 => level::Command::Raise { to: level, heard },
                1 => level::Command::Pin { level, by: by() },
                _ => level::Command::Unpin { by: by() },
            })
        },
    )
}

/// Mostly job 1, so that its story is long.
fn scope() -> impl Strategy<Value = Scope> {
    let job = prop_oneof![6 => Just(1_u64), 3 => Just(2), 1 => 3_u64..12];
    let service =
        prop_oneof![8 => Just(None), 4 => Just(Some(SERVICE)), 1 => Just(Some(ServiceIncarnation(1)))];
    (job, service).prop_map(|(job, service)| Scope { job: JobId(job), service })
}

fn task() -> impl Strategy<Value = TaskId> {
    prop_oneof![20 => (0..3).prop_map(TaskId), 1 => select(vec![TaskId(-1), TaskId(7)])]
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![6 => Just(Incarnation(1)), 1 => Just(Incarnation(2)), 2 => Just(runtime::INCARNATION)]
}

fn list() -> impl Strategy<Value = Vec<TaskId>> {
    prop_oneof![3 => Just(Vec::new()), 3 => Just(vec![TaskId(0), TaskId(1)]), 1 => vec(task(), 1..4)]
}

fn wish() -> impl Strategy<Value = Option<Poll>> {
    select(vec![None, None, Some(Poll::Hold), Some(Poll::Release)])
}

fn tasks() -> impl Strategy<Value = task::Command> {
    use task::Command as C;
    let text =
        prop_oneof![9 => Just(1_usize), 1 => Just(REPORT_BYTES_MAX + 1)].prop_map(|size| "x".repeat(size));
    prop_oneof![
        9 => (scope(), task(), incarnation(), any::<bool>(), any::<bool>()).prop_map(|(scope, task, incarnation, a, b)| {
            let protocol = if a { task::Protocol::Xla } else { task::Protocol::TensorFlow };
            C::Register { scope, task, incarnation, recoverable: a && b, protocol }
        }),
        2 => (scope(), task()).prop_map(|(scope, task)| C::Shutdown { scope, task }),
        2 => (scope(), task()).prop_map(|(scope, task)| C::Reset { scope, task }),
        1 => (scope(), task(), select(vec![0, 1, 5, 14]), text)
            .prop_map(|(scope, task, code, message)| C::ReportError { scope, task, code, message }),
        3 => (scope(), task(), wish()).prop_map(|(scope, task, wish)| C::Poll { scope, task, wish }),
        1 => (scope(), vec(task(), 0..3)).prop_map(|(scope, tasks)| C::Pushed { job: scope.job, tasks }),
        3 => (scope(), task(), list()).prop_map(|(scope, task, tasks)| C::Alive { scope, task, tasks }),
        1 => (scope(), task()).prop_map(|(scope, task)| {
            C::ExchangeDevices { scope, task, devices: vec![Bytes::from(format!("device of {task}"))] }
        }),
        1 => (scope(), vec((task(), incarnation()), 0..3))
            .prop_map(|(scope, silent)| C::Expire { job: scope.job, silent }),
        1 => runtime_task()
            .prop_map(|task| C::Expire { job: JobId(2), silent: vec![(task, runtime::INCARNATION)] }),
        1 => (scope(), task(), incarnation())
            .prop_map(|(scope, task, incarnation)| C::RefuseBeat { scope, task, incarnation }),
        2 => (scope(), task(), incarnation(), select(vec![0, 50, 50_000, u64::MAX])).prop_map(
            |(scope, task, incarnation, interval)| C::NoteInterval {
                scope,
                task,
                incarnation,
                interval_ms: DurationMs(interval),
            }
        ),
        1 => (scope(), task(), incarnation())
            .prop_map(|(scope, task, incarnation)| C::End { scope, task, incarnation }),
        2 => (scope(), task(), incarnation(), end())
            .prop_map(|(scope, task, incarnation, end)| C::Ended { scope, task, incarnation, end }),
        1 => (scope(), task(), incarnation(), select(vec!["", "gpu-7", "h"])).prop_map(
            |(scope, task, incarnation, host)| C::NoteHost { scope, task, incarnation, host: host.to_owned() }
        ),
        3 => (scope(), task(), incarnation(), any::<bool>(), origin()).prop_map(
            |(scope, task, incarnation, recoverable, origin)| {
                let protocol = task::Protocol::Xla;
                C::Register { scope, task, incarnation, recoverable, protocol }.with_origin(origin)
            }
        ),
        1 => (scope(), task(), incarnation(), origin()).prop_map(
            |(scope, task, incarnation, origin)| {
                C::NoteOrigin { scope, task, incarnation, origin: Box::new(origin) }
            }
        ),
    ]
}

/// Some of them say nothing, and some more than is kept.
fn origin() -> impl Strategy<Value = task::Origin> {
    let text =
        || prop_oneof![4 => select(vec!["", "a3-7"]).prop_map(str::to_owned), 1 => Just("o".repeat(300))];
    (text(), select(vec![0, 4711]), text()).prop_map(|(host, pid, client)| task::Origin {
        host,
        pid,
        client,
        ..task::Origin::default()
    })
}

fn end() -> impl Strategy<Value = task::End> {
    let how = prop_oneof![
        select(vec![0, 1, 3]).prop_map(|code| task::How::Exited { code }),
        (select(vec![9, 11, 64]), any::<bool>(), any::<bool>()).prop_map(
            |(signal, core_dumped, out_of_memory)| {
                task::How::Signalled { signal, core_dumped, out_of_memory }
            }
        ),
        Just(task::How::LauncherEnded),
    ];
    let tail = select(vec!["", "boom\n", "x"]).prop_map(str::to_owned);
    let tail = prop_oneof![8 => tail, 1 => Just("t".repeat(task::TAIL_BYTES_MAX + 1))];
    (how, tail).prop_map(|(how, tail)| task::End { how, at: TimeMs(5), tail })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => select(vec!["x", "y"]).prop_map(str::to_owned),
        2 => select(vec![REGISTER_BARRIER, "Shutdown::99", "WaitForAllTasks::99"]).prop_map(str::to_owned),
        1 => Just("n".repeat(BARRIER_NAME_BYTES_MAX + 1)),
    ]
}

fn counter() -> impl Strategy<Value = BarrierCounter> {
    prop_oneof![6 => Just(0), 4 => Just(1), 2 => Just(2), 1 => select(vec![-1, 3, i64::MAX, i64::MIN])]
        .prop_map(BarrierCounter)
}

fn barriers() -> impl Strategy<Value = barrier::Command> {
    use barrier::Command as C;
    let timeout = select(vec![1_000, 0, -1, i64::MAX]);
    prop_oneof![
        8 => (scope(), name(), counter(), timeout, list(), task()).prop_map(
            |(scope, barrier, counter, timeout_ms, tasks, task)| {
                C::Arrive { scope, barrier, counter, timeout_ms, tasks, task }
            }
        ),
        1 => (scope(), name(), counter(), task())
            .prop_map(|(scope, barrier, counter, task)| C::Cancel { scope, barrier, counter, task }),
        2 => (scope(), name(), counter()).prop_map(|(scope, barrier, counter)| {
            C::Expire { job: scope.job, barrier: BarrierName::from(barrier.as_str()), counter }
        }),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => select(vec!["a", "a/b", "//a/b/", "a/b/c", "b", ""]).prop_map(str::to_owned),
        1 => Just("k".repeat(KEY_BYTES_MAX + 1)),
    ]
}

fn keys() -> impl Strategy<Value = kv::Command> {
    use kv::Command as C;
    let value =
        || select(vec!["1", "9223372036854775807", "x"]).prop_map(|text| Bytes::from_static(text.as_bytes()));
    prop_oneof![
        (scope(), key(), value(), any::<bool>()).prop_map(|(scope, key, value, overwrite)| C::Insert {
            scope,
            key,
            value,
            overwrite
        }),
        (scope(), key(), value(), task(), incarnation()).prop_map(
            |(scope, key, value, task, incarnation)| C::InsertAs { scope, key, value, task, incarnation }
        ),
        (scope(), key(), value(), 0_u64..3).prop_map(|(scope, key, value, expected)| C::CompareAndSet {
            scope,
            key,
            value,
            expected
        }),
        (
            scope(),
            key(),
            select(vec![1, 1, -1, i64::MAX, i64::MIN]),
            select(vec![None, Some(Incarnation(1))])
        )
            .prop_map(|(scope, key, by, caller)| C::Increment { scope, key, by, caller }),
        (scope(), key()).prop_map(|(scope, key)| C::Delete { scope, key }),
    ]
}

/// Mostly the smaller job: all of its tasks must connect before anything else happens.
fn runtime_scope() -> impl Strategy<Value = Scope> {
    let job = prop_oneof![8 => Just(JobId(2)), 1 => Just(JobId(1))];
    let service = prop_oneof![16 => Just(SERVICE), 1 => Just(ServiceIncarnation(1))];
    (job, service).prop_map(|(job, service)| Scope { job, service: Some(service) })
}

fn runtime_task() -> impl Strategy<Value = TaskId> {
    prop_oneof![20 => (0..2).prop_map(TaskId), 1 => task()]
}

fn runtimes() -> impl Strategy<Value = runtime::Command> {
    use runtime::Command as C;
    let client = || prop_oneof![6 => Just(1), 1 => Just(2)].prop_map(ClientId);
    let bytes = || select(vec!["x", "", "/a//b/"]).prop_map(|text| Bytes::from_static(text.as_bytes()));
    let barrier = || {
        let long = "n".repeat(BARRIER_NAME_BYTES_MAX + 1);
        prop_oneof![9 => bytes(), 1 => Just(Bytes::from(long))].prop_map(runtime::BarrierId)
    };
    let waited_ms = 1000;
    prop_oneof![
        8 => (runtime_scope(), runtime_task(), client())
            .prop_map(|(scope, task, client)| C::Connect { scope, task, client }),
        2 => (runtime_scope(), runtime_task(), client(), origin())
            .prop_map(|(scope, task, client, origin)| C::Connect { scope, task, client }.with_origin(origin)),
        1 => (runtime_scope(), runtime_task(), client())
            .prop_map(move |(scope, task, client)| C::Withdraw { scope, task, client, waited_ms }),
        3 => (runtime_scope(), runtime_task(), bytes())
            .prop_map(|(scope, task, topology)| C::Enumerate { scope, task, topology }),
        6 => (runtime_scope(), barrier(), runtime_task())
            .prop_map(|(scope, barrier, task)| C::Arrive { scope, barrier, task }),
        3 => (runtime_scope(), barrier())
            .prop_map(move |(scope, barrier)| C::GiveUp { scope, barrier, waited_ms }),
        1 => (runtime_scope(), runtime_task()).prop_map(|(scope, task)| C::Shutdown { scope, task }),
        1 => runtime_scope().prop_map(move |scope| C::GiveUpShutdown { scope, waited_ms }),
        2 => (runtime_scope(), bytes(), bytes()).prop_map(|(scope, key, value)| C::Put { scope, key, value }),
    ]
}

fn jobs() -> impl Strategy<Value = Command> {
    let names = select(vec!["a", "b", "c", "default", "Bad"]);
    let spec = (0_u32..4, any::<bool>(), select(vec![Poll::Hold, Poll::Release]), any::<bool>()).prop_map(
        |(tasks, recoverable, poll, listening)| {
            let listener = Listener { task: TaskId(0), address: "h:1".to_owned() };
            let listeners = listening.then_some(listener).into_iter().collect();
            Spec { listeners, reconnect: listening, ..spec(tasks, recoverable, poll) }
        },
    );
    prop_oneof![
        5 => (names.clone(), spec).prop_map(|(name, spec)| create(name, spec)),
        1 => names.prop_map(|name| Command::Job(job::Command::Delete { name: name.to_owned() })),
    ]
}

fn sessions() -> impl Strategy<Value = session::Command> {
    prop_oneof![
        3 => Just(session::Command::Open),
        6 => (session_id(), owner()).prop_map(|(id, owner)| session::Command::OpenFor { id, owner }),
        1 => session_id().prop_map(|session| session::Command::Close { session }),
        1 => (0_u64..20_000, 0_u64..20_000).prop_map(|(clients, nodes)| session::Command::ExpireOwned {
            clients_before_ms: TimeMs(clients),
            nodes_before_ms: TimeMs(nodes),
        }),
        1 => (0_u64..20_000).prop_map(|before| session::Command::ExpireIdle { before_ms: TimeMs(before) }),
    ]
}

fn owner() -> impl Strategy<Value = session::Owner> {
    let addresses = [None, Some(IpAddr::from([10, 0, 0, 1])), Some(IpAddr::from([10, 0, 0, 2]))];
    let clients = addresses.map(session::Owner::Client);
    select(clients.into_iter().chain([session::Owner::Node(NodeId(1))]).collect::<Vec<_>>())
}

fn create(name: &str, spec: Spec) -> Command {
    Command::Job(job::Command::Create { name: name.to_owned(), spec, service: SERVICE })
}

fn spec(tasks: u32, recoverable: bool, poll: Poll) -> Spec {
    Spec { heartbeat_timeout_ms: DurationMs(5_000), recoverable, poll, ..Spec::of_tasks(tasks) }
}

fn open() -> Command {
    Command::Session(session::Command::Open)
}

fn announce(node: u64, client: String) -> Command {
    let addresses = member::Addresses {
        client,
        http: String::new(),
        job_host: String::new(),
        job_port_first: 1,
        job_port_count: 1,
    };
    Command::Member(member::Command::Announce { node: NodeId(node), addresses })
}

/// Changes of the members, over few addresses, ids and tokens.
fn member_change() -> impl Strategy<Value = Command> {
    let node = || (1_u64..5).prop_map(NodeId);
    let peer = || select(vec!["p:1", "p:2", "p:3"]).prop_map(str::to_owned);
    let change = prop_oneof![
        peer().prop_map(|peer| member::Change::Add { peer }),
        node().prop_map(|node| member::Change::Remove { node }),
        (node(), peer()).prop_map(|(node, peer)| member::Change::Move { node, peer }),
        (node(), peer()).prop_map(|(old, peer)| member::Change::Replace { old, peer }),
    ];
    let id = || (1_u64..40).prop_map(ChangeId);
    let command = prop_oneof![
        2 => change.prop_map(|change| member::Command::Begin { change, by: "me".to_owned() }),
        1 => (peer(), 1_u64..3).prop_map(|(peer, token)| member::Command::Join { peer, token }),
        1 => id().prop_map(|change| member::Command::Cancel { change }),
        2 => id().prop_map(|change| member::Command::End { change, ending: member::Ending::Done }),
        2 => (node(), select(vec!["n1", "n2", "N"])).prop_map(|(node, name)| {
            member::Command::Bind { node, name: name.into() }
        }),
    ];
    command.prop_map(Command::Member)
}

//! One command of every kind, by level. What is here is never changed: what a command of a later level looks like
//! is added behind.

use std::net::IpAddr;

use bytes::Bytes;
use tripod_state::barrier::Command as Barrier;
use tripod_state::identity::{Identity, IdentityCommand, Mode};
use tripod_state::ids::{
    BarrierCounter, BarrierName, ChangeId, ClientId, DurationMs, FeatureLevel, Incarnation, JobId, NodeId,
    Sequence, ServiceIncarnation, SessionId, TaskId, TimeMs, TokenId,
};
use tripod_state::job::{Command as Job, Group, Listener, Poll, Spec};
use tripod_state::kv::Command as Kv;
use tripod_state::level::Command as Level;
use tripod_state::member::{Addresses, Change, Command as Member, Ending};
use tripod_state::mindspore::Command as Clusters;
use tripod_state::mindspore::cluster::{Request, Switch};
use tripod_state::runtime::{BarrierId, Command as Runtime};
use tripod_state::session::{Command as Session, Owner};
use tripod_state::task::{Command as Task, End, How, Origin, Protocol};
use tripod_state::token::{self, Bearer, Command as Token, SecretHash};
use tripod_state::{Command, Envelope, Scope, Stamp};

/// A name, which is that of the table of levels with what tells several samples apart, and the command.
pub(crate) type Sample = (&'static str, Envelope);

const SCOPE: Scope = Scope { job: JobId(300), service: Some(ServiceIncarnation(u64::MAX)) };

fn plain(command: Command) -> Envelope {
    Envelope { stamp: None, command }
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Every kind of command of level 1.
pub(crate) fn level_1() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |name, command| samples.push((name, plain(command)));
    jobs_and_keys(&mut add);
    tasks(&mut add);
    barriers_and_sessions(&mut add);
    members(&mut add);
    runtime(&mut add);
    let put = Kv::Insert { scope: SCOPE, key: "k".into(), value: bytes("v"), overwrite: true };
    add("retried", Command::Retried(Box::new(Command::Kv(put.clone()))));
    let stamp =
        Stamp { session: SessionId(70_000), sequence: Sequence(9), acknowledged_below: Sequence(u64::MAX) };
    samples.push(("kv/insert stamped", Envelope { stamp: Some(stamp), command: Command::Kv(put) }));
    samples
}

/// The kinds of command that came with level 2.
pub(crate) fn level_2() -> Vec<Sample> {
    let two = FeatureLevel(2);
    let raise = Level::Raise { to: two, heard: vec![NodeId(1), NodeId(300)] };
    let note = Job::Note { name: "train".into(), note: "ask the blue team".into() };
    vec![
        ("level/raise", plain(Command::Level(raise))),
        ("level/pin", plain(Command::Level(Level::Pin { level: FeatureLevel(1), by: "ops@host".into() }))),
        ("level/unpin", plain(Command::Level(Level::Unpin { by: "ops@host".into() }))),
        ("job/note", plain(Command::Job(note))),
        ("member/drain", plain(Command::Member(Member::Drain { node: NodeId(2), drained: true }))),
    ]
}

/// The kinds of command that came with level 5.
pub(crate) fn level_5() -> Vec<Sample> {
    let open = |id, owner| Command::Session(Session::OpenFor { id, owner });
    let client = SessionId::of_client(u128::MAX);
    let (near, far) = (IpAddr::from([10, 0, 0, 9]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 9]));
    let (clients_before_ms, nodes_before_ms) = (TimeMs(1_700_000_000_000), TimeMs(1_600_000_000_000));
    let stamp = Stamp { session: client, sequence: Sequence(1), acknowledged_below: Sequence(1) };
    let of_node = open(SessionId::of_node(5), Owner::Node(NodeId(300)));
    vec![
        ("session/open-for node", plain(of_node.clone())),
        ("session/open-for client", plain(open(client, Owner::Client(Some(near))))),
        ("session/open-for client far", plain(open(SessionId(1 << 64), Owner::Client(Some(far))))),
        ("session/open-for client here", plain(open(SessionId(u128::from(u64::MAX)), Owner::Client(None)))),
        ("session/open-for stamped", Envelope { stamp: Some(stamp), command: of_node }),
        (
            "session/expire-owned",
            plain(Command::Session(Session::ExpireOwned { clients_before_ms, nodes_before_ms })),
        ),
    ]
}

/// The kind of command that came with level 6.
pub(crate) fn level_6() -> Vec<Sample> {
    let (task, incarnation) = (TaskId(1), Incarnation(1 << 40));
    let note = Task::NoteInterval { scope: SCOPE, task, incarnation, interval_ms: DurationMs(50_000) };
    vec![("task/note-interval", plain(Command::Task(note)))]
}

/// The kind of command that came with level 7.
pub(crate) fn level_7() -> Vec<Sample> {
    let (task, incarnation) = (TaskId(1), Incarnation(1 << 40));
    let insert = Kv::InsertAs { scope: SCOPE, key: "k".into(), value: bytes("v"), task, incarnation };
    vec![("kv/insert-as", plain(Command::Kv(insert)))]
}

/// The kinds of command that came with level 8.
pub(crate) fn level_8() -> Vec<Sample> {
    let (task, incarnation) = (TaskId(1), Incarnation(1 << 40));
    let note = Task::NoteHost { scope: SCOPE, task, incarnation, host: "gpu-7".into() };
    let end = Task::End { scope: SCOPE, task, incarnation };
    vec![("task/note-host", plain(Command::Task(note))), ("task/end", plain(Command::Task(end)))]
}

/// The kinds of command that come with level 11, which is being built.
pub(crate) fn level_11() -> Vec<Sample> {
    let (task, incarnation, tail) = (TaskId(1), Incarnation(1 << 40), "Traceback\nboom".to_owned());
    let (core_dumped, out_of_memory) = (true, false);
    let signalled = How::Signalled { signal: 11, core_dumped, out_of_memory };
    let end = |how| End { how, at: TimeMs(1_700_000_000_000), tail: tail.clone() };
    let ended = |how| plain(Command::Task(Task::Ended { scope: SCOPE, task, incarnation, end: end(how) }));
    let mut all = vec![
        ("task/ended", ended(How::Exited { code: -1 })),
        ("task/ended signalled", ended(signalled)),
        ("task/ended launcher", ended(How::LauncherEnded)),
    ];
    let origin = || Box::new(Origin { host: "a3-7".into(), pid: 4711, ..Origin::default() });
    let (recoverable, protocol) = (true, Protocol::Xla);
    let register =
        Task::RegisterFrom { scope: SCOPE, task, incarnation, recoverable, protocol, origin: origin() };
    let note = Task::NoteOrigin { scope: SCOPE, task, incarnation, origin: origin() };
    let connect = Runtime::ConnectFrom { scope: SCOPE, task, client: ClientId(5), origin: origin() };
    all.push(("task/register-from", plain(Command::Task(register))));
    all.push(("task/note-origin", plain(Command::Task(note))));
    all.push(("runtime/connect-from", plain(Command::Runtime(connect))));
    all.extend(tokens().map(|(name, command)| (name, plain(Command::Token(command)))));
    all.extend(planned().map(|(name, command)| (name, plain(Command::Mindspore(command)))));
    let bind = Member::Bind { node: NodeId(300), name: "n-3.rack_1".into() };
    all.push(("member/bind", plain(Command::Member(bind))));
    let delete = || Command::Kv(Kv::Delete { scope: SCOPE, key: "k".into() });
    for (name, path) in [
        ("by node", "node/n-3.rack_1"),
        ("by operator", "operator/alice"),
        ("by viewer", "viewer/bob"),
        ("by agent", "job/train/agent"),
        ("by task", "job/train/task"),
        ("by task 3", "job/train/task/3"),
        ("by driver", "job/train/driver"),
        ("by worker", "job/train/worker"),
        ("by store", "job/train/store"),
    ] {
        let identity = Identity::of_path(path).expect("it is one");
        all.push((name, plain(delete().by(identity))));
    }
    let floor = IdentityCommand::SetFloor { mode: Mode::Strict, by: "ops@host".into() };
    all.push(("identity/set-floor", plain(Command::Identity(floor))));
    all
}

fn planned() -> [(&'static str, Clusters); 4] {
    let planned = |request| Clusters::Planned { scope: SCOPE, generation: 70_000, request };
    let body = Bytes::from_static(b"{}");
    [
        ("cluster/planned out", planned(Request::ScaleOut { workers: 0, servers: 2 })),
        ("cluster/planned in", planned(Request::ScaleIn { nodes: vec!["srv-a".to_owned()] })),
        ("cluster/planned abort", planned(Request::Abort)),
        ("cluster/planned switch", planned(Request::Switch { switch: Switch::NewInstance, body })),
    ]
}

fn tokens() -> [(&'static str, Token); 4] {
    let (token, hash, by) = (TokenId(u64::MAX), SecretHash([0xa5; 32]), || "ops@host".to_owned());
    let (job, task, name) = (Some("train".into()), Some(TaskId(3)), "alice".to_owned());
    let bearer = Bearer { kind: token::Kind::Task, job, task, name: name.clone() };
    let lifetime_ms = DurationMs(60_000);
    [
        ("token/create", Token::Create { token, hash, bearer, lifetime_ms, by: by() }),
        ("token/bootstrap", Token::Bootstrap { token, hash, name, lifetime_ms, by: by() }),
        ("token/revoke", Token::Revoke { token, by: by() }),
        ("token/use", Token::Use { token }),
    ]
}

fn jobs_and_keys(add: &mut impl FnMut(&'static str, Command)) {
    let spec = Spec {
        heartbeat_timeout_ms: DurationMs(10_000),
        recoverable: true,
        poll: Poll::Hold,
        groups: vec![Group { name: "worker".into(), tasks: 2 }],
        listeners: vec![Listener { task: TaskId(1), address: "10.0.0.9:1".into() }],
        ..Spec::of_tasks(2)
    };
    add(
        "job/create",
        Command::Job(Job::Create { name: "train".into(), spec, service: ServiceIncarnation(7) }),
    );
    add("job/delete", Command::Job(Job::Delete { name: "train".into() }));
    let key = || "a/b".to_owned();
    add(
        "kv/insert",
        Command::Kv(Kv::Insert { scope: SCOPE, key: key(), value: bytes("value"), overwrite: false }),
    );
    add(
        "kv/compare-and-set",
        Command::Kv(Kv::CompareAndSet { scope: SCOPE, key: key(), value: bytes(""), expected: 251 }),
    );
    let caller = Some(Incarnation(1 << 40));
    add("kv/increment", Command::Kv(Kv::Increment { scope: SCOPE, key: key(), by: -3, caller }));
    add("kv/delete", Command::Kv(Kv::Delete { scope: SCOPE, key: key() }));
}

fn tasks(add: &mut impl FnMut(&'static str, Command)) {
    let (scope, task, incarnation) = (SCOPE, TaskId(1), Incarnation(0xfeed_beef_dead_cafe));
    for (name, protocol) in [
        ("task/register", Protocol::Xla),
        ("task/register tensorflow", Protocol::TensorFlow),
        ("task/register runtime", Protocol::Runtime),
    ] {
        add(name, Command::Task(Task::Register { scope, task, incarnation, recoverable: true, protocol }));
    }
    add("task/shutdown", Command::Task(Task::Shutdown { scope, task: TaskId(-1) }));
    add("task/reset", Command::Task(Task::Reset { scope, task }));
    let message = "out of memory".to_owned();
    add("task/report-error", Command::Task(Task::ReportError { scope, task, code: 13, message }));
    add("task/poll", Command::Task(Task::Poll { scope, task, wish: Some(Poll::Release) }));
    add("task/alive", Command::Task(Task::Alive { scope, task, tasks: vec![TaskId(0), task] }));
    let devices = vec![bytes("device"), bytes("")];
    add("task/exchange-devices", Command::Task(Task::ExchangeDevices { scope, task, devices }));
    let silent = vec![(task, incarnation)];
    add("task/expire", Command::Task(Task::Expire { job: SCOPE.job, silent }));
    add("task/pushed", Command::Task(Task::Pushed { job: SCOPE.job, tasks: vec![task] }));
    add("task/refuse-beat", Command::Task(Task::RefuseBeat { scope, task, incarnation }));
}

fn barriers_and_sessions(add: &mut impl FnMut(&'static str, Command)) {
    let (scope, task, counter) = (Scope { service: None, ..SCOPE }, TaskId(0), BarrierCounter(2));
    let barrier = || "start".to_owned();
    let tasks = vec![TaskId(0), TaskId(1)];
    let arrive = Barrier::Arrive { scope, barrier: barrier(), counter, timeout_ms: -5, tasks, task };
    add("barrier/arrive", Command::Barrier(arrive));
    add("barrier/cancel", Command::Barrier(Barrier::Cancel { scope, barrier: barrier(), counter, task }));
    let expire = Barrier::Expire { job: SCOPE.job, barrier: BarrierName::from("start"), counter };
    add("barrier/expire", Command::Barrier(expire));
    add("session/open", Command::Session(Session::Open));
    add("session/close", Command::Session(Session::Close { session: SessionId(12) }));
    let before_ms = TimeMs(1_700_000_000_000);
    add("session/expire-idle", Command::Session(Session::ExpireIdle { before_ms }));
}

fn members(add: &mut impl FnMut(&'static str, Command)) {
    let addresses = Addresses {
        client: "10.0.0.1:7700".into(),
        http: "10.0.0.1:7900".into(),
        job_host: "10.0.0.1".into(),
        job_port_first: 8000,
        job_port_count: 100,
    };
    add("member/announce", Command::Member(Member::Announce { node: NodeId(1), addresses }));
    let peer = || "10.0.0.4:7800".to_owned();
    for (name, change) in [
        ("member/begin add", Change::Add { peer: peer() }),
        ("member/begin promote", Change::Promote { node: NodeId(4) }),
        ("member/begin demote", Change::Demote { node: NodeId(4) }),
        ("member/begin remove", Change::Remove { node: NodeId(4) }),
        ("member/begin move", Change::Move { node: NodeId(4), peer: peer() }),
        ("member/begin replace", Change::Replace { old: NodeId(2), peer: peer() }),
    ] {
        add(name, Command::Member(Member::Begin { change, by: "ops@host".into() }));
    }
    add("member/join", Command::Member(Member::Join { peer: peer(), token: 0x0123_4567_89ab_cdef }));
    let change = ChangeId(4_000_000_000);
    add("member/cancel", Command::Member(Member::Cancel { change }));
    for (name, ending) in [
        ("member/end", Ending::Done),
        ("member/end cancelled", Ending::Cancelled),
        ("member/end failed", Ending::Failed("why".into())),
    ] {
        add(name, Command::Member(Member::End { change, ending }));
    }
}

fn runtime(add: &mut impl FnMut(&'static str, Command)) {
    let (scope, task, client) = (SCOPE, TaskId(1), ClientId(5));
    let barrier = || BarrierId(bytes("b\x00"));
    add("runtime/connect", Command::Runtime(Runtime::Connect { scope, task, client }));
    add("runtime/withdraw", Command::Runtime(Runtime::Withdraw { scope, task, client, waited_ms: 1_000 }));
    let topology = bytes("topology");
    add("runtime/enumerate", Command::Runtime(Runtime::Enumerate { scope, task, topology }));
    add("runtime/arrive", Command::Runtime(Runtime::Arrive { scope, barrier: barrier(), task }));
    add("runtime/give-up", Command::Runtime(Runtime::GiveUp { scope, barrier: barrier(), waited_ms: 7 }));
    add("runtime/shutdown", Command::Runtime(Runtime::Shutdown { scope, task }));
    add("runtime/give-up-shutdown", Command::Runtime(Runtime::GiveUpShutdown { scope, waited_ms: 8 }));
    add("runtime/put", Command::Runtime(Runtime::Put { scope, key: bytes("k"), value: bytes("v") }));
}

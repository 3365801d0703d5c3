//! A state with something of every kind in it, as a snapshot, and what a data directory says of its node.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;

use bytes::Bytes;
use tempfile::TempDir;
use tripod_state::ids::{
    BarrierCounter, ClientId, DurationMs, FeatureLevel, Incarnation, JobId, LogIndex, NodeId, Sequence,
    ServiceIncarnation, SessionId, TaskId, Term, TimeMs,
};
use tripod_state::member::{Addresses, Change, Command as Member, Listed};
use tripod_state::mindspore::cluster::ClusterState;
use tripod_state::runtime::{BarrierId, Command as Runtime};
use tripod_state::session::Owner;
use tripod_state::task::Protocol;
use tripod_state::{ApplyContext, Command, Envelope, Reply, Scope, Stamp, State};
use tripod_state::{barrier, job, kv, level, session, task};

use super::{check_file, clusters, scheduler_state, schedulers, sessions};
use crate::base::test_entries::id;
use crate::base::types::{Membership, Peer};
use crate::offline::backup::{Pace, ReadOnlyFile};
use crate::snapshot::{Form, Header, SnapshotStore, examine, write_to};

/// The jobs that [`level_1`] begins with are the first entries of its log.
const TRAIN: Scope = Scope { job: JobId(1), service: None };
const OLD: Scope = Scope { job: JobId(2), service: None };

/// Applies commands one after the other, whatever comes of them.
pub(super) struct Log {
    pub(super) state: State,
    pub(super) index: u64,
}

impl Log {
    pub(super) fn apply(&mut self, command: Command) {
        self.apply_stamped(None, command);
    }

    pub(super) fn reply_to(&mut self, command: Command) -> Reply {
        self.index += 1;
        self.state.apply(&self.context(), Envelope { stamp: None, command }).reply
    }

    fn context(&self) -> ApplyContext {
        ApplyContext { index: LogIndex(self.index), term: Term(3), now_ms: TimeMs(1_000 * self.index) }
    }

    fn apply_stamped(&mut self, stamp: Option<Stamp>, command: Command) {
        self.index += 1;
        // A refusal is remembered as well.
        let _ = self.state.apply(&self.context(), Envelope { stamp, command });
    }
}

fn listed() -> Vec<Listed> {
    let listed = |node| Listed { node: NodeId(node), peer: format!("10.0.0.{node}:7800"), voter: node < 4 };
    (1..=4).map(listed).collect()
}

/// What only commands of level 1 have made.
pub(super) fn level_1() -> Log {
    let mut log = Log { state: State::default(), index: 0 };
    log.state.follow_members(&listed());
    for (name, service) in [("train", 7), ("old", 8)] {
        let spec = job::Spec { poll: job::Poll::Hold, ..job::Spec::of_tasks(3) };
        let create = job::Command::Create { name: name.into(), spec, service: ServiceIncarnation(service) };
        log.apply(Command::Job(create));
    }
    tasks(&mut log);
    keys_and_sessions(&mut log);
    runtime(&mut log);
    let addresses = Addresses {
        client: "10.0.0.1:7700".into(),
        http: "10.0.0.1:7900".into(),
        job_host: "10.0.0.1".into(),
        job_port_first: 8000,
        job_port_count: 100,
    };
    log.apply(Command::Member(Member::Announce { node: NodeId(1), addresses }));
    let change = Change::Promote { node: NodeId(4) };
    log.apply(Command::Member(Member::Begin { change, by: "ops".into() }));
    log
}

fn tasks(log: &mut Log) {
    let (scope, incarnation) = (TRAIN, Incarnation(9));
    for task in (0..3).map(TaskId) {
        let (recoverable, protocol) = (task.0 == 2, Protocol::Xla);
        log.apply(Command::Task(task::Command::Register { scope, task, incarnation, recoverable, protocol }));
        log.apply(Command::Task(task::Command::Poll { scope, task, wish: None }));
    }
    let task = TaskId(0);
    log.apply(Command::Task(task::Command::Alive { scope, task, tasks: vec![task] }));
    log.apply(Command::Task(task::Command::Alive { scope, task, tasks: vec![task, TaskId(2)] }));
    let arrive = |barrier: &str, task: i32, timeout_ms| {
        let (task, tasks, counter) = (TaskId(task), vec![TaskId(0), TaskId(2)], BarrierCounter(0));
        let barrier = barrier.into();
        Command::Barrier(barrier::Command::Arrive { scope, barrier, counter, timeout_ms, tasks, task })
    };
    log.apply(arrive("open", 0, 60_000));
    log.apply(arrive("open", 0, 60_000));
    log.apply(arrive("over", 0, 60_000));
    let (counter, task) = (BarrierCounter(0), TaskId(0));
    log.apply(Command::Barrier(barrier::Command::Cancel { scope, barrier: "over".into(), counter, task }));
    let message = "out of memory".to_owned();
    log.apply(Command::Task(task::Command::ReportError { scope, task: TaskId(1), code: 8, message }));
}

fn keys_and_sessions(log: &mut Log) {
    log.apply(Command::Session(session::Command::Open));
    let (session, scope) = (SessionId(log.index.into()), TRAIN);
    let mut stamped = |sequence, command| {
        let acknowledged_below = Sequence(1);
        let stamp = Stamp { session, sequence: Sequence(sequence), acknowledged_below };
        log.apply_stamped(Some(stamp), Command::Kv(command));
    };
    let value = || Bytes::from_static(b"value");
    stamped(1, kv::Command::Insert { scope, key: "a/b".into(), value: value(), overwrite: false });
    stamped(2, kv::Command::Insert { scope, key: "a/b".into(), value: value(), overwrite: false });
    let caller = Some(Incarnation(9));
    stamped(3, kv::Command::Increment { scope, key: "count".into(), by: 5, caller });
}

fn runtime(log: &mut Log) {
    let scope = OLD;
    for task in (0..3).map(TaskId) {
        log.apply(Command::Runtime(Runtime::Connect { scope, task, client: ClientId(5) }));
    }
    let barrier = BarrierId(Bytes::from_static(b"b"));
    log.apply(Command::Runtime(Runtime::Arrive { scope, barrier, task: TaskId(2) }));
    let (key, value) = (Bytes::from_static(b"k"), Bytes::from_static(b"v"));
    log.apply(Command::Runtime(Runtime::Put { scope, key, value }));
}

pub(super) fn membership(log: &Log) -> Membership {
    let nodes: BTreeMap<u64, Peer> =
        listed().into_iter().map(|one| (one.node.0, Peer { address: one.peer })).collect();
    let voters = vec![BTreeSet::from([1, 2, 3])];
    Membership::new(Some(id(3, log.index)), openraft::Membership::new(voters, nodes).unwrap())
}

fn header(log: &Log) -> Header {
    Header {
        cluster_id: "golden".into(),
        last_log_id: Some(id(3, log.index)),
        membership: membership(log),
        digest: log.state.digest(),
        form: Form::of(&log.state),
    }
}

/// The snapshot in a golden file is read as `log` came to be, and written as it stands there.
pub(super) fn check(name: &str, header: &Header, log: &Log) {
    let today = write_to(Vec::new(), header, &log.state).unwrap();
    let golden = check_file(name, &today);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("golden.snap");
    fs::write(&path, golden).unwrap();
    let (found, state) = examine(ReadOnlyFile::open(&path, Pace::unlimited()).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(&found, header);
    assert!(state == log.state, "the state in it is another one");
}

#[test]
fn the_state_in_the_snapshot_has_a_record_of_every_kind() {
    let log = level_1();
    let records: Vec<String> = log.state.records().map(|record| format!("{record:?}")).collect();
    for kind in [
        "Header",
        "Member ",
        "Session",
        "Reply",
        "Job(",
        "Error",
        "Task(",
        "Barrier(",
        "Arrived",
        "Voided",
        "AliveGroup",
        "AliveCall",
        "Alive(",
        "Key",
        "Increment",
        "RuntimeMember",
        "RuntimeBarrier",
        "RuntimeArrived",
        "Registry(",
        "End",
    ] {
        assert!(records.iter().any(|record| record.starts_with(&format!("Record({kind}"))), "no {kind}");
    }
}

#[test]
fn a_snapshot_of_level_1_stays_as_it_is() {
    let log = level_1();
    check("level1/state.snap", &header(&log), &log);
}

/// What the commands of level 2 make of it.
fn level_2() -> Log {
    let mut log = level_1();
    let heard = (1..=4).map(NodeId).collect();
    log.apply(Command::Level(level::Command::Raise { to: FeatureLevel(2), heard }));
    let (name, note) = ("train".to_owned(), "ask the blue team".to_owned());
    log.apply(Command::Job(job::Command::Note { name, note }));
    log.apply(Command::Member(Member::Drain { node: NodeId(2), drained: true }));
    log
}

#[test]
fn a_snapshot_of_level_2_stays_as_it_is() {
    let log = level_2();
    assert_eq!(log.state.level(), FeatureLevel(2));
    check("level2/state.snap", &header(&log), &log);
}

/// What the commands of level 3 make of it: a scheduler of the first job.
pub(super) fn level_3() -> Log {
    let mut log = level_2();
    log.apply(schedulers::raise(3, 4));
    scheduler_state::add_to(&mut log);
    log
}

#[test]
fn a_snapshot_of_level_3_stays_as_it_is() {
    let log = level_3();
    assert_eq!(log.state.level(), FeatureLevel(3));
    check("level3/state.snap", &header(&log), &log);
}

/// What commands of level 3 make of it by the rules of level 4, which has none of its own.
pub(super) fn level_4() -> Log {
    let mut log = level_3();
    log.apply(schedulers::raise(4, 4));
    scheduler_state::go_on(&mut log);
    log
}

#[test]
fn a_snapshot_of_level_4_stays_as_it_is() {
    let log = level_4();
    assert_eq!(log.state.level(), FeatureLevel(4));
    check("level4/state.snap", &header(&log), &log);
}

/// What the commands of level 5 make of it: sessions of a node and of clients, with replies and without.
fn level_5() -> Log {
    let mut log = level_4();
    log.apply(schedulers::raise(5, 4));
    let put = |log: &mut Log, session, sequence| {
        let stamp = Stamp { session, sequence: Sequence(sequence), acknowledged_below: Sequence(1) };
        let value = Bytes::from_static(b"value");
        let command = kv::Command::Insert { scope: TRAIN, key: "c/d".into(), value, overwrite: true };
        log.apply_stamped(Some(stamp), Command::Kv(command));
    };
    let (node, client, idle) = (SessionId::of_node(5), SessionId::of_client(u128::MAX), SessionId(1 << 64));
    let here = IpAddr::from([10, 0, 0, 9]);
    let owners =
        [(node, Owner::Node(NodeId(2))), (client, Owner::Client(Some(here))), (idle, Owner::Client(None))];
    for (id, owner) in owners {
        log.apply(Command::Session(session::Command::OpenFor { id, owner }));
    }
    for (session, sequence) in [(node, 1), (node, 2), (client, 1), (client, 3), (client, 1)] {
        put(&mut log, session, sequence);
    }
    log
}

#[test]
fn a_snapshot_of_level_5_stays_as_it_is() {
    let log = level_5();
    assert_eq!(log.state.level(), FeatureLevel(5));
    check("level5/state.snap", &header(&log), &log);
}

/// What the command of level 6 makes of it: the intervals of a task that is there and of one that is not any more.
fn level_6() -> Log {
    let mut log = level_5();
    log.apply(schedulers::raise(6, 4));
    for task in [0, 1, 2].map(TaskId) {
        let scope = Scope { service: None, ..TRAIN };
        let incarnation = log.state.tasks(scope, &[task]).unwrap().tasks[0].incarnation;
        let interval_ms = DurationMs(50_000);
        log.apply(Command::Task(task::Command::NoteInterval { scope, task, incarnation, interval_ms }));
    }
    let silence = log.state.silence(TRAIN.job, TaskId(0), Incarnation(9), None).unwrap();
    assert_eq!(silence.first_ms, None, "its interval is known");
    log
}

#[test]
fn a_snapshot_of_level_6_stays_as_it_is() {
    let log = level_6();
    assert_eq!(log.state.level(), FeatureLevel(6));
    check("level6/state.snap", &header(&log), &log);
}

/// What the command of level 7 makes of it: a task that came back, and what it wrote again.
fn level_7() -> Log {
    let mut log = level_6();
    log.apply(schedulers::raise(7, 4));
    let (scope, task, incarnation) = (TRAIN, TaskId(2), Incarnation(10));
    let (recoverable, protocol) = (true, Protocol::Xla);
    log.apply(Command::Task(task::Command::Register { scope, task, incarnation, recoverable, protocol }));
    let (key, value) = ("a/b".to_owned(), Bytes::from_static(b"value"));
    log.apply(Command::Kv(kv::Command::InsertAs { scope, key, value, task, incarnation }));
    log
}

#[test]
fn a_snapshot_of_level_7_stays_as_it_is() {
    let log = level_7();
    assert_eq!(log.state.level(), FeatureLevel(7));
    check("level7/state.snap", &header(&log), &log);
}

/// What the commands of level 8 make of it: a task that ran somewhere, and has ended.
fn level_8() -> Log {
    let mut log = level_7();
    log.apply(schedulers::raise(8, 4));
    let (scope, task, incarnation) = (TRAIN, TaskId(2), Incarnation(10));
    log.apply(Command::Task(task::Command::NoteHost { scope, task, incarnation, host: "gpu-7".to_owned() }));
    log.apply(Command::Task(task::Command::End { scope, task, incarnation }));
    log
}

#[test]
fn a_snapshot_of_level_8_stays_as_it_is() {
    let log = level_8();
    assert_eq!(log.state.level(), FeatureLevel(8));
    check("level8/state.snap", &header(&log), &log);
}

/// What the commands of level 9 make of it: MindSpore clusters of both kinds.
fn level_9() -> Log {
    let mut log = level_8();
    log.apply(schedulers::raise(9, 4));
    clusters::fill(&mut log, TRAIN);
    log
}

#[test]
fn a_snapshot_of_level_9_stays_as_it_is() {
    let log = level_9();
    assert_eq!(log.state.level(), FeatureLevel(9));
    let found = log.state.cluster(TRAIN).map(|view| (view.state, view.events));
    assert_eq!(found, Ok((ClusterState::ScaleOut, 1)), "the history goes through");
    assert!(log.state.topology_hosts(TRAIN, "MS_WORKER").unwrap().is_some());
    check("level9/state.snap", &header(&log), &log);
}

/// What the commands of level 10 make of it: tasks with needs, cancelled ones, described objects, and sessions.
fn level_10() -> Log {
    let mut log = level_9();
    log.apply(schedulers::raise(10, 4));
    scheduler_state::need_something(&mut log);
    sessions::fill(&mut log, TRAIN);
    log
}

#[test]
fn a_snapshot_of_level_10_stays_as_it_is() {
    let log = level_10();
    assert_eq!(log.state.level(), FeatureLevel(10));
    let records: Vec<String> = log.state.records().map(|record| format!("{record:?}")).collect();
    for kind in ["Offers(", "Needs(", "Cancelling(", "Description("] {
        let wanted = format!("Record(SchedulerPart({kind}");
        assert!(records.iter().any(|record| record.starts_with(&wanted)), "no {kind}: {records:#?}");
    }
    for word in ["Cancel {", "reason: Cancelled", "until_ms: Some"] {
        assert!(records.iter().any(|record| record.contains(word)), "no {word}: {records:#?}");
    }
    check("level10/state.snap", &header(&log), &log);
}

/// A build of level 1 reads layout 2 only; one that is limited to a level is to be no wiser.
#[test]
fn a_build_of_the_level_before_refuses_a_snapshot_of_this_one() {
    let directory = TempDir::new().unwrap();
    let refusal = |log: &Log, level_max: u32| {
        let store = directory.path().join("snapshots");
        let store = SnapshotStore::open_directory_for(&store, FeatureLevel(level_max)).unwrap();
        let file = store.write(&header(log), &log.state).unwrap().snapshot;
        file.verify().map(|found| assert_eq!(found, header(log))).err().map(|error| error.to_string())
    };
    for log in [level_2(), level_3()] {
        let told = refusal(&log, 1).unwrap();
        assert!(told.contains("version 3") && told.contains("up to 2"), "{told}");
    }
    let told = refusal(&level_3(), 2).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 3"), "{told}");
    let told = refusal(&level_4(), 3).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 4"), "{told}");
    let told = refusal(&level_5(), 4).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 5"), "{told}");
    let told = refusal(&level_6(), 5).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 6"), "{told}");
    let told = refusal(&level_7(), 6).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 7"), "{told}");
    let told = refusal(&level_8(), 7).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 8"), "{told}");
    let told = refusal(&level_10(), 9).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 10"), "{told}");
    let told = refusal(&level_9(), 8).unwrap();
    assert!(told.starts_with("T4404 level-snapshot: ") && told.contains("level 9"), "{told}");
    let (earlier, later) = (
        [(level_2(), 2), (level_2(), 3), (level_3(), 3), (level_3(), 4)],
        [
            (level_4(), 4),
            (level_5(), 5),
            (level_5(), 6),
            (level_6(), 6),
            (level_7(), 7),
            (level_8(), 8),
            (level_9(), 9),
            (level_10(), 10),
        ],
    );
    let read = earlier.into_iter().chain(later);
    for (log, level_max) in read {
        assert_eq!(refusal(&log, level_max), None);
    }
}

/// The next level's layout tells its level first, so that it is refused by its name.
#[test]
fn a_snapshot_of_a_level_that_is_not_supported_is_refused_with_both_levels() {
    let mut log = level_2();
    let heard = (1..=4).map(NodeId).collect();
    log.apply(Command::Level(level::Command::Raise { to: FeatureLevel(12), heard }));
    let bytes = write_to(Vec::new(), &header(&log), &log.state).unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("later.snap");
    fs::write(&path, bytes).unwrap();
    let refusal = examine(ReadOnlyFile::open(&path, Pace::unlimited()).unwrap(), &mut |_| {})
        .err()
        .unwrap()
        .to_string();
    assert!(refusal.starts_with("T4404 level-snapshot: ") && refusal.contains("level 12"), "{refusal}");
}

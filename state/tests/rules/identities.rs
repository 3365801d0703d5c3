//! Who proposed a command: what a snapshot and a lower level make of it, and what is a node's own.

use tripod_state::identity::{Identity, IdentityCommand, Mode, Refusal};
use tripod_state::ids::{ClientId, FeatureLevel, Incarnation, NodeId, Sequence, SessionId, TaskId};
use tripod_state::level::{self, Command as Level};
use tripod_state::member::{Addresses, Command as Member, Listed};
use tripod_state::session::{Command as Session, Owner};
use tripod_state::{Answer, Command, Fault, Stamp, State, kv, member, restore, runtime, task};

use crate::support::{Machine, SCOPE};

const SESSION: SessionId = SessionId::of_client(7);

fn identity(path: &str) -> Identity {
    Identity::of_path(path).expect("a path")
}

/// Job `w` of two tasks, in a cluster of two nodes at the newest level.
fn at_newest() -> Machine {
    let mut machine = Machine::default();
    let listed = [1, 2].map(|node| Listed { node: NodeId(node), peer: format!("h:{node}"), voter: true });
    machine.create("w", 2).expect("the name is free");
    machine.state.follow_members(&listed);
    let raise = Level::Raise { to: level::NEWEST, heard: vec![NodeId(1), NodeId(2)] };
    machine.apply(Command::Level(raise)).expect("all support it");
    machine
}

fn open_session() -> Command {
    Command::Session(Session::OpenFor { id: SESSION, owner: Owner::Client(None) })
}

fn stamp(sequence: u64) -> Option<Stamp> {
    Some(Stamp { session: SESSION, sequence: Sequence(sequence), acknowledged_below: Sequence(1) })
}

fn increment() -> Command {
    Command::Kv(kv::Command::Increment { scope: SCOPE, key: "n".to_owned(), by: 1, caller: None })
}

fn register(task: i32) -> Command {
    let (task, incarnation, protocol) = (TaskId(task), Incarnation(5), task::Protocol::Xla);
    Command::Task(task::Command::Register { scope: SCOPE, task, incarnation, recoverable: false, protocol })
}

fn end(task: i32) -> Command {
    Command::Task(task::Command::End { scope: SCOPE, task: TaskId(task), incarnation: Incarnation(5) })
}

fn check_snapshot(machine: &Machine) {
    let read = State::from_records(machine.state.records()).expect("its own records");
    assert_eq!(read, machine.state);
    assert_eq!(read.digest(), machine.state.digest());
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}

#[test]
fn who_opened_a_session_and_registered_a_task_is_in_digest_and_snapshot() {
    let run = |path: Option<&str>| {
        let mut machine = at_newest();
        for command in [open_session(), register(0)] {
            let command = match path {
                Some(path) => command.by(identity(path)),
                None => command,
            };
            machine.apply(command).expect("legal");
            check_snapshot(&machine);
        }
        machine.state.digest()
    };
    let digests = [run(None), run(Some("job/w/task/0")), run(Some("job/w/agent"))];
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

#[test]
fn s33_a_stamp_that_somebody_else_sends_again_changes_nothing() {
    let mut machine = at_newest();
    let agent = || identity("job/w/agent");
    machine.apply(open_session().by(agent())).expect("it is free");
    let first = machine.apply_stamped(stamp(1), increment().by(agent()));
    assert!(first.is_ok());
    let before = machine.state.clone();
    for path in ["job/w/task/0", "job/w/task", "operator/ann", "node/n1"] {
        for command in [increment(), Command::Retried(Box::new(increment()))] {
            let reply = machine.apply_stamped(stamp(1), command.by(identity(path)));
            assert_eq!(reply, Err(Fault::SessionExpired), "{path}");
        }
        let unknown = Some(Stamp { session: SessionId(99), ..stamp(1).expect("it is one") });
        assert_eq!(
            machine.apply_stamped(unknown, increment().by(identity(path))),
            Err(Fault::SessionExpired)
        );
    }
    assert_eq!(machine.state, before);
    let marked = Command::Retried(Box::new(increment().by(agent())));
    assert_eq!(machine.apply_stamped(stamp(1), marked), first, "its own");
}

/// Nodes that ask for certificates and nodes that do not yet serve the same clients for a while.
#[test]
fn of_whom_nothing_is_known_is_refused_nothing_more_than_before() {
    let mut machine = at_newest();
    machine.apply(open_session().by(identity("job/w/agent"))).expect("it is free");
    machine.apply_stamped(stamp(1), increment()).expect("as it was before");
    machine.apply(register(0).by(identity("job/w/task/0"))).expect("it waits");
    machine.apply(end(0)).expect("as it was before");
    let mut machine = at_newest();
    machine.apply(open_session()).expect("it is free");
    machine.apply_stamped(stamp(1), increment().by(identity("job/w/agent"))).expect("nobody has proved more");
}

/// What people are told of a process does not change who speaks for it.
#[test]
fn a_registration_that_says_where_it_comes_from_belongs_to_its_caller_as_every_other() {
    let mut machine = at_newest();
    let origin = || task::Origin { host: "a3-7".into(), ..task::Origin::default() };
    let told = |task| register(task).with_origin(origin);
    let other = Err(Fault::NotAuthorised(Refusal::OtherTask { task: TaskId(0) }));
    assert_eq!(machine.apply(told(0).by(identity("job/w/task/1"))), other);
    for task in [0, 1] {
        let _ = machine.apply(told(task).by(identity(&format!("job/w/task/{task}"))));
    }
    check_snapshot(&machine);
    let refused = Err(Fault::NotAuthorised(Refusal::OtherProcess { task: TaskId(1) }));
    assert_eq!(machine.apply(end(1).by(identity("job/w/task"))), refused);
    let note = |task| {
        let (task, incarnation, origin) = (TaskId(task), Incarnation(5), Box::new(origin()));
        Command::Task(task::Command::NoteOrigin { scope: SCOPE, task, incarnation, origin })
    };
    assert_eq!(machine.apply(note(1).by(identity("job/w/task"))), refused);
    assert_eq!(machine.apply(note(0).by(identity("job/w/task/1"))), other);
    machine.apply(note(1).by(identity("job/w/agent"))).expect("it is its agent");
    let (task, client) = (TaskId(0), ClientId(3));
    let connect = Command::Runtime(runtime::Command::Connect { scope: SCOPE, task, client });
    let connect = connect.with_origin(origin).by(identity("job/w/task/1"));
    assert_eq!(machine.apply(connect), other);
}

/// What a session remembers is of a command, whoever is said to have proposed it and wherever it is said to come from.
#[test]
fn a_registration_that_is_sent_again_without_where_it_comes_from_is_the_same() {
    let mut machine = at_newest();
    let agent = || identity("job/w/agent");
    machine.apply(open_session().by(agent())).expect("it is free");
    let told = register(0).with_origin(|| task::Origin { pid: 7, ..task::Origin::default() });
    let first = machine.apply_stamped(stamp(1), told.by(agent()));
    assert!(matches!(first, Ok(Answer::Waiting(_))), "{first:?}");
    assert_eq!(machine.apply_stamped(stamp(1), register(0).by(agent())), first);
    assert_eq!(machine.apply_stamped(stamp(1), register(0)), first, "of whom nothing is known");
}

/// Whoever was told of a refusal may do something else meanwhile: what it sent once is not to take effect afterwards.
#[test]
fn s36_a_refusal_is_remembered_as_every_other_and_is_one_when_it_would_be_allowed_too() {
    let mut machine = at_newest();
    let any = || identity("job/w/task");
    machine.apply(open_session().by(any())).expect("it is free");
    for task in [0, 1] {
        let _ = machine.apply(register(task).by(identity(&format!("job/w/task/{task}"))));
    }
    let refused = Err(Fault::NotAuthorised(Refusal::OtherProcess { task: TaskId(1) }));
    let reset = || Command::Task(task::Command::Reset { scope: SCOPE, task: TaskId(1) });
    assert_eq!(machine.apply_stamped(stamp(1), reset().by(any())), refused);
    check_snapshot(&machine);
    machine.apply(reset().by(identity("job/w/agent"))).expect("it is its agent");
    let by_now = Err(Fault::AlreadyDisconnected { task: TaskId(1) });
    assert_eq!(machine.apply(reset().by(any())), by_now, "nobody's life is there any more");
    let before = machine.state.clone();
    assert_eq!(machine.apply_stamped(stamp(1), reset().by(any())), refused);
    assert_eq!(machine.state, before);
    let pin = Level::Pin { level: FeatureLevel(10), by: "ops".to_owned() };
    machine.apply(Command::Level(pin)).expect("nothing stands in the way");
    assert!(!format!("{:?}", machine.state.records().collect::<Vec<_>>()).contains("NotAuthorised"));
    assert_eq!(machine.apply_stamped(stamp(1), reset()), Err(Fault::ReplyForgotten));
    check_snapshot(&machine);
}

#[test]
fn whoever_registered_a_life_that_is_over_has_no_say_in_the_next() {
    let mut machine = at_newest();
    for task in [0, 1] {
        let _ = machine.apply(register(task).by(identity(&format!("job/w/task/{task}"))));
    }
    let any = || identity("job/w/task");
    let refused = Err(Fault::NotAuthorised(Refusal::OtherProcess { task: TaskId(1) }));
    assert_eq!(machine.apply(end(1).by(any())), refused);
    let reset = Command::Task(task::Command::Reset { scope: SCOPE, task: TaskId(1) });
    assert_eq!(machine.apply(reset.clone().by(identity("job/w/agent"))), Ok(Answer::Done), "it is its agent");
    let left = machine.apply(reset.by(any()));
    assert_eq!(left, Err(Fault::AlreadyDisconnected { task: TaskId(1) }), "in the words of the job");
    check_snapshot(&machine);
}

#[test]
fn own_node_only_a_node_itself_says_where_it_is_and_what_it_is_called() {
    let mut machine = at_newest();
    let bind = |node, name: &str| Command::Member(Member::Bind { node: NodeId(node), name: name.into() });
    let announce = |node| {
        let addresses = Addresses {
            client: "c:1".to_owned(),
            http: String::new(),
            job_host: String::new(),
            job_port_first: 1,
            job_port_count: 1,
        };
        Command::Member(Member::Announce { node: NodeId(node), addresses })
    };
    machine.apply(bind(1, "n1").by(identity("node/n1"))).expect("nobody has it");
    let other = Err(Fault::NotAuthorised(Refusal::OtherNode { node: NodeId(1) }));
    assert_eq!(machine.apply(announce(1).by(identity("node/n2"))), other);
    let join = || Command::Member(Member::Join { peer: "h:1".to_owned(), token: 9 });
    assert_eq!(machine.apply(join().by(identity("node/n2"))), other);
    assert_eq!(machine.apply(announce(1).by(identity("node/n1"))), Ok(Answer::Done));
    assert_eq!(machine.apply(announce(2).by(identity("node/n2"))), Ok(Answer::Done), "it has no name yet");
}

#[test]
fn what_only_nodes_decide_and_what_no_certificate_says_is_refused() {
    let mut machine = at_newest();
    let of_node = Session::OpenFor { id: SessionId::of_node(1), owner: Owner::Node(NodeId(1)) };
    let pin = Level::Pin { level: FeatureLevel(1), by: "me".to_owned() };
    let expire = task::Command::Expire { job: SCOPE.job, silent: vec![(TaskId(0), Incarnation(5))] };
    let before = machine.state.clone();
    for command in [Command::Session(of_node), Command::Level(pin), Command::Task(expire)] {
        let reply = machine.apply(command.by(identity("operator/ann")));
        assert_eq!(reply, Err(Fault::NotAuthorised(Refusal::NodesOnly)));
    }
    for malformed in [
        Identity::Agent("W".into()),
        Identity::Operator("o".repeat(64).as_str().into()),
        Identity::Task { job: "w".into(), task: Some(TaskId(-1)) },
    ] {
        let command = increment().by(malformed);
        assert!(command.check_lists(&|_| 2).is_err(), "the leader does not append it");
        assert_eq!(machine.apply(command), Err(Fault::NotAuthorised(Refusal::Malformed)));
    }
    // The one around all others counts: a node says it of its caller.
    let twice = end(1).by(identity("job/w/agent")).by(identity("job/w/task/0"));
    assert_eq!(machine.apply(twice), Err(Fault::NotAuthorised(Refusal::OtherTask { task: TaskId(1) })));
    assert_eq!(machine.state, before);
}

#[test]
fn a_floor_is_in_digest_and_snapshot_and_another_cluster_has_none() {
    let mut machine = at_newest();
    let digest = machine.state.digest();
    let set = |mode| Command::Identity(IdentityCommand::SetFloor { mode, by: "ops".to_owned() });
    machine.apply(set(Mode::Strict)).expect("it is higher");
    assert_ne!(machine.state.digest(), digest);
    check_snapshot(&machine);
    let long = IdentityCommand::SetFloor { mode: Mode::Strict, by: "o".repeat(129) };
    assert!(matches!(machine.apply(Command::Identity(long)), Err(Fault::LimitExceeded { .. })));
    let pin = Level::Pin { level: FeatureLevel(10), by: "ops".to_owned() };
    let refused = Err(Fault::Level(level::Refusal::Floor { needs: FeatureLevel(11) }));
    assert_eq!(machine.apply(Command::Level(pin)), refused);
    let other = machine.state.clone().restored("other", restore::Jobs::Kept);
    assert_eq!(other.floor().mode, Mode::Off);
}

/// Its certificates are of others, who may have the same names.
#[test]
fn another_cluster_knows_nobody_who_opened_a_session_or_registered_a_task() {
    let mut machine = at_newest();
    machine.apply(open_session().by(identity("job/w/agent"))).expect("it is free");
    machine.apply(register(0).by(identity("job/w/task/0"))).expect("it waits");
    let first = machine.apply_stamped(stamp(1), increment().by(identity("job/w/agent")));
    machine.state = machine.state.restored("other", restore::Jobs::Kept);
    check_snapshot(&machine);
    let records = format!("{:?}", machine.state.records().collect::<Vec<_>>());
    for word in ["Opener", "Registrant"] {
        assert!(!records.contains(word), "{word}");
    }
    let again = machine.apply_stamped(stamp(1), increment().by(identity("job/w/driver")));
    assert_eq!(again, first, "jobs and sessions go on as they were saved");
}

/// Builds of level 10 read what is left.
#[test]
fn below_its_level_nobody_is_known_and_no_reply_of_it_is_remembered() {
    let mut machine = at_newest();
    machine.apply(open_session().by(identity("job/w/agent"))).expect("it is free");
    machine.apply(register(0).by(identity("job/w/task/0"))).expect("it waits");
    machine.apply_stamped(stamp(1), increment().by(identity("job/w/agent"))).expect("its own");
    let bind = |name: &str| Command::Member(Member::Bind { node: NodeId(1), name: name.into() });
    machine.apply(bind("n1")).expect("nobody has it");
    let bound = member::Refusal::NameBound { node: NodeId(1), bound: "n1".into() };
    assert_eq!(machine.apply_stamped(stamp(2), bind("n2").by(identity("job/w/agent"))), Err(bound.into()));
    check_snapshot(&machine);
    let pin = Level::Pin { level: FeatureLevel(10), by: "ops".to_owned() };
    machine.apply(Command::Level(pin)).expect("nothing stands in the way");
    let records = format!("{:?}", machine.state.records().collect::<Vec<_>>());
    for word in ["NameBound", "Named", "Opener", "Registrant"] {
        assert!(!records.contains(word), "{word}");
    }
    check_snapshot(&machine);
    machine.apply_stamped(stamp(3), increment()).expect("its session is whose it was before");
}

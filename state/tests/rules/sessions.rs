//! Sessions: what keeps the level up, bounds, memory, snapshots that are damaged, and the largest graphs.

use bytes::Bytes;
use tripod_state::ids::{FeatureLevel, JobName, Sequence, SessionId};
use tripod_state::mars::limits as bound;
use tripod_state::mars::{
    Answer, Chunk, Command as Sessions, Decision, Definition, Digest, Graph, GraphKind, GraphName, GraphNo,
    GraphState, Input, Options, Part, Place, Request, Scalar, Tileable, TileableKind,
};
use tripod_state::need::Purpose;
use tripod_state::ray::ids::FunctionName;
use tripod_state::ray::{self, Needs, Origin, Registration, Role};
use tripod_state::session::{self, Owner};
use tripod_state::snapshot::Record;
use tripod_state::{Command, Envelope, Fault, Reply, Stamp, State, job, level, mars};

use crate::support::{Machine, SCOPE};

impl Machine {
    /// At the level of sessions, with session `s`.
    fn with_session() -> Self {
        let mut machine = Self::default();
        machine.create("w", 1).expect("the name is free");
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        machine.apply(Command::Level(raise)).expect("nobody has an id");
        machine.mars(create_session("s")).expect("there is room");
        machine
    }

    fn mars(&mut self, request: Request) -> Reply {
        self.apply(ask(request))
    }

    fn scheduler(&mut self, request: ray::Request) -> Reply {
        let command = ray::Command::Ask { scope: SCOPE, origin: Origin::default(), request };
        self.apply(Command::Ray(command))
    }

    /// With a worker that takes subtasks.
    fn with_worker() -> Self {
        let mut machine = Self::with_session();
        machine
            .scheduler(ray::Request::RegisterStore { address: "10.0.0.1:1".to_owned() })
            .expect("there is room");
        let registration = Registration {
            host: "10.0.0.1".to_owned(),
            store: String::new(),
            role: Role::Worker,
            attributed: true,
            extended: true,
            slots: 1,
        };
        machine.scheduler(ray::Request::RegisterWorker(registration)).expect("there is a store");
        let (worker, name) = (ray::ids::WorkerId(0), FunctionName(mars::CHUNK_FUNCTION.into()));
        machine.scheduler(ray::Request::RegisterFunction { worker, name, results: 1 }).expect("it lives");
        machine
    }

    fn refuses(&mut self, request: Request, what: &str) {
        let refusal = self.mars(request);
        let said = match &refusal {
            Err(Fault::LimitExceeded { what, .. }) => what.clone(),
            other => panic!("{what}: {other:?}"),
        };
        assert!(said.contains(what), "{said} is not about {what}");
    }
}

fn ask(request: Request) -> Command {
    Command::Mars(Sessions::Ask { scope: SCOPE, request_id: String::new(), request })
}

fn create_session(session: &str) -> Request {
    Request::CreateSession {
        session: session.to_owned(),
        is_proposed: false,
        if_not_exist: false,
        labels: Vec::new(),
    }
}

fn named(key: &str) -> GraphName {
    GraphName { session: "s".to_owned(), kind: GraphKind::Tileable, key: key.to_owned() }
}

fn submit(key: &str, content: Graph) -> Request {
    let (options, targets) = (Options::default(), Vec::new());
    Request::Submit { graph: named(key), digest: Digest([1; 32]), options, targets, content }
}

fn chunk(key: String) -> Chunk {
    Chunk { key, shape: vec![100, 100], element_type: 5, is_retryable: true, ..Chunk::default() }
}

/// A tensor of so many chunks along the first of two axes, from another one.
fn large(chunks: u32) -> Graph {
    let first = (0..chunks).map(|place| Chunk {
        argument: Bytes::from(vec![7; 100]),
        ..chunk(format!("0123456789abcdef:{place}.0"))
    });
    let second = (0..chunks).map(|place| Chunk {
        argument: Bytes::from(vec![7; 100]),
        inputs: vec![Input::Chunk(Place(place))],
        ..chunk(format!("fedcba9876543210:{place}.0"))
    });
    let tileable = Tileable {
        key: "fedcba9876543210".to_owned(),
        kind: TileableKind::Tensor,
        name: String::new(),
        element_type: 5,
        columns: Vec::new(),
        nsplits: vec![vec![100; chunks as usize], vec![100]],
        chunks: (chunks..2 * chunks).map(|place| Input::Chunk(Place(place))).collect(),
    };
    Graph { chunks: first.chain(second).collect(), tileables: vec![tileable] }
}

fn definition(nsplits: Vec<Vec<u64>>) -> Definition {
    Definition {
        kind: TileableKind::Tensor,
        element_type: 5,
        columns: Vec::new(),
        defaults: vec![Scalar::Integer(0)],
        nsplits,
        replicas: 1,
    }
}

fn create_mutable(name: &str, definition: Definition) -> Request {
    Request::CreateMutable {
        session: "s".to_owned(),
        name: name.to_owned(),
        is_proposed: false,
        definition,
        if_not_exist: false,
    }
}

fn upload(key: &str, offset: u64, bytes: usize) -> Request {
    Request::Upload { graph: named(key), offset, bytes: Bytes::from(vec![7; bytes]), is_last: false }
}

#[test]
fn sessions_keep_the_level_up_and_are_named() {
    let mut machine = Machine::with_session();
    let pin = || Command::Level(level::Command::Pin { level: FeatureLevel(9), by: String::new() });
    let jobs = vec![JobName::from("w")];
    let refusal = level::Refusal::Sessions { needs: FeatureLevel(10), count: 1, jobs };
    assert_eq!(machine.apply(pin()), Err(Fault::Level(refusal)));
    let end = Request::DeleteSession { session: "s".to_owned(), if_exist: false };
    machine.mars(end).expect("it is there");
    machine.apply(pin()).expect("nothing needs more");
}

#[test]
fn a_chunk_takes_less_than_400_bytes_when_it_is_done() {
    const CHUNKS: u32 = 50_000;
    let mut machine = Machine::with_session();
    let before = machine.state.bytes_of(SCOPE.job).expect("the job is there");
    machine.mars(submit("g", large(CHUNKS))).expect("it is a graph");
    let stop = Request::Stop { graph: named("g") };
    let stopped = machine.mars(stop).expect("it is there");
    let state = GraphState::Cancelled;
    assert_eq!(stopped, tripod_state::Answer::Mars(Answer::Stopped { state }));
    let bytes = machine.state.bytes_of(SCOPE.job).expect("the job is there") - before;
    let each = bytes / u64::from(2 * CHUNKS);
    assert!(each < 400, "{each} bytes");
    assert!(each > 150, "{each} bytes are too few to be true");
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}

/// If anything were searched, or copied, for each of them, this would take many minutes and the test be ended.
#[test]
fn a_graph_of_100_000_chunks_begins_and_is_stopped() {
    let mut machine = Machine::with_worker();
    machine.mars(submit("g", large(50_000))).expect("it is a graph");
    let mut advanced = 1;
    while let Some(due) = machine.state.mars_due(SCOPE.job, machine.state.now_ms()).pop() {
        machine
            .apply(Command::Mars(Sessions::Lead { scope: SCOPE, decision: due }))
            .expect("it is a decision");
        advanced += 1;
    }
    assert_eq!(advanced, bound::IN_FLIGHT_MAX / bound::WINDOW);
    machine.mars(Request::Stop { graph: named("g") }).expect("it is there");
    let view = machine.state.mars_graph(SCOPE, &named("g")).expect("it is there");
    assert_eq!((view.state, view.counts.cancelled), (GraphState::Cancelled, 100_000));
}

#[test]
fn subtasks_are_given_to_the_scheduler_in_windows() {
    let mut machine = Machine::with_worker();
    machine.mars(submit("g", large(20_000))).expect("it is a graph");
    let running =
        |machine: &Machine| machine.state.mars_graph(SCOPE, &named("g")).expect("it is there").counts.running;
    assert_eq!(running(&machine), u64::from(bound::WINDOW));
    let mut windows = 1;
    loop {
        let due = machine.state.mars_due(SCOPE.job, machine.state.now_ms());
        let [Decision::Advance { graph }] = due[..] else { break };
        let decision = Decision::Advance { graph };
        machine.apply(Command::Mars(Sessions::Lead { scope: SCOPE, decision })).expect("it is a decision");
        windows += 1;
        assert_eq!(running(&machine), windows * u64::from(bound::WINDOW));
    }
    assert_eq!(running(&machine), u64::from(bound::IN_FLIGHT_MAX));
}

#[test]
fn sessions_and_their_labels_are_bounded() {
    let mut machine = Machine::with_session();
    for number in 1..bound::SESSIONS_MAX {
        machine.mars(create_session(&format!("s{number}"))).expect("there is room");
    }
    machine.refuses(create_session("more"), "sessions of a job");
    let labelled = |labels| Request::CreateSession {
        session: "l".to_owned(),
        is_proposed: false,
        if_not_exist: false,
        labels,
    };
    let label = |length: usize| ("n".repeat(length), String::new());
    machine.refuses(labelled(vec![label(1); bound::LABELS_MAX + 1]), "labels of a session");
    machine.refuses(labelled(vec![label(bound::LABEL_BYTES_MAX + 1)]), "bytes of a label");
    machine.refuses(create_session(&"s".repeat(129)), "characters of a session's id");
    let request_id = "r".repeat(bound::REQUEST_ID_BYTES_MAX + 1);
    let long = Command::Mars(Sessions::Ask { scope: SCOPE, request_id, request: create_session("x") });
    assert!(matches!(machine.apply(long), Err(Fault::LimitExceeded { .. })));
}

#[test]
fn graphs_and_their_nodes_are_bounded() {
    let mut machine = Machine::with_session();
    let one = |chunk: Chunk| submit("g", Graph { chunks: vec![chunk], tileables: Vec::new() });
    let long = |length: usize| "k".repeat(length);
    machine.refuses(submit(&long(bound::KEY_BYTES_MAX + 1), Graph::default()), "bytes of a graph's key");
    machine.refuses(one(chunk(long(bound::KEY_BYTES_MAX + 1))), "bytes of a chunk's key");
    let argument = Bytes::from(vec![7; bound::ARGUMENT_BYTES_MAX as usize + 1]);
    machine.refuses(one(Chunk { argument, ..chunk("a".to_owned()) }), "bytes of node");
    let inputs = vec![Input::Chunk(Place(0)); bound::INPUTS_MAX as usize + 1];
    machine.refuses(one(Chunk { inputs, ..chunk("a".to_owned()) }), "inputs of node");
    let shape = vec![1; bound::DIMS_MAX as usize + 1];
    machine.refuses(one(Chunk { shape, ..chunk("a".to_owned()) }), "axes of node");
    let named_milli = (0..=bound::RESOURCES_MAX).map(|number| (number.to_string(), 1)).collect();
    let needs = Needs { named_milli, ..Needs::default() };
    machine.refuses(one(Chunk { needs, ..chunk("a".to_owned()) }), "named resources of node");
    let many = vec![Chunk::default(); bound::COMMAND_CHUNKS_MAX as usize + 1];
    machine.refuses(submit("g", Graph { chunks: many, tileables: Vec::new() }), "chunks in one command");
    let brings =
        |number: usize| Chunk { argument: Bytes::from(vec![7; 1 << 20]), ..chunk(number.to_string()) };
    let bytes = Graph { chunks: (0..33).map(brings).collect(), tileables: Vec::new() };
    machine.refuses(submit("g", bytes), "bytes of one command");
    for number in 0..bound::GRAPHS_MAX {
        machine.mars(submit(&number.to_string(), Graph::default())).expect("there is room");
    }
    machine.refuses(submit("more", Graph::default()), "graphs of a session");
}

#[test]
fn a_graph_in_parts_has_no_more_chunks_than_one_may() {
    let mut machine = Machine::with_session();
    let (options, targets, digest) = (Options::default(), Vec::new(), Digest([1; 32]));
    machine.mars(Request::Begin { graph: named("g"), digest, options, targets }).expect("there is room");
    let draft = GraphNo(machine.index);
    let mut before = 0;
    loop {
        let count = bound::COMMAND_CHUNKS_MAX.min(bound::GRAPH_CHUNKS_MAX - before);
        let last = count == 0;
        let keys = before..before + count.max(1);
        let chunks = keys.map(|number| chunk(format!("k:{number}"))).collect();
        let content = Graph { chunks, tileables: Vec::new() };
        let part = Part { chunks_before: before, tileables_before: 0, content };
        let add = Request::Add { graph: named("g"), draft, part };
        if last {
            machine.refuses(add, "chunks of a graph");
            break;
        }
        machine.mars(add).expect("there is room");
        before += count;
    }
    machine.mars(Request::Commit { graph: named("g"), draft }).expect("it is a graph");
    let view = machine.state.mars_graph(SCOPE, &named("g")).expect("it is there");
    assert_eq!((view.graph_size, view.state), (bound::GRAPH_CHUNKS_MAX, GraphState::Unscheduled));
}

#[test]
fn uploads_are_bounded() {
    let mut machine = Machine::with_session();
    let part = bound::UPLOAD_PART_BYTES_MAX as usize;
    machine.refuses(upload("g", 0, part + 1), "bytes of a part of a graph");
    for number in 0..bound::UPLOADS_MAX {
        machine.mars(upload(&number.to_string(), 0, 1)).expect("there is room");
    }
    machine.refuses(upload("more", 0, 1), "uploads of a session");
    // Whoever uploads from so far on would have more than a graph may have, or leaves something out.
    assert!(machine.mars(upload("0", bound::UPLOAD_BYTES_MAX, 1)).is_err());
    let parts = usize::try_from(bound::UPLOAD_PARTS_MAX).expect("it is small");
    for number in 1..parts {
        machine.mars(upload("1", number as u64, 1)).expect("there is room");
    }
    machine.refuses(upload("1", bound::UPLOAD_PARTS_MAX, 1), "parts of a graph");
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}

/// A part is a handle to bytes that the test has once; a gibibyte of them is none.
#[test]
fn an_upload_has_no_more_bytes_than_a_graph_may() {
    let mut machine = Machine::with_session();
    let bytes = Bytes::from(vec![7; bound::UPLOAD_PART_BYTES_MAX as usize]);
    let mut offset = 0;
    while offset < bound::UPLOAD_BYTES_MAX {
        let part = Request::Upload { graph: named("g"), offset, bytes: bytes.clone(), is_last: false };
        machine.mars(part).expect("there is room");
        offset += bound::UPLOAD_PART_BYTES_MAX;
    }
    machine.refuses(upload("g", offset, 1), "bytes of a graph");
    machine.refuses(upload("h", 0, 1), "bytes of a session's uploads");
    let need = machine.state.need(&Envelope { stamp: None, command: ask(upload("h", 0, 1)) }, 100);
    assert_eq!(need.purpose, Purpose::Begin);
}

#[test]
fn mutable_tileables_are_bounded() {
    let mut machine = Machine::with_session();
    machine
        .scheduler(ray::Request::RegisterStore { address: "10.0.0.1:1".to_owned() })
        .expect("there is room");
    let parts = bound::MUTABLE_CHUNKS_MAX as usize;
    machine.mars(create_mutable("most", definition(vec![vec![1; parts]]))).expect("there is room");
    let more = definition(vec![vec![1; parts / 2], vec![1; 3]]);
    machine.refuses(create_mutable("more", more), "chunks of a mutable tileable");
    let large = definition(vec![vec![u64::MAX, 1]]);
    machine.refuses(create_mutable("large", large), "elements of a mutable tileable");
    let deep = definition(vec![vec![1]; bound::DIMS_MAX as usize + 1]);
    machine.refuses(create_mutable("deep", deep), "axes of a mutable tileable");
    let copies = Definition { replicas: bound::REPLICAS_MAX + 1, ..definition(vec![vec![1]]) };
    machine.refuses(create_mutable("copies", copies), "replicas of a chunk");
    for number in 1..bound::MUTABLES_MAX {
        let small = definition(vec![vec![1]]);
        machine.mars(create_mutable(&format!("m{number}"), small)).expect("there is room");
    }
    machine.refuses(create_mutable("more", definition(vec![vec![1]])), "mutable tileables of a session");
}

#[test]
fn lists_are_no_longer_than_sessions_can_need() {
    let too_long = |request: Request| ask(request).check_lists(&|_| 1).is_err();
    let decref = |count: usize| {
        let (session, keys, counts) = ("s".to_owned(), vec![String::new(); count], vec![1; count]);
        Request::Decref { session, keys, counts }
    };
    let most = bound::DECREF_KEYS_MAX as usize;
    assert!(!too_long(decref(most)) && too_long(decref(most + 1)));
    let chunks =
        |count: usize| submit("g", Graph { chunks: vec![Chunk::default(); count], tileables: Vec::new() });
    let most = bound::COMMAND_CHUNKS_MAX as usize;
    assert!(!too_long(chunks(most)) && too_long(chunks(most + 1)));
    let targets = |count: usize| Request::Begin {
        graph: named("g"),
        digest: Digest([1; 32]),
        options: Options::default(),
        targets: vec![String::new(); count],
    };
    let most = bound::TARGETS_MAX as usize;
    assert!(!too_long(targets(most)) && too_long(targets(most + 1)));
    let reported = |count: usize| Request::SealReported {
        mutable: mars::MutableNo(1),
        epoch: 1,
        store: String::new(),
        chunks: vec![0; count],
        failed: false,
    };
    let most = bound::MUTABLE_CHUNKS_MAX as usize;
    assert!(!too_long(reported(most)) && too_long(reported(most + 1)));
}

#[test]
fn ends_need_no_memory() {
    let machine = Machine::with_session();
    let purpose =
        |request: Request| machine.state.need(&Envelope { stamp: None, command: ask(request) }, 100).purpose;
    assert_eq!(purpose(submit("g", Graph::default())), Purpose::Begin);
    assert_eq!(purpose(Request::Stop { graph: named("g") }), Purpose::Nothing);
    assert_eq!(purpose(Request::DeleteGraph { graph: named("g") }), Purpose::Nothing);
    let end = Request::DeleteSession { session: "s".to_owned(), if_exist: true };
    assert_eq!(purpose(end), Purpose::Nothing);
}

/// Whatever is taken out of a snapshot, or is there twice, is noticed.
#[test]
fn a_damaged_snapshot_of_sessions_is_refused() {
    let mut machine = Machine::with_worker();
    machine.mars(submit("g", large(3))).expect("it is a graph");
    machine.mars(create_mutable("m", definition(vec![vec![1, 1]]))).expect("there is a store");
    machine.mars(upload("u", 0, 3)).expect("there is room");
    let command = Sessions::Ask { scope: SCOPE, request_id: "r".to_owned(), request: create_session("t") };
    machine.apply(Command::Mars(command)).expect("there is room");
    let records: Vec<Record> = machine.state.records().collect();
    let whole = State::from_records(records.clone().into_iter()).expect("it is whole");
    assert!(whole == machine.state);
    let is_of_sessions = |record: &Record| format!("{record:?}").contains("MarsPart");
    let places: Vec<usize> = (0..records.len()).filter(|place| is_of_sessions(&records[*place])).collect();
    assert!(places.len() > 15, "{}", places.len());
    for place in places {
        let (mut without, mut twice) = (records.clone(), records.clone());
        without.remove(place);
        assert!(State::from_records(without.into_iter()).is_err(), "without {:?}", records[place]);
        twice.insert(place, records[place].clone());
        assert!(State::from_records(twice.into_iter()).is_err(), "twice {:?}", records[place]);
    }
}

#[test]
fn a_job_that_is_deleted_takes_its_sessions_with_it() {
    let mut machine = Machine::with_worker();
    machine.mars(submit("g", large(3))).expect("it is a graph");
    machine.apply(Command::Job(job::Command::Delete { name: "w".to_owned() })).expect("it is there");
    assert_eq!(machine.state.mars_jobs(), Vec::new());
    assert!(matches!(machine.mars(create_session("t")), Err(Fault::JobUnknown { .. })));
}

fn raise(to: FeatureLevel) -> Command {
    Command::Level(level::Command::Raise { to, heard: Vec::new() })
}

fn delete_unknown() -> Command {
    ask(Request::DeleteSession { session: "s".to_owned(), if_exist: false })
}

impl Machine {
    /// At that level, where a session of calls remembers a refusal by the sessions of Mars, of which none is there, so that none
    /// keeps the level up.
    fn with_remembered_refusal(at: FeatureLevel) -> (Self, Option<Stamp>) {
        let mut machine = Self::default();
        machine.create("w", 1).expect("the name is free");
        machine.apply(raise(at)).expect("nobody has an id");
        let session = SessionId::of_client(9);
        let open = session::Command::OpenFor { id: session, owner: Owner::Client(None) };
        machine.apply(Command::Session(open)).expect("there is room");
        let stamp = Some(Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) });
        let refused = machine.apply_stamped(stamp, delete_unknown());
        assert!(matches!(refused, Err(Fault::Mars(mars::Refusal::SessionUnknown { .. }))), "{refused:?}");
        assert!(machine.remembers_refusal());
        (machine, stamp)
    }

    fn remembers_refusal(&self) -> bool {
        self.state.records().any(|record| format!("{record:?}").contains("SessionUnknown"))
    }
}

#[test]
fn below_its_level_no_session_of_calls_remembers_what_was_refused_of_graphs() {
    let (mut machine, stamp) = Machine::with_remembered_refusal(level::NEWEST);
    let pin = level::Command::Pin { level: FeatureLevel(9), by: String::new() };
    machine.apply(Command::Level(pin)).expect("nothing needs more");
    assert!(!machine.remembers_refusal(), "a build of that level could not read it");
    let read = State::from_records(machine.state.records()).expect("its own records");
    assert_eq!(read, machine.state);
    machine.apply(raise(level::NEWEST)).expect("nobody has an id");
    assert_eq!(machine.apply_stamped(stamp, delete_unknown()), Err(Fault::ReplyForgotten));
}

/// Builds of level 10 apply that pin, too, and know nothing of forgetting.
#[test]
fn a_level_that_is_lowered_from_level_10_leaves_replies_as_builds_of_that_level_do() {
    let (mut machine, _) = Machine::with_remembered_refusal(FeatureLevel(10));
    let pin = level::Command::Pin { level: FeatureLevel(9), by: String::new() };
    machine.apply(Command::Level(pin)).expect("nothing needs more");
    assert!(machine.remembers_refusal());
}

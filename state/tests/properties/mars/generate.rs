//! Random things that happen to two sessions with few graphs, and to those who execute them.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::ids::{DurationMs, TimeMs};
use tripod_state::mars::{
    Chunk, Command as Mars, Decision, Definition, Digest, Graph, GraphKind, GraphName, GraphNo, GraphState,
    Input, Options, Part, Place, Request, Scalar, Tileable, TileableKind,
};
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::{self, Argument, Order, Origin, Peer, Previous, Run};
use tripod_state::{Command, State};

use super::SCOPE;

pub(super) const SESSIONS: [&str; 2] = ["a", "b"];
const KEYS: [&str; 3] = ["g", "h", "i"];

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Wait(u64),
    CreateSession(usize),
    DeleteSession(usize),
    /// Nodes by their inputs: places before them, or keys of the session.
    Submit {
        session: usize,
        key: usize,
        digest: u8,
        nodes: Vec<Vec<u8>>,
        timeout: bool,
        in_parts: bool,
    },
    Stop {
        session: usize,
        key: usize,
    },
    DeleteGraph {
        session: usize,
        key: usize,
    },
    Decref {
        session: usize,
        key: usize,
        count: u64,
    },
    /// The next task is executed.
    Work {
        fails: bool,
    },
    /// The worker that has tasks dies.
    Die,
    Due,
    CreateMutable {
        session: usize,
        parts: usize,
        replicas: u32,
    },
    Seal {
        session: usize,
    },
    /// The first order to a store to seal something is done, or fails.
    Sealed {
        fails: bool,
    },
    DeleteMutable {
        session: usize,
    },
    /// A store goes, or a new one comes where it was.
    Store {
        store: usize,
        comes: bool,
    },
}

pub(super) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most).prop_map(|mut steps| {
        steps.insert(0, Step::CreateSession(0));
        steps
    })
}

fn step() -> impl Strategy<Value = Step> {
    let session = || select(vec![0_usize, 0, 0, 1]);
    let key = || 0..KEYS.len();
    let nodes = vec(vec(0_u8..8, 0..3), 0..6);
    let submit = (session(), key(), 0_u8..2, nodes, select(vec![false, false, true]), any::<bool>());
    let submit = submit.prop_map(|(session, key, digest, nodes, timeout, in_parts)| Step::Submit {
        session,
        key,
        digest,
        nodes,
        timeout,
        in_parts,
    });
    let named = || (session(), key());
    prop_oneof![
        3 => select(vec![100_u64, 5_000, 130_000, 700_000]).prop_map(Step::Wait).boxed(),
        3 => session().prop_map(Step::CreateSession).boxed(),
        1 => session().prop_map(Step::DeleteSession).boxed(),
        12 => submit.boxed(),
        3 => named().prop_map(|(session, key)| Step::Stop { session, key }).boxed(),
        3 => named().prop_map(|(session, key)| Step::DeleteGraph { session, key }).boxed(),
        4 => (named(), 1_u64..3).prop_map(|((session, key), count)| Step::Decref { session, key, count }).boxed(),
        20 => select(vec![false, false, false, false, true]).prop_map(|fails| Step::Work { fails }).boxed(),
        1 => Just(Step::Die).boxed(),
        6 => Just(Step::Due).boxed(),
        5 => (session(), 1_usize..4, 0_u32..3)
            .prop_map(|(session, parts, replicas)| Step::CreateMutable { session, parts, replicas })
            .boxed(),
        3 => session().prop_map(|session| Step::Seal { session }).boxed(),
        6 => select(vec![false, false, true]).prop_map(|fails| Step::Sealed { fails }).boxed(),
        1 => session().prop_map(|session| Step::DeleteMutable { session }).boxed(),
        8 => (0_usize..2, any::<bool>()).prop_map(|(store, comes)| Step::Store { store, comes }).boxed(),
    ]
}

impl Step {
    pub(super) fn after_ms(&self) -> u64 {
        match self {
            Self::Wait(ms) => *ms,
            _ => 0,
        }
    }
}

/// Whoever plays clients, leader, workers and stores. Knows what a part of a graph was answered.
#[derive(Default)]
pub(super) struct Player;

impl Player {
    /// What is proposed in this state.
    #[allow(clippy::too_many_lines, reason = "a match over all steps")]
    pub(super) fn commands(&mut self, step: &Step, state: &State) -> Vec<Command> {
        let name = |session: usize, key: usize| GraphName {
            session: SESSIONS[session].to_owned(),
            kind: GraphKind::Tileable,
            key: KEYS[key].to_owned(),
        };
        let session_name = |session: usize| SESSIONS[session].to_owned();
        match step {
            Step::Wait(_) => Vec::new(),
            Step::CreateSession(session) => ask(Request::CreateSession {
                session: session_name(*session),
                is_proposed: false,
                if_not_exist: false,
                labels: Vec::new(),
            }),
            Step::DeleteSession(session) => {
                ask(Request::DeleteSession { session: session_name(*session), if_exist: false })
            }
            Step::Submit { session, key, digest, nodes, timeout, in_parts } => {
                let graph = name(*session, *key);
                let content = content(*key, nodes);
                let digest = Digest([*digest; 32]);
                let timeout_ms = timeout.then_some(DurationMs(1_000));
                let options = Options { timeout_ms, result_ttl_ms: timeout_ms, ..Options::default() };
                let draft = state.mars_graph(SCOPE, &graph).ok();
                let draft =
                    draft.filter(|view| view.state == GraphState::Preparing).and_then(|view| view.graph);
                match draft {
                    _ if !in_parts => {
                        ask(Request::Submit { graph, digest, options, targets: Vec::new(), content })
                    }
                    None => ask(Request::Begin { graph, digest, options, targets: Vec::new() }),
                    Some(draft) if *timeout => ask(Request::Commit { graph, draft: GraphNo(draft.0 + 1) }),
                    Some(draft) => {
                        let part = Part { chunks_before: 0, tileables_before: 0, content };
                        let mut both = ask(Request::Add { graph: graph.clone(), draft, part });
                        both.extend(ask(Request::Commit { graph, draft }));
                        both
                    }
                }
            }
            Step::Stop { session, key } => ask(Request::Stop { graph: name(*session, *key) }),
            Step::DeleteGraph { session, key } => ask(Request::DeleteGraph { graph: name(*session, *key) }),
            Step::Decref { session, key, count } => ask(Request::Decref {
                session: session_name(*session),
                keys: vec![KEYS[*key].to_owned()],
                counts: vec![*count],
            }),
            Step::Work { fails } => work(state, *fails),
            Step::Die => die(state),
            Step::Due => {
                let due = state.mars_due(SCOPE.job, TimeMs(state.now_ms().0));
                due.into_iter().map(|decision| Command::Mars(Mars::Lead { scope: SCOPE, decision })).collect()
            }
            Step::CreateMutable { session, parts, replicas } => ask(Request::CreateMutable {
                session: session_name(*session),
                name: "m".to_owned(),
                is_proposed: false,
                definition: Definition {
                    kind: TileableKind::Tensor,
                    element_type: 5,
                    columns: Vec::new(),
                    defaults: vec![Scalar::Integer(0)],
                    nsplits: vec![vec![1; *parts]],
                    replicas: *replicas,
                },
                if_not_exist: *replicas > 0,
            }),
            Step::Seal { session } => ask(Request::SealMutable {
                session: session_name(*session),
                name: "m".to_owned(),
                timestamp_ns: None,
            }),
            Step::Sealed { fails } => sealed(state, *fails),
            Step::DeleteMutable { session } => ask(Request::DeleteMutable {
                session: session_name(*session),
                name: "m".to_owned(),
                if_exist: false,
            }),
            Step::Store { store, comes } => change_store(state, *store, *comes),
        }
    }
}

fn ask(request: Request) -> Vec<Command> {
    vec![Command::Mars(Mars::Ask { scope: SCOPE, request_id: String::new(), request })]
}

fn ray_ask(origin: Origin, request: ray::Request) -> Command {
    Command::Ray(ray::Command::Ask { scope: SCOPE, origin, request })
}

/// The last node is the tileable's chunk, which has the graph's key.
fn content(key: usize, nodes: &[Vec<u8>]) -> Graph {
    let key = KEYS[key];
    let input = |own: usize, input: u8| {
        let input = usize::from(input);
        if input < own {
            Input::Chunk(Place(u32::try_from(input).expect("it is small")))
        } else {
            Input::Session(format!("{}:0", KEYS[input % KEYS.len()]))
        }
    };
    let last = nodes.len().saturating_sub(1);
    let chunks = nodes.iter().enumerate().map(|(place, inputs)| {
        // Of later nodes few read anything but earlier ones.
        let inputs = inputs.iter().filter(|of| usize::from(**of) < place || **of == 7);
        Chunk {
            key: if place == last { format!("{key}:0") } else { format!("{key}~{place}") },
            argument: Bytes::from_static(b"chunk"),
            inputs: inputs.map(|of| input(place, *of)).collect(),
            index: Vec::new(),
            shape: vec![-1],
            element_type: 5,
            needs: ray::Needs::default(),
            is_retryable: true,
        }
    });
    let tileable = |of: usize| Tileable {
        key: key.to_owned(),
        kind: TileableKind::Tensor,
        name: String::new(),
        element_type: 5,
        columns: Vec::new(),
        nsplits: vec![vec![-1]],
        chunks: vec![Input::Chunk(Place(u32::try_from(of).expect("it is small")))],
    };
    let tileables = if nodes.is_empty() { Vec::new() } else { vec![tileable(last)] };
    Graph { chunks: chunks.collect(), tileables }
}

/// One task, from its assignment to its report. Of one that was assigned before and not reported, the report.
fn work(state: &State, fails: bool) -> Vec<Command> {
    let Some(ray) = state.ray(SCOPE.job) else { return Vec::new() };
    let all = ray.orders(None, usize::MAX);
    // Stores fetch what they are told to.
    let fetched = all.iter().filter_map(|(_, order)| match order {
        Order::Deliver { store, object, .. } => Some((*object, *store)),
        _ => None,
    });
    let fetched = fetched
        .map(|(object, store)| ray_ask(Origin::default(), ray::Request::Ready { object, store, run: None }));
    let mut commands: Vec<Command> = fetched.collect();
    let done =
        |orders| Command::Ray(ray::Command::Lead { scope: SCOPE, decision: ray::Decision::Done { orders } });
    let workers = ray.workers();
    let running = workers.iter().find_map(|worker| Some((worker, *worker.running.first()?)));
    let Some((worker, run)) = running else {
        let planned = ray.plan(state.now_ms(), 1);
        if !planned.is_empty() {
            let decision = ray::Decision::Assign(planned);
            commands.push(Command::Ray(ray::Command::Lead { scope: SCOPE, decision }));
        } else if !all.is_empty() {
            commands.push(done(all.into_iter().map(|(id, _)| id).collect()));
        }
        return commands;
    };
    let Some(execution) = ray.execution(run) else { return Vec::new() };
    let arguments = execution.arguments.iter().filter_map(|argument| match argument {
        Argument::Object(object) => Some(*object),
        Argument::Value { .. } => None,
    });
    let held: Vec<ObjectId> = arguments.chain(execution.results.iter().copied()).collect();
    let origin = Origin { stamp: None, process: Some(worker.id) };
    let run: Run = run;
    let ready = execution.results.iter().map(|object| {
        ray_ask(origin, ray::Request::Ready { object: *object, store: worker.store, run: Some(run) })
    });
    commands.extend(ready);
    commands.push(ray_ask(origin, ray::Request::DropReferences { objects: held }));
    let previous = Previous { succeeded: !fails, error: Bytes::from(if fails { "no" } else { "" }) };
    let idle = ray::Request::Idle { worker: worker.id, previous: Some(previous), run: Some(run) };
    commands.push(ray_ask(origin, idle));
    let orders = ray.orders(None, usize::MAX).into_iter().map(|(id, _)| id).collect();
    commands
        .push(Command::Ray(ray::Command::Lead { scope: SCOPE, decision: ray::Decision::Done { orders } }));
    commands
}

/// A worker that has a task loses it, as if it had been handed to nobody.
fn die(state: &State) -> Vec<Command> {
    let workers = state.ray(SCOPE.job).map(ray::Ray::workers).unwrap_or_default();
    let running = workers.iter().find_map(|worker| Some((worker.id, *worker.running.first()?)));
    let given_back = running.map(|(worker, run)| {
        let origin = Origin { stamp: None, process: Some(worker) };
        vec![
            ray_ask(origin, ray::Request::GiveBack { worker, runs: vec![run] }),
            ray_ask(origin, ray::Request::Idle { worker, previous: None, run: None }),
        ]
    });
    given_back.unwrap_or_default()
}

fn sealed(state: &State, fails: bool) -> Vec<Command> {
    let Some(order) = state.mars_seal_orders(SCOPE.job).into_iter().next() else { return Vec::new() };
    let stores = state.ray(SCOPE.job).map(ray::Ray::stores).unwrap_or_default();
    let Some(store) = stores.iter().find(|store| store.alive && store.address == order.store) else {
        return Vec::new();
    };
    let ready = order.chunks.iter().filter(|_| !fails).map(|(_, _, object)| {
        ray_ask(Origin::default(), ray::Request::Ready { object: *object, store: store.id, run: None })
    });
    let mut commands: Vec<Command> = ready.collect();
    commands.extend(ask(Request::SealReported {
        mutable: order.mutable,
        epoch: order.epoch,
        store: order.store,
        chunks: order.chunks.iter().map(|(chunk, _, _)| *chunk).collect(),
        failed: fails,
    }));
    commands
}

/// The stores with workers stay, so that graphs can end: it is a third one that goes and comes.
fn change_store(state: &State, _: usize, comes: bool) -> Vec<Command> {
    let address = "10.0.0.3:1";
    let stores = state.ray(SCOPE.job).map(ray::Ray::stores).unwrap_or_default();
    let living = stores.iter().find(|store| store.alive && store.address == address);
    match living {
        None if comes => {
            vec![ray_ask(Origin::default(), ray::Request::RegisterStore { address: address.to_owned() })]
        }
        Some(store) if !comes => {
            let decision = ray::Decision::Expire { peers: vec![Peer::Store(store.id)] };
            let gone = Command::Ray(ray::Command::Lead { scope: SCOPE, decision });
            // Whoever leads sees at once that chunks are away.
            let mutables = state.mars_mutables_at(SCOPE, address, None).expect("the job is there");
            let judged = mutables.into_iter().map(|view| {
                let decision = Decision::Judge { mutable: view.mutable };
                Command::Mars(Mars::Lead { scope: SCOPE, decision })
            });
            std::iter::once(gone).chain(judged).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

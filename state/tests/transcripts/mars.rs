//! Commands to sessions and looks at them as lines. Nodes of a graph are words, `KEY` or `KEY<INPUT+INPUT`; tileables are
//! `@KEY/2,2;4/CHUNK+CHUNK`, with the extents along each axis. Inputs that are in the graph are meant there. A node's argument
//! is its key, so whoever plays the worker can tell what ran.

use std::fmt::Write as _;

use bytes::Bytes;
use tripod_state::ids::DurationMs;
use tripod_state::mars::{
    Chunk, Column, Command, Decision, Definition, Digest, Graph, GraphKind, GraphName, GraphNo, Input,
    MutableNo, Options, Part, Place, Request, Scalar, Tileable, TileableKind,
};
use tripod_state::ray::ids::{ObjectId, WorkerId};
use tripod_state::ray::{self, Argument, Needs, Origin, Previous, Run};
use tripod_state::{Scope, State};

use crate::script::Line;
use crate::show;

/// The command of a line.
pub(crate) fn command(scope: Scope, state: &State, line: &Line<'_>) -> Command {
    match decision(line) {
        Some(decision) => Command::Lead { scope, decision },
        None => {
            let request_id = line.option("request").unwrap_or("").to_owned();
            Command::Ask { scope, request_id, request: request(scope, state, line) }
        }
    }
}

fn decision(line: &Line<'_>) -> Option<Decision> {
    let graph = || GraphNo(line.number(line.word(1)));
    Some(match line.word(0) {
        "m-advance" => Decision::Advance { graph: graph() },
        "m-timed-out" => Decision::TimedOut { graph: graph() },
        "m-expired" => Decision::Expired { graph: graph() },
        "m-forget" => Decision::Forget,
        "m-judge" => Decision::Judge { mutable: MutableNo(line.number(line.word(1))) },
        "m-upload-expired" => {
            Decision::UploadExpired { session: line.text(1), kind: kind(line), key: line.text(2) }
        }
        _ => return None,
    })
}

fn kind(line: &Line<'_>) -> GraphKind {
    if line.flag("chunks") { GraphKind::Chunk } else { GraphKind::Tileable }
}

fn name(line: &Line<'_>) -> GraphName {
    GraphName { session: line.text(1), kind: kind(line), key: line.text(2) }
}

#[allow(clippy::too_many_lines, reason = "a match over all words")]
fn request(scope: Scope, state: &State, line: &Line<'_>) -> Request {
    let digest = || Digest([line.or("digest", 1); 32]);
    // Unless another one is named, the one that is there.
    let draft = || {
        let there = || state.mars_graph(scope, &name(line)).ok().and_then(|graph| graph.graph);
        line.get("draft").map(GraphNo).or_else(there).unwrap_or_default()
    };
    let targets = || -> Vec<String> { list(line, "targets").map(str::to_owned).collect() };
    match line.word(0) {
        "m-session" => Request::CreateSession {
            session: line.text(1),
            is_proposed: line.flag("proposed"),
            if_not_exist: line.flag("fine"),
            labels: list(line, "label").map(|label| (label.to_owned(), "v".to_owned())).collect(),
        },
        "m-end-session" => Request::DeleteSession { session: line.text(1), if_exist: line.flag("fine") },
        "m-upload" => Request::Upload {
            graph: name(line),
            offset: line.or("offset", 0),
            bytes: Bytes::from(line.option("bytes").unwrap_or("").to_owned()),
            is_last: line.flag("last"),
        },
        "m-submit" => Request::Submit {
            graph: name(line),
            digest: digest(),
            options: options(line),
            targets: targets(),
            content: content(line),
        },
        "m-begin" => {
            Request::Begin { graph: name(line), digest: digest(), options: options(line), targets: targets() }
        }
        "m-add" => Request::Add {
            graph: name(line),
            draft: draft(),
            part: Part {
                chunks_before: line.or("chunks-before", 0),
                tileables_before: line.or("tileables-before", 0),
                content: content(line),
            },
        },
        "m-commit" => Request::Commit { graph: name(line), draft: draft() },
        "m-stop" => Request::Stop { graph: name(line) },
        "m-delete" => Request::DeleteGraph { graph: name(line) },
        "m-decref" => Request::Decref {
            session: line.text(1),
            keys: list(line, "keys").map(str::to_owned).collect(),
            counts: list(line, "counts").map(|count| line.number(count)).collect(),
        },
        "m-mutable" => Request::CreateMutable {
            session: line.text(1),
            name: line.text(2),
            is_proposed: false,
            definition: definition(line),
            if_not_exist: line.flag("fine"),
        },
        "m-seal" => {
            Request::SealMutable { session: line.text(1), name: line.text(2), timestamp_ns: line.get("upto") }
        }
        "m-end-mutable" => {
            Request::DeleteMutable { session: line.text(1), name: line.text(2), if_exist: line.flag("fine") }
        }
        "m-sealed" => Request::SealReported {
            mutable: state
                .mars_mutable(scope, line.word(1), line.word(2))
                .map_or(MutableNo(0), |view| view.mutable),
            epoch: line.or("epoch", 1),
            store: line.option("by").unwrap_or("").to_owned(),
            chunks: list(line, "chunks").map(|chunk| line.number(chunk)).collect(),
            failed: line.flag("failed"),
        },
        _ => line.unknown(),
    }
}

fn list<'a>(line: &Line<'a>, option: &str) -> impl Iterator<Item = &'a str> {
    line.option(option).unwrap_or("").split(',').filter(|word| !word.is_empty())
}

fn options(line: &Line<'_>) -> Options {
    Options {
        priority: line.or("priority", 0),
        max_reschedules: line.get("reschedules"),
        timeout_ms: line.get("timeout").map(DurationMs),
        result_ttl_ms: line.get("ttl").map(DurationMs),
        fuse: false,
    }
}

fn definition(line: &Line<'_>) -> Definition {
    let columns: Vec<Column> =
        list(line, "columns").map(|name| Column { name: name.to_owned(), element_type: 3 }).collect();
    let kind = if columns.is_empty() { TileableKind::Tensor } else { TileableKind::Frame };
    Definition {
        kind,
        element_type: if columns.is_empty() { 5 } else { 0 },
        defaults: vec![Scalar::Integer(line.or("default", 0)); columns.len().max(1)],
        columns,
        nsplits: splits(line, line.option("splits").unwrap_or("")),
        replicas: line.or("replicas", 0),
    }
}

fn splits<T: std::str::FromStr<Err: std::fmt::Debug>>(line: &Line<'_>, text: &str) -> Vec<Vec<T>> {
    let axes = text.split(';').filter(|axis| !axis.is_empty());
    axes.map(|axis| axis.split(',').map(|extent| line.number(extent)).collect()).collect()
}

fn content(line: &Line<'_>) -> Graph {
    let words: Vec<&str> = line.words_from(3).filter(|word| !["chunks", "once"].contains(word)).collect();
    let nodes: Vec<&str> = words.iter().filter(|word| !word.starts_with('@')).copied().collect();
    let keys: Vec<&str> = nodes.iter().map(|node| node.split('<').next().unwrap_or("")).collect();
    let from: u32 = line.or("chunks-before", 0);
    let input = |key: &str| match keys.iter().position(|known| *known == key) {
        Some(place) => Input::Chunk(Place(from + u32::try_from(place).expect("tests are small"))),
        None => match key.strip_prefix('#') {
            Some(place) => Input::Chunk(Place(line.number(place))),
            None => Input::Session(key.to_owned()),
        },
    };
    let chunk = |node: &&str| {
        let (key, inputs) = node.split_once('<').unwrap_or((node, ""));
        let inputs = inputs.split('+').filter(|key| !key.is_empty());
        Chunk {
            key: key.to_owned(),
            argument: Bytes::from(key.to_owned()),
            inputs: inputs.map(input).collect(),
            index: list(line, "index").map(|number| line.number(number)).collect(),
            shape: vec![line.or("extent", 2)],
            element_type: 5,
            needs: Needs { cpus_milli: line.or("cpus", 0), ..Needs::default() },
            is_retryable: !line.flag("once"),
        }
    };
    let tileable = |word: &&str| {
        let mut parts = word.trim_start_matches('@').split('/');
        let mut next = || parts.next().unwrap_or("");
        let key = next();
        let nsplits = splits(line, next());
        Tileable {
            key: key.to_owned(),
            kind: TileableKind::Tensor,
            name: line.option("named").unwrap_or("").to_owned(),
            element_type: 5,
            columns: Vec::new(),
            nsplits,
            chunks: next().split('+').filter(|key| !key.is_empty()).map(input).collect(),
        }
    };
    let tileables = words.iter().filter(|word| word.starts_with('@'));
    Graph { chunks: nodes.iter().map(chunk).collect(), tileables: tileables.map(tileable).collect() }
}

/// What a line that only looks is told.
pub(crate) fn look(scope: Scope, state: &State, now: u64, line: &Line<'_>) -> Option<String> {
    let keys = || -> Vec<String> { line.words_from(2).map(str::to_owned).collect() };
    Some(match line.word(0) {
        "m?sessions" => each("sessions", state.mars_sessions(scope, line.option("after"))),
        "m?session" => show::plain(&state.mars_session(scope, line.word(1))),
        "m?totals" => show::plain(&state.mars_totals(scope)),
        "m?graph" => show::plain(&state.mars_graph(scope, &name(line))),
        "m?graphs" => each(
            "graphs",
            state.mars_graphs(scope, line.word(1), None).map(|graphs| {
                let short =
                    |graph: tripod_state::mars::GraphView| (graph.kind, graph.key, graph.state, graph.counts);
                graphs.into_iter().map(short).collect()
            }),
        ),
        "m?states" => show::plain(&state.mars_node_states(scope, &name(line))),
        "m?upload" => show::plain(&state.mars_upload(scope, &name(line))),
        "m?chunks" => each("chunks", state.mars_chunks(scope, line.word(1), &keys())),
        "m?tileables" => each("tileables", state.mars_tileables(scope, line.word(1), &keys())),
        "m?mutable" => show::plain(&state.mars_mutable(scope, line.word(1), line.word(2))),
        "m?mutables" => each("mutables", state.mars_mutable_entries(scope, line.word(1))),
        "m?mutables-at" => {
            let found = state.mars_mutables_at(scope, line.option("store").unwrap_or(""), None);
            each("mutables", found.map(|found| found.into_iter().map(|view| view.name).collect()))
        }
        "m?orders" => each("orders", Ok::<_, ()>(state.mars_seal_orders(scope.job))),
        "m?due" => show::plain(&state.mars_due(scope.job, tripod_state::ids::TimeMs(now))),
        "m?next-due" => show::plain(&state.mars_next_due(scope.job)),
        _ => return None,
    })
}

fn each<T: std::fmt::Debug, E: std::fmt::Debug>(title: &str, all: Result<Vec<T>, E>) -> String {
    match all {
        Ok(all) => {
            let mut said = title.to_owned();
            for one in all {
                write!(said, "\n  {}", show::plain(&one)).expect("a string takes all");
            }
            said
        }
        Err(fault) => format!("refused {}", show::plain(&fault)),
    }
}

/// The next task that a worker is given, as the leader plans it.
pub(crate) fn plan(scope: Scope, state: &State, now: u64) -> Option<(ray::Command, Run, WorkerId)> {
    let planned = state.ray(scope.job)?.plan(tripod_state::ids::TimeMs(now), 1);
    let first = planned.first().copied()?;
    let run = Run { operation: first.operation, attempt: first.attempt };
    let command = ray::Command::Lead { scope, decision: ray::Decision::Assign(planned) };
    Some((command, run, first.worker))
}

/// What the worker says then: that it has made everything, or has failed; what it gives back.
pub(crate) fn report(
    scope: Scope,
    state: &State,
    (run, worker): (Run, WorkerId),
    error: impl Fn(&str) -> Option<String>,
) -> Option<(String, Vec<ray::Command>)> {
    let ray = state.ray(scope.job)?;
    let execution = ray.execution(run)?;
    let store = ray.workers().into_iter().find(|known| known.id == worker)?.store;
    let mut held: Vec<ObjectId> = execution.results.clone();
    let mut key = String::new();
    for argument in &execution.arguments {
        match argument {
            Argument::Object(object) => held.push(*object),
            Argument::Value { bytes, .. } => key = String::from_utf8_lossy(bytes).into_owned(),
        }
    }
    let failed = error(&key);
    let previous = Previous {
        succeeded: failed.is_none(),
        error: Bytes::from(failed.unwrap_or_default().replace('_', " ").replace('|', "\n")),
    };
    let ask = |request| {
        let origin = Origin { stamp: None, process: Some(worker) };
        ray::Command::Ask { scope, origin, request }
    };
    let ready = execution
        .results
        .iter()
        .map(|object| ask(ray::Request::Ready { object: *object, store, run: Some(run) }));
    let mut commands: Vec<ray::Command> = ready.collect();
    commands.push(ask(ray::Request::DropReferences { objects: held }));
    commands.push(ask(ray::Request::Idle { worker, previous: Some(previous), run: Some(run) }));
    let orders = ray.orders(None, usize::MAX).into_iter().map(|(id, _)| id).collect();
    commands.push(ray::Command::Lead { scope, decision: ray::Decision::Done { orders } });
    Some((key, commands))
}

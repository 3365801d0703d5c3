//! Plays the scripts in `transcripts/`: bytes in, bytes out, over a real connection.
//!
//! A script is a list of blocks: what is done, a line `----`, what came of it. With `UPDATE_EXPECT=1`
//! the outcomes are written anew; read the difference before you keep it.
//!
//! * `job tasks=2 recoverable=true shutdown_ms=0 register_ms=500 heartbeat_ms=500 poll=release`
//! * `n Method field=value …`, `t Method …`: a call; `incarnations` is added to calls of dialect N
//! * `hold NAME n Method …`: the same, but the call is expected to be held
//! * `end NAME`: the outcome of a held call

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use support::schema::Schema;
use support::{SERVICE, Served, raw, until};
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_gateway::Options;
use tripod_proto::tensorflow::distributed_runtime::GrpcPayloadContainer;
use tripod_state::ids::DurationMs;
use tripod_state::job;

struct Player {
    schema: Schema,
    served: Served,
    channel: Channel,
    held: BTreeMap<String, Call>,
}

/// A call under way.
struct Call {
    reply_type: String,
    outcome: JoinHandle<Result<Bytes, Status>>,
}

impl Player {
    async fn new() -> Self {
        let served = Served::start(Options::default()).await;
        let channel = served.connect().await;
        Self { schema: Schema::load(), served, channel, held: BTreeMap::new() }
    }

    async fn play(&mut self, line: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "job" => {
                self.served.create(spec(rest)).await;
                "created".to_owned()
            }
            "hold" => {
                let (name, rest) = rest.split_once(' ').expect("a name and a call");
                self.hold(name, rest).await
            }
            "end" => {
                let call = self.held.remove(rest).expect("a held call");
                self.end(call).await
            }
            _ => {
                let call = self.start(line);
                self.end(call).await
            }
        }
    }

    fn start(&self, line: &str) -> Call {
        let (dialect, rest) = line.split_once(' ').expect("a dialect and a call");
        let (method, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        let package = if dialect == "n" { "xla.coordination" } else { "tensorflow" };
        let path = format!("{package}.CoordinationService/{method}");
        let (request_type, reply_type) = self.schema.methods[&path].clone();
        let mut fields = fields.to_owned();
        if self.schema.has_field(&request_type, "incarnations") && !fields.contains("incarnations=") {
            write!(fields, " incarnations={{service_incarnation={SERVICE}}}").expect("a string");
        }
        let message = self.schema.encode(&request_type, &fields);
        let outcome = tokio::spawn(raw::call(self.channel.clone(), format!("/{path}"), message));
        Call { reply_type, outcome }
    }

    /// Starts a call and waits until the service has taken it in.
    async fn hold(&mut self, name: &str, line: &str) -> String {
        let gateway = self.served.gateway.clone();
        let (index, waiting) = (gateway.applied_index(), gateway.waiting_calls());
        let call = self.start(line);
        until("the call arrives", || gateway.applied_index() > index || gateway.waiting_calls() > waiting)
            .await;
        self.held.insert(name.to_owned(), call);
        "held".to_owned()
    }

    async fn end(&self, call: Call) -> String {
        let outcome = tokio::time::timeout(support::DEADLINE, call.outcome).await;
        match outcome.expect("an answer in time").expect("no panic") {
            Ok(reply) => format!("ok {}", self.schema.print(&call.reply_type, &reply)).trim_end().to_owned(),
            Err(status) => print_status(&status),
        }
    }
}

fn print_status(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message().replace('\n', "\\n"));
    let payloads = GrpcPayloadContainer::decode(status.details()).expect("a container").payloads;
    for (key, value) in payloads.into_iter().collect::<BTreeMap<_, _>>() {
        let name = key.rsplit('.').next().unwrap_or(&key);
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(text, "\n  {name} [{hex}]").expect("a string");
    }
    assert_ne!(status.code(), Code::Ok);
    text
}

fn spec(text: &str) -> job::Spec {
    let mut spec = job::Spec { poll: job::Poll::Hold, ..job::Spec::of_tasks(1) };
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').expect("name=value");
        let number = || value.parse().expect("a number");
        match name {
            "tasks" => spec.tasks = value.parse().expect("a number"),
            "recoverable" => spec.recoverable = value == "true",
            "heartbeat_ms" => spec.heartbeat_timeout_ms = DurationMs(number()),
            "shutdown_ms" => spec.shutdown_timeout_ms = DurationMs(number()),
            "register_ms" => spec.register_timeout_ms = DurationMs(number()),
            "poll" => spec.poll = if value == "hold" { job::Poll::Hold } else { job::Poll::Release },
            other => panic!("unknown job parameter {other}"),
        }
    }
    spec
}

/// The script with the outcomes of this run.
async fn played(script: &str) -> String {
    let mut player = Player::new().await;
    let mut text = String::new();
    for block in script.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let input = block.split("\n----").next().unwrap_or(block).trim();
        writeln!(text, "{input}").expect("a string");
        if input.lines().all(|line| line.starts_with('#')) {
            text.push('\n');
            continue;
        }
        text.push_str("----\n");
        for line in input.lines().filter(|line| !line.starts_with('#')) {
            writeln!(text, "{}", player.play(line).await).expect("a string");
        }
        text.push('\n');
    }
    player.served.stop().await;
    text.trim_end().to_owned() + "\n"
}

async fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
    let script = std::fs::read_to_string(&path).expect("a script");
    let outcome = played(&script).await;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, outcome).expect("a writable tree");
    } else {
        assert_eq!(outcome, script, "{name}: UPDATE_EXPECT=1 writes what came out");
    }
}

#[tokio::test]
async fn registration() {
    check("registration.txt").await;
}

#[tokio::test]
async fn keys() {
    check("keys.txt").await;
}

#[tokio::test]
async fn barriers() {
    check("barriers.txt").await;
}

#[tokio::test]
async fn errors() {
    check("errors.txt").await;
}

#[tokio::test]
async fn released_polls() {
    check("released_polls.txt").await;
}

#[tokio::test]
async fn dialect_t() {
    check("dialect_t.txt").await;
}

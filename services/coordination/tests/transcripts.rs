//! Plays the scripts in `transcripts/`: bytes in, bytes out, over a real connection.
//!
//! A script is a list of blocks: what is done, a line `----`, what came of it. With `UPDATE_EXPECT=1`
//! the outcomes are written anew; read the difference before you keep it.
//!
//! * `job tasks=2 recoverable=true shutdown_ms=0 register_ms=500 heartbeat_ms=500 poll=release`, also with
//!   `reconnect=true` and `groups=chief:1,worker:2`
//! * `n Method field=value …`, `t Method …`, `l Method …`: a call; `incarnations` is added to calls of
//!   dialect N and `session_id` to those of L
//! * `hold NAME n Method …`: the same, but the call is expected to be held
//! * `end NAME`: the outcome of a held call
//! * `again ATTEMPTS n Method …`: a call that gRPC makes again after so many attempts
//! * `with KEY=VALUE n Method …`: a call with metadata; can be repeated
//! * `second tasks=2 …`: another job, of that name
//! * `session`: opens a session of the caller's own
//! * `silent TASK INCARNATION`: the leader has not heard of the task for longer than its timeout

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
use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};
use tripod_state::{Command, job, session, task};

struct Player {
    schema: Schema,
    served: Served,
    channel: Channel,
    job: Option<JobId>,
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
        Self { schema: Schema::load(), served, channel, job: None, held: BTreeMap::new() }
    }

    async fn play(&mut self, line: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "second" => {
                self.served.create_named("second", spec(rest)).await;
                "created".to_owned()
            }
            "session" => {
                let open = Command::Session(session::Command::Open);
                format!("{:?}", self.served.gateway.submit(open).await.expect("in memory"))
            }
            "job" => {
                self.job = Some(self.served.create(spec(rest)).await);
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
            "silent" => {
                self.silence(rest).await;
                "given up".to_owned()
            }
            _ => {
                let call = self.start(line);
                self.end(call).await
            }
        }
    }

    async fn silence(&self, text: &str) {
        let (task, incarnation) = text.split_once(' ').expect("a task and its incarnation");
        let task = TaskId(task.parse().expect("a number"));
        let incarnation = Incarnation(incarnation.parse().expect("a number"));
        let job = self.job.expect("a job");
        let command = task::Command::Expire { job, silent: vec![(task, incarnation)] };
        let reply = self.served.gateway.submit(Command::Task(command)).await.expect("in memory");
        reply.expect("it always works");
    }

    fn start(&self, line: &str) -> Call {
        let (metadata, line) = metadata_of(line);
        let (dialect, rest) = line.split_once(' ').expect("a dialect and a call");
        let (method, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        let service = match dialect {
            "n" => "xla.coordination.CoordinationService",
            "t" => "tensorflow.CoordinationService",
            "l" => "xla.DistributedRuntimeService",
            other => panic!("unknown dialect {other}"),
        };
        let path = format!("{service}/{method}");
        let (request_type, reply_type) = self.schema.methods[&path].clone();
        let mut fields = fields.to_owned();
        if self.schema.has_field(&request_type, "incarnations") && !fields.contains("incarnations=") {
            write!(fields, " incarnations={{service_incarnation={SERVICE}}}").expect("a string");
        }
        if self.schema.has_field(&request_type, "session_id") && !fields.contains("session_id=") {
            write!(fields, " session_id={SERVICE}").expect("a string");
        }
        let message = self.schema.encode(&request_type, &fields);
        let (channel, path) = (self.channel.clone(), format!("/{path}"));
        let outcome = tokio::spawn(raw::call_with(channel, path, message, metadata));
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
        match tripod_wait::within("an answer", call.outcome).await.expect("no panic") {
            Ok(reply) => format!("ok {}", self.schema.print(&call.reply_type, &reply)).trim_end().to_owned(),
            Err(status) => print_status(&status),
        }
    }
}

/// The metadata that a line asks for, and the rest of the line.
fn metadata_of(line: &str) -> (Vec<(String, String)>, &str) {
    let (mut metadata, mut line) = (Vec::new(), line);
    loop {
        let (key, value, rest) = if let Some(rest) = line.strip_prefix("again ") {
            let (attempts, rest) = rest.split_once(' ').expect("a number and a call");
            ("grpc-previous-rpc-attempts", attempts, rest)
        } else if let Some(rest) = line.strip_prefix("with ") {
            let (pair, rest) = rest.split_once(' ').expect("a pair and a call");
            let (key, value) = pair.split_once('=').expect("KEY=VALUE");
            (key, value, rest)
        } else {
            return (metadata, line);
        };
        metadata.push((key.to_owned(), value.to_owned()));
        line = rest;
    }
}

fn print_status(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message().replace('\n', "\\n"));
    if let Some(pushback) = status.metadata().get("grpc-retry-pushback-ms") {
        write!(text, "\n  pushback {}", pushback.to_str().expect("printable")).expect("a string");
    }
    if let Some(outage) = status.metadata().get("x-tripod-outage") {
        write!(text, "\n  outage {}", outage.to_str().expect("printable")).expect("a string");
    }
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
            "reconnect" => spec.reconnect = value == "true",
            "groups" => {
                spec.groups = value.split(',').map(group).collect();
                spec.tasks = spec.groups.iter().map(|group| group.tasks).sum();
            }
            "poll" => spec.poll = if value == "hold" { job::Poll::Hold } else { job::Poll::Release },
            other => panic!("unknown job parameter {other}"),
        }
    }
    spec
}

/// `NAME:TASKS`.
fn group(text: &str) -> job::Group {
    let (name, tasks) = text.split_once(':').expect("a name and a number");
    job::Group { name: name.to_owned(), tasks: tasks.parse().expect("a number") }
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

#[tokio::test(start_paused = true)]
async fn registration() {
    check("registration.txt").await;
}

#[tokio::test(start_paused = true)]
async fn keys() {
    check("keys.txt").await;
}

#[tokio::test(start_paused = true)]
async fn barriers() {
    check("barriers.txt").await;
}

#[tokio::test(start_paused = true)]
async fn errors() {
    check("errors.txt").await;
}

#[tokio::test(start_paused = true)]
async fn released_polls() {
    check("released_polls.txt").await;
}

#[tokio::test(start_paused = true)]
async fn dialect_t() {
    check("dialect_t.txt").await;
}

#[tokio::test(start_paused = true)]
async fn tensorflow_groups() {
    check("tensorflow_groups.txt").await;
}

#[tokio::test(start_paused = true)]
async fn tensorflow_devices() {
    check("tensorflow_devices.txt").await;
}

#[tokio::test(start_paused = true)]
async fn tensorflow_reconnect() {
    check("tensorflow_reconnect.txt").await;
}

#[tokio::test(start_paused = true)]
async fn retry_policies() {
    check("retry_policies.txt").await;
}

#[tokio::test(start_paused = true)]
async fn retried_writes() {
    check("retried_writes.txt").await;
}

#[tokio::test(start_paused = true)]
async fn stamped_calls() {
    check("stamped_calls.txt").await;
}

#[tokio::test(start_paused = true)]
async fn jobs_by_name() {
    check("jobs_by_name.txt").await;
}

#[tokio::test(start_paused = true)]
async fn dialect_l() {
    check("dialect_l.txt").await;
}

#[tokio::test(start_paused = true)]
async fn dialect_l_lost_task() {
    check("dialect_l_lost_task.txt").await;
}

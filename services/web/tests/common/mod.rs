//! Nodes in memory whose page is looked at, and clients that are commands.

// Each test program uses some of it.
#![allow(dead_code, unreachable_pub)]

pub mod modules;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use futures::StreamExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tripod_gateway::{Gateway, MemoryBackend};
use tripod_state::ids::{BarrierCounter, Incarnation, JobId, ServiceIncarnation, TaskId};
use tripod_state::ray::{Origin, Registration, Request, Role};
use tripod_state::task::Protocol;
use tripod_state::{Answer, Command, Scope, barrier, job, level, ray, task};

/// A node whose state is in memory, with one job.
pub struct Node {
    pub gateway: Gateway,
    pub backend: Arc<MemoryBackend>,
    pub job: JobId,
}

impl Node {
    /// With job `train` of so many tasks, none of which has come.
    pub async fn with_job(tasks: u32) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("a leader").expect("a level");
        let create = job::Command::Create {
            name: "train".to_owned(),
            spec: job::Spec::of_tasks(tasks),
            service: ServiceIncarnation(7),
        };
        let answer = gateway.submit(Command::Job(create)).await.expect("a leader").expect("a new job");
        let Answer::Job(summary) = answer else { panic!("{answer:?}") };
        Self { gateway, backend, job: summary.id }
    }

    pub fn scope(&self) -> Scope {
        Scope { job: self.job, service: None }
    }

    /// Applies a command, which is not refused.
    pub async fn apply(&self, command: Command) {
        let said = format!("{command:?}");
        let reply = self.gateway.submit(command).await.expect("a leader");
        assert!(reply.is_ok(), "{said}: {reply:?}");
    }

    /// Registers these tasks: each waits for all.
    pub async fn register(&self, tasks: std::ops::Range<u32>) {
        for id in tasks {
            let (task, incarnation) = (TaskId(id as i32), Incarnation(u64::from(id) + 100));
            let (scope, protocol) = (self.scope(), Protocol::Xla);
            let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
            self.apply(Command::Task(register)).await;
        }
    }

    /// Says where these tasks run, eight on each host.
    pub async fn say_hosts(&self, tasks: std::ops::Range<u32>) {
        self.say_where(tasks, |id| format!("a3-{}", id / 8)).await;
    }

    /// Says where these tasks run.
    pub async fn say_where(&self, tasks: std::ops::Range<u32>, host: impl Fn(u32) -> String) {
        for id in tasks {
            let (task, incarnation) = (TaskId(id as i32), Incarnation(u64::from(id) + 100));
            let host = host(id);
            let note = task::Command::NoteHost { scope: self.scope(), task, incarnation, host };
            self.apply(Command::Task(note)).await;
        }
    }

    /// These tasks come to the barrier.
    pub async fn arrive(&self, barrier: &str, tasks: impl IntoIterator<Item = u32>) {
        for id in tasks {
            let arrive = barrier::Command::Arrive {
                scope: self.scope(),
                barrier: barrier.to_owned(),
                counter: BarrierCounter(0),
                timeout_ms: 600_000,
                tasks: Vec::new(),
                task: TaskId(id as i32),
            };
            self.apply(Command::Barrier(arrive)).await;
        }
    }

    /// The job's scheduler has so many stores, and so many workers at the last of them.
    pub async fn schedule(&self, stores: u32, workers: u32) {
        for store in (1..=stores).rev() {
            self.ask(Request::RegisterStore { address: format!("127.0.0.{store}:9101") }).await;
        }
        self.add_worker(Role::Driver).await;
        for _ in 0..workers {
            self.add_worker(Role::Worker).await;
        }
    }

    pub async fn add_worker(&self, role: Role) {
        let worker = Registration {
            host: "127.0.0.1".to_owned(),
            store: String::new(),
            role,
            attributed: true,
            extended: false,
            slots: 1,
        };
        self.ask(Request::RegisterWorker(worker)).await;
    }

    async fn ask(&self, request: Request) {
        let ask = ray::Command::Ask { scope: self.scope(), origin: Origin::default(), request };
        self.apply(Command::Ray(ask)).await;
    }

    /// Serves the http port; what is given back ends it.
    pub async fn serve(&self, viewers: usize) -> (String, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let manner = tripod_web::Manner { parts: tripod_web::Parts::All, viewers };
        let served = tripod_web::serve_protected(
            listener,
            (tripod_web::NodeFigures::default(), None),
            self.gateway.clone(),
            manner,
            std::future::pending(),
        );
        (address, tokio::spawn(served))
    }
}

/// A request as a browser makes it.
pub fn request(path: &str) -> axum::http::Request<Body> {
    axum::http::Request::builder()
        .uri(path)
        .header("host", "127.0.0.1:7900")
        .body(Body::empty())
        .expect("a request")
}

/// The whole body.
pub async fn text(response: Response<Body>) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 64 << 20).await.expect("a body");
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A stream of frames, as a viewer keeps them.
pub struct Viewer {
    body: axum::body::BodyDataStream,
    pub bytes: usize,
}

impl Viewer {
    pub fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), 200);
        Self { body: response.into_body().into_data_stream(), bytes: 0 }
    }

    /// The next frame; `None`: the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        let event = self.body.next().await?.expect("an event");
        self.bytes += event.len();
        let text = std::str::from_utf8(&event).expect("UTF-8");
        Some(serde_json::from_str(text.strip_prefix("data: ").expect("data").trim_end()).expect("JSON"))
    }

    /// The first frame of which this is true.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

//! The tests of dialect L in the tree of mid-2023. That tree had two protocols under one client, L and T, and
//! played every test with each; so does this suite.
//!
//! Source: openxla/xla of mid-2023, `xla/pjrt/distributed/client.cc` and `client_server_test.cc`.

mod barriers;
mod client;
mod devices;
mod going_away;
mod keys;
mod l;
mod life;
mod link;
mod t;

use std::sync::Arc;
use std::time::Duration;

use tripod_state::runtime;
use tripod_state::{Command, job, task};

use crate::client::{Call, Cluster, impatient, ms, spec};
use client::Client;
use link::Options;

/// Which of the two a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    L,
    T,
}

/// A job on a served port, and how its clients are set up.
struct Stage {
    cluster: Cluster,
    protocol: Protocol,
    options: Options,
}

impl Stage {
    /// A job that nothing is to happen to.
    async fn start(protocol: Protocol, tasks: u32) -> Self {
        Self { cluster: Cluster::start(spec(tasks)).await, protocol, options: Options::default() }
    }

    /// One that soon misses who is silent.
    async fn impatient(protocol: Protocol, tasks: u32) -> Self {
        let options = Options::impatient();
        assert_eq!(impatient(tasks).heartbeat_timeout_ms, ms(options.heartbeat_timeout()));
        Self { cluster: Cluster::start(impatient(tasks)).await, protocol, options }
    }

    /// One that waits no longer than `timeout` for all to come, and to leave.
    async fn hasty(protocol: Protocol, tasks: u32, timeout: Duration) -> Self {
        let (register_timeout_ms, shutdown_timeout_ms) = (ms(timeout), ms(timeout));
        let spec = job::Spec { register_timeout_ms, shutdown_timeout_ms, ..spec(tasks) };
        Self { cluster: Cluster::start(spec).await, protocol, options: Options::default() }
    }

    /// The clients of the first tasks, not connected yet.
    async fn clients<const N: usize>(&self) -> [Arc<Client>; N] {
        let mut clients = Vec::new();
        for task in (0..).take(N) {
            let channel = self.cluster.served.connect().await;
            clients.push(Arc::new(Client::new(self.protocol, channel, task, self.options)));
        }
        clients.try_into().unwrap_or_else(|_| panic!("counted above"))
    }

    /// The clients of all tasks, connected.
    async fn connected<const N: usize>(&self) -> [Arc<Client>; N] {
        let clients = self.clients().await;
        let calls: Vec<Call<_>> = clients.iter().map(|client| Call::new(client.connect())).collect();
        for call in calls {
            call.end().await.expect("all come");
        }
        clients
    }

    /// Connects in the background, once the service knows of it.
    async fn connecting(&self, client: &Arc<Client>) -> Call<()> {
        self.cluster.begin(client.connect(), connect_of(client)).await
    }

    /// Shuts down in the background, once the service knows of it.
    async fn shutting_down(&self, client: &Arc<Client>) -> Call<()> {
        // Calls of dialect L do not say who leaves.
        let is = |command: &Command| {
            matches!(
                command,
                Command::Runtime(runtime::Command::Shutdown { .. })
                    | Command::Task(task::Command::Shutdown { .. })
            )
        };
        self.cluster.begin(client.shut_down(), is).await
    }
}

/// Whether a command is the client's wish to connect.
fn connect_of(client: &Client) -> impl Fn(&Command) -> bool + use<> {
    let node = client.node();
    move |command: &Command| match command {
        Command::Runtime(
            runtime::Command::Connect { task, .. } | runtime::Command::ConnectFrom { task, .. },
        )
        | Command::Task(task::Command::Register { task, .. } | task::Command::RegisterFrom { task, .. }) => {
            task.0 == node
        }
        _ => false,
    }
}

/// Plays a test with both protocols at the same time.
async fn with_both<P: Future<Output = ()> + Send + 'static>(play: impl Fn(Protocol) -> P) {
    let playing = [Protocol::L, Protocol::T].map(|protocol| (protocol, tokio::spawn(play(protocol))));
    for (protocol, played) in playing {
        played.await.unwrap_or_else(|panic| panic!("dialect {protocol:?}: {panic}"));
    }
}

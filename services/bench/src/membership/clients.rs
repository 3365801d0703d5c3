//! Clients behind agents, each with an agent of its own: what they are told, and what of it is there in the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_client::{Client, Config, Consistency};
use tripod_load::connect;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_proto::tensorflow::{InsertKeyValueRequest, KeyValueEntry};

use tripod_processes::cluster::{Agent, ReservedPorts};

/// Each with an agent.
const CLIENTS: u16 = 4;
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Between two calls of a client: failures are looked for, not throughput.
const CALL_PAUSE: Duration = Duration::from_millis(2);
const READ_LIMIT: Duration = Duration::from_secs(60);

/// Clients under way.
pub(super) struct Clients {
    tasks: JoinSet<Written>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    _agents: Vec<Agent>,
    _ports: ReservedPorts,
}

/// What one client did.
struct Written {
    client: u16,
    /// Keys that were acknowledged: numbers up to this, but for those that failed.
    count: u64,
    failed: Vec<(u64, String)>,
}

/// What came of all of them.
pub(super) struct Outcome {
    pub(super) calls: u64,
    pub(super) failed: Vec<String>,
    /// Acknowledged and not there.
    pub(super) lost: usize,
}

impl Clients {
    /// Starts them, on job `default`; agents begin with the nodes at `endpoints`.
    pub(super) async fn start(endpoints: &[String], folder: &Path) -> anyhow::Result<Self> {
        let ports = ReservedPorts::reserve(CLIENTS)?;
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut agents, mut tasks) = (Vec::new(), JoinSet::new());
        for (client, port) in (0..CLIENTS).zip(ports.range()) {
            let place = format!("127.0.0.1:{port}");
            let flags = ["--cluster", &endpoints.join(","), "--job", "default"].map(str::to_owned).to_vec();
            agents.push(Agent::start(&place, flags, &folder.join(format!("agent-{client}.log"))).await?);
            let channel = connect::connect_within(&place, CONNECT_PATIENCE).await?;
            let service = CoordinationServiceClient::new(channel);
            tasks.spawn(write(client, service, Arc::clone(&stop), Arc::clone(&acknowledged)));
        }
        Ok(Self { tasks, stop, acknowledged, _agents: agents, _ports: ports })
    }

    /// Waits for so many more acknowledged calls.
    pub(super) async fn go_on(&self, more: u64, patience: Duration) -> anyhow::Result<()> {
        let goal = self.acknowledged.load(Ordering::SeqCst) + more;
        let deadline = Instant::now() + patience;
        while self.acknowledged.load(Ordering::SeqCst) < goal {
            anyhow::ensure!(Instant::now() < deadline, "clients are not acknowledged within {patience:?}");
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Ends them, and reads back what was acknowledged through the nodes at `endpoints`.
    pub(super) async fn stop(self, endpoints: &[String]) -> anyhow::Result<Outcome> {
        self.stop.store(true, Ordering::SeqCst);
        let config = Config { endpoints: endpoints.to_vec(), timeout: READ_LIMIT };
        let kv = Client::new(&config)?.kv("");
        let mut outcome = Outcome { calls: 0, failed: Vec::new(), lost: 0 };
        for Written { client, count, failed } in self.tasks.join_all().await {
            outcome.calls += count;
            for number in (0..count).filter(|number| !failed.iter().any(|(other, _)| other == number)) {
                let found = kv.get(&key(client, number), Consistency::Linearizable).await;
                outcome.lost += usize::from(found.context("cannot read back")?.is_none());
            }
            outcome
                .failed
                .extend(failed.into_iter().map(|(number, why)| format!("{client}/{number}: {why}")));
        }
        Ok(outcome)
    }
}

fn key(client: u16, number: u64) -> String {
    format!("resize/{client}/{number}")
}

/// Writes one key after the other, each once.
async fn write(
    client: u16,
    mut service: CoordinationServiceClient<tonic::transport::Channel>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
) -> Written {
    let mut written = Written { client, count: 0, failed: Vec::new() };
    while !stop.load(Ordering::SeqCst) {
        let kv = KeyValueEntry { key: key(client, written.count), value: b"1".to_vec().into() };
        match service.insert_key_value(InsertKeyValueRequest { kv: Some(kv), allow_overwrite: false }).await {
            Ok(_) => drop(acknowledged.fetch_add(1, Ordering::SeqCst)),
            Err(status) => written.failed.push((written.count, status.to_string())),
        }
        written.count += 1;
        tokio::time::sleep(CALL_PAUSE).await;
    }
    written
}

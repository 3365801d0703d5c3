//! What an agent costs: time of a call beside the direct way, memory, connections.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tonic::transport::Channel;
use tripod_load::closed_loop::Plan;
use tripod_load::connect;
use tripod_load::job::BenchJob;
use tripod_load::program::{self, Op};
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_proto::tensorflow::{GetKeyValueRequest, InsertKeyValueRequest, KeyValueEntry};

use super::record::Record;
use super::stats::Goal;
use super::{Rounds, Section};
use tripod_processes::cluster::{Agent, Cluster, ClusterOptions, ReservedPorts, connections};

/// Of the ratio of medians of a call's p50. What an agent adds is the same for both, and a get takes less by itself.
const SET_GOAL: Goal = Goal::AtMost(1.1);
const GET_GOAL: Goal = Goal::AtMost(1.5);
/// Of resident memory with [`CLIENTS`] clients, in megabytes (10^6 bytes).
const MEMORY_GOAL: Goal = Goal::AtMost(20.0);
const CONNECTION_GOAL: Goal = Goal::AtMost(1.0);
/// Clients of one agent: more than a host has accelerators.
const CLIENTS: usize = 64;
/// How long a client may take to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// Where one client is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Agent,
}

const WAYS: [Way; 2] = [Way::Direct, Way::Agent];
const OPS: [Op; 2] = [Op::Set, Op::Get];

/// Runs both ways, `rounds` times, and then fills an agent with clients.
pub(super) async fn run(rounds: Rounds) -> anyhow::Result<Section> {
    let plan = Plan::seconds(rounds.seconds)?;
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let leader = cluster.wait_for_leader().await?;
    let job = BenchJob::create(&cluster.endpoints(), CLIENTS).await?;
    let folder = tempfile::tempdir().context("a directory for the agent's log")?;
    let ports = ReservedPorts::reserve(1)?;
    let place = format!("127.0.0.1:{}", ports.first());
    let endpoint = cluster.endpoint(leader);
    let agent = start_agent(&place, &endpoint, &job.name, folder.path()).await?;
    let direct = job.addresses.get(&leader).context("the leader has not told its job ports")?;
    let address = |way| if way == Way::Direct { direct.as_str() } else { place.as_str() };

    let mut records: Vec<Record> = (0..WAYS.len() * OPS.len()).map(|_| Record::default()).collect();
    for round in 0..usize::try_from(rounds.rounds)? {
        for (which, op) in OPS.into_iter().enumerate() {
            for turn in 0..WAYS.len() {
                let side = (turn + round) % WAYS.len();
                let (way, name) = (WAYS[side], WAYS[side].name());
                let report = program::run("tripod", name, address(way), op, 1, plan).await?;
                eprintln!("round {} of {}: {op} {name}: p50 {} us", round + 1, rounds.rounds, report.p50_us);
                records[which * WAYS.len() + side].add(report.ops_per_s, &report);
            }
        }
    }
    let held = hold_many(&place).await?;
    let resident_mb = agent.resident_bytes()? as f64 / 1e6;
    let connections = upstream_connections(&agent, &cluster.endpoints())?;
    drop(held);
    job.delete().await?;
    Ok(Section { name: "agent", markdown: table(rounds, &records, resident_mb, connections) })
}

async fn start_agent(place: &str, endpoint: &str, job: &str, folder: &Path) -> anyhow::Result<Agent> {
    let flags = ["--cluster", endpoint, "--job", job].map(str::to_owned).to_vec();
    Agent::start(place, flags, &folder.join("agent.log")).await
}

/// How many connections the agent has to client ports of nodes.
fn upstream_connections(agent: &Agent, endpoints: &[String]) -> anyhow::Result<usize> {
    let mut sum = 0;
    for endpoint in endpoints {
        let (_, port) = endpoint.rsplit_once(':').with_context(|| format!("{endpoint} has no port"))?;
        sum += connections::connections_to(agent.pid(), port.parse()?)?;
    }
    Ok(sum)
}

/// Clients with a connection each, which have written a key and wait for another one, as JAX's do.
async fn hold_many(place: &str) -> anyhow::Result<Vec<HeldCall>> {
    let mut held = Vec::with_capacity(CLIENTS);
    for number in 0..CLIENTS {
        let channel = connect::connect_within(place, CONNECT_PATIENCE).await?;
        let mut client = CoordinationServiceClient::new(channel);
        let kv = KeyValueEntry { key: format!("bench/held/{number}"), value: vec![7; 4096].into() };
        client.insert_key_value(InsertKeyValueRequest { kv: Some(kv), allow_overwrite: true }).await?;
        held.push(HeldCall::start(client));
    }
    Ok(held)
}

/// A call that waits until this value is dropped.
struct HeldCall(tokio::task::JoinHandle<()>);

impl HeldCall {
    fn start(mut client: CoordinationServiceClient<Channel>) -> Self {
        Self(tokio::spawn(async move {
            let never = GetKeyValueRequest { key: "bench/never".to_owned() };
            // It ends with the connection, which is this value's.
            let _ = client.get_key_value(never).await;
        }))
    }
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Agent => "through an agent",
        }
    }
}

fn table(rounds: Rounds, records: &[Record], resident_mb: f64, connections: usize) -> String {
    let mut text = format!(
        "{} rounds of {} s after a warm-up; one client, attached to the leader or to an agent that is; values of 256 B, \
         dialect T.\n\n| call | way | p50 us (median) | min..max | p99 us | errors | ratio | goal | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rounds.rounds, rounds.seconds
    );
    for (which, op) in OPS.into_iter().enumerate() {
        let sides = &records[which * WAYS.len()..][..WAYS.len()];
        for (way, record) in WAYS.into_iter().zip(sides) {
            let compared = if way == Way::Agent {
                let ratio = record.p50_us.median_ratio(&sides[0].p50_us);
                let goal = if op == Op::Set { SET_GOAL } else { GET_GOAL };
                format!("{ratio:.2}x | {}", goal.cells(ratio, "x"))
            } else {
                " | | ".into()
            };
            let _ = writeln!(
                text,
                "| {op} | {} | {:.0} | {:.0}..{:.0} | {:.0} | {} | {compared} |",
                way.name(),
                record.p50_us.median(),
                record.p50_us.min(),
                record.p50_us.max(),
                record.p99_us.median(),
                record.errors,
            );
        }
    }
    let _ = write!(
        text,
        "\nOne agent with {CLIENTS} clients, each of which has written 4 KiB and waits for a key: {resident_mb:.1} MB resident \
         (goal {}), {connections} connection to the cluster (goal {}).\n",
        MEMORY_GOAL.cells(resident_mb, " MB").replace(" |", ":"),
        CONNECTION_GOAL.cells(connections as f64, "").replace(" |", ":"),
    );
    text
}

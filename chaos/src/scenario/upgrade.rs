//! What is beside the nodes of a cluster that is upgraded: agents of both builds, a gang behind them, and what came of it.
//!
//! The agents run from the beginning to the end. So the newer ones are at nodes of the build before, and those of the build
//! before at newer nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep, timeout};

use tripod_checkers::check::{Checked, Violation};
use tripod_checkers::history::NodeId;
use tripod_processes::cluster::{Agent, Cluster, ReservedPorts, find_tripod, open_streams, takes_streams};
use tripod_processes::fault::Builds;
use tripod_processes::workload::{AgentGang, AgentGangSeen, Endpoint, HEARTBEAT_TIMEOUT_S};
use tripod_wait::scaled;

/// The job of the gang.
const JOB: &str = "upgrade";
/// Tasks at each of its agents.
const TASKS_AN_AGENT: usize = 2;
/// An agent of job `default` and one of the gang's job, of each build.
const AGENTS: u16 = 4;
/// What stands in histories for agents, whose numbers follow on this one. No cluster has so many nodes.
const AGENT_NUMBERS: u64 = 100;
/// How long an agent may take to call by a stream again, on a machine of usual speed: one that ended is not opened anew for
/// some seconds.
const STREAM_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks at how many there are.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// Empty in a run without an upgrade.
#[derive(Default)]
pub(super) struct Upgrade {
    // Fields drop in this order.
    gang: Option<AgentGang>,
    agents: Vec<Agent>,
    _ports: Option<ReservedPorts>,
    seen: Option<Result<AgentGangSeen, String>>,
    /// Whether nodes of the build before take calls by streams.
    before_has_streams: bool,
    /// Streams that agents have open in the end, when the gang's are the only calls.
    streams: Option<Result<u64, String>>,
    /// Nodes that are of the build before still.
    before: usize,
}

impl Upgrade {
    /// Starts agents of the build `before` and of this one, and a gang behind them. Their logs are beside those of the nodes.
    ///
    /// # Errors
    /// An agent does not start, or a task cannot register.
    pub(super) async fn begin(cluster: &Cluster, before: &Path) -> anyhow::Result<Self> {
        let before_has_streams = takes_streams(&cluster.endpoint(1)).await?;
        let ports = ReservedPorts::reserve(AGENTS)?;
        let mut agents = Vec::new();
        for (number, port) in (0_usize..).zip(ports.range()) {
            let (is_before, is_of_gang) = (number % 2 == 0, number >= usize::from(AGENTS / 2));
            let binary = if is_before { before.to_owned() } else { find_tripod()? };
            let (place, log) =
                (format!("127.0.0.1:{port}"), cluster.root().join(format!("agent-{number}.log")));
            let flags = flags(cluster, number, is_of_gang);
            agents.push(Agent::start_of(binary, &place, flags, &log).await?);
        }
        let gang = &agents[usize::from(AGENTS / 2)..];
        let places: Vec<String> =
            gang.iter().flat_map(|agent| vec![agent.place().to_owned(); TASKS_AN_AGENT]).collect();
        let gang = AgentGang::start(&places).await.context("the gang behind agents does not begin")?;
        eprintln!("agents of both builds are there, and {} tasks behind them", places.len());
        Ok(Self { gang: Some(gang), agents, _ports: Some(ports), before_has_streams, ..Self::default() })
    }

    /// The agents of job `default`, for other clients.
    pub(super) fn of_default(&self) -> Vec<Endpoint> {
        let agents = (AGENT_NUMBERS + 1..).zip(&self.agents).take(usize::from(AGENTS / 2));
        let agents = agents
            .map(|(number, agent)| Endpoint { node: NodeId(number), address: agent.place().to_owned() });
        agents.collect()
    }

    /// Has the gang end within `patience`. `builds` says which nodes were not upgraded. There must be no other clients any
    /// more: whose streams nodes have open, nobody says.
    pub(super) async fn end(&mut self, cluster: &Cluster, builds: Option<&Builds>, patience: Duration) {
        if let Some(gang) = self.gang.take() {
            let found = streams_of_agents(cluster, patience.min(scaled(STREAM_PATIENCE))).await;
            self.streams = Some(found.map_err(|error| format!("{error:#}")));
            let seen = timeout(patience, gang.end()).await;
            self.seen = Some(seen.unwrap_or_else(|_| Err(format!("it did not end within {patience:?}"))));
        }
        self.before = builds.map_or(0, Builds::left);
    }

    /// What the gang has done.
    pub(super) fn figures(&self) -> BTreeMap<String, String> {
        let mut figures = BTreeMap::new();
        if let Some(Ok(AgentGangSeen { barriers, beats })) = self.seen {
            let figure = format!("{barriers} barriers passed, {beats} heartbeats answered");
            figures.insert("a gang behind agents of both builds".to_owned(), figure);
        }
        if let Some(Ok(streams)) = self.streams {
            let before = if self.before_has_streams { "has streams of calls, too" } else { "has none" };
            let figure = format!("the build before {before}; agents had {streams} open in the end");
            figures.insert("streams of calls".to_owned(), figure);
        }
        figures
    }

    pub(super) fn checks(&self) -> Vec<Checked> {
        let violation = |what: String| Violation::new("upgrade", "a gang behind agents", what, &[]);
        let (barriers, mut broken) = match &self.seen {
            None => return Vec::new(),
            Some(Ok(seen)) => (seen.barriers, Vec::new()),
            Some(Err(why)) => (0, vec![violation(why.clone())]),
        };
        let unstreamed = match &self.streams {
            Some(Ok(0)) => Some("no agent calls by a stream, although every node takes them".to_owned()),
            Some(Err(why)) => Some(format!("nobody knows whether agents call by streams: {why}")),
            Some(Ok(_)) | None => None,
        };
        broken.extend(unstreamed.map(violation));
        if self.before > 0 {
            broken.push(violation(format!("{} nodes were not upgraded", self.before)));
        }
        vec![Checked::told("upgrade", usize::try_from(barriers).unwrap_or(usize::MAX), broken)]
    }
}

/// How many streams agents have open at all nodes, as soon as there is one, and no more than agents can have: those of clients
/// that have ended may be there for a moment. After `patience` what there is then.
async fn streams_of_agents(cluster: &Cluster, patience: Duration) -> anyhow::Result<u64> {
    let until = Instant::now() + patience;
    loop {
        let (mut open, mut most) = (0, 0);
        for node in cluster.ids() {
            open += open_streams(&cluster.http_endpoint(node)).await?;
            most += u64::from(AGENTS);
        }
        if (1..=most).contains(&open) || Instant::now() >= until {
            return Ok(open);
        }
        sleep(LOOK_PAUSE).await;
    }
}

/// Each agent prefers another node, as agents of different hosts do.
fn flags(cluster: &Cluster, number: usize, is_of_gang: bool) -> Vec<String> {
    let mut endpoints = cluster.endpoints();
    let first = number % endpoints.len();
    endpoints.rotate_left(first);
    let (cluster, tasks) = (endpoints.join(","), (TASKS_AN_AGENT * usize::from(AGENTS / 2)).to_string());
    let timeout = HEARTBEAT_TIMEOUT_S.to_string();
    let of_job: &[&str] = match is_of_gang {
        true => &["--job", JOB, "--tasks", &tasks, "--heartbeat-timeout", &timeout],
        false => &["--job", "default"],
    };
    of_job.iter().chain(&["--cluster", &cluster]).map(|word| (*word).to_owned()).collect()
}

/// The build before, as it was named.
///
/// # Errors
/// There is no such file.
pub(super) fn existing(before: &Path) -> anyhow::Result<PathBuf> {
    let found = std::path::absolute(before).with_context(|| format!("{} is no path", before.display()))?;
    anyhow::ensure!(
        found.is_file(),
        "there is no file {}; next: build the release before, and name its `tripod` by --before",
        found.display()
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(seen: Result<AgentGangSeen, String>) -> Upgrade {
        Upgrade { seen: Some(seen), ..Upgrade::default() }
    }

    #[test]
    fn an_error_of_a_task_and_a_node_of_the_build_before_are_violations() {
        assert_eq!(Upgrade::default().checks(), []);
        let well = seen(Ok(AgentGangSeen { barriers: 7, beats: 9 }));
        assert!(well.checks().iter().all(Checked::held));
        assert!(well.figures().values().any(|figure| figure.starts_with("7 barriers passed, 9 heartbeats")));
        let ended = seen(Err("heartbeat 3 of a task was told why".to_owned())).checks();
        assert!(ended[0].violations()[0].explanation.contains("heartbeat 3"), "{ended:?}");
        let half = Upgrade { before: 2, ..well };
        assert!(half.checks()[0].violations()[0].explanation.starts_with("2 nodes were not upgraded"));
    }

    #[test]
    fn agents_that_call_by_no_stream_when_all_nodes_take_them_are_a_violation() {
        let run = |streams| {
            let seen = Some(Ok(AgentGangSeen { barriers: 7, beats: 9 }));
            Upgrade { seen, streams: Some(streams), ..Upgrade::default() }
        };
        let well = run(Ok(2));
        assert!(well.checks().iter().all(Checked::held));
        let figures = well.figures();
        let figure = figures.get("streams of calls").map(String::as_str);
        assert_eq!(figure, Some("the build before has none; agents had 2 open in the end"));
        let none = run(Ok(0)).checks();
        assert!(none[0].violations()[0].explanation.contains("no agent calls by a stream"), "{none:?}");
        let unknown = run(Err("nobody listens".to_owned())).checks();
        assert!(unknown[0].violations()[0].explanation.contains("nobody listens"), "{unknown:?}");
    }

    #[test]
    fn a_build_before_that_is_not_there_is_refused_with_what_to_do() {
        let error = existing(Path::new("/nowhere/tripod")).expect_err("there is none").to_string();
        assert!(error.contains("/nowhere/tripod") && error.contains("--before"), "{error}");
    }
}

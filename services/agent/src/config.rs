//! What an agent is told at its start.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tripod_local::{ConnectionLimits, UIDS_MAX};
use tripod_port::MemoryLimits;
use tripod_proto::tripod::v1::JobSpec;

use crate::error::Error;

/// What an agent is told at its start.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Where clients find the agent; at least one place, if it does not serve nodes of MindSpore alone.
    pub listen: Vec<Listen>,
    /// Where nodes of MindSpore find the agent, as `HOST:PORT`, if it serves them; port 0 takes any free one.
    pub mindspore: Option<String>,
    /// Lets [`Listen::Tcp`] be an address that other machines can reach. Everyone who reaches the agent
    /// can act for the job.
    pub allow_remote: bool,
    /// Users whose processes [`Listen::Unix`] serves, besides those of this process and root; at most
    /// [`UIDS_MAX`](tripod_local::UIDS_MAX).
    pub socket_uids: Vec<u32>,
    /// `HOST:PORT` of client ports of the cluster's nodes, in the order of preference.
    pub cluster: Vec<String>,
    /// The job of all clients of this agent.
    pub job: String,
    /// What the job is created with if there is none of that name; one that exists must have as many
    /// tasks. `None`: it is not created, and may have any number.
    pub spec: Option<JobSpec>,
    /// Whether polls for errors are held.
    pub poll: Poll,
    /// Bytes that are held for clients.
    pub memory: MemoryLimits,
    /// Connections of clients, at all places together.
    pub connections: ConnectionLimits,
    /// Time limits.
    pub timing: Timing,
}

/// A place to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// `HOST:PORT`; port 0 takes any free one.
    Tcp(String),
    /// A unix socket; clients call it `unix:PATH`.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What becomes of a client's poll for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// It is held until there is an error, whatever the job says: nodes may go, the agent stays.
    Hold,
    /// The job decides. In a job that releases polls, clients with `GRPC_FAIL_FAST=false` survive even
    /// a `kill -9` of the agent, and hear of errors with their next heartbeat.
    Release,
}

/// Time limits of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long calls are held, and heartbeats answered, while no node of the cluster can serve.
    pub max_outage: Duration,
    /// How often a node is asked whether it can serve when nothing else shows that.
    pub probe_interval: Duration,
    /// How long a node may take to show that it can serve before another one is looked for.
    pub doubt_after: Duration,
    /// How much later than another one the node in use may show it, and is kept.
    pub preference: Duration,
    /// How long a node may take to show that it can serve before it counts as one that cannot.
    pub answer_limit: Duration,
    /// How long connecting to a node may take.
    pub connect_limit: Duration,
    /// How much sooner than the next node in the order of preference a node is tried. A node that is
    /// slower by more than this is not the nearest.
    pub head_start: Duration,
    /// Pause after a failure, doubled after each further one up to `pause_max`.
    pub pause_min: Duration,
    pub pause_max: Duration,
    /// For this long after its start an agent ends when it learns that its job is another one than was
    /// meant: nobody relies on it yet, and whoever started it still looks. Later, its clients are told.
    pub refuse: Duration,
    /// How long calls under way that must not be made twice may go on after a stop was asked for.
    pub drain: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            max_outage: Duration::from_secs(600),
            probe_interval: Duration::from_secs(1),
            doubt_after: Duration::from_millis(500),
            preference: Duration::from_millis(250),
            answer_limit: Duration::from_secs(2),
            connect_limit: Duration::from_secs(1),
            head_start: Duration::from_millis(30),
            pause_min: Duration::from_millis(25),
            pause_max: Duration::from_secs(1),
            refuse: Duration::from_secs(5),
            drain: Duration::from_secs(2),
        }
    }
}

impl AgentConfig {
    /// # Errors
    /// [`Error::Config`] names the flag and what is wrong with its value.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.listen.is_empty() && self.mindspore.is_none() {
            return Err(Error::Config("--listen is missing; give HOST:PORT or unix:PATH".into()));
        }
        if self.socket_uids.len() > UIDS_MAX {
            return Err(Error::Config(format!(
                "--socket-uids names {} users, and {UIDS_MAX} is the most; have some share a user",
                self.socket_uids.len()
            )));
        }
        if self.cluster.is_empty() {
            return Err(Error::Config(
                "--cluster is missing; give the client address of at least one node, as HOST:PORT".into(),
            ));
        }
        if self.job.is_empty() {
            return Err(Error::Config("--job is empty; give the job's name".into()));
        }
        if http::HeaderValue::from_str(&self.job).is_err() {
            return Err(Error::Config(format!("--job {:?} is no name; use letters and digits", self.job)));
        }
        self.cluster.iter().try_for_each(|address| check_address(address))
    }
}

/// Checks one address. Without this, a text without a port would only show up as a node that cannot be
/// reached.
fn check_address(text: &str) -> Result<(), Error> {
    let bad = |why: &str| Error::Config(format!("--cluster {text:?} {why}; write it as HOST:PORT"));
    let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("has no port"))?;
    if host.is_empty() {
        return Err(bad("has no host"));
    }
    if port.parse::<u16>().map_or(true, |port| port == 0) {
        return Err(bad("has no valid port"));
    }
    match text.parse::<http::uri::Authority>() {
        Ok(_) => Ok(()),
        Err(_) => Err(bad("is no address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> AgentConfig {
        AgentConfig {
            listen: vec![Listen::Tcp("127.0.0.1:0".into())],
            mindspore: None,
            allow_remote: false,
            socket_uids: Vec::new(),
            cluster: vec!["127.0.0.1:7700".into(), "[::1]:7701".into(), "node-3:7702".into()],
            job: "train".into(),
            spec: None,
            poll: Poll::Hold,
            memory: MemoryLimits::none(),
            connections: ConnectionLimits::none(),
            timing: Timing::default(),
        }
    }

    fn refusal(config: &AgentConfig) -> String {
        config.check().expect_err("refused").to_string()
    }

    #[test]
    fn an_ordinary_configuration_is_accepted() {
        config().check().expect("accepted");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_flag() {
        let of = |address: &str| refusal(&AgentConfig { cluster: vec![address.into()], ..config() });
        assert_eq!(of("node"), "--cluster \"node\" has no port; write it as HOST:PORT");
        assert_eq!(of(":7700"), "--cluster \":7700\" has no host; write it as HOST:PORT");
        assert_eq!(of("a:0"), "--cluster \"a:0\" has no valid port; write it as HOST:PORT");
        assert_eq!(of("a b:1"), "--cluster \"a b:1\" is no address; write it as HOST:PORT");
        assert!(refusal(&AgentConfig { cluster: vec![], ..config() }).starts_with("--cluster is missing"));
        assert!(refusal(&AgentConfig { listen: vec![], ..config() }).starts_with("--listen is missing"));
        let of_mindspore = AgentConfig { listen: vec![], mindspore: Some("127.0.0.1:0".into()), ..config() };
        assert_eq!(of_mindspore.check(), Ok(()), "one place is enough");
        assert!(refusal(&AgentConfig { job: String::new(), ..config() }).starts_with("--job is empty"));
        assert!(refusal(&AgentConfig { job: "a\nb".into(), ..config() }).starts_with("--job \"a\\nb\""));
    }
}

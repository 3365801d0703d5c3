//! Nodes of MindSpore behind an agent whose connections to the cluster break after each step.

mod bad_input;
mod client;
mod nodes;
mod once;
mod parameter_server;
mod silence;

use tripod_agent::AgentConfig;

use self::client::Client;
use self::nodes::{Nodes, Script};
use crate::support::{Served, config, lines};

/// Where the agent listens for nodes of MindSpore.
const AGENT: &str = "agent:8400";

/// Two nodes, and an agent that uses the first one.
struct Setting {
    nodes: Nodes,
    served: Served,
}

impl Setting {
    async fn new(script: Script) -> Self {
        Self::with(script, |config| config).await
    }

    async fn with(script: Script, change: impl FnOnce(AgentConfig) -> AgentConfig) -> Self {
        let nodes = Nodes::start(script).await;
        let served = Served::with_mindspore(change(nodes.config(config(&[]))), AGENT);
        Self { nodes, served }
    }

    fn connect(&self) -> Client {
        Client::new(lines().dial(AGENT).expect("the agent listens"))
    }

    /// Ends all of it, so that the places are free.
    async fn end(self) {
        self.served.stop().await;
        lines().close(AGENT);
        self.nodes.close();
    }
}

//! The command lines of nodes.

use std::path::Path;
use std::process::Command;

use super::options::{Kind, NodeEnv};
use super::ports::{NodePorts, PortBlock};

/// What is the same for all nodes of a cluster.
pub(super) struct Layout<'a> {
    pub(super) kind: &'a Kind,
    pub(super) nodes: u64,
    /// The nodes of which one that joins may ask for its id.
    pub(super) contacts: &'a [String],
    pub(super) ports: &'a PortBlock,
    pub(super) root: &'a Path,
    pub(super) extra_args: &'a [String],
    pub(super) extra_env: &'a [NodeEnv],
    pub(super) proxied: bool,
    /// Whether nodes of MindSpore have ports.
    pub(super) mindspore: bool,
}

impl Layout<'_> {
    /// The command that starts the node on machine `id`, for the first time or again. `joins`: it is none of the
    /// first voters.
    pub(super) fn command(&self, id: u64, joins: bool) -> anyhow::Result<Command> {
        let ports = self.ports.node(id)?;
        let mut command = match self.kind {
            Kind::Tripod { binary } => self.tripod(binary, id, joins, ports)?,
            Kind::Etcd { binary } => self.etcd(binary, id, ports)?,
        };
        command.args(self.extra_args);
        let for_it = |variable: &&NodeEnv| variable.node.is_none_or(|node| node == id);
        command.envs(self.extra_env.iter().filter(for_it).map(|variable| (&variable.name, &variable.value)));
        Ok(command)
    }

    fn tripod(&self, binary: &Path, id: u64, joins: bool, ports: NodePorts) -> anyhow::Result<Command> {
        let mut command = Command::new(binary);
        command.arg("server");
        if joins {
            command.args(["--join", &self.contacts.join(",")]);
        } else {
            // Where the faults' launcher looks for it.
            command.args(["--node", &id.to_string()]);
        }
        command
            .arg("--data")
            .arg(self.root.join(format!("node-{id}")))
            .args(["--client", &loopback(ports.client)])
            .args(["--peer", &loopback(ports.peer)])
            .args(["--http", &loopback(ports.http)])
            .args(["--job-ports", &format!("{}-{}", ports.jobs.0, ports.jobs.1)])
            .arg("--exit-with-parent");
        if self.mindspore {
            let (first, last) = ports.mindspore;
            command.args(["--mindspore-ports", &format!("{first}-{last}")]);
        }
        if !joins {
            let initial = self.members(|id, ports| format!("{id}={}", loopback(self.peer(ports))))?;
            command.args(["--initial", &initial]);
        }
        Ok(command)
    }

    fn etcd(&self, binary: &Path, id: u64, ports: NodePorts) -> anyhow::Result<Command> {
        let client = format!("http://{}", loopback(ports.client));
        let peer = format!("http://{}", loopback(ports.peer));
        let members = self.members(|id, ports| format!("node-{id}=http://{}", loopback(ports.peer)))?;
        let mut command = Command::new(binary);
        command
            .args(["--name", &format!("node-{id}")])
            .arg("--data-dir")
            .arg(self.root.join(format!("node-{id}")))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &members, "--initial-cluster-state", "new"])
            .args(["--logger", "zap", "--log-level", "warn"]);
        Ok(command)
    }

    /// Where the other nodes connect.
    fn peer(&self, ports: NodePorts) -> u16 {
        if self.proxied { ports.peer_proxy } else { ports.peer }
    }

    fn members(&self, name: impl Fn(u64, NodePorts) -> String) -> anyhow::Result<String> {
        let members: anyhow::Result<Vec<String>> =
            (1..=self.nodes).map(|id| Ok(name(id, self.ports.node(id)?))).collect();
        Ok(members?.join(","))
    }
}

pub(super) fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

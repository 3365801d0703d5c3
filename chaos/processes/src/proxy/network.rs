//! All ports of the network, and the state of every pair.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::condition::{Condition, Flow};
use super::connection;
use super::source::Processes;

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Somebody who opens or accepts connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkEnd {
    Node(u64),
    /// Whoever uses the nodes' client ports, all together.
    Clients,
}

/// A port of ours and the node's port that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub node: u64,
    /// Where connections are accepted, on loopback.
    pub entry: u16,
    /// Where the node listens, on loopback.
    pub target: u16,
}

type Links = BTreeMap<(LinkEnd, LinkEnd), watch::Sender<Condition>>;

/// The network. Dropping it resets every connection and closes the ports.
#[derive(Debug)]
pub struct Network {
    links: Arc<Links>,
    processes: Processes,
    nodes: Vec<u64>,
    tasks: Vec<AbortHandle>,
}

impl Network {
    /// Opens every entry; `peers` are for nodes, `clients` for everybody else. Needs a running runtime.
    ///
    /// # Errors
    /// A port cannot be bound.
    pub fn start(peers: &[Route], clients: &[Route]) -> anyhow::Result<Self> {
        let nodes: Vec<u64> = peers.iter().map(|route| route.node).collect();
        let mut links = Links::new();
        for to in &nodes {
            for from in nodes.iter().filter(|from| *from != to) {
                links.insert((LinkEnd::Node(*from), LinkEnd::Node(*to)), watch::Sender::default());
            }
            links.insert((LinkEnd::Clients, LinkEnd::Node(*to)), watch::Sender::default());
        }
        let (processes, looking) = Processes::watch();
        let mut network = Self { links: Arc::new(links), processes, nodes, tasks: vec![looking] };
        for (routes, source) in [(peers, None), (clients, Some(LinkEnd::Clients))] {
            for route in routes {
                network.open(*route, source)?;
            }
        }
        Ok(network)
    }

    /// Tells which process is a node's now.
    pub fn node_started(&self, node: u64, pid: u32) {
        self.processes.started(node, pid);
    }

    /// Every node.
    #[must_use]
    pub fn nodes(&self) -> &[u64] {
        &self.nodes
    }

    /// What happens from now on to everything that `from` sends to `to`, on connections that either of
    /// them has opened.
    pub fn set_flow(&self, from: LinkEnd, to: LinkEnd, flow: Flow) {
        self.change(from, to, |condition| condition.forward = flow);
        self.change(to, from, |condition| condition.backward = flow);
    }

    /// Both directions at once.
    pub fn set_flow_between(&self, one: LinkEnd, other: LinkEnd, flow: Flow) {
        self.set_flow(one, other, flow);
        self.set_flow(other, one, flow);
    }

    /// Whether connections that `from` opens to `to` are reset at once.
    pub fn refuse_new(&self, from: LinkEnd, to: LinkEnd, refuse: bool) {
        self.change(from, to, |condition| condition.refuse_new = refuse);
    }

    /// Every connection between the two, whoever opened it, lives at most so long; `None`: as it likes.
    pub fn limit_lifetime(&self, one: LinkEnd, other: LinkEnd, lifetime_max_ms: Option<u64>) {
        self.change_both(one, other, |condition| condition.lifetime_max_ms = lifetime_max_ms);
    }

    /// Resets every connection between the two, whoever opened it.
    pub fn reset(&self, one: LinkEnd, other: LinkEnd) {
        self.change_both(one, other, |condition| condition.resets += 1);
    }

    /// A good network again. Connections stay, and what was held back arrives.
    pub fn heal(&self) {
        for link in self.links.values() {
            link.send_modify(|condition| {
                *condition = Condition { resets: condition.resets, ..Condition::default() }
            });
        }
    }

    /// What holds for connections that `from` opens to `to`.
    #[must_use]
    pub fn condition(&self, from: LinkEnd, to: LinkEnd) -> Option<Condition> {
        self.links.get(&(from, to)).map(|link| *link.borrow())
    }

    fn change_both(&self, one: LinkEnd, other: LinkEnd, change: impl Fn(&mut Condition)) {
        self.change(one, other, &change);
        self.change(other, one, &change);
    }

    /// Pairs that open no connections (nodes to clients) have no state.
    fn change(&self, from: LinkEnd, to: LinkEnd, change: impl Fn(&mut Condition)) {
        if let Some(link) = self.links.get(&(from, to)) {
            link.send_modify(change);
        }
    }

    fn open(&mut self, route: Route, source: Option<LinkEnd>) -> anyhow::Result<()> {
        let bound = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, route.entry));
        let listener = bound.with_context(|| format!("the proxy's port {}", route.entry))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let accepting = accept(listener, route, source, Arc::clone(&self.links), self.processes.clone());
        self.tasks.push(tokio::spawn(accepting).abort_handle());
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Accepts until it is aborted, which ends its connections too.
async fn accept(
    listener: TcpListener,
    route: Route,
    source: Option<LinkEnd>,
    links: Arc<Links>,
    processes: Processes,
) {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, route.target));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Too many open files, or a client that went away: the next one may fare better.
                let Ok((near, from)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let (links, processes) = (Arc::clone(&links), processes.clone());
                connections.spawn(async move {
                    let source = match source {
                        Some(source) => Some(source),
                        None => processes.node_of(from.port(), route.entry).await.map(LinkEnd::Node),
                    };
                    // Whoever is gone by now needs no connection.
                    let Some(source) = source else { return };
                    let Some(link) = links.get(&(source, LinkEnd::Node(route.node))) else { return };
                    connection::serve(near, target, link.subscribe()).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

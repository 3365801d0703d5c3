//! `tripod mindspore nodes`.

use serde::Serialize;
use tripod_client::wire;

use super::{nobody, or_dash};
use crate::output::Table;
use crate::view::time;

/// Everything that `mindspore nodes` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct NodesView {
    job: String,
    topology: Option<TopologyView>,
    cluster: Option<ClusterView>,
}

#[derive(Debug, Serialize)]
struct TopologyView {
    generation: u64,
    nodes: Vec<TopologyNodeView>,
}

#[derive(Debug, Serialize)]
struct TopologyNodeView {
    id: String,
    role: String,
    rank: u32,
    host: String,
    address: Option<String>,
    alive: bool,
    recovered: bool,
}

#[derive(Debug, Serialize)]
struct ClusterView {
    generation: u64,
    nodes: Vec<ClusterNodeView>,
}

#[derive(Debug, Serialize)]
struct ClusterNodeView {
    id: String,
    role: String,
    /// `null`: it leaves.
    rank: Option<u32>,
    address: String,
    incarnation: u64,
    alive: bool,
    life: String,
    silent_since_ms: Option<u64>,
    place_until_ms: Option<u64>,
    entered: bool,
    finished: bool,
    state: String,
    /// The generation in which it was told of the others last; 0: not yet.
    told: u64,
    /// What it is to be told next.
    next: Option<String>,
    events: u64,
}

impl NodesView {
    pub(crate) fn of(job: &str, answer: wire::MindsporeNodes) -> Self {
        let topology = TopologyView {
            generation: answer.topology_generation,
            nodes: answer.topology.into_iter().map(TopologyNodeView::of).collect(),
        };
        let cluster = ClusterView {
            generation: answer.cluster_generation,
            nodes: answer.cluster.into_iter().map(ClusterNodeView::of).collect(),
        };
        Self {
            job: job.to_owned(),
            topology: (topology.generation > 0).then_some(topology),
            cluster: (cluster.generation > 0).then_some(cluster),
        }
    }

    pub(crate) fn render(&self, now_ms: u64) -> String {
        let parts = [
            self.cluster.as_ref().map(|cluster| cluster.render(now_ms)),
            self.topology.as_ref().map(TopologyView::render),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { nobody(&self.job) } else { parts.join("\n\n") }
    }
}

impl TopologyView {
    fn render(&self) -> String {
        let mut table = Table::new(&["NODE", "ROLE", "RANK", "HOST", "ADDRESS", "ALIVE"]);
        for node in &self.nodes {
            table.row(vec![
                node.id.clone(),
                node.role.clone(),
                node.rank.to_string(),
                node.host.clone(),
                node.address.clone().unwrap_or_else(|| "-".to_owned()),
                if node.alive { "yes" } else { "silent" }.to_owned(),
            ]);
        }
        format!("dynamic cluster, generation {}\n{}", self.generation, table.render())
    }
}

impl TopologyNodeView {
    fn of(node: wire::MindsporeTopologyNode) -> Self {
        Self {
            id: node.node_id,
            role: node.role,
            rank: node.rank,
            host: node.host,
            address: Some(node.address).filter(|address| !address.is_empty()),
            alive: !node.silent,
            recovered: node.recovered,
        }
    }
}

impl ClusterView {
    fn render(&self, now_ms: u64) -> String {
        let mut table =
            Table::new(&["NODE", "ROLE", "RANK", "ADDRESS", "ALIVE", "SILENT", "TOLD UP TO", "NEXT"]);
        for node in &self.nodes {
            table.row(node.row(now_ms));
        }
        format!("parameter server, generation {}\n{}", self.generation, table.render())
    }
}

impl ClusterNodeView {
    fn of(node: wire::MindsporeClusterNode) -> Self {
        let some = |at_ms: u64| (at_ms > 0).then_some(at_ms);
        Self {
            id: node.node_id,
            role: node.role,
            rank: node.rank,
            address: node.address,
            incarnation: node.incarnation,
            alive: node.life == "alive",
            life: node.life,
            silent_since_ms: some(node.silent_since_ms),
            place_until_ms: some(node.place_until_ms),
            entered: node.entered,
            finished: node.finished,
            state: node.state,
            told: node.told,
            next: Some(node.next).filter(|next| !next.is_empty()),
            events: node.events,
        }
    }

    fn row(&self, now_ms: u64) -> Vec<String> {
        let life = match (self.life.as_str(), self.place_until_ms) {
            ("alive", _) if self.finished => "finished".to_owned(),
            ("alive", _) if self.rank.is_none() => "leaves".to_owned(),
            ("alive", _) => "yes".to_owned(),
            (_, Some(until)) => format!("no, its place waits {}", time::since(now_ms, until)),
            (other, None) => other.to_owned(),
        };
        let silent = self.silent_since_ms.map_or_else(|| "-".to_owned(), |since| time::since(since, now_ms));
        let told = if self.told == 0 { "-".to_owned() } else { self.told.to_string() };
        let next = match (&self.next, self.events) {
            (None, 0) => "-".to_owned(),
            (None, events) => format!("{events} events"),
            (Some(next), 0) => next.clone(),
            (Some(next), events) => format!("{next}, {events} events"),
        };
        vec![
            self.id.clone(),
            self.role.clone(),
            or_dash(self.rank),
            self.address.clone(),
            life,
            silent,
            told,
            next,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, rank: Option<u32>, life: &str) -> wire::MindsporeClusterNode {
        wire::MindsporeClusterNode {
            node_id: id.to_owned(),
            role: "server".to_owned(),
            rank,
            address: "10.0.0.1:7".to_owned(),
            life: life.to_owned(),
            told: 4,
            ..Default::default()
        }
    }

    #[test]
    fn a_node_is_a_line_that_says_whether_it_lives_and_what_it_knows() {
        let dead = wire::MindsporeClusterNode {
            silent_since_ms: 10_000,
            place_until_ms: 130_000,
            events: 2,
            ..node("s1", Some(1), "dead")
        };
        let leaving =
            wire::MindsporeClusterNode { next: "scale".into(), told: 0, ..node("s2", None, "alive") };
        let answer = wire::MindsporeNodes {
            cluster: vec![node("s0", Some(0), "alive"), dead, leaving],
            cluster_generation: 5,
            ..Default::default()
        };
        assert_eq!(
            NodesView::of("fl", answer).render(40_000),
            "parameter server, generation 5\n\
             NODE  ROLE    RANK  ADDRESS     ALIVE                     SILENT  TOLD UP TO  NEXT\n\
             s0    server  0     10.0.0.1:7  yes                       -       4           -\n\
             s1    server  1     10.0.0.1:7  no, its place waits 90 s  30 s    4           2 events\n\
             s2    server  -     10.0.0.1:7  leaves                    -       -           scale"
        );
    }

    #[test]
    fn a_node_of_a_dynamic_cluster_is_a_line_too() {
        let worker = wire::MindsporeTopologyNode {
            node_id: "3".into(),
            role: "MS_WORKER".into(),
            rank: 3,
            host: "gpu-3".into(),
            silent: true,
            ..Default::default()
        };
        let answer =
            wire::MindsporeNodes { topology: vec![worker], topology_generation: 1, ..Default::default() };
        assert_eq!(
            NodesView::of("fl", answer).render(0),
            "dynamic cluster, generation 1\n\
             NODE  ROLE       RANK  HOST   ADDRESS  ALIVE\n\
             3     MS_WORKER  3     gpu-3  -        silent"
        );
    }

    #[test]
    fn a_job_without_nodes_says_what_is_next() {
        let text = NodesView::of("fl", wire::MindsporeNodes::default()).render(0);
        assert!(text.contains("no MindSpore node has registered with job `fl`"), "{text}");
    }
}

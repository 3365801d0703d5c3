//! A cluster whose nodes were started for the first time, and which is not there yet.

use serde::Serialize;
use tripod_client::wire;

/// Field names are a contract.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct FormingView {
    /// One that answered.
    node: u64,
    /// The nodes of its list that have not answered it.
    waits_for: Vec<u64>,
}

impl FormingView {
    /// Every node that waits, unless one knows the voters: then the cluster is there.
    pub(super) fn all(told: &[&wire::StatusResponse]) -> Vec<Self> {
        if told.iter().any(|status| !status.members.is_empty()) {
            return Vec::new();
        }
        let waits = told.iter().filter_map(|status| Some((status.node_id, status.forming.as_ref()?)));
        waits.map(|(node, forming)| Self { node, waits_for: forming.waits_for.clone() }).collect()
    }

    /// `node 1 waits for nodes 2, 3`.
    pub(super) fn render(&self) -> String {
        let ids = self.waits_for.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let nodes = if self.waits_for.len() == 1 { "node" } else { "nodes" };
        format!("node {} waits for {nodes} {ids}", self.node)
    }
}

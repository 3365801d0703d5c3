//! `tripod mindspore scale`.

use serde::Serialize;
use tripod_client::wire;

use super::or_dash;
use crate::output::Table;
use crate::view::count;

/// Everything that `mindspore scale` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct PlanView {
    job: String,
    /// Of the cluster that it was made for.
    generation: u64,
    /// In which it begins; `null`: it is planned only.
    begun: Option<u64>,
    workers: u32,
    servers_before: u32,
    servers_after: u32,
    nodes: Vec<PlannedView>,
    /// Of the servers that have to come.
    free_ranks: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct PlannedView {
    id: String,
    role: String,
    /// `null`: it leaves already.
    rank_before: Option<u32>,
    /// `null`: it leaves.
    rank_after: Option<u32>,
}

impl PlanView {
    pub(crate) fn of(job: &str, plan: wire::MindsporePlan, begun: Option<u64>) -> Self {
        let node = |node: wire::MindsporePlannedNode| PlannedView {
            id: node.node_id,
            role: node.role,
            rank_before: node.rank_before,
            rank_after: node.rank_after,
        };
        Self {
            job: job.to_owned(),
            generation: plan.generation,
            begun,
            workers: plan.workers,
            servers_before: plan.servers_before,
            servers_after: plan.servers_after,
            nodes: plan.nodes.into_iter().map(node).collect(),
            free_ranks: plan.free_ranks,
        }
    }

    pub(crate) fn render(&self) -> String {
        let mut table = Table::new(&["NODE", "ROLE", "RANK", "THEN"]);
        for node in &self.nodes {
            let then = match (node.rank_before, node.rank_after) {
                (Some(_), None) => "leaves".to_owned(),
                (None, None) => "leaves already".to_owned(),
                (_, after) => or_dash(after),
            };
            table.row(vec![node.id.clone(), node.role.clone(), or_dash(node.rank_before), then]);
        }
        for rank in &self.free_ranks {
            table.row(vec!["(new)".to_owned(), "server".to_owned(), "-".to_owned(), rank.to_string()]);
        }
        let Self { job, generation, servers_before, .. } = self;
        let after = count(self.servers_after, "server");
        let workers = count(self.workers, "worker");
        format!(
            "generation {generation}: {servers_before} to {after}, {workers}\n{}\n\n{}",
            table.render(),
            match self.begun {
                None => format!(
                    "planned only; --generation {generation} without --plan does this and nothing else"
                ),
                Some(begun) => self.next(job, begun),
            }
        )
    }

    fn next(&self, job: &str, begun: u64) -> String {
        let how_far = format!("`tripod mindspore state --job {job}` shows how far it is");
        match self.free_ranks.len() as u64 {
            0 => format!("generation {begun} begins; {how_far}"),
            new => format!("generation {begun} begins; next: start {}; {how_far}", count(new, "server")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(id: &str, before: u32, after: Option<u32>) -> wire::MindsporePlannedNode {
        wire::MindsporePlannedNode {
            node_id: id.to_owned(),
            role: "server".to_owned(),
            rank_before: Some(before),
            rank_after: after,
        }
    }

    #[test]
    fn a_plan_shows_who_leaves_and_who_gets_which_rank() {
        let plan = wire::MindsporePlan {
            generation: 5,
            workers: 1,
            servers_before: 3,
            servers_after: 2,
            nodes: vec![planned("s0", 0, Some(0)), planned("s1", 1, None), planned("s2", 2, Some(1))],
            ..Default::default()
        };
        assert_eq!(
            PlanView::of("fl", plan, None).render(),
            "generation 5: 3 to 2 servers, 1 worker\n\
             NODE  ROLE    RANK  THEN\n\
             s0    server  0     0\n\
             s1    server  1     leaves\n\
             s2    server  2     1\n\n\
             planned only; --generation 5 without --plan does this and nothing else"
        );
    }

    #[test]
    fn servers_that_have_to_come_are_counted_and_have_their_ranks() {
        let plan = wire::MindsporePlan { free_ranks: vec![1, 2], servers_after: 3, ..Default::default() };
        let text = PlanView::of("fl", plan, Some(6)).render();
        assert!(text.contains("(new)  server  -     2"), "{text}");
        assert!(text.contains("generation 6 begins; next: start 2 servers"), "{text}");
    }
}

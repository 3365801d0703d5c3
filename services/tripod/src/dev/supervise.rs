//! Starting the nodes, watching them, and ending them all.

use std::time::Duration;

use tokio::task::JoinSet;
use tripod_proto::code::Code;

use crate::child::Child;
use crate::dev::plan::NodePlan;
use crate::dev::{Config, Data, child, ready, report};
use crate::failure::Failure;
use crate::node::Stop;

/// Rest before a node that ended is started again: one that cannot start must not spin.
const RESTART_PAUSE: Duration = Duration::from_millis(500);
/// Lines of a node's log that are shown when it could not start.
const LOG_LINES: usize = 3;

/// The nodes' processes. A place is empty while its process is dead.
struct Cluster<'a> {
    config: &'a Config,
    data: &'a Data,
    children: Vec<Option<Child>>,
}

/// Runs the nodes until `stop`, or until none is left.
pub(crate) async fn run(config: &Config, data: &Data, mut stop: Stop) -> Result<(), Failure> {
    let mut cluster = Cluster { config, data, children: Vec::new() };
    let result = tokio::select! {
        reason = stop.wait() => {
            tracing::info!(reason, "cluster is stopping");
            Ok(())
        }
        ended = cluster.live() => ended,
    };
    cluster.end().await;
    result
}

impl Cluster<'_> {
    /// Starts all nodes, tells when they are ready, and watches them. Returns only when it cannot go on.
    async fn live(&mut self) -> Result<(), Failure> {
        for node in &self.config.plan.nodes {
            let child = self.start(node)?;
            self.children.push(Some(child));
        }
        let leader = tokio::select! {
            leader = ready::wait(&self.config.plan) => leader?,
            (place, how) = self.any_ended() => return Err(self.not_started(place, &how)),
        };
        let tasks = self.config.tasks.unwrap_or(1);
        report::ready(self.config.format, &self.config.plan, self.data, leader, tasks);
        loop {
            let (place, how) = self.any_ended().await;
            self.children[place] = None;
            let node = &self.config.plan.nodes[place];
            report::ended(node, &how, self.config.restart);
            if self.config.restart {
                tokio::time::sleep(RESTART_PAUSE).await;
                self.children[place] = Some(self.start(node)?);
            } else if self.children.iter().all(Option::is_none) {
                return Err(Failure::new(
                    Code::DevNodeEnded,
                    "no node is left; start again with the same --data to go on",
                ));
            }
        }
    }

    fn start(&self, node: &NodePlan) -> Result<Child, Failure> {
        let child = child::start(self.config, self.data, node).map_err(|error| {
            Failure::new(Code::DevNodeEnded, format!("cannot start the process of node {}: {error}", node.id))
        })?;
        report::started(self.config.format, node, child.pid());
        Ok(child)
    }

    /// Waits for the first process to end; tells its place and how it ended.
    async fn any_ended(&mut self) -> (usize, String) {
        let waits = self.children.iter_mut().enumerate().filter_map(|(place, child)| {
            let child = child.as_mut()?;
            Some(Box::pin(async move {
                let how = match child.ended().await {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                };
                (place, how)
            }))
        });
        futures::future::select_all(waits).await.0
    }

    fn not_started(&self, place: usize, how: &str) -> Failure {
        let node = &self.config.plan.nodes[place];
        let log = self.data.log(node.id);
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ");
        Failure::new(
            Code::DevNodeEnded,
            format!("node {} ended at its start ({how}); {}:\n  {last}", node.id, log.display()),
        )
    }

    /// Ends all nodes at the same time.
    async fn end(&mut self) {
        let mut ending = JoinSet::new();
        for child in self.children.drain(..).flatten() {
            ending.spawn(child.end());
        }
        ending.join_all().await;
    }
}

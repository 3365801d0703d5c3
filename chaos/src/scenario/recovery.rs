//! After the last fault: the cluster must serve again, and its replicas must be equal, within deadlines.

use std::time::Duration;

use tokio::time::Instant;
use tripod_client::{Client, Config};
use tripod_wait::scaled;

use tripod_checkers::check::Violation;
use tripod_checkers::history::{Call, History, LogIndex, Micros, NodeId, Outcome, Reply};
use tripod_processes::cluster::Cluster;
use tripod_processes::fault::Arena;
use tripod_processes::workload::Setting;

/// How long until one node leads and all answer reads; and then until every kind of call was answered; on a machine of
/// usual speed.
pub(super) const SERVE_PATIENCE: Duration = Duration::from_secs(60);
const STATUS_LIMIT: Duration = Duration::from_secs(10);
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// The rule that these violations break.
const RULE: &str = "liveness";

/// Waits until the healed cluster has a leader and every node serves. Nodes that end by themselves meanwhile are
/// noted and started again.
///
/// # Errors
/// The harness failed.
pub(super) async fn serves(arena: &mut Arena<'_>) -> anyhow::Result<Option<Violation>> {
    let patience = scaled(SERVE_PATIENCE);
    let deadline = Instant::now() + patience;
    loop {
        match arena.cluster.wait_until_ready().await {
            Ok(()) => return Ok(None),
            Err(error) if Instant::now() >= deadline => {
                let explanation = format!("{patience:?} after the last fault: {error:#}");
                return Ok(Some(Violation::new(RULE, "the cluster", explanation, &[])));
            }
            Err(_) => {
                arena.look_for_the_dead()?;
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        }
    }
}

/// Waits until every kind of write that clients made before was acknowledged again, at a time that is told so.
pub(super) async fn clients_go_on(setting: &Setting, when: &str) -> Option<Violation> {
    let healed = setting.clock.now();
    let patience = scaled(SERVE_PATIENCE);
    let deadline = Instant::now() + patience;
    loop {
        let waiting = kinds_without_answer(&setting.recorder.history(setting.clock.now()), healed);
        if waiting.is_empty() {
            return None;
        }
        if Instant::now() >= deadline {
            let explanation =
                format!("{when} no {} was acknowledged for {patience:?}", waiting.join(", no "));
            return Some(Violation::new(RULE, "the clients", explanation, &[]));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Kinds of writes that were made at all, and of which none that began after `healed` was answered.
fn kinds_without_answer(history: &History, healed: Micros) -> Vec<String> {
    let writes = || history.operations.iter().filter(|operation| operation.call.writes());
    let mut kinds: Vec<&str> = writes().map(|operation| operation.call.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let answered = |kind: &str| {
        writes().any(|operation| {
            operation.call.kind() == kind && operation.invoked >= healed && operation.reply().is_some()
        })
    };
    kinds.into_iter().filter(|kind| !answered(kind)).map(str::to_owned).collect()
}

/// Waits until all nodes have applied equally much, and records their digests. That these are equal, the
/// checker says.
pub(super) async fn replicas_agree(
    cluster: &Cluster,
    setting: &Setting,
    patience: Duration,
) -> Option<Violation> {
    let Ok(client) = Client::new(&Config::new(cluster.endpoints())) else { return None };
    let deadline = Instant::now() + patience;
    loop {
        let mut applied = Vec::new();
        let calls: Vec<_> = cluster
            .ids()
            .map(|node| setting.invoke(setting.client_id(), Call::ReadDigest { node: NodeId(node) }))
            .collect();
        for (pending, answer) in calls.into_iter().zip(client.status(STATUS_LIMIT, true).await) {
            let outcome = match answer.status {
                Ok(status) => {
                    applied.push(status.applied_index);
                    let (node, applied_index) = (NodeId(status.node_id), LogIndex(status.applied_index));
                    Outcome::Ok(Reply::Digest { node, applied_index, digest: status.digest })
                }
                Err(attempt) => Outcome::Fail(attempt.to_string()),
            };
            setting.complete(pending, outcome);
        }
        let all = applied.len() == cluster.ids().count();
        if all && applied.iter().all(|index| *index == applied[0]) {
            return None;
        }
        if Instant::now() >= deadline {
            let explanation = format!("{patience:?} after the last call the nodes have applied {applied:?}");
            return Some(Violation::new(RULE, "the replicas", explanation, &[]));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

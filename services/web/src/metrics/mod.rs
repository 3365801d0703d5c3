//! What to alarm on, in the text format of OpenMetrics 1.0, which Prometheus reads.
//!
//! Source of the format: <https://prometheus.io/docs/specs/om/open_metrics_spec/>. Nothing is counted here:
//! each page is made from what the node has counted by then, so a scrape costs what it shows and nothing else
//! does.
//!
//! | module | what |
//! |---|---|
//! | `catalogue` | every metric: name, type, unit, labels |
//! | `figures` | their values |
//! | `census` | how much there is of what, in the state |
//! | `page` | how they are written |
//! | `snapshots_seen` | when the newest snapshot was made |
//! | `process` | what the system tells of this process |
//! | `safety` | how many voters may be lost, and whether their members can be changed |

mod catalogue;
mod census;
mod figures;
mod page;
mod process;
mod safety;
mod snapshots_seen;

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tripod_gate::Tally;
use tripod_gateway::{Bearers, Gateway};
use tripod_tls::Tls;

pub use catalogue::{Kind, METRICS, Metric};
use census::Census;
use figures::Figures;
use process::Process;
pub(crate) use snapshots_seen::SnapshotsSeen;

use crate::ui::Viewers;

/// The media type of [`page`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a node shows besides what its gateway knows.
#[derive(Debug, Clone, Default)]
pub struct NodeFigures {
    /// Its certificates, if it has some.
    pub tls: Option<Tls>,
    /// What was decided about calls.
    pub calls: Arc<Tally>,
    /// Those who watch its page.
    pub viewers: Viewers,
    /// Who judges the tokens that are shown; nobody where there are none.
    pub bearers: Option<Bearers>,
}

/// Every metric of this node. Takes half a second at most: one of them is whether the cluster answers.
pub(crate) async fn page(gateway: &Gateway, seen: &SnapshotsSeen, node: NodeFigures) -> String {
    // Beside each other: each waits for the leader for half a second at most.
    let (readiness, leader_clock) = tokio::join!(gateway.readiness(), gateway.leader_clock());
    let now = leader_clock.map_or_else(|| gateway.now(), |clock| clock.log_time);
    let measures = gateway.admin().measures();
    let figures = Figures {
        ready: readiness.is_ready(),
        leader_clock,
        status: gateway.admin().status(),
        snapshot_age: seen.age(&measures.snapshots),
        measures,
        led_for: gateway.led_for(),
        state_limits: gateway.state_limits(),
        calls: gateway.calls().counts(),
        beats: gateway.beats(),
        gangs: gateway.gangs(),
        tasks_late: gateway.tasks_late(),
        backup_age: gateway.last_backup().age(),
        waiting_calls: gateway.waiting_calls(),
        held_calls: gateway.held_calls(),
        held_calls_total: gateway.held_calls_total(),
        turns: gateway.turns(),
        connections: gateway.connections().clone(),
        memory: gateway.memory().clone(),
        streams: gateway.streams().clone(),
        tls: node.tls,
        authorised: node.calls,
        tokens_refused: node.bearers.map(|bearers| bearers.tally().clone()).unwrap_or_default(),
        viewers: node.viewers.count(),
        insecure: gateway.is_insecure(),
        census: Census::take(gateway, now).await,
        process: Process::look(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(figures));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("a text grows");
    page
}

#[cfg(test)]
mod tests;

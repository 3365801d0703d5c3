//! What to alarm on, in Prometheus' text format, version 0.0.4.
//!
//! Source of the format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write as _;

use tripod_gateway::{Role, Status};

/// The media type of [`text`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Every metric of this node.
pub(crate) fn text(status: &Status, waiting_calls: u64) -> String {
    let mut page = Page::default();
    page.gauge(
        "tripod_leader",
        "1 while this node leads the cluster",
        u64::from(status.role == Role::Leader),
    );
    page.gauge("tripod_leader_known", "1 while a leader is known", u64::from(status.leader.is_some()));
    page.gauge("tripod_term", "Raft term", status.term.0);
    page.gauge("tripod_applied_index", "last log index in the state", status.applied.0);
    page.gauge("tripod_waiting_calls", "calls that wait on this node", waiting_calls);
    let disk = &status.disk;
    page.gauge("tripod_disk_free_bytes", "bytes that may still be written to the disk", disk.free_bytes);
    page.gauge(
        "tripod_disk_reserve_bytes",
        "bytes kept for votes, deletions and snapshots",
        disk.reserve_bytes,
    );
    page.gauge(
        "tripod_disk_full",
        "1 while the disk is down to the reserve; alarm on it",
        u64::from(disk.full),
    );
    page.gauge(
        "tripod_growth_refused",
        "1 while the leader refuses what grows; alarm on it",
        u64::from(status.growth_refused.is_some()),
    );
    page.head("tripod_leader_gave_up_total", "how often this node gave up leading", "counter");
    page.sample("tripod_leader_gave_up_total{reason=\"disk-stalled\"}", status.given_up.disk_stalled);
    page.sample("tripod_leader_gave_up_total{reason=\"no-quorum\"}", status.given_up.no_quorum);
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.sample(name, value);
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a text grows");
    }

    fn sample(&mut self, name: &str, value: u64) {
        writeln!(self.text, "{name} {value}").expect("a text grows");
    }
}

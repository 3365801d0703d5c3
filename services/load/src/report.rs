//! The result of one run: JSON for scripts, a table for people.

use serde::{Deserialize, Serialize};

use crate::closed_loop::Outcome;

/// What one run measured. The field names are a contract with scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What every client did: `put`, `get`, `local-get`, `barrier`, `heartbeat`.
    pub op: String,
    pub system: String,
    /// Clients that each waited for their answer before they asked again.
    pub clients: usize,
    /// TCP connections that the clients shared.
    pub connections: usize,
    /// Streams of calls that the clients shared, each over one of those; absent where calls went by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<usize>,
    /// Nodes that the clients spoke to: `leader`, `follower`, `any`.
    pub target: String,
    /// Bytes of a value; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_bytes: Option<usize>,
    /// Length of the measured window.
    pub seconds: f64,
    /// Tasks of the scheduler that were done, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_s: Option<f64>,
    /// Calls of all processes that those took, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands_per_s: Option<f64>,
    /// Successful requests in the window, all clients together.
    pub ops: u64,
    pub ops_per_s: f64,
    /// Barriers passed by all clients, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_per_s: Option<f64>,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// Failed requests, also of the warm-up.
    pub errors: u64,
    /// The first different texts among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_errors: Vec<String>,
}

/// What a run was, beside what it measured.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    pub op: &'a str,
    pub system: &'a str,
    pub clients: usize,
    pub connections: usize,
    pub target: &'a str,
    pub value_bytes: Option<usize>,
}

impl Report {
    /// The report of `outcome`.
    #[must_use]
    pub fn new(setting: Setting<'_>, outcome: &Outcome) -> Self {
        let seconds = outcome.elapsed.as_secs_f64();
        let latencies = &outcome.latencies_us;
        Self {
            op: setting.op.to_owned(),
            system: setting.system.to_owned(),
            clients: setting.clients,
            connections: setting.connections,
            streams: None,
            target: setting.target.to_owned(),
            value_bytes: setting.value_bytes,
            seconds: round_to(seconds, 1000.0),
            ops: latencies.len(),
            ops_per_s: round_to(latencies.len() as f64 / seconds.max(f64::MIN_POSITIVE), 10.0),
            rounds_per_s: None,
            tasks_per_s: None,
            commands_per_s: None,
            p50_us: latencies.value_at_quantile(0.5),
            p90_us: latencies.value_at_quantile(0.9),
            p99_us: latencies.value_at_quantile(0.99),
            p999_us: latencies.value_at_quantile(0.999),
            max_us: latencies.max(),
            errors: outcome.errors,
            first_errors: outcome.first_errors.clone(),
        }
    }

    /// Adds the rate of rounds: in each, every client ended one request.
    #[must_use]
    pub fn with_rounds(mut self) -> Self {
        self.rounds_per_s = Some(round_to(self.ops_per_s / self.clients.max(1) as f64, 10.0));
        self
    }

    /// The clients shared so many streams of calls; 0: none.
    #[must_use]
    pub fn with_streams(mut self, streams: usize) -> Self {
        self.streams = (streams > 0).then_some(streams);
        self
    }

    /// Each request was a batch of so many tasks, which took so many calls of all processes together.
    #[must_use]
    pub fn with_tasks(mut self, tasks: usize, calls: f64) -> Self {
        self.tasks_per_s = Some(round_to(self.ops_per_s * tasks as f64, 10.0));
        self.commands_per_s = Some(round_to(self.ops_per_s * calls, 10.0));
        self
    }

    /// Two aligned lines: names and figures.
    #[must_use]
    pub fn table(&self) -> String {
        let mut columns = vec![
            ("OP", self.op.clone()),
            ("CLIENTS", self.clients.to_string()),
            ("TARGET", self.target.clone()),
            ("OPS/S", format!("{:.0}", self.ops_per_s)),
            ("P50", milliseconds(self.p50_us)),
            ("P90", milliseconds(self.p90_us)),
            ("P99", milliseconds(self.p99_us)),
            ("MAX", milliseconds(self.max_us)),
            ("ERRORS", self.errors.to_string()),
        ];
        if let Some(streams) = self.streams {
            columns.insert(2, ("STREAMS", streams.to_string()));
        }
        let figures_at = columns.len() - 5;
        if let Some(rounds) = self.rounds_per_s {
            columns.insert(figures_at, ("ROUNDS/S", format!("{rounds:.0}")));
        }
        if let (Some(tasks), Some(commands)) = (self.tasks_per_s, self.commands_per_s) {
            columns.insert(figures_at, ("TASKS/S", format!("{tasks:.0}")));
            columns.insert(figures_at + 1, ("COMMANDS/S", format!("{commands:.0}")));
        }
        let mut names = String::new();
        let mut figures = String::new();
        for (name, figure) in &columns {
            let width = name.len().max(figure.len()) + 2;
            names.push_str(&format!("{name:<width$}"));
            figures.push_str(&format!("{figure:<width$}"));
        }
        format!("{}\n{}", names.trim_end(), figures.trim_end())
    }
}

fn milliseconds(microseconds: u64) -> String {
    format!("{:.2} ms", microseconds as f64 / 1000.0)
}

/// Figures beyond what was measured only clutter the output.
fn round_to(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::closed_loop::latency_histogram;

    fn report() -> Report {
        let mut latencies_us = latency_histogram();
        for latency in 1..=100 {
            latencies_us.record(latency * 100).unwrap();
        }
        let outcome = Outcome {
            latencies_us,
            errors: 2,
            first_errors: vec!["unavailable: gone".into()],
            elapsed: Duration::from_secs(2),
        };
        let setting = Setting {
            op: "put",
            system: "tripod",
            clients: 4,
            connections: 2,
            target: "leader",
            value_bytes: Some(256),
        };
        Report::new(setting, &outcome)
    }

    #[test]
    fn scripts_find_the_promised_fields() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["op"], "put");
        assert_eq!(json["clients"], 4);
        assert_eq!(json["ops_per_s"], 50.0);
        assert_eq!(json["errors"], 2);
        // Three significant digits are kept: 5,000 us is a bucket of its own up to that.
        assert!((4_990..=5_010).contains(&json["p50_us"].as_u64().unwrap()), "{json}");
        assert!((9_890..=9_910).contains(&json["p99_us"].as_u64().unwrap()), "{json}");
        assert!(json.get("rounds_per_s").is_none());
    }

    #[test]
    fn a_round_is_one_request_of_every_client() {
        assert_eq!(report().with_rounds().rounds_per_s, Some(12.5));
    }

    #[test]
    fn the_table_has_a_figure_under_every_name() {
        let table = report().table();
        let (names, figures) = table.split_once('\n').unwrap();
        assert_eq!(names.find("P99").unwrap(), figures.find("9.9").unwrap());
        assert!(figures.ends_with('2'), "{figures}");
    }
}

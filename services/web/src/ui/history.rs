//! A node's figures of the last quarter of an hour, in memory, so that a page that is opened in trouble shows what was before.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Looks that are kept.
const LOOKS_MAX: usize = 180;

/// What is kept: the metric, a label and its value if only one series of it counts, and the page of the metric's alarm.
const FIGURES: [(&str, &str); 16] = [
    ("tripod_ready", ""),
    ("tripod_applied_index", ""),
    ("tripod_proposals", ""),
    ("tripod_flush_p99_seconds", ""),
    ("tripod_disk_free_bytes", ""),
    ("tripod_peer_silence_seconds", ""),
    ("tripod_waiting_calls", ""),
    ("tripod_held_calls", ""),
    ("tripod_turns_waiting", ""),
    ("tripod_client_connections", ""),
    ("tripod_client_bytes", ""),
    ("tripod_sessions", ""),
    ("tripod_tasks", "state=\"connected\""),
    ("tripod_barriers_open", ""),
    ("tripod_state_bytes", ""),
    ("tripod_scheduler_tasks", "state=\"queued\""),
];

/// See the module.
#[derive(Default)]
pub(crate) struct History {
    looks: Mutex<VecDeque<(u64, [Option<f64>; FIGURES.len()])>>,
}

impl History {
    /// Keeps what a page of metrics says at that time of day.
    pub(crate) fn keep(&self, at_ms: u64, page: &str) {
        let mut looks = self.looks.lock();
        looks.push_back((at_ms, FIGURES.map(|(name, label)| figure(page, name, label))));
        if looks.len() > LOOKS_MAX {
            looks.pop_front();
        }
    }

    /// The times, and for each figure its values then.
    pub(crate) fn to_json(&self) -> Value {
        let looks = self.looks.lock();
        let times: Vec<u64> = looks.iter().map(|(at, _)| *at).collect();
        let series = FIGURES.iter().enumerate().map(|(place, (name, label))| {
            let values: Vec<Option<f64>> = looks.iter().map(|(_, values)| values[place]).collect();
            json!({"name": name, "label": label, "help": help(name), "values": values})
        });
        json!({"every_ms": 5_000, "at_ms": times, "series": series.collect::<Vec<_>>()})
    }
}

fn help(name: &str) -> &'static str {
    crate::METRICS.iter().find(|metric| metric.name == name).map_or("", |metric| metric.help)
}

/// The greatest value of the metric's series, or of those with that label. `None`: there is none now.
fn figure(page: &str, name: &str, label: &str) -> Option<f64> {
    let series = page.lines().filter_map(|line| {
        let (series, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
        let labels = series.is_empty() || series.starts_with('{');
        (labels && series.contains(label)).then(|| value.parse::<f64>().ok()).flatten()
    });
    series.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_off_the_page_and_only_so_many_are_kept() {
        let page = "# HELP tripod_ready x\ntripod_ready 1\ntripod_ready_else 7\ntripod_tasks{state=\"connected\"} 5\n\
                    tripod_tasks{state=\"error\"} 9\ntripod_peer_silence_seconds{peer=\"2\"} 0.5\n\
                    tripod_peer_silence_seconds{peer=\"3\"} 2.5\n";
        assert_eq!(figure(page, "tripod_ready", ""), Some(1.0));
        assert_eq!(figure(page, "tripod_tasks", "state=\"connected\""), Some(5.0));
        assert_eq!(figure(page, "tripod_peer_silence_seconds", ""), Some(2.5));
        assert_eq!(figure(page, "tripod_sessions", ""), None);
        let history = History::default();
        for at in 0..400 {
            history.keep(at, page);
        }
        let shown = history.to_json();
        assert_eq!(shown["at_ms"].as_array().map(Vec::len), Some(LOOKS_MAX));
        assert_eq!(shown["series"][0]["values"][0], 1.0);
    }

    #[test]
    fn every_figure_is_a_metric_that_is_served() {
        for (name, _) in FIGURES {
            assert!(!help(name).is_empty(), "{name}");
        }
    }
}

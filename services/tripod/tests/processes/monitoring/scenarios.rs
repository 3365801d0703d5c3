//! Series with which each alert fires, and others with which it does not, as `promtool test rules` takes them.

use serde_json::{Map, Value, json};

use super::rules::Rule;

const SCENARIOS: &str = include_str!("alerts.txt");
/// When series are looked at, if nothing else is said.
const AT: &str = "66m";

/// Both for one alert.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) alert: String,
    /// With which it fires.
    labels: Map<String, Value>,
    at: String,
    fires: Vec<Value>,
    is_silent: Vec<Value>,
}

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for line in SCENARIOS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (sign, rest) = line.split_once(' ').expect("words");
        if let "+" | "-" = sign {
            let (series, values) = rest.split_once("} ").expect("series and values");
            let series = json!({"series": format!("{series}}}"), "values": values});
            let last = scenarios.last_mut().expect("an alert stands before its series");
            if sign == "+" { last.fires.push(series) } else { last.is_silent.push(series) }
        } else {
            let (labels, at) = rest.split_once('}').expect("labels");
            let at = at.trim().strip_prefix('@').unwrap_or(AT).to_owned();
            let (alert, labels) = (sign.to_owned(), labels_of(labels));
            scenarios.push(Scenario { alert, labels, at, fires: Vec::new(), is_silent: Vec::new() });
        }
    }
    scenarios
}

fn labels_of(text: &str) -> Map<String, Value> {
    let pairs = text.trim_start_matches('{').split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').into())).collect()
}

impl Scenario {
    /// A file of promtool's, of which `rules` is the file with the alert.
    pub(super) fn test(&self, alert: &Rule, rules: &str) -> Value {
        assert!(!self.fires.is_empty() && !self.is_silent.is_empty(), "{}", self.alert);
        let mut labels = self.labels.clone();
        labels.extend(alert.labels.clone());
        let told = json!({"exp_labels": labels, "exp_annotations": alert.annotations});
        let group = |series: &[Value], expected: &[Value]| {
            let look = json!({"eval_time": self.at, "alertname": self.alert, "exp_alerts": expected});
            json!({"interval": "1m", "input_series": series, "alert_rule_test": [look]})
        };
        let tests = [group(&self.fires, &[told]), group(&self.is_silent, &[])];
        json!({"rule_files": [rules], "evaluation_interval": "1m", "tests": tests})
    }
}

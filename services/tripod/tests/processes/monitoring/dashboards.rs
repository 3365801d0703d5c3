//! The dashboards, as far as they ask for something.

use serde_json::Value;

use super::file;

/// How expressions name the time over which rates are taken.
pub(super) const RATE_INTERVAL: &str = "$__rate_interval";

#[derive(Debug)]
pub(super) struct Dashboard {
    pub(super) title: String,
    pub(super) variables: Vec<String>,
    /// Of panels.
    pub(super) kinds: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

/// One expression of a panel.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) expr: String,
}

pub(super) fn dashboards() -> Vec<Dashboard> {
    let folder = std::fs::read_dir(file("deploy/grafana")).expect("it is there");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| dashboard(&std::fs::read_to_string(file).expect("a text"))).collect()
}

fn dashboard(text: &str) -> Dashboard {
    let whole: Value = serde_json::from_str(text).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let panels = list(&whole["panels"]);
    let exprs = |panel: &Value| {
        let title = text(&panel["title"]);
        let expr = |target: &Value| Panel { title: title.clone(), expr: text(&target["expr"]) };
        list(&panel["targets"]).iter().map(expr).collect::<Vec<_>>()
    };
    Dashboard {
        title: text(&whole["title"]),
        variables: list(&whole["templating"]["list"])
            .iter()
            .map(|variable| text(&variable["name"]))
            .collect(),
        kinds: panels.iter().map(|panel| text(&panel["type"])).collect(),
        panels: panels.iter().flat_map(exprs).collect(),
    }
}

impl Panel {
    /// The expression as the dashboard asks it for all clusters and nodes, with rates over this time.
    pub(super) fn of_all(&self, rates_over: &str) -> String {
        let expr = self.expr.replace(RATE_INTERVAL, rates_over);
        expr.replace("$instance", ".*").replace("$cluster", ".*")
    }
}

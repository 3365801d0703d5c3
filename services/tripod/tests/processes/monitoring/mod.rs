//! Alerts and dashboards of `deploy/`: whether they speak of metrics that there are, and whether a collector takes them.
//!
//! What needs one is ignored here; `cargo xtask test --only monitoring` brings Prometheus, and runs it.

mod collector;
mod dashboards;
mod promql;
mod real;
mod rules;
mod scenarios;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use self::dashboards::dashboards;
use self::rules::{Rule, alerts, recordings};
use self::scenarios::scenarios;

const METRICS: &str = include_str!("../../../../../docs/metrics.md");

/// A file of the project.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The metrics of docs/metrics.md with their alarms, which another test compares with the program's.
fn documented() -> Vec<(&'static str, &'static str)> {
    let rows = METRICS.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let row = |line: &'static str| Some((line.split_once('`')?.0, line.rsplit_once(" | ")?.1));
    rows.filter_map(row).collect()
}

/// Of those, which an expression asks for, by way of what is recorded, too.
fn asks_for(rule: &Rule) -> BTreeSet<String> {
    promql::metrics(&rule.expr).into_iter().collect()
}

#[test]
fn every_alarm_of_the_page_is_an_alert_and_no_alert_is_of_something_else() {
    let documented = documented();
    assert!(documented.len() > 80, "{documented:?}");
    let asked: BTreeSet<String> = alerts().iter().flat_map(asks_for).collect();
    for (metric, alarm) in &documented {
        if *alarm != "-" {
            assert!(asked.contains(*metric), "{metric} has the alarm `{alarm}`, and no alert asks for it");
        }
    }
    let alarms: BTreeSet<&str> =
        documented.iter().filter(|(_, alarm)| *alarm != "-").map(|(metric, _)| *metric).collect();
    for alert in alerts() {
        let is_of_an_alarm = asks_for(&alert).iter().any(|metric| alarms.contains(metric.as_str()));
        assert!(is_of_an_alarm || alert.expr.starts_with("up == 0"), "{}: {}", alert.name, alert.expr);
    }
}

#[test]
fn every_alert_names_a_page_that_there_is_and_what_to_do() {
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let Rule { name, labels, annotations, .. } = &alert;
        assert!(names.insert(name.clone()), "{name} twice");
        assert!(name.starts_with("Tripod"), "{name}");
        let page = labels["runbook"].as_str().expect("a page");
        assert!(file("docs").join(page).is_file(), "{name}: docs/{page}");
        assert!(
            ["critical", "warning", "info"].contains(&labels["severity"].as_str().expect("a word")),
            "{name}"
        );
        for annotation in ["summary", "next"] {
            assert!(
                annotations[annotation].as_str().is_some_and(|text| text.len() > 8),
                "{name}: {annotation}"
            );
        }
    }
}

#[test]
fn the_page_about_alerts_says_of_each_what_to_do() {
    const PAGE: &str = include_str!("../../../../../docs/operate/monitoring.md");
    let row = |line: &str| Some(line.strip_prefix("| `Tripod")?.split_once('`')?.0.to_owned());
    let listed: Vec<String> = PAGE.lines().filter_map(row).map(|name| format!("Tripod{name}")).collect();
    let alerts = alerts();
    assert_eq!(
        listed,
        alerts.iter().map(|alert| alert.name.clone()).collect::<Vec<_>>(),
        "in the same order"
    );
    for alert in alerts {
        let begin = format!("| `{}` | {} |", alert.name, alert.labels["severity"].as_str().expect("a word"));
        let line = PAGE.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("{begin}"));
        let next = alert.annotations["next"].as_str().expect("a text");
        assert!(line.contains(next), "{line}: {next}");
    }
}

#[test]
fn every_alert_has_series_with_which_it_is_tried() {
    let alerts: Vec<String> = alerts().into_iter().map(|alert| alert.name).collect();
    let tried: Vec<String> = scenarios().into_iter().map(|scenario| scenario.alert).collect();
    assert_eq!(alerts, tried, "in the same order");
}

#[test]
fn every_expression_asks_for_metrics_that_there_are() {
    let mut known: BTreeSet<String> = documented().iter().map(|(metric, _)| (*metric).to_owned()).collect();
    known.insert("up".to_owned());
    let recorded: BTreeSet<String> = recordings().into_iter().map(|rule| rule.name).collect();
    let panels = dashboards().into_iter().flat_map(|dashboard| dashboard.panels);
    let of_panels = panels.map(|panel| (panel.title, panel.expr));
    let of_rules = alerts().into_iter().chain(recordings()).map(|rule| (rule.name, rule.expr));
    for (name, expr) in of_rules.chain(of_panels) {
        let asked = promql::metrics(&expr);
        assert!(!asked.is_empty(), "{name}: {expr}");
        for metric in asked {
            assert!(known.contains(&metric), "{name} asks for {metric}, which no node has: {expr}");
        }
        for series in promql::recorded(&expr) {
            assert!(recorded.contains(&series), "{name} asks for {series}, which nobody records: {expr}");
        }
    }
}

#[test]
fn dashboards_need_no_plugin_and_can_be_narrowed_to_a_cluster_and_a_node() {
    const BUILT_IN: [&str; 4] = ["row", "stat", "table", "timeseries"];
    let dashboards = dashboards();
    assert_eq!(dashboards.len(), 3);
    for dashboard in dashboards {
        assert_eq!(dashboard.variables, ["datasource", "cluster", "instance"], "{}", dashboard.title);
        assert!(dashboard.kinds.iter().all(|kind| BUILT_IN.contains(&kind.as_str())), "{}", dashboard.title);
        for panel in dashboard.panels {
            let is_narrowed = panel.expr.contains("instance=~\"$instance\"")
                || panel.expr.contains("cluster=~\"$cluster\"");
            assert!(is_narrowed, "{}: {}", panel.title, panel.expr);
        }
    }
}

//! `tripod metrics`: what a node tells of itself to what collects figures.

use clap::Subcommand;
use serde::Serialize;
use tripod_web::{METRICS, Metric};

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format, Table};

const EXAMPLES: &str = "\
Examples:
  tripod metrics list            every metric, what it is and what it means
  tripod metrics list -o json    the same, to make dashboards of
  curl http://127.0.0.1:7900/metrics
                                 their values, on the http port of a node

docs/metrics.md says when to be alarmed. No metric is labelled by job, task, key or client.";

/// What to do with metrics.
#[derive(Debug, Subcommand)]
pub(crate) enum MetricsCommand {
    /// Show every metric of a node: name, type, unit, label and meaning; no node is asked
    #[command(after_help = EXAMPLES)]
    List,
}

/// One metric. Fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct MetricView {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// `1` for things, and for what is so or is not.
    unit: &'static str,
    label: Option<&'static str>,
    meaning: &'static str,
}

impl MetricView {
    fn of(metric: &Metric) -> Self {
        Self {
            name: metric.name,
            kind: metric.kind.name(),
            unit: metric.unit(),
            label: metric.label,
            meaning: metric.help,
        }
    }
}

pub(crate) fn run(command: &MetricsCommand, global: &Global) -> Result<(), Failure> {
    let MetricsCommand::List = command;
    let views = METRICS.iter().map(|metric| MetricView::of(metric));
    match global.format() {
        Format::Json => output::json(&views.collect::<Vec<_>>())?,
        Format::Table => {
            let mut table = Table::new(&["METRIC", "TYPE", "UNIT", "LABEL", "MEANING"]);
            for MetricView { name, kind, unit, label, meaning } in views {
                table.row([name, kind, unit, label.unwrap_or("-"), meaning].map(str::to_owned).into());
            }
            output::line(&table.render())?;
        }
    }
    Ok(())
}

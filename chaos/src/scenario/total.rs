//! `tripod-chaos totals`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::command::{Format, print};
use tripod_checkers::report::{Report, Totals};

const NAME: &str = "report.json";

const HELP: &str = "\
Examples:
  tripod-chaos totals /var/tmp/runs
  tripod-chaos totals monday tuesday/kills-7/report.json -o json

Void runs are counted as such, and nothing else of them. Exit status: 0 every run that counts has passed; 1 some
have not; 2 wrong usage; 3 there is no report, or one cannot be read.";

/// Flags of `totals`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct TotalsArgs {
    /// Reports, or directories that hold them at any depth
    #[arg(required = true, value_name = "DIR")]
    places: Vec<PathBuf>,

    /// What is written to standard output
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Adds up reports: runs by scenario and verdict, faults, operations, and what the checkers looked at.
///
/// # Errors
/// There is no report, or one cannot be read.
pub fn totals(args: &TotalsArgs) -> anyhow::Result<ExitCode> {
    let mut reports = Vec::new();
    for place in &args.places {
        find(place, &mut reports)?;
    }
    anyhow::ensure!(!reports.is_empty(), "there is no {NAME} in what was named");
    reports.sort();
    reports.dedup();
    let mut totals = Totals::default();
    for path in &reports {
        totals.add(&Report::load(path)?);
    }
    match args.output {
        Format::Text => print(&totals.markdown()),
        Format::Json => print(&(serde_json::to_string_pretty(&totals)? + "\n")),
    }
    let passed = totals.scenarios.values().all(|scenario| scenario.violated + scenario.undecided == 0);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every report at or below `place`. Nodes' data are no place for reports, and links are not followed.
fn find(place: &Path, reports: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if place.is_file() {
        reports.push(place.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && entry.file_name() != "cluster" {
            find(&entry.path(), reports)?;
        } else if kind.is_file() && entry.file_name() == NAME {
            reports.push(entry.path());
        }
    }
    Ok(())
}

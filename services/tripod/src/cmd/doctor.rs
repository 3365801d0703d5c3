//! `tripod doctor`: what is in the data directory of a stopped node.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use tripod_proto::code::Code;
use tripod_raft::doctor::{self, EntryRow, Report};

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view;

const EXAMPLES: &str = "\
Examples:
  tripod doctor /var/lib/tripod                      whose it is, vote, log, journal, snapshots, damage
  tripod doctor /var/lib/tripod -o json
  tripod doctor /var/lib/tripod --export 100..120    the entries 100 to 120, one JSON object a line

The node must be stopped. Not one byte of the directory is changed: log and journal are copied and the copy is
opened, as a node would open it; every checksum of log, journal and snapshots is checked. While it looks, no
node can start on the directory. Exit code 0: the node would start; 1: something is wrong, and every
problem is a line on standard error, as the node itself would say it.";

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The data directory of a node that is stopped
    dir: PathBuf,

    /// Print these entries of the log, both ends included, and nothing else
    #[arg(long, value_name = "FROM..TO")]
    export: Option<Range>,

    /// Where the copy of the log is made, which is removed again [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// Log indexes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    from: u64,
    to: u64,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ends = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let (from, to) = ends.ok_or_else(|| format!("`{text}` is not FROM..TO, two log indexes"))?;
        if from > to {
            return Err(format!("{from} comes after {to}"));
        }
        Ok(Self { from, to })
    }
}

pub(crate) async fn run(args: DoctorArgs, global: &Global) -> Result<(), Failure> {
    let format = global.format();
    let done = tokio::task::spawn_blocking(move || look(&args, format)).await;
    done.map_err(|error| Failure::new(Code::Defect, format!("the doctor panicked: {error}")))?
}

fn look(args: &DoctorArgs, format: Format) -> Result<(), Failure> {
    // sled panics at some damage, in threads of its own, too. What it says there is among the problems.
    std::panic::set_hook(Box::new(|_| {}));
    let scratch = args.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let mut printed = Ok(());
    let examined = doctor::examine(&args.dir, &scratch, &mut |line: EntryRow| {
        let wanted = args.export.is_some_and(|range| (range.from..=range.to).contains(&line.index));
        if wanted && printed.is_ok() {
            printed = output::json(&line);
        }
    });
    let report = examined.map_err(|error| Failure::told(Code::DoctorIo, error.to_string()))?;
    printed?;
    match (args.export, format) {
        (Some(range), _) => missing(range, &report)?,
        (None, Format::Json) => output::json(&report)?,
        (None, Format::Table) => output::line(&view::doctor::render(&report))?,
    }
    for problem in &report.problems {
        output::note(&format!("problem: {}", Failure::told(Code::DoctorFound, problem)));
    }
    match report.problems.len() {
        0 => Ok(()),
        found => {
            let problems = view::count(found, "problem");
            Err(Failure::new(Code::DoctorFound, format!("{problems} in {}, told above", report.data)))
        }
    }
}

/// Refuses to be silent about entries that were asked for and are not there.
fn missing(range: Range, report: &Report) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (report.log.first, report.log.last) else {
        return Err(Failure::new(Code::EntriesMissing, format!("the log in {} has no entries", report.data)));
    };
    if range.from >= first.index && range.to <= last.index {
        return Ok(());
    }
    Err(Failure::new(
        Code::EntriesMissing,
        format!(
            "the log holds the entries {} to {}; not all of {} to {} could be printed",
            first.index, last.index, range.from, range.to
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends_in_order() {
        assert_eq!("3..3".parse(), Ok(Range { from: 3, to: 3 }));
        assert_eq!("0..12".parse(), Ok(Range { from: 0, to: 12 }));
        for wrong in ["", "3", "..3", "3..", "a..b", "3-4"] {
            assert_eq!(wrong.parse::<Range>(), Err(format!("`{wrong}` is not FROM..TO, two log indexes")));
        }
        assert_eq!("4..3".parse::<Range>(), Err("4 comes after 3".to_owned()));
    }
}

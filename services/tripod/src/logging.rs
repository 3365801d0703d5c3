//! Logs go to standard error. `TRIPOD_LOG` says how much of what, in words that need no knowledge of our
//! crates.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The variable that says what is logged.
const VARIABLE: &str = "TRIPOD_LOG";
/// openraft warns of a dead peer some thirty times a second; `tripod status` says it once.
const SERVICE: &str = "info,openraft=error,sled=warn,h2=warn";
/// Commands that only ask a cluster say nothing but warnings unless told to.
const COMMAND: &str = "warn";
/// The parts of this program by the names that people know, each a crate `tripod_NAME`.
const PARTS: [&str; 10] =
    ["agent", "client", "coordination", "gateway", "load", "native", "raft", "state", "web", "xds"];

/// For `--help`; a test compares it with what is read.
pub(crate) const HELP: &str = "\
Logs: TRIPOD_LOG=LEVEL or PART=LEVEL,... on standard error, e.g. TRIPOD_LOG=raft=debug,gateway=trace,warn.
  levels: error, warn, info (services), debug, trace, off
  parts:  agent client coordination gateway load native raft state web xds, tripod (ports, signals), and
          libraries (openraft sled h2 tonic hyper), which stay as quiet as they are unless they are named";

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line, for what collects logs.
    Json,
}

/// Starts logging.
pub(crate) fn start(is_a_service: bool, format: LogFormat) {
    let base = if is_a_service { SERVICE } else { COMMAND };
    let asked = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, complaint) = match EnvFilter::try_new(filter(base, &asked)) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(base), Some(error)),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    if let Some(error) = complaint {
        tracing::warn!(%error, asked, "TRIPOD_LOG is not understood, and left aside; see `tripod --help`");
    }
}

/// What was asked for comes behind what holds otherwise, and so wins.
fn filter(base: &str, asked: &str) -> String {
    let asked = asked.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    asked.fold(base.to_owned(), |filter, directive| {
        let part = directive.split(['=', '[', ':']).next().unwrap_or_default();
        let prefix = if PARTS.contains(&part) { "tripod_" } else { "" };
        format!("{filter},{prefix}{directive}")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn parts_are_named_as_people_know_them_and_the_rest_stays_as_it_was() {
        assert_eq!(filter("warn", ""), "warn");
        assert_eq!(filter("warn", "raft=debug, off"), "warn,tripod_raft=debug,off");
        assert_eq!(
            filter("info", "raft::stages=trace,openraft=info"),
            "info,tripod_raft::stages=trace,openraft=info"
        );
        assert_eq!(filter("info", "tripod_raft=debug,debug"), "info,tripod_raft=debug,debug");
    }

    #[test]
    fn what_was_asked_for_wins() {
        let told = |asked: &str| EnvFilter::try_new(filter(SERVICE, asked)).expect("understood").to_string();
        let sorted = |text: &str| {
            let mut directives: Vec<_> = text.split(',').map(str::to_owned).collect();
            directives.sort();
            directives
        };
        assert_eq!(sorted(&told("")), sorted(SERVICE));
        assert_eq!(sorted(&told("debug,openraft=warn")), sorted("debug,openraft=warn,sled=warn,h2=warn"));
        assert_eq!(sorted(&told("raft=trace")), sorted(&format!("{SERVICE},tripod_raft=trace")));
        assert!(EnvFilter::try_new(filter(SERVICE, "raft=loud")).is_err());
    }

    #[test]
    fn the_form_is_asked_for_by_a_flag_of_every_command() {
        let form = |line: &[&str]| Cli::try_parse_from(line).expect("legal").global.log_format;
        assert_eq!(form(&["tripod", "status"]), LogFormat::Text);
        assert_eq!(form(&["tripod", "status", "--log-format", "json"]), LogFormat::Json);
    }

    #[test]
    fn the_help_names_every_part() {
        let parts =
            HELP.lines().find_map(|line| line.trim().strip_prefix("parts:")).expect("a line of parts");
        let named: Vec<&str> = parts.split(',').next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(named, PARTS);
    }
}

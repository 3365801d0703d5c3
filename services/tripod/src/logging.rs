//! Logs go to standard error. `TRIPOD_LOG` says how much of what, in words that need no knowledge of our
//! crates.

mod audited;
mod coded;

use std::io;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing_subscriber::fmt::{MakeWriter, format};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};
use tripod_proto::code::Code;

pub(crate) use audited::audit;
pub(crate) use coded::number;
use coded::{Coded, Ending};

use crate::output;

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
    subscriber(filter, format, io::stderr, output::wants_colours(&io::stderr())).init();
    if let Some(error) = complaint {
        let code = number(Code::ValueIllegal);
        tracing::warn!(code, %error, asked, "TRIPOD_LOG is not understood, and left aside; see `tripod --help`");
    }
}

/// What writes lines of this format, in colours if they are for a terminal, and those of the audit log, whatever is logged.
fn subscriber<W>(
    filter: EnvFilter,
    format: LogFormat,
    writer: W,
    colours: bool,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer::<Registry>().with_writer(writer).with_ansi(colours);
    // A line that cannot be written is lost. To say so where nobody reads any more would end this process with a panic, such
    // as an agent whose launcher was killed.
    let lines = lines.log_internal_errors(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => {
            let format = format::format().with_ansi(colours);
            Box::new(lines.event_format(Coded { format, ending: Ending::Text }).with_filter(filter))
        }
        LogFormat::Json => {
            let format = format::format().json().flatten_event(true);
            let lines = lines.json().event_format(Coded { format, ending: Ending::Json });
            Box::new(lines.with_filter(filter))
        }
    };
    Box::new(tracing_subscriber::registry().with(lines).with(audited::layer()))
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
mod tests;

//! `tripod-chaos export`: histories for the checkers of others.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use tripod_checkers::export::{self, Exported};
use tripod_checkers::history::{History, Key};

const HELP: &str = "\
Examples:
  tripod-chaos export run/history.jsonl --format porcupine --out registers.jsonl
  tripod-chaos export run/history.jsonl --format elle --out lists.edn
  tripod-chaos export run/history.jsonl --format jepsen-edn --key register/3 --out register-3.edn
  tripod-chaos export run/history.jsonl --format jepsen-edn --of counters --key counter/stamped/0 --out counter.edn

docs/histories.md says what each line means, and which model a checker needs. Exit status: 0 the file is written; 2
wrong usage; 3 the history cannot be read, has no such calls, or the format cannot say them.";

/// Flags of `export`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ExportArgs {
    /// `history.jsonl` of a run
    file: PathBuf,

    /// For which checker
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Format,

    /// What was called upon [default: lists for elle, registers for the others]
    #[arg(long, value_name = "OBJECTS", value_enum)]
    of: Option<Objects>,

    /// Only the calls on this one; Knossos and Jepsen's counters need one
    #[arg(long, value_name = "NAME")]
    key: Option<String>,

    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Operations as lines of JSON: registers, lists, counters
    Porcupine,
    /// Transactions as EDN: lists (list-append), registers (rw-register)
    Elle,
    /// Events as EDN: registers for Knossos (cas-register), counters for Jepsen (counter)
    JepsenEdn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Objects {
    Registers,
    Lists,
    Counters,
}

impl From<Format> for export::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Porcupine => Self::Porcupine,
            Format::Elle => Self::Elle,
            Format::JepsenEdn => Self::JepsenEdn,
        }
    }
}

impl From<Objects> for export::Objects {
    fn from(objects: Objects) -> Self {
        match objects {
            Objects::Registers => Self::Registers,
            Objects::Lists => Self::Lists,
            Objects::Counters => Self::Counters,
        }
    }
}

/// Writes a history in another form, and says on standard error what is not in it.
///
/// # Errors
/// The history cannot be read, or holds nothing that the format can say; or the file cannot be written.
pub fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let history = History::load(&args.file)?;
    let format = export::Format::from(args.format);
    let objects = args.of.map_or(format.usual(), export::Objects::from);
    let key = args.key.as_deref().map(Key::from);
    let Exported { text, operations, notes } = export::export(&history, format, objects, key.as_ref())?;
    std::fs::write(&args.out, text).with_context(|| format!("cannot write {}", args.out.display()))?;
    eprintln!("{operations} calls on {} are in {}", objects.name(), args.out.display());
    for (why, calls) in notes {
        eprintln!("  {calls} left out or said more weakly: {why}");
    }
    if let Some(reason) = &history.void {
        eprintln!("  the run proves nothing: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

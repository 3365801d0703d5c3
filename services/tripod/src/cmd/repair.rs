//! `tripod repair`: what mends the data directory of a stopped node, one thing at a time.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tripod_proto::code::Code;
use tripod_raft::repair::{self, Error};

use crate::cli::Global;
use crate::confirm::Consent;
use crate::failure::Failure;
use crate::output::{self, Format};

const EXAMPLES: &str = "\
Examples:
  tripod doctor /var/lib/tripod                 what is wrong, and which of these repairs it
  tripod repair vote /var/lib/tripod --yes
  tripod repair skip /var/lib/tripod --index 4711 --checksum 0f8d3a6b5c2e1d90 --yes

The node must be stopped. A repair that is not needed is refused, and nothing is changed. Neither of them is part of
any other way back: a lost disk, a lost quorum and a damaged log have runbooks of their own.";

const SKIP_HELP: &str = "\
A node that cannot read a committed entry stops at it (T3114), because passing over it alone would make its state differ
from that of the others. First start the newest build that any node of the cluster has run: what one build has written,
that build can read. Only if no build can, every node has stopped at the same entry. Then run this command on each of
them, with the index and the checksum that `tripod doctor` prints, before any of them is started. What the entry was to
do is not done, on any node; whoever proposed it was told nothing, or that the outcome is unknown.";

/// Repairs of the data directory of a stopped node.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RepairCommand {
    /// Replace a vote in a term that no election of the cluster can have reached (T3117)
    Vote(VoteArgs),
    /// Have the node pass over a committed entry that no build can read (T3114)
    #[command(after_help = SKIP_HELP)]
    Skip(SkipArgs),
}

/// Flags of `repair vote`.
#[derive(Debug, Args)]
pub(crate) struct VoteArgs {
    /// The data directory of a node that is stopped
    dir: PathBuf,

    #[command(flatten)]
    consent: Consent,
}

/// Flags of `repair skip`.
#[derive(Debug, Args)]
pub(crate) struct SkipArgs {
    /// The data directory of a node that is stopped
    dir: PathBuf,

    /// The entry, as `tripod doctor` names it
    #[arg(long)]
    index: u64,

    /// What it holds, as `tripod doctor` prints it: 16 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = checksum)]
    checksum: u64,

    #[command(flatten)]
    consent: Consent,
}

/// What was repaired. The names are a schema that scripts rely on.
#[derive(Debug, Serialize)]
struct Done {
    data: String,
    repaired: &'static str,
    #[serde(flatten)]
    how: How,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum How {
    Vote { from_term: u64, to_term: u64, last_term: u64 },
    Skip { index: u64, term: u64, checksum: String },
}

pub(crate) async fn run(command: RepairCommand, global: &Global) -> Result<(), Failure> {
    let (dir, consent, what) = match &command {
        RepairCommand::Vote(VoteArgs { dir, consent }) => {
            (dir.clone(), *consent, format!("replace the vote in {}", dir.display()))
        }
        RepairCommand::Skip(SkipArgs { dir, consent, index, .. }) => (
            dir.clone(),
            *consent,
            format!("have the node of {} pass over entry {index} for ever", dir.display()),
        ),
    };
    consent.to(what).await?;
    let format = global.format();
    let work = tokio::task::spawn_blocking(move || {
        // sled panics at some damage, in threads of its own, too.
        std::panic::set_hook(Box::new(|_| {}));
        match command {
            RepairCommand::Vote(args) => vote(&args.dir),
            RepairCommand::Skip(args) => skip(&args),
        }
    });
    let (how, line) =
        work.await.map_err(|error| Failure::new(Code::Defect, format!("repairing panicked: {error}")))??;
    let repaired = if matches!(how, How::Vote { .. }) { "vote" } else { "skip" };
    match format {
        Format::Json => output::json(&Done { data: dir.display().to_string(), repaired, how })?,
        Format::Table => output::line(&line)?,
    }
    Ok(())
}

fn vote(dir: &Path) -> Result<(How, String), Failure> {
    let repair::RepairedVote { from_term, to_term, last_term } =
        repair::vote(dir).map_err(|error| failure(&error))?;
    let line = format!(
        "the vote of term {from_term} is replaced by one of term {to_term}; the log ends in term {last_term}. Repair all \
         nodes that stop with T3117, then start them"
    );
    Ok((How::Vote { from_term, to_term, last_term }, line))
}

fn skip(args: &SkipArgs) -> Result<(How, String), Failure> {
    let done = repair::pass_over(&args.dir, args.index, args.checksum).map_err(|error| failure(&error))?;
    let repair::PassedOver { index, term, checksum } = done;
    let line = format!(
        "the node passes over entry {index} of term {term} from now on. Do the same on every other node, then start them"
    );
    Ok((How::Skip { index, term, checksum: format!("{checksum:016x}") }, line))
}

fn failure(error: &Error) -> Failure {
    Failure::told(Code::RepairRefused, error.to_string())
}

fn checksum(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| format!("`{text}` is no checksum: 16 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_hexadecimal() {
        assert_eq!(checksum("00000000000000ff"), Ok(255));
        for wrong in ["", "xyz", "1ffffffffffffffff"] {
            assert!(checksum(wrong).unwrap_err().contains("16 hexadecimal digits"));
        }
    }
}

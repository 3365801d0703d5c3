//! `tripod snapshot`: backups of the whole state.

mod progress;
mod restore;
mod save;
mod target;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tripod_proto::code::Code;
use tripod_raft::backup;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::backup::ContentsView;

use progress::Ticker;
pub(crate) use target::Target;

const EXAMPLES: &str = "\
Examples:
  tripod snapshot save backup.snap                 while the cluster serves, through any node
  tripod snapshot verify backup.snap               anywhere, without a cluster
  tripod snapshot restore backup.snap --name prod-2 --node 1 --data /var/lib/tripod-2 \\
      --members 1=10.0.0.1:7800,2=10.0.0.2:7800,3=10.0.0.3:7800
                                                   on each node of a new cluster, with its own --node";

const VERIFY_EXAMPLES: &str = "\
Example:
  tripod snapshot verify backup.snap

Reads every byte: all checksums, the hash of the whole file, every record, and the digest of the state that
they make. It holds the state in memory for that. Exit code 0 means that the file can be restored with this
version of the program.";

/// What to do with snapshots.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SnapshotCommand {
    /// Save the state of a running cluster to a file
    Save(save::SaveArgs),
    /// Check a file: hash, versions, every record
    Verify(VerifyArgs),
    /// Make the data directory of one node of a new cluster from a file
    Restore(restore::RestoreArgs),
}

/// Flags of `snapshot verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// A file that `tripod snapshot save` wrote
    file: PathBuf,
}

pub(crate) async fn run(command: SnapshotCommand, global: &Global) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Save(args) => save::run(&args, global).await,
        SnapshotCommand::Verify(args) => verify(args, global.format()).await,
        SnapshotCommand::Restore(args) => restore::run(args, global.format()).await,
    }
}

async fn verify(args: VerifyArgs, format: Format) -> Result<(), Failure> {
    let file = args.file.clone();
    let _ticker = Ticker::start("snapshot verify", &file);
    let contents = aside(move || backup::verify(&file)).await?;
    print("whole", &ContentsView::of(&args.file, &contents), format)
}

/// Says what is in a file.
fn print(verdict: &str, view: &ContentsView, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&view.render(verdict))?,
    }
    Ok(())
}

/// Does what blocks, and turns its failure into a line.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, backup::Error> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    let done =
        done.map_err(|error| Failure::new(Code::Defect, format!("reading the snapshot panicked: {error}")))?;
    done.map_err(|error| Failure::told(Code::BackupIo, error.to_string()))
}

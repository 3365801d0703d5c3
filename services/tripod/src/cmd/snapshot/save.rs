//! `tripod snapshot save`: never leaves a half file under the name that was asked for.

use std::path::PathBuf;

use clap::Args;
use tripod_client::Download;
use tripod_proto::code::Code;
use tripod_raft::backup::{Contents, Pace};

use super::progress::Progress;
use crate::cli::Global;
use crate::failure::Failure;
use crate::sealed::{self, Recipient, Sink};
use crate::view::backup::ContentsView;

const EXAMPLES: &str = "\
Examples:
  tripod snapshot save backup.snap
  tripod snapshot save backup.snap --endpoints 10.0.0.2:7700        from this node
  tripod snapshot save backup.snap --local -o json                  also when there is no leader
  tripod snapshot save backup.snap --max-mib-per-s 0                as fast as it goes, when nobody is served
  tripod snapshot save backup.snap.age --recipient age1...          sealed; `tripod snapshot verify` needs the identity

The node that answers sends its state as of one log index, which is printed, and serves on meanwhile. The
file holds every write that was acknowledged before the command began (not so with --local). It is written
under another name beside FILE, verified, and only then given its name; this user alone may read it.";

/// Flags of `snapshot save`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SaveArgs {
    /// The file to write
    file: PathBuf,

    /// Take what the first node that answers has; works without a leader, and may lack the last writes
    #[arg(long)]
    local: bool,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Seal the file for this recipient of age (X25519), whose identity alone opens it; may be given several times,
    /// and then each of them does
    #[arg(long = "recipient", value_name = "RECIPIENT,...", value_delimiter = ',')]
    recipients: Vec<Recipient>,

    /// MiB a second that are taken from the node, and read again afterwards, at most: so those whom it serves
    /// hardly notice; 0 for no limit
    #[arg(long, value_name = "MIB", default_value_t = Pace::DEFAULT_MIB_PER_S)]
    max_mib_per_s: u32,
}

pub(super) async fn run(args: &SaveArgs, global: &Global) -> Result<(), Failure> {
    sealed::check_number("--recipient", &args.recipients)?;
    let mut sink = Sink::open(&args.file, args.force, &args.recipients)?;
    let mut download = global.client()?.save_snapshot(args.local).await?;
    let mut progress = Progress::new("snapshot save", download.begin().key_bytes);
    let pace = Pace::mib_per_s(args.max_mib_per_s);
    let mut walk = pace.walk();
    while let Some(bytes) = download.next().await? {
        sink.write(&bytes)?;
        progress.add(bytes.len() as u64);
        // The node writes no faster than this is read.
        tokio::time::sleep(walk.step(bytes.len())).await;
    }
    let written = sink.finish()?;
    let (contents, written) =
        super::aside(move || written.verify(pace).map(|found| (found, written))).await?;
    check(&download, &contents)?;
    let outer = written.outer();
    written.put_in_place()?;
    super::print("saved", &ContentsView::of(&args.file, &contents).sealed(outer), global.format())
}

/// The file must be of what the node said.
fn check(download: &Download, contents: &Contents) -> Result<(), Failure> {
    let begin = download.begin();
    if contents.cluster_id == begin.cluster_id && contents.index.0 == begin.index {
        return Ok(());
    }
    Err(Failure::new(
        Code::BackupDamaged,
        format!(
            "node {} announced cluster {} at index {}, but sent {} at {}; nothing was saved, try \
             another node with --endpoints",
            begin.node_id, begin.cluster_id, begin.index, contents.cluster_id, contents.index
        ),
    ))
}

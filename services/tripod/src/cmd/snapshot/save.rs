//! `tripod snapshot save`: never leaves a half file under the name that was asked for.

use std::path::PathBuf;

use clap::Args;
use tripod_client::Download;
use tripod_proto::code::Code;
use tripod_raft::backup::{self, Contents, Pace};

use super::progress::Progress;
use super::target::Target;
use crate::cli::Global;
use crate::failure::Failure;
use crate::view::backup::ContentsView;

const EXAMPLES: &str = "\
Examples:
  tripod snapshot save backup.snap
  tripod snapshot save backup.snap --endpoints 10.0.0.2:7700        from this node
  tripod snapshot save backup.snap --local -o json                  also when there is no leader
  tripod snapshot save backup.snap --max-mib-per-s 0                as fast as it goes, when nobody is served

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

    /// MiB a second that are taken from the node, and read again afterwards, at most: so those whom it serves
    /// hardly notice; 0 for no limit
    #[arg(long, value_name = "MIB", default_value_t = Pace::DEFAULT_MIB_PER_S)]
    max_mib_per_s: u32,
}

pub(super) async fn run(args: &SaveArgs, global: &Global) -> Result<(), Failure> {
    let mut target = Target::open(&args.file, args.force)?;
    let mut download = global.client()?.save_snapshot(args.local).await?;
    let mut progress = Progress::new("snapshot save", download.begin().key_bytes);
    let pace = Pace::mib_per_s(args.max_mib_per_s);
    let mut walk = pace.walk();
    while let Some(bytes) = download.next().await? {
        target.write(&bytes)?;
        progress.add(bytes.len() as u64);
        // The node writes no faster than this is read.
        tokio::time::sleep(walk.step(bytes.len())).await;
    }
    let target = target.finish()?;
    let path = target.path();
    let contents = super::aside(move || backup::verify_at(&path, pace)).await?;
    check(&download, &contents)?;
    target.put_in_place()?;
    super::print("saved", &ContentsView::of(&args.file, &contents), global.format())
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

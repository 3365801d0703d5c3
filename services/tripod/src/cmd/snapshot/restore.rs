//! `tripod snapshot restore`: the data directory of one node of a new cluster.

use std::path::PathBuf;

use clap::Args;
use tripod_raft::backup::{self, Plan, Restored};
use tripod_state::ids::NodeId;
use tripod_state::restore::Jobs;

use super::progress::Ticker;
use crate::args::initial::InitialMembers;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::sealed::{self, Identities};
use crate::view::backup::RestoredView;

const EXAMPLES: &str = "\
Example, one node (three nodes: the same on each with its own --node, and the same file):
  tripod snapshot restore backup.snap --name prod-2 --node 1 --members 1=10.0.0.1:7800 \\
      --data /var/lib/tripod-2

It prints the id of the new cluster, and how to start the node. The id is NAME and a hash of the file's
content, the members and --keep-jobs: nodes that were restored from anything else refuse each other. Use a
name once: a node that lost its disk later comes back with an empty --data, not by restoring again.

What is in the new cluster: every key of every job as of the saved index, with its version; jobs with their
names, sizes and ports. Log indexes begin at a multiple of 10^12, so that no id of the old cluster is given
again. The old cluster is not touched. Its nodes and the new ones refuse each other; stop it, or keep its
clients away from the new one's addresses.

Jobs end, unless --keep-jobs is given: their tasks, barriers and sessions are gone and their service has
another incarnation, so clients of the old cluster that find the new one are refused, end, and begin anew.
With --keep-jobs they go on without noticing: against a state that may be older than what they have seen.
Keys that they wrote after the snapshot are gone, barriers that they passed may be open again, and an
increment or a lock may be given twice. Keep jobs only if nothing wrote to the old cluster since.";

/// Flags of `snapshot restore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// A file that `tripod snapshot save` wrote
    file: PathBuf,

    /// A file of identities of age that opens FILE, if that is sealed
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,

    /// The data directory to make; it must not exist, or be empty
    #[arg(long, visible_alias = "data-dir", value_name = "DIR")]
    data: PathBuf,

    /// The node whose directory this is, one of those in --members
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    node: u64,

    /// The voters of the new cluster with their peer addresses, the same list on every node
    #[arg(long, visible_alias = "initial", value_name = "ID=HOST:PORT,...")]
    members: InitialMembers,

    /// A word for the new cluster that was never used before, the same on every node
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Let jobs and their clients go on as if nothing had happened; read below what that risks
    #[arg(long)]
    keep_jobs: bool,
}

pub(super) async fn run(args: RestoreArgs, format: Format) -> Result<(), Failure> {
    let identities = args.identity.as_deref().map(Identities::read).transpose()?;
    let plan = Plan {
        file: args.file,
        node: NodeId(args.node),
        data: args.data,
        members: args.members.as_slice().to_vec(),
        name: args.name,
        jobs: if args.keep_jobs { Jobs::Kept } else { Jobs::Ended },
    };
    let carried_out = plan.clone();
    let _ticker = Ticker::start("snapshot restore", &plan.file);
    let restored = super::aside(move || restore(&carried_out, identities.as_ref())).await?;
    let view = RestoredView::of(&plan, &restored, &args.members);
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

/// Opens the file, if it is sealed. Blocks.
fn restore(plan: &Plan, identities: Option<&Identities>) -> Result<Restored, Failure> {
    if !sealed::is_sealed(&plan.file) {
        return backup::restore(plan).map_err(super::refused);
    }
    let Some(identities) = identities else {
        return Err(super::needs_identity(&plan.file, "tripod snapshot restore"));
    };
    let content = sealed::open(&plan.file, identities)?;
    backup::restore_content(plan, content).map_err(super::refused)
}

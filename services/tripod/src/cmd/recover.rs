//! `tripod recover`: a backup of what the best survivor holds, when the quorum is lost for good.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tripod_client::{Client, Config};
use tripod_proto::code::Code;
use tripod_raft::backup;
use tripod_raft::doctor::{self, Error, Report, Salvaged};

use crate::cli::Global;
use crate::cmd::snapshot::Target;
use crate::confirm::Consent;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::recovery::{Answering, Compared, RecoveryView};

/// How long a node may take to say that it is there.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Example, with the nodes 1 and 2 of three, while node 3 is gone for good:
  tripod recover /var/lib/tripod --compare /mnt/node-2/tripod --save recovered.snap
  tripod snapshot restore recovered.snap --name prod-2 --node 1 --data /var/lib/tripod-2 \\
      --members 1=10.0.0.1:7800 --keep-jobs

Use it when a majority of the voters is lost for good, and with it the cluster. (When the others come back,
start them: nothing is lost. When one of three is lost, the other two go on.) The survivors are stopped first.
DIR is the data directory of one of them, and --compare names those of the others, or copies of them. Of all
survivors, DIR must be the one whose log is furthest. The cluster's nodes are asked too, at the addresses they
announced and at --endpoints: while a majority of them answers, there is nothing to recover.

What is saved is everything that DIR holds, also what it did not know as committed. Nothing that was
acknowledged is missing when enough survivors were compared, which is printed: of three voters two, of five
three. With fewer, acknowledged writes may be lost that only the lost nodes had. No directory is changed.";

/// Flags of `recover`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecoverArgs {
    /// The data directory of the survivor whose log is furthest, which is stopped
    dir: PathBuf,

    /// The backup to write
    #[arg(long, value_name = "FILE")]
    save: PathBuf,

    /// The data directory of another survivor, stopped or copied; may be given several times
    #[arg(long, value_name = "DIR")]
    compare: Vec<PathBuf>,

    /// Save DIR although another survivor has entries that it lacks
    #[arg(long)]
    accept_loss: bool,

    #[command(flatten)]
    consent: Consent,

    /// Where copies of the logs are made, which are removed again [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

pub(crate) async fn run(args: RecoverArgs, global: &Global) -> Result<(), Failure> {
    if args.accept_loss {
        let what = format!("give up acknowledged writes that {} lacks", args.dir.display());
        args.consent.to(what).await?;
    }
    let scratch = args.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let mut target = Target::open(&args.save, false)?;
    let (dir, others) = (args.dir.clone(), args.compare.clone());
    let work = tokio::task::spawn_blocking(move || {
        // sled panics at some damage, in threads of its own, too.
        std::panic::set_hook(Box::new(|_| {}));
        let salvaged = doctor::salvage(&dir, &scratch, target.writer()).map_err(|error| failure(&error))?;
        let compared = others.iter().map(|other| compare(other, &scratch)).collect::<Result<Vec<_>, _>>()?;
        let target = target.finish()?;
        backup::verify(&target.path())
            .map_err(|error| Failure::told(Code::BackupDamaged, error.to_string()))?;
        Ok::<_, Failure>((salvaged, compared, target))
    });
    let work =
        work.await.map_err(|error| Failure::new(Code::Defect, format!("recovering panicked: {error}")))?;
    let (salvaged, compared, target) = work?;
    let compared = judge(&salvaged, &compared, &args)?;
    let answering = ask(&salvaged, global).await?;
    check_answers(&salvaged, &answering, args.accept_loss)?;
    target.put_in_place()?;
    let view = RecoveryView::of(&args.save, &salvaged, compared, answering);
    match global.format() {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

fn compare(data: &Path, scratch: &Path) -> Result<Report, Failure> {
    doctor::examine(data, scratch, &mut |_| {}).map_err(|error| failure(&error))
}

fn failure(error: &Error) -> Failure {
    Failure::told(Code::DoctorIo, error.to_string())
}

/// What the other directories say, by node.
fn judge(salvaged: &Salvaged, others: &[Report], args: &RecoverArgs) -> Result<Vec<Compared>, Failure> {
    let own = node_of(&salvaged.report);
    let mut found: BTreeMap<u64, Compared> = BTreeMap::new();
    for report in others {
        let of_cluster = report.log_identity.as_ref().and_then(|identity| identity["cluster_id"].as_str());
        let (Some(cluster), Some(node)) = (of_cluster, node_of(report)) else {
            return Err(Failure::new(
                Code::RecoverDamaged,
                format!(
                    "{} does not say whose it is; leave it out, and see `tripod doctor {}`",
                    report.data, report.data
                ),
            ));
        };
        if cluster != salvaged.cluster_id || own == Some(node) || found.contains_key(&node) {
            return Err(Failure::new(
                Code::RecoverStranger,
                format!(
                    "--compare {}: it is of node {node} of cluster {cluster}; name the directories of different nodes of \
                     cluster {}",
                    report.data, salvaged.cluster_id
                ),
            ));
        }
        let last = report.last();
        if last > Some(salvaged.last) && !args.accept_loss {
            return Err(Failure::new(
                Code::RecoverBehind,
                format!(
                    "{} is further than {}: recover from it instead and compare this one with it \
                     (--accept-loss gives up what only it has)",
                    report.data, salvaged.report.data
                ),
            ));
        }
        let compared = Compared::of(node, report, last);
        found.insert(node, compared);
    }
    Ok(found.into_values().collect())
}

fn node_of(report: &Report) -> Option<u64> {
    report.log_identity.as_ref()?["node"].as_u64()
}

/// Asks the nodes of the cluster whether they are there.
async fn ask(salvaged: &Salvaged, global: &Global) -> Result<Vec<Answering>, Failure> {
    let announced = salvaged.clients.iter().map(|(_, address)| address);
    let endpoints: BTreeSet<String> = announced.chain(&global.endpoints).cloned().collect();
    let client = Client::new(&Config::new(endpoints.into_iter().collect()))?;
    let mut found: BTreeMap<u64, Answering> = BTreeMap::new();
    for answer in client.status(ASK_TIMEOUT, false).await {
        if let Ok(status) = answer.status
            && status.cluster_id == salvaged.cluster_id
        {
            let (node, last_index) = (status.node_id, status.last_log_index);
            found.insert(node, Answering { node, endpoint: answer.endpoint, last_index });
        }
    }
    Ok(found.into_values().collect())
}

fn check_answers(salvaged: &Salvaged, answering: &[Answering], accept_loss: bool) -> Result<(), Failure> {
    let is_voter = |answer: &&Answering| salvaged.voters.iter().any(|(node, _)| *node == answer.node);
    let voters = answering.iter().filter(is_voter).count();
    if voters > salvaged.voters.len() / 2 {
        return Err(Failure::new(
            Code::RecoverQuorum,
            format!(
                "{voters} of {} voters of cluster {} answer, which is a majority: nothing is to be \
                 recovered. See `tripod status`, and start this node again",
                salvaged.voters.len(),
                salvaged.cluster_id
            ),
        ));
    }
    let further = answering.iter().find(|answer| answer.last_index > salvaged.last.index);
    match further {
        Some(answer) if !accept_loss => Err(Failure::new(
            Code::RecoverBehind,
            format!(
                "node {} at {} runs and has entries up to {}, this directory up to {}: stop it and \
                 recover from its directory (--accept-loss gives up what only it has)",
                answer.node, answer.endpoint, answer.last_index, salvaged.last.index
            ),
        )),
        _ => Ok(()),
    }
}

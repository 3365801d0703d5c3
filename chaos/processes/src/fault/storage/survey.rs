//! What one node makes of damage to its files, many times over.
//!
//! Every trial begins with the same data, as they were when the whole cluster stopped at one moment, so no
//! trial sees a node that went back in time. The damaged node is started alone: nobody can give it back what
//! it lost, so a log that became shorter in silence shows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_load::connect;
use tripod_proto::code::Code;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::{StatusRequest, StatusResponse};
use tripod_wait::scaled;

use super::harm::Harm;
use super::structure::is_sealed;
use crate::cluster::Cluster;

/// How long a node may take to serve its status, or to end, on a machine of usual speed.
const START_PATIENCE: Duration = Duration::from_secs(40);
/// How long a node that serves may take to have all that it had: it answers before it has read its log, so
/// this is what separates a node that is slow from one that lost something.
const APPLY_PATIENCE: Duration = Duration::from_secs(30);
/// How long one question may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two looks at a node.
const LOOK_PAUSE: Duration = Duration::from_millis(25);

/// What a damaged node did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It serves, and has all that it had.
    Harmless,
    /// It ended with a code, a text that names the file's place, and what to do.
    Detected { code: String },
    /// It ended, but the text lacks the code, the place or the way back.
    Mute { code: Option<String>, text: String },
    /// It serves less than it had, or something else.
    Silent { what: String },
    /// It neither serves nor ends.
    Hung,
}

impl Outcome {
    /// A name for tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Harmless => "harmless",
            Self::Detected { .. } => "detected",
            Self::Mute { .. } => "mute",
            Self::Silent { .. } => "silent",
            Self::Hung => "hung",
        }
    }
}

/// One damage and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub harm: Harm,
    pub outcome: Outcome,
}

/// What the node knows when nothing is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Baseline {
    term: u64,
    last_log: u64,
    applied: u64,
    digest: u64,
}

/// A stopped cluster, one of whose nodes is damaged again and again.
pub struct Survey<'a> {
    cluster: &'a mut Cluster,
    node: u64,
    frozen: tempfile::TempDir,
    baseline: Baseline,
}

impl<'a> Survey<'a> {
    /// Kills all nodes, keeps a copy of the data of `node`, and sees what it knows alone. Nobody may write any more.
    ///
    /// # Errors
    /// The undamaged node does not start, or its log does not come to rest.
    pub async fn begin(cluster: &'a mut Cluster, node: u64) -> anyhow::Result<Self> {
        let frozen = tempfile::Builder::new().prefix("tripod-frozen-").tempdir()?;
        let data = data_of(cluster, node);
        // What damage there would be must be known to be damage: a last frame without a seal behind it may be a write
        // that was never finished, and a node is right to cut that off.
        let begin = Instant::now();
        loop {
            if is_sealed(&data.join("journal"))? {
                cluster.kill_all()?;
                if is_sealed(&data.join("journal"))? {
                    break;
                }
                for stopped in cluster.ids().collect::<Vec<_>>() {
                    cluster.restart(stopped)?;
                }
                cluster.wait_until_ready().await?;
            }
            anyhow::ensure!(begin.elapsed() < scaled(START_PATIENCE), "node {node} has no rest from writing");
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        copy_tree(&data, frozen.path())?;
        cluster.restart(node)?;
        let status = settled(cluster, node, None).await;
        cluster.kill(node)?;
        let status = status?.context("the undamaged node does not start")?;
        let baseline = Baseline::of(&status);
        anyhow::ensure!(baseline.last_log > 0, "the node's log is empty, there is nothing to lose");
        Ok(Self { cluster, node, frozen, baseline })
    }

    /// The undamaged data, to draw damage from.
    #[must_use]
    pub fn frozen(&self) -> &Path {
        self.frozen.path()
    }

    /// The data of another node of the cluster, which stays as it stopped.
    #[must_use]
    pub fn neighbour(&self) -> PathBuf {
        data_of(self.cluster, if self.node == 1 { 2 } else { 1 })
    }

    /// Damages a fresh copy, starts the node and watches it.
    ///
    /// # Errors
    /// The trial could not be made.
    pub async fn trial(&mut self, harm: Harm) -> anyhow::Result<Trial> {
        let data = data_of(self.cluster, self.node);
        std::fs::remove_dir_all(&data).with_context(|| format!("cannot empty {}", data.display()))?;
        copy_tree(self.frozen.path(), &data)?;
        harm.apply(&data)?;
        let log = self.cluster.root().join(format!("node-{}.log", self.node));
        // The node's words of this trial alone.
        std::fs::write(&log, "")?;
        self.cluster.restart(self.node)?;
        let status = settled(self.cluster, self.node, Some(self.baseline)).await;
        let words = std::fs::read_to_string(&log).unwrap_or_default();
        let outcome = match status {
            Err(_) => Outcome::Hung,
            Ok(Some(status)) => match self.baseline.lacks(Baseline::of(&status)) {
                Some(what) => Outcome::Silent { what },
                None => Outcome::Harmless,
            },
            Ok(None) => refusal(&words, &data),
        };
        // It may have ended by itself, which is not waited for twice.
        let _ = self.cluster.kill(self.node);
        Ok(Trial { harm, outcome })
    }
}

impl Baseline {
    fn of(status: &StatusResponse) -> Self {
        Self {
            term: status.term,
            last_log: status.last_log_index,
            applied: status.applied_index,
            digest: status.digest,
        }
    }

    /// What of this is not there, in words.
    fn lacks(self, found: Self) -> Option<String> {
        if found.last_log < self.last_log {
            Some(format!("the log ends at {} and not at {}", found.last_log, self.last_log))
        } else if found.term < self.term {
            Some(format!("the term is {} and not {}", found.term, self.term))
        } else if found.applied < self.applied {
            Some(format!("entries up to {} are applied and not up to {}", found.applied, self.applied))
        } else if found.applied == self.applied && found.digest != self.digest {
            Some(format!("the digest at {} is {:x} and not {:x}", found.applied, found.digest, self.digest))
        } else {
            None
        }
    }
}

/// The status of a node once it serves and has all that `wanted` says, or does not get there; `None` if it
/// ended instead.
async fn settled(
    cluster: &mut Cluster,
    node: u64,
    wanted: Option<Baseline>,
) -> anyhow::Result<Option<StatusResponse>> {
    let begin = Instant::now();
    let mut client = ClusterClient::new(connect::lazy(&cluster.endpoint(node))?);
    let mut served: Option<(Instant, StatusResponse)> = None;
    loop {
        if !cluster.running().contains(&node) {
            return Ok(None);
        }
        let asked = tokio::time::timeout(ASK_TIMEOUT, client.status(StatusRequest { digest: true })).await;
        if let Ok(Ok(status)) = asked {
            let status = status.into_inner();
            let (since, before) = served.get_or_insert((Instant::now(), status.clone()));
            let enough = match wanted {
                Some(wanted) => wanted.lacks(Baseline::of(&status)).is_none(),
                // Nobody tells how far it should get: it stands still then.
                None => *before == status && since.elapsed() > ASK_TIMEOUT,
            };
            if enough || since.elapsed() > scaled(APPLY_PATIENCE) {
                return Ok(Some(status));
            }
            *before = status;
        }
        anyhow::ensure!(
            served.is_some() || begin.elapsed() < scaled(START_PATIENCE),
            "it neither serves nor ends"
        );
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// What is to be thought of the last words of a node that ended.
fn refusal(words: &str, data: &Path) -> Outcome {
    let code = Code::find_cause(words);
    let names_place = words.contains(&data.display().to_string());
    // The way back: what to do with the directory, or with the file.
    let names_way = ["wipe", "rejoin", "start the node again"].iter().any(|way| words.contains(way));
    match code {
        Some(code) if names_place && names_way && !words.contains("panicked") => {
            Outcome::Detected { code: code.to_string() }
        }
        code => {
            let text = words.lines().rev().take(3).collect::<Vec<_>>().join(" | ");
            Outcome::Mute { code: code.map(|code| code.to_string()), text }
        }
    }
}

fn data_of(cluster: &Cluster, node: u64) -> PathBuf {
    cluster.root().join(format!("node-{node}"))
}

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    let done = std::process::Command::new("cp").arg("-a").arg(from.join(".")).arg(to).output()?;
    anyhow::ensure!(done.status.success(), "cannot copy: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_must_say_what_where_and_what_to_do() {
        let data = Path::new("/data/node-1");
        let whole = "error: T3101 log-damaged: /data/node-1/journal is damaged; wipe it and join again";
        assert_eq!(refusal(whole, data), Outcome::Detected { code: "T3101 log-damaged".to_owned() });
        for lacking in [
            "error: /data/node-1/journal is damaged; wipe it",
            "error: T3101 log-damaged: damaged; wipe it",
            "error: T3101 log-damaged: /data/node-1/journal is damaged",
            "thread panicked at x: T3101 log-damaged: /data/node-1 wipe",
            "",
        ] {
            assert_eq!(refusal(lacking, data).name(), "mute", "{lacking}");
        }
    }
}

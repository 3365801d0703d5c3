//! Clusters of MindSpore, one after the other on one job for each protocol: the dynamic cluster, and that of the parameter
//! server. Their nodes are played (`tripod_load::mindspore`), connected to one node of ours each, and go on to another when
//! theirs does not answer, as if a sidecar moved their scheduler's address along.
//!
//! | module | what |
//! |---|---|
//! | `dynamic` | nodes that register, learn their ranks, write and read entries, register again, and leave together |
//! | `server` | the clusters of the parameter server, one after the other |
//! | `member` | one of their nodes: it tells all, is told, begins as another process, and finishes |
//! | `life` | one process of it, and what it hears |
//! | `scribe` | what of it stands in the history |

mod dynamic;
mod life;
mod member;
mod scribe;
mod server;

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::time::Instant;
use tripod_load::mindspore::{Job, Size};

use super::setting::Setting;

pub(super) use dynamic::start as start_dynamic;
pub(super) use server::start as start_server;

/// As nodes of upstream's have it.
const LIMIT: Duration = Duration::from_secs(3);
/// How long everybody may take to come, and to be told so: longer than any fault, and an election.
const FORM_PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
/// Nodes that are quiet beat so often; three times as often as real ones.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// The job with its ports; none if the harness cannot have it, which voids the run.
async fn job(setting: &Setting, random: &mut StdRng, name: &str, size: Size) -> Option<Job> {
    let mut endpoints: Vec<String> =
        setting.endpoints.iter().map(|endpoint| endpoint.address.clone()).collect();
    let first = random.random_range(0..endpoints.len());
    endpoints.rotate_left(first);
    let deadline = Instant::now() + FORM_PATIENCE;
    loop {
        match Job::create(endpoints.clone(), name, size).await {
            Ok(job) => return Some(job),
            Err(error) if Instant::now() >= deadline => {
                setting.recorder.void(format!("there is no job for nodes of MindSpore: {error:#}"));
                return None;
            }
            Err(_) if !setting.goes_on() => return None,
            Err(_) => tokio::time::sleep(AGAIN_PAUSE).await,
        }
    }
}

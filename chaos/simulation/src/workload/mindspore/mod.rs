//! Nodes of MindSpore's clusters on one machine, which come to the nodes' own front end with the frames of real ones: of the
//! parameter server's cluster, which are called by whoever leads, and of the dynamic cluster. They go on to another node
//! when theirs does not answer, as if a sidecar moved their scheduler's address along.
//!
//! | module | what |
//! |---|---|
//! | `server` | clusters of the parameter server, one after the other, and what happens to each |
//! | `operator` | who has them scale |
//! | `gang` | what the nodes of one of them know of each other beside it |
//! | `member` | one of these nodes, from its registration until all are told that all have finished |
//! | `process` | one process of it, as far as it asks |
//! | `ear` | the same, as far as it is called |
//! | `dynamic` | dynamic clusters, whose nodes write and read entries |
//! | `way` | how a node reaches its scheduler |
//! | `scribe` | what of all this stands in the history, which the checkers judge |

mod dynamic;
mod ear;
mod gang;
mod member;
mod operator;
mod process;
mod scribe;
mod server;
mod way;

use tripod_checkers::history::ClientId;
use tripod_proto::tripod::v1::{JobSpec, TaskGroup};

use super::Setting;

/// The jobs that have clusters, and the port of each on every node.
pub(crate) const JOBS: [(&str, u16); 2] = [(server::JOB, server::PORT), (dynamic::JOB, dynamic::PORT)];
/// The host of all nodes of MindSpore.
pub(crate) const HOST: &str = "mindspore";

/// Whether nodes of MindSpore are in the run of a seed: in one of seven, for a run with them takes longer.
pub(crate) fn is_in(seed: u64) -> bool {
    seed % 7 == 6
}

pub(super) async fn run(setting: &Setting) {
    let mut client = setting.client(60);
    let other = client.sibling(ClientId(61));
    futures::join!(server::run(setting, client), dynamic::run(setting, other));
}

/// A job with a cluster of that size.
fn spec((workers, servers): (u32, u32), register_timeout_ms: u64) -> JobSpec {
    let group = |name: &str, tasks| TaskGroup { name: name.to_owned(), tasks };
    let groups = [group("worker", workers), group("server", servers)];
    JobSpec {
        tasks: workers + servers,
        register_timeout_ms,
        groups: groups.into_iter().filter(|group| group.tasks > 0).collect(),
        ..JobSpec::default()
    }
}

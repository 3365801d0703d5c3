//! What happened to jobs, to tell people afterwards: which task was lost first, when a barrier failed, since when there is
//! another leader.
//!
//! Events are made in apply, from commands that are in the log anyway. They need no entry of their own and no clock: the time
//! of an event is that of the log. So every node has the same ones, and they are there whoever led meanwhile. Writes and reads
//! of keys make none. Nothing in apply depends on an event.
//!
//! A job has a ring of two parts. *Milestones* are what explains an end: losses, failed barriers, errors. *Traffic* is
//! what a healthy job does all day, and never pushes a milestone out. What is alike within a second is one event with a set of
//! tasks, so 10,000 registrations are a handful. Of a job that was deleted the last milestones stay for a while.
//!
//! | module | what |
//! |---|---|
//! | `what` | the kinds, and what each of them tells |
//! | `event` | an event: what, of which tasks, when |
//! | `tasks` | a set of tasks as ranges |
//! | `part`, `ring` | bounded lists of events |
//! | `of_job` | the ring of a job, as one of its domains |
//! | `of_cluster` | the cluster's own ring, and jobs that are gone |
//! | `note` | how a command says that something happened |
//! | `look` | reads |

mod event;
mod look;
mod note;
mod of_cluster;
mod of_job;
mod part;
mod ring;
mod tasks;
mod what;

use crate::ids::DurationMs;
use crate::limits::JOB_SLOTS_MAX;

pub use event::{Event, Position};
pub use look::{Kept, Listed};
pub use tasks::Tasks;
pub use what::What;

pub(crate) use of_cluster::{Changing, EndedHead, OfCluster};
pub(crate) use ring::{Head, Ring};
pub(crate) use what::text;

/// Bytes of all events of a cluster. See [`event_bytes`](Event::bytes) for how they are counted.
pub const CLUSTER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a job's milestones: some hundreds.
pub const MILESTONE_BYTES_MAX: u64 = 64 << 10;
/// Bytes of the other events of a job.
pub const TRAFFIC_BYTES_MAX: u64 = 192 << 10;
/// Bytes that a job may have for its events: its fair share, which no other job can take from it.
pub const JOB_BYTES_MAX: u64 = MILESTONE_BYTES_MAX + TRAFFIC_BYTES_MAX;
/// Jobs that are gone of which something is kept.
pub const ENDED_JOBS_KEPT: usize = 256;
/// Milestones that are kept of each of them, the last ones.
pub const ENDED_MILESTONES_KEPT: usize = 32;
/// How long they are kept, by the log's time: a week.
pub const ENDED_KEPT_MS: DurationMs = DurationMs(7 * 24 * 3_600 * 1_000);
/// How far apart the first and the last of those may be that are one event.
pub const RUN_MS: DurationMs = DurationMs(1_000);
/// Ranges of tasks of one event. Ten thousand tasks that come in any order are at most 2,500 at a time.
pub const RANGES_MAX: usize = 2_560;
/// Bytes of what an event says in words.
pub const TEXT_BYTES_MAX: usize = 512;
/// Bytes of a name in an event, such as that of a barrier.
pub const NAME_BYTES_MAX: usize = 256;

/// Every job with a port, the job without one, the cluster itself, and jobs that are gone: together they cannot have more.
const _: () = {
    let jobs = JOB_SLOTS_MAX as u64 + 1;
    let gone = ENDED_JOBS_KEPT as u64 * MILESTONE_BYTES_MAX;
    assert!((jobs + 1) * JOB_BYTES_MAX + gone <= CLUSTER_BYTES_MAX);
};

//! How much there is of what, in the state of this node.

use tripod_gateway::{Consistency, Gateway};
use tripod_state::State;
use tripod_state::ids::TimeMs;
use tripod_state::ray::view::Counts;

/// How long somebody waits at a barrier before the job counts as waiting.
const WAITING_MS: u64 = 60_000;

/// Sums over all jobs. Never by job: their names come and go, and each would be a series for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Census {
    pub(super) sessions: u64,
    pub(super) jobs: u64,
    /// Those in which somebody has waited at a barrier for long.
    pub(super) jobs_waiting: u64,
    pub(super) tasks_connected: u64,
    pub(super) tasks_in_error: u64,
    pub(super) barriers_open: u64,
    pub(super) keys: u64,
    pub(super) key_bytes: u64,
    /// What the state takes of memory, and the largest of the jobs.
    pub(super) state_bytes: u64,
    pub(super) largest_job_bytes: u64,
    /// Of all jobs' schedulers.
    pub(super) scheduler: Counts,
    pub(super) change_under_way: bool,
    /// An operator wants this node to lead nothing and to have no clients.
    pub(super) drained: bool,
}

impl Census {
    /// Counts in a fork of the state, so that apply need not wait.
    /// `now`: the time of the log.
    pub(super) async fn take(gateway: &Gateway, now: TimeMs) -> Self {
        let fork = gateway.read(Consistency::Local, State::clone).await;
        // A local read has no outage.
        let Ok(state) = fork else { return Self::default() };
        let mut census = Self {
            change_under_way: state.registry().open().is_some(),
            sessions: state.sessions_open(),
            state_bytes: state.bytes(),
            largest_job_bytes: state.largest_jobs(1).first().map_or(0, |(_, bytes)| *bytes),
            drained: state.is_drained(gateway.admin().status().node),
            ..Self::default()
        };
        let before = TimeMs(now.max(state.now_ms()).0.saturating_sub(WAITING_MS));
        for job in state.jobs() {
            census.jobs += 1;
            census.jobs_waiting += u64::from(state.waits_since(job.id, before));
            census.tasks_connected += u64::from(job.tasks_connected);
            census.tasks_in_error += u64::from(job.tasks_in_error);
            census.barriers_open += u64::from(job.barriers_open);
            census.keys += job.keys;
            census.key_bytes += job.key_bytes;
        }
        for job in state.ray_jobs() {
            let Some(ray) = state.ray(job) else { continue };
            let (counts, sum) = (ray.counts(), &mut census.scheduler);
            sum.workers += counts.workers;
            sum.stores += counts.stores;
            sum.queued += counts.queued;
            sum.running += counts.running;
            sum.succeeded += counts.succeeded;
            sum.failed += counts.failed;
            sum.objects += counts.objects;
            sum.orders += counts.orders;
        }
        census
    }
}

//! Memory for the state, and what the leader refuses for want of it.
//!
//! How much there is, is a setting of each node, and the leader's counts. What was admitted and is not applied yet counts as
//! if it were: so the limits hold to the byte of the model, however much is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_state::ids::JobId;
use tripod_state::need::{Need, Purpose};
use tripod_state::{Envelope, State};

use crate::base::error::{JOB_FULL, ProposeError, STATE_FULL};
use crate::base::options::StateLimits;

/// One part in so many of each limit is only for what goes on with something that is there.
const RESERVE_SHARE: u64 = 8;
/// Jobs that a refusal names when all of them together take too much.
const JOBS_NAMED: usize = 3;
/// How often the log tells of refusals, at most.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What this node has admitted as the leader. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct AdmittedBytes {
    limits: StateLimits,
    ledger: Arc<Mutex<Ledger>>,
}

/// Bytes that were admitted and are not applied yet.
#[derive(Debug, Default)]
struct Ledger {
    total: u64,
    jobs: BTreeMap<JobId, u64>,
    told: Option<Instant>,
}

/// The room of one admitted command, until it is dropped: when the command was applied, and is part of the state, or will
/// never be.
#[derive(Debug)]
pub(crate) struct Admitted {
    room: AdmittedBytes,
    need: Need,
}

impl AdmittedBytes {
    pub(super) fn new(limits: StateLimits) -> Self {
        Self { limits, ledger: Arc::default() }
    }

    /// Keeps room for a command that is `encoded` bytes long; `None` if it needs none.
    pub(super) fn admit(
        &self,
        state: &State,
        envelope: &Envelope,
        encoded: usize,
    ) -> Result<Option<Admitted>, ProposeError> {
        let need = state.need(envelope, encoded);
        if need.purpose == Purpose::Nothing {
            return Ok(None);
        }
        let mut ledger = self.ledger.lock();
        if let Err(refusal) = self.check(state, &ledger, need) {
            if ledger.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                ledger.told = Some(Instant::now());
                tracing::warn!(reason = %refusal, "commands are refused for want of memory");
            }
            return Err(refusal);
        }
        ledger.total = ledger.total.saturating_add(need.bytes);
        if let Some(job) = need.job {
            let of_job = ledger.jobs.entry(job).or_default();
            *of_job = of_job.saturating_add(need.bytes);
        }
        Ok(Some(Admitted { room: self.clone(), need }))
    }

    fn check(&self, state: &State, ledger: &Ledger, need: Need) -> Result<(), ProposeError> {
        let Need { job, purpose, bytes } = need;
        let may = |limit: u64| if purpose == Purpose::Begin { limit - limit / RESERVE_SHARE } else { limit };
        let StateLimits { job_bytes, state_bytes } = self.limits;
        if let Some(job) = job {
            let taken = state.bytes_of(job).unwrap_or_default();
            let taken = taken.saturating_add(ledger.jobs.get(&job).copied().unwrap_or_default());
            if taken.saturating_add(bytes) > may(job_bytes) {
                return Err(ProposeError::JobFull(job_full(state, job, taken, job_bytes)));
            }
        }
        let taken = state.bytes().saturating_add(ledger.total);
        if taken.saturating_add(bytes) > may(state_bytes) {
            return Err(ProposeError::StateFull(state_full(state, taken, state_bytes)));
        }
        Ok(())
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut ledger = self.room.ledger.lock();
        ledger.total = ledger.total.saturating_sub(self.need.bytes);
        let Some(job) = self.need.job else { return };
        let left = ledger.jobs.get(&job).map_or(0, |bytes| bytes.saturating_sub(self.need.bytes));
        if left == 0 {
            ledger.jobs.remove(&job);
        } else {
            ledger.jobs.insert(job, left);
        }
    }
}

fn job_full(state: &State, job: JobId, taken: u64, limit: u64) -> String {
    let name = state.job_name(job).map_or_else(|| job.to_string(), ToString::to_string);
    format!(
        "{JOB_FULL}: job `{name}` takes {} of the {} of memory that a job may, an eighth of which is only for what is under \
         way; nothing new is accepted in it: delete keys (`tripod kv delete`) or the job, or raise --job-memory-mib on \
         every node",
        mib(taken),
        mib(limit)
    )
}

fn state_full(state: &State, taken: u64, limit: u64) -> String {
    let named = |(name, bytes): &(_, u64)| format!("`{name}` {}", mib(*bytes));
    let largest: Vec<String> = state.largest_jobs(JOBS_NAMED).iter().map(named).collect();
    let largest = if largest.is_empty() { "none".to_owned() } else { largest.join(", ") };
    format!(
        "{STATE_FULL}: the state takes {} of the {} of memory that it may, an eighth of which is only for what is under way \
         (largest jobs: {largest}); nothing new is accepted: delete keys or jobs, or raise --state-memory-mib on every node",
        mib(taken),
        mib(limit)
    )
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

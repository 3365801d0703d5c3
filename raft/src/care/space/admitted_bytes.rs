//! Memory for the state, and what the leader refuses for want of it.
//!
//! How much there is, is a setting of each node, and the leader's counts. What was admitted and is not applied yet counts as
//! if it were: so the limits hold to the byte of the model, however much is under way.
//!
//! While the state takes less than half of what it may, or one job may, most commands are taken in without a look at it: what
//! they need at most is counted, for all jobs together. The lock of the state is held by apply for hundreds of commands at a
//! time, and each command that comes would wait for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_state::ids::JobId;
use tripod_state::need::{self, Need, Purpose};
use tripod_state::{Command, Envelope, State};

use crate::base::error::{JOB_FULL, ProposeError, STATE_FULL};
use crate::base::options::StateLimits;

/// One part in so many of each limit is only for what goes on with something that is there.
const RESERVE_SHARE: u64 = 8;
/// While no more than one part in so many of the lower limit is taken, a glance is enough.
const GLANCE_SHARE: u64 = 2;
/// Jobs that a refusal names when all of them together take too much.
const JOBS_NAMED: usize = 3;
/// How often the log tells of refusals, at most.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// What this node has admitted as the leader. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct AdmittedBytes {
    shared: Arc<Shared>,
}

/// Of the two numbers each is raised before the other is looked at, so that of two commands that come at the same time one
/// counts with the other.
#[derive(Debug)]
struct Shared {
    limits: StateLimits,
    ledger: Mutex<Ledger>,
    /// Bytes of all jobs that were admitted by a look at the state and are not applied yet.
    looked: AtomicU64,
    /// The same at a glance: as many as they can be at most.
    glanced: AtomicU64,
}

/// Bytes that were admitted by a look at the state and are not applied yet.
#[derive(Debug, Default)]
struct Ledger {
    jobs: BTreeMap<JobId, u64>,
    told: Option<Instant>,
}

/// The room of one admitted command, until it is dropped: when the command was applied, and is part of the state, or will
/// never be.
#[derive(Debug)]
pub(crate) struct Admitted {
    room: AdmittedBytes,
    counted: Counted,
}

#[derive(Debug)]
enum Counted {
    Looked(Need),
    Glanced { bytes: u64 },
}

impl AdmittedBytes {
    pub(super) fn new(limits: StateLimits) -> Self {
        let (looked, glanced) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { limits, ledger: Mutex::default(), looked, glanced }) }
    }

    /// Keeps room for a command that is `encoded` bytes long without a look at the state, which takes so many `bytes`; `None` if
    /// that must be looked at.
    pub(super) fn at_a_glance(
        &self,
        bytes: impl Fn() -> u64,
        command: &Command,
        encoded: usize,
    ) -> Option<Admitted> {
        let needed = need::at_most(command, encoded)?;
        let Shared { limits: StateLimits { job_bytes, state_bytes }, looked, glanced, .. } = &*self.shared;
        let under_way = glanced.fetch_add(needed, Ordering::SeqCst).saturating_add(needed);
        // Dropped, it is counted no more.
        let admitted = Admitted { room: self.clone(), counted: Counted::Glanced { bytes: needed } };
        let under_way = under_way.saturating_add(looked.load(Ordering::SeqCst));
        // Behind what is under way: what was applied meanwhile is in one of both.
        let taken = bytes().saturating_add(under_way);
        (taken <= job_bytes.min(state_bytes) / GLANCE_SHARE).then_some(admitted)
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
        let mut ledger = self.shared.ledger.lock();
        let before = self.shared.looked.fetch_add(need.bytes, Ordering::SeqCst);
        if let Err(refusal) = self.check(state, (&ledger, before), need) {
            self.shared.looked.fetch_sub(need.bytes, Ordering::SeqCst);
            if ledger.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                ledger.told = Some(Instant::now());
                tracing::warn!(reason = %refusal, "commands are refused for want of memory");
            }
            return Err(refusal);
        }
        if let Some(job) = need.job {
            let of_job = ledger.jobs.entry(job).or_default();
            *of_job = of_job.saturating_add(need.bytes);
        }
        Ok(Some(Admitted { room: self.clone(), counted: Counted::Looked(need) }))
    }

    /// `looked`: of all jobs, without this one.
    fn check(&self, state: &State, (ledger, looked): (&Ledger, u64), need: Need) -> Result<(), ProposeError> {
        let Need { job, purpose, bytes } = need;
        let may = |limit: u64| if purpose == Purpose::Begin { limit - limit / RESERVE_SHARE } else { limit };
        let StateLimits { job_bytes, state_bytes } = self.shared.limits;
        // They may all be of that job, or be applied already.
        let glanced = self.shared.glanced.load(Ordering::SeqCst);
        if let Some(job) = job {
            let taken = state.bytes_of(job).unwrap_or_default();
            let taken = taken.saturating_add(ledger.jobs.get(&job).copied().unwrap_or_default());
            let taken = taken.saturating_add(glanced);
            if taken.saturating_add(bytes) > may(job_bytes) {
                return Err(ProposeError::JobFull(job_full(state, job, taken, job_bytes)));
            }
        }
        let taken = state.bytes().saturating_add(looked).saturating_add(glanced);
        if taken.saturating_add(bytes) > may(state_bytes) {
            return Err(ProposeError::StateFull(state_full(state, taken, state_bytes)));
        }
        Ok(())
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Shared { ledger, looked, glanced, .. } = &*self.room.shared;
        let Need { job, bytes, .. } = match self.counted {
            Counted::Looked(need) => need,
            Counted::Glanced { bytes } => {
                glanced.fetch_sub(bytes, Ordering::SeqCst);
                return;
            }
        };
        let mut ledger = ledger.lock();
        looked.fetch_sub(bytes, Ordering::SeqCst);
        let Some(job) = job else { return };
        let left = ledger.jobs.get(&job).map_or(0, |before| before.saturating_sub(bytes));
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

#[cfg(test)]
mod tests {
    use tripod_state::ids::ServiceIncarnation;
    use tripod_state::{Scope, job, kv};

    use super::*;

    const LIMIT: u64 = 1 << 20;
    /// Encoded bytes, with what a key takes besides almost half of the lower limit.
    const NEARLY_HALF: usize = (512 - 4) << 10;

    fn room() -> AdmittedBytes {
        AdmittedBytes::new(StateLimits { job_bytes: LIMIT, state_bytes: 2 * LIMIT })
    }

    fn put() -> Command {
        let scope = Scope { job: JobId(1), service: None };
        Command::Kv(kv::Command::Insert { scope, key: "k".into(), value: "v".into(), overwrite: true })
    }

    #[test]
    fn a_glance_is_enough_until_half_of_the_lower_limit_is_taken_or_under_way() {
        let room = room();
        let first = room.at_a_glance(|| 0, &put(), NEARLY_HALF).expect("there is room");
        assert!(room.at_a_glance(|| 0, &put(), NEARLY_HALF).is_none(), "the first is under way");
        drop(first);
        assert!(room.at_a_glance(|| 0, &put(), NEARLY_HALF).is_some(), "it was applied");
        assert!(room.at_a_glance(|| LIMIT / 2, &put(), 1).is_none(), "so much is taken");
        assert_eq!(room.shared.glanced.load(Ordering::SeqCst), 0, "who is refused counts for nothing");
    }

    #[test]
    fn what_was_admitted_at_a_glance_counts_for_who_looks() {
        let (room, state) = (room(), State::default());
        let spec = job::Spec::of_tasks(1);
        let create = job::Command::Create { name: "job".into(), spec, service: ServiceIncarnation(1) };
        let create = Envelope { stamp: None, command: Command::Job(create) };
        let look = || room.admit(&state, &create, 3 * NEARLY_HALF).map(drop);
        assert_eq!(look(), Ok(()));
        let glanced = room.at_a_glance(|| 0, &put(), NEARLY_HALF).expect("there is room");
        assert!(matches!(look(), Err(ProposeError::StateFull(_))));
        drop(glanced);
        assert_eq!(look(), Ok(()), "what was refused counts for nothing");
    }
}

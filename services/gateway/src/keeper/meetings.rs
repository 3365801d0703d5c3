//! How long barriers take that open while this node leads: when each opened, and which may have ended since the last look.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use tripod_state::barrier::What;
use tripod_state::ids::{BarrierCounter, BarrierName, JobId};
use tripod_state::state::OpenBarrier;
use tripod_state::{BarrierFault, Fault, Scope, State};

use super::barriers::Instance;

/// How an instance of a barrier ended, in a word for those who count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierEnding {
    Passed,
    /// Its time was up.
    TimedOut,
    /// A member left or failed, or was in error when it opened.
    MemberLost,
    /// A task cancelled it.
    Cancelled,
    /// A task called it with other tasks, or though it is none of them.
    Misused,
}

/// How many are looked at while apply waits.
const LOOKED_AT_MAX: usize = 256;

/// Open instances, as many as the state has. How one ended is in the state, so the loop that looks at the timers looks at
/// those that changed.
#[derive(Default)]
pub(super) struct Meetings {
    open: HashMap<(JobId, BarrierName), Opened>,
    /// From its opening until it changed first, if that is known.
    changed: BTreeMap<Instance, Option<Duration>>,
}

#[derive(Clone, Copy)]
struct Opened {
    counter: BarrierCounter,
    /// `None`: under an earlier leader.
    at: Option<Instant>,
}

/// One that may have ended.
pub(super) struct Changed {
    instance: Instance,
    /// From its opening, if that is known.
    waited: Option<Duration>,
}

/// One that has ended.
pub(super) struct Ended {
    instance: Instance,
    pub(super) ending: BarrierEnding,
    pub(super) waited: Option<Duration>,
}

impl BarrierEnding {
    /// Each but the first.
    pub const FAILURES: [Self; 4] = [Self::TimedOut, Self::MemberLost, Self::Cancelled, Self::Misused];

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::TimedOut => "timed-out",
            Self::MemberLost => "member-lost",
            Self::Cancelled => "cancelled",
            Self::Misused => "misused",
        }
    }

    fn of(fault: &Fault) -> Self {
        let Fault::Barrier { fault, .. } = fault else { return Self::Misused };
        match fault {
            BarrierFault::TimedOut { .. } => Self::TimedOut,
            BarrierFault::Cancelled { .. } => Self::Cancelled,
            BarrierFault::MemberLost { .. } | BarrierFault::MemberInError { .. } => Self::MemberLost,
            _ => Self::Misused,
        }
    }
}

impl Meetings {
    /// An instance opens. The one before of this name has ended.
    pub(super) fn opened(&mut self, job: JobId, barrier: BarrierName, counter: BarrierCounter) {
        self.open.insert((job, barrier), Opened { counter, at: Some(Instant::now()) });
    }

    /// One is open that opened under an earlier leader.
    pub(super) fn found(&mut self, open: &OpenBarrier) {
        let unknown = Opened { counter: open.counter, at: None };
        self.open.entry((open.job, open.barrier.clone())).or_insert(unknown);
    }

    /// It has ended, or one of its calls has.
    pub(super) fn changed(&mut self, job: JobId, barrier: &BarrierName) {
        if let Some(opened) = self.open.get(&(job, barrier.clone())) {
            let instance = (job, barrier.clone(), opened.counter);
            self.changed.entry(instance).or_insert_with(|| opened.at.map(|at| at.elapsed()));
        }
    }

    /// Some of those that changed and were not taken yet, each once.
    pub(super) fn take_changed(&mut self) -> Vec<Changed> {
        let some = std::iter::from_fn(|| self.changed.pop_first()).take(LOOKED_AT_MAX);
        some.map(|(instance, waited)| Changed { instance, waited }).collect()
    }

    /// It need not be known any more.
    pub(super) fn forget(&mut self, ended: &Ended) {
        let (job, barrier, counter) = &ended.instance;
        let key = (*job, barrier.clone());
        if self.open.get(&key).is_some_and(|opened| opened.counter == *counter) {
            self.open.remove(&key);
        }
    }

    pub(super) fn forget_job(&mut self, job: JobId) {
        self.open.retain(|(of, _), _| *of != job);
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.changed.clear();
    }
}

/// Those of them that have ended, and how: what is not open any more passed, unless it is among the last that failed.
pub(super) fn ended(changed: Vec<Changed>, state: &State) -> Vec<Ended> {
    let is_open = |(job, name, counter): &Instance| state.is_barrier_open(*job, name, *counter);
    let over = changed.into_iter().filter(|changed| !is_open(&changed.instance));
    over.map(|Changed { instance, waited }| Ended { ending: ending(&instance, state), instance, waited })
        .collect()
}

fn ending((job, name, counter): &Instance, state: &State) -> BarrierEnding {
    // None that are open, of which each would be described.
    let failed = state.barriers(Scope { job: *job, service: None }, 0).unwrap_or_default();
    let failure = failed.iter().filter(|report| report.counter == *counter).find_map(|report| {
        let fault = &report.failure.as_ref()?.fault;
        let is_this = match (&report.what, fault) {
            (What::Called(called), _) => called == name,
            (_, Fault::Barrier { barrier, .. }) => barrier == name,
            _ => false,
        };
        is_this.then_some(fault)
    });
    failure.map_or(BarrierEnding::Passed, BarrierEnding::of)
}

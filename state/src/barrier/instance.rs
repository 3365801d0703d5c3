//! One barrier id: its members, its current instance, and the one before.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::barrier::members::Members;
use crate::fault::{BarrierFault, Fault, Leaving};
use crate::ids::{BarrierCounter, BarrierName, CallId, DurationMs, TaskId, TimeMs};
use crate::memory::{Weigh, Weighed, of_faults, of_map};
use crate::planted::{Bug, is_planted};

/// How an instance ended.
pub(crate) type Verdict = Result<(), Arc<Fault>>;

/// A barrier id. It is remembered for ever, because a late call must find its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Barrier {
    /// `None` as long as no call opened an instance with a valid list.
    pub(crate) members: Option<Members>,
    pub(crate) current: Instance,
    /// Kept for waiters that were slow to look; it has ended.
    pub(crate) previous: Option<Arc<Instance>>,
}

/// One instance of a barrier id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Instance {
    pub(crate) counter: BarrierCounter,
    /// The command that opened it: every call that waits in it is that one or later.
    pub(crate) opened: CallId,
    pub(crate) opened_at: TimeMs,
    /// The task that opened it.
    pub(crate) first: TaskId,
    pub(crate) timeout: DurationMs,
    /// Who waits, with the call that waits. Empty once the instance has ended.
    pub(crate) arrived: OrdMap<TaskId, CallId>,
    /// Calls that ended before the instance did.
    pub(crate) voided: Weighed<TaskId, Voided>,
    pub(crate) end: Option<End>,
}

/// The end of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct End {
    /// The command that ended it.
    pub(crate) at: CallId,
    /// What those who waited were told.
    pub(crate) told: Verdict,
    /// What a repeated call is told. A wrong call after the end replaces it, as upstream does.
    pub(crate) stored: Verdict,
}

/// The calls of one task that ended before their instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Voided {
    /// The last such call.
    pub(crate) through: CallId,
    pub(crate) why: Void,
}

/// Why a waiting call ended before its instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Void {
    /// The task called again.
    Replaced,
    /// The task is recoverable and left the instance without failing it.
    Left(Leaving),
}

impl Instance {
    pub(crate) fn new(
        counter: BarrierCounter,
        opened: CallId,
        opened_at: TimeMs,
        first: TaskId,
        timeout: DurationMs,
    ) -> Self {
        let (arrived, voided) = (OrdMap::new(), Weighed::default());
        Self { counter, opened, opened_at, first, timeout, arrived, voided, end: None }
    }

    pub(crate) fn ended(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the task's waiting call, if there is one.
    pub(crate) fn void(&mut self, task: TaskId, why: Void) -> bool {
        let Some(through) = self.arrived.remove(&task) else { return false };
        self.voided.insert(task, Voided { through, why });
        true
    }

    /// What became of a call that waited, or `None` if it waits still.
    pub(crate) fn outcome(&self, name: &BarrierName, task: TaskId, call: CallId) -> Option<Verdict> {
        if let Some(voided) = self.voided.get(&task).filter(|voided| call <= voided.through) {
            return Some(Err(Arc::new(voided.fault(name, self.counter, task))));
        }
        match &self.end {
            Some(end) => Some(end.told.clone()),
            None if self.arrived.get(&task) == Some(&call) => None,
            // Otherwise who was forgotten would be told, would call again, and nothing would be lost.
            None if is_planted(Bug::DroppedArrival) => None,
            None => Some(Err(Arc::new(replaced(name, self.counter)))),
        }
    }
}

impl Voided {
    fn fault(&self, name: &BarrierName, counter: BarrierCounter, task: TaskId) -> Fault {
        match &self.why {
            Void::Replaced => replaced(name, counter),
            Void::Left(reason) => Fault::Barrier {
                barrier: name.clone(),
                counter,
                fault: BarrierFault::StaleArrival { task, reason: reason.clone() },
            },
        }
    }
}

impl Barrier {
    /// The outcome of an arrival that knows its instance by the counter, or `None` while it waits.
    pub(crate) fn outcome(
        &self,
        name: &BarrierName,
        counter: BarrierCounter,
        task: TaskId,
        call: CallId,
    ) -> Option<Verdict> {
        match self.instances().find(|instance| instance.counter == counter) {
            Some(instance) => instance.outcome(name, task, call),
            None => Some(Err(Arc::new(replaced(name, counter)))),
        }
    }

    /// The outcome of an arrival that knows only its call, or `None` while it waits.
    pub(crate) fn outcome_of_call(&self, name: &BarrierName, task: TaskId, call: CallId) -> Option<Verdict> {
        match self.instances().find(|instance| instance.opened <= call) {
            Some(instance) => instance.outcome(name, task, call),
            None => Some(Err(Arc::new(replaced(name, self.current.counter)))),
        }
    }

    /// The instances that are remembered, the newest first. A task whose instance is older than
    /// these has called again since, or another one opened two instances without it.
    fn instances(&self) -> impl Iterator<Item = &Instance> {
        [Some(&self.current), self.previous.as_deref()].into_iter().flatten()
    }
}

impl Weigh for Barrier {
    fn outside(&self) -> u64 {
        let members = self.members.as_ref().map_or(0, Members::outside);
        let previous = self.previous.as_ref().map_or(0, Weigh::outside);
        members.saturating_add(self.current.outside()).saturating_add(previous)
    }
}

impl Weigh for Instance {
    fn outside(&self) -> u64 {
        let calls = of_map::<TaskId, CallId>(self.arrived.len()).saturating_add(self.voided.bytes());
        calls.saturating_add(self.end.as_ref().map_or(0, End::outside))
    }
}

impl Weigh for Voided {
    fn outside(&self) -> u64 {
        match &self.why {
            Void::Left(Leaving::Error(fault)) => of_faults(fault),
            Void::Left(Leaving::Disconnected | Leaving::ConnectedAgain) | Void::Replaced => 0,
        }
    }
}

impl Weigh for End {
    /// Its results are one and the same as long as no wrong call comes after it.
    fn outside(&self) -> u64 {
        let of = |verdict: &Verdict| verdict.as_ref().err().map_or(0, |fault| of_faults(fault.as_ref()));
        let stored = if self.stored == self.told { 0 } else { of(&self.stored) };
        of(&self.told).saturating_add(stored)
    }
}

fn replaced(name: &BarrierName, counter: BarrierCounter) -> Fault {
    Fault::ArrivalReplaced { barrier: name.clone(), counter }
}

//! Where all clients of a run write down what they do.
//!
//! Every moment that is written down is later than the one before, by a microsecond if the clock shows the
//! same again: a simulated clock moves in large steps, and what was noted first happened first.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{Call, ClientId, Fault, Header, History, Micros, NodeId, Operation, OperationId, Outcome};

/// Shared by every client of a run; cheap to clone. Never held across an await, and never waits for anything.
#[derive(Debug, Clone)]
pub struct Recorder {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    header: Header,
    operations: Vec<Begun>,
    faults: Vec<Fault>,
    timers_restarted: Vec<Micros>,
    void: Option<String>,
    /// The last moment that was given to a call.
    last: Option<Micros>,
}

#[derive(Debug)]
struct Begun {
    client: ClientId,
    node: Option<NodeId>,
    call: Call,
    invoked: Micros,
    attempts: u32,
    end: Option<(Micros, Outcome)>,
}

/// A call that is under way. One that is dropped without [`Pending::complete`] has an unknown outcome.
#[derive(Debug)]
#[must_use = "a call that is never completed counts as unknown"]
pub struct Pending {
    inner: Arc<Mutex<Inner>>,
    id: OperationId,
}

/// A fault that is still there.
#[derive(Debug)]
#[must_use = "a fault that never heals counts until the end of the run"]
pub struct OpenFault {
    inner: Arc<Mutex<Inner>>,
    place: usize,
}

impl Recorder {
    /// Of a run that begins now, at the zero of its own clock.
    #[must_use]
    pub fn new(header: Header) -> Self {
        let inner = Inner {
            header,
            operations: Vec::new(),
            faults: Vec::new(),
            timers_restarted: Vec::new(),
            void: None,
            last: None,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Notes that a client is about to call. To be called before the first byte is sent.
    pub fn invoke(&self, at: Micros, client: ClientId, call: Call) -> Pending {
        let mut inner = lock(&self.inner);
        let id = OperationId(inner.operations.len() as u64);
        let invoked = inner.moment(at);
        inner.operations.push(Begun { client, node: None, call, invoked, attempts: 1, end: None });
        Pending { inner: Arc::clone(&self.inner), id }
    }

    /// Notes that a fault begins.
    pub fn fault(&self, at: Micros, kind: impl Into<String>, target: impl Into<String>) -> OpenFault {
        let mut inner = lock(&self.inner);
        let place = inner.faults.len();
        let (kind, target) = (kind.into(), target.into());
        inner.faults.push(Fault { kind, target, began: at, ended: None, planned: None });
        OpenFault { inner: Arc::clone(&self.inner), place }
    }

    /// Notes that a node began to lead, and with it every timer anew.
    pub fn timers_restarted(&self, at: Micros) {
        lock(&self.inner).timers_restarted.push(at);
    }

    /// The harness itself failed: the run proves nothing. The first reason is kept.
    pub fn void(&self, reason: impl Into<String>) {
        lock(&self.inner).void.get_or_insert_with(|| reason.into());
    }

    /// How many calls have begun so far, and how many of them have ended.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.operations.len(), inner.operations.iter().filter(|begun| begun.end.is_some()).count())
    }

    /// Everything so far. Calls that are still under way at `now` have an unknown outcome.
    #[must_use]
    pub fn history(&self, now: Micros) -> History {
        let inner = lock(&self.inner);
        let mut operations: Vec<Operation> =
            (0..).zip(&inner.operations).map(|(id, begun)| begun.operation(OperationId(id), now)).collect();
        operations.sort_by_key(|operation| (operation.invoked, operation.id));
        History {
            header: inner.header.clone(),
            operations,
            faults: inner.faults.clone(),
            timers_restarted: inner.timers_restarted.clone(),
            void: inner.void.clone(),
        }
    }
}

impl Pending {
    /// The operation's id in the history.
    #[must_use]
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// The node that is asked first.
    pub fn by_node(self, node: NodeId) -> Self {
        self.edit(|begun| begun.node = Some(node));
        self
    }

    /// The call was sent once more.
    pub fn again(&self) {
        self.edit(|begun| begun.attempts += 1);
    }

    /// Notes how the call ended. To be called after the last byte was received.
    pub fn complete(self, at: Micros, outcome: Outcome) {
        let mut inner = lock(&self.inner);
        let at = inner.moment(at);
        inner.operations[self.place()].end = Some((at, outcome));
    }

    fn edit(&self, change: impl FnOnce(&mut Begun)) {
        change(&mut lock(&self.inner).operations[self.place()]);
    }

    fn place(&self) -> usize {
        usize::try_from(self.id.0).expect("it was a place in a vector")
    }
}

impl OpenFault {
    /// How long the plan of the run wants it.
    pub fn planned(self, length: Micros) -> Self {
        lock(&self.inner).faults[self.place].planned = Some(length);
        self
    }

    /// The fault is gone.
    pub fn heal(self, at: Micros) {
        lock(&self.inner).faults[self.place].ended = Some(at);
    }
}

impl Inner {
    /// This moment, or the first one after all that were given out.
    fn moment(&mut self, at: Micros) -> Micros {
        let at = self.last.map_or(at, |last| at.max(last.plus(Micros(1))));
        self.last = Some(at);
        at
    }
}

impl Begun {
    fn operation(&self, id: OperationId, now: Micros) -> Operation {
        let (completed, outcome) = self.end.clone().unwrap_or_else(|| {
            (now.max(self.invoked), Outcome::Unknown("never answered within the run".to_owned()))
        });
        Operation {
            id,
            client: self.client,
            node: self.node,
            call: self.call.clone(),
            invoked: self.invoked,
            completed,
            attempts: self.attempts,
            outcome,
        }
    }
}

/// What a client that panicked wrote before is still true.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

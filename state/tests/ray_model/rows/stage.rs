//! A scheduler, its leader and its peers, and the one place where the leader is killed.

use std::collections::BTreeSet;

use tripod_state::ids::{Sequence, Term, TimeMs};
use tripod_state::ray::ids::{ClientSession, OrderId, StoreId, WorkerId};
use tripod_state::ray::{Answer, Decision, Order, Refusal, Request, Stamp};

use crate::machine::{Machine, Said};
use crate::rows::peers::{Client, Peers, Session};

/// When the leader dies, in the work that one call makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    /// The call is not in the log.
    CallLost,
    /// It is in the log, and nobody is told so.
    AnswerLost,
    /// It was answered. What follows from it is not planned yet.
    Unplanned,
    /// What follows is planned, and nobody was told.
    OrdersUnsent,
    /// The first of the orders was given.
    OrdersHalfSent,
    /// All orders were given, and that is not in the log.
    OrdersUnnoted,
}

impl Blow {
    pub(super) const ALL: [Self; 6] = [
        Self::CallLost,
        Self::AnswerLost,
        Self::Unplanned,
        Self::OrdersUnsent,
        Self::OrdersHalfSent,
        Self::OrdersUnnoted,
    ];
}

/// What goes wrong in a run of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// The leader dies once, in the work of that step.
    Kill {
        step: u64,
        blow: Blow,
    },
    /// The leader dies after every step.
    KillAlways(Blow),
    /// Every call that may be sent twice is.
    Twice,
    /// The leader dies after that step, and then everything that was ever sent before comes again.
    LateCopies {
        step: u64,
    },
}

/// A call that was made, and what was said to it.
#[derive(Clone)]
pub(super) struct Sent {
    stamp: Option<Stamp>,
    process: Option<WorkerId>,
    request: Request,
    said: Said,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) peers: Peers,
    pub(super) trouble: Trouble,
    /// Calls and decisions since the scenario began.
    pub(super) steps: u64,
    pub(super) kills: u64,
    term: u64,
    sessions: u128,
    /// What the leader of now has given already. It dies with it.
    given: BTreeSet<OrderId>,
    sent: Vec<Sent>,
    pub(super) told: Vec<String>,
    /// The books are checked after every command; not while very much is prepared.
    pub(super) checks: bool,
    /// A new leader gets the state through a snapshot; not if that is very large.
    pub(super) snapshots: bool,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self {
            machine: Machine::started(),
            peers: Peers::default(),
            trouble: Trouble::None,
            steps: 0,
            kills: 0,
            term: 1,
            sessions: 0,
            given: BTreeSet::new(),
            sent: Vec::new(),
            told: Vec::new(),
            checks: true,
            snapshots: true,
        }
    }

    pub(super) fn broken(&self, what: &str) -> ! {
        panic!("{what}\nwith {:?} of {} steps:\n{}", self.trouble, self.steps, self.told.join("\n"))
    }

    pub(super) fn session(&mut self) -> Session {
        self.sessions += 1;
        Session { id: ClientSession(self.sessions), last: 0 }
    }

    /// A call of a client that has registered.
    pub(super) fn call(&mut self, client: Client, request: Request) -> Said {
        let stamp = self.peers.session(client).map(next);
        let process = match client {
            Client::Process(id) if stamp.is_some() => Some(id),
            Client::Process(_) | Client::Store(_) => None,
        };
        self.step(stamp, process, request)
    }

    /// The first call of a client, which is not known yet.
    pub(super) fn first_call(&mut self, session: &mut Option<Session>, request: Request) -> Said {
        let stamp = session.as_mut().map(next);
        self.step(stamp, None, request)
    }

    /// A call of somebody who has no session, or is not there any more.
    pub(super) fn late_call(&mut self, request: Request) -> Said {
        self.step(None, None, request)
    }

    /// One step: a call, whatever goes wrong with it, and what the leader makes of it.
    pub(super) fn step(&mut self, stamp: Option<Stamp>, process: Option<WorkerId>, request: Request) -> Said {
        let blow = self.begin();
        if blow == Some(Blow::CallLost) {
            self.kill();
        }
        let said = self.apply_once(stamp, process, &request);
        self.told.push(format!("  {}. {request:?} -> {said:?}", self.steps));
        if blow == Some(Blow::AnswerLost) {
            self.kill();
        }
        if blow == Some(Blow::AnswerLost) || self.trouble == Trouble::Twice {
            self.again(&Sent { stamp, process, request: request.clone(), said: said.clone() });
        }
        self.sent.push(Sent { stamp, process, request, said: said.clone() });
        self.engine(blow);
        if matches!(self.trouble, Trouble::LateCopies { step } if step == self.steps) {
            self.kill();
            let sent = self.sent.clone();
            sent.iter().filter(|sent| sent.stamp.is_some() || is_harmless_late(&sent.request)).for_each(
                |sent| {
                    self.again(sent);
                },
            );
            self.engine(None);
        }
        said
    }

    /// Something that the leader found out, which is a step too: another leader finds it out as well.
    pub(super) fn decide(&mut self, decision: &Decision) {
        let blow = self.begin();
        if blow == Some(Blow::CallLost) {
            self.kill();
        }
        self.lead(decision);
        if blow == Some(Blow::AnswerLost) {
            self.kill();
        }
        if blow == Some(Blow::AnswerLost) || self.trouble == Trouble::Twice {
            self.lead(decision);
        }
        self.engine(blow);
        if matches!(self.trouble, Trouble::LateCopies { step } if step == self.steps) {
            self.kill();
        }
    }

    fn begin(&mut self) -> Option<Blow> {
        self.steps += 1;
        self.machine.now_ms += 5;
        match self.trouble {
            Trouble::Kill { step, blow } if step == self.steps => Some(blow),
            Trouble::KillAlways(blow) => Some(blow),
            _ => None,
        }
    }

    fn apply_once(&mut self, stamp: Option<Stamp>, process: Option<WorkerId>, request: &Request) -> Said {
        let said = self.machine.ask_stamped(stamp, process, request.clone()).0;
        self.check();
        said
    }

    fn lead(&mut self, decision: &Decision) -> Answer {
        let said = self.machine.lead(decision.clone());
        self.told.push(format!("  leader: {decision:?} -> {said:?}"));
        self.check();
        said.unwrap_or_else(|refusal| self.broken(&format!("{decision:?} is refused: {refusal:?}")))
    }

    fn check(&self) {
        if self.checks
            && let Err(fault) = self.machine.check()
        {
            self.broken(&fault);
        }
    }

    /// The same call once more. With a stamp it is answered as before and changes nothing; without one that is so only
    /// for some calls, and others are not sent again.
    fn again(&mut self, sent: &Sent) {
        let Sent { stamp, process, request, said } = sent;
        // Refused for want of somebody else, it is asked again with the same number anyway.
        let is_asked_anew = matches!(
            said,
            Err(Refusal::FunctionUnknown { .. } | Refusal::NoStore { .. } | Refusal::SessionWindow { .. })
        );
        if is_asked_anew || (stamp.is_none() && !is_harmless_twice(request)) {
            return;
        }
        let before = self.machine.ray().map(|_| self.machine.shown());
        let again = self.apply_once(*stamp, *process, request);
        self.told.push(format!("  again: {request:?} -> {again:?}"));
        let expected = said.clone().map(|answer| Answer::Replayed(Box::new(answer)));
        let forgotten = matches!(again, Err(Refusal::AnswerForgotten));
        if stamp.is_some() && !forgotten && again != expected {
            self.broken(&format!("{request:?} again is answered with {again:?}, not {expected:?}"));
        }
        if before.is_some_and(|before| before != self.machine.shown()) {
            self.broken(&format!("{request:?} again, answered with {again:?}, changed something"));
        }
    }

    /// What a leader does of its own accord: it plans, tells peers, and notes what was done.
    fn engine(&mut self, blow: Option<Blow>) {
        if blow == Some(Blow::Unplanned) {
            self.kill();
            return;
        }
        if let Err(fault) = self.machine.schedule() {
            self.broken(&fault);
        }
        self.check();
        let open = self.machine.open_orders();
        let due: Vec<(OrderId, Order)> =
            open.into_iter().filter(|(id, _)| !self.given.contains(id)).collect();
        let most = match blow {
            Some(Blow::OrdersUnsent) => 0,
            Some(Blow::OrdersHalfSent) => due.len().div_ceil(2).min(1),
            _ => due.len(),
        };
        let mut done = Vec::new();
        for (id, order) in due.into_iter().take(most) {
            let there = self.peers.take(&order);
            self.told.push(format!("  order {order:?}{}", if there { "" } else { " to nobody" }));
            self.given.insert(id);
            if there {
                done.push(id);
            }
        }
        match blow {
            Some(Blow::OrdersUnsent | Blow::OrdersHalfSent | Blow::OrdersUnnoted) => self.kill(),
            _ if done.is_empty() => {}
            _ => drop(self.lead(&Decision::Done { orders: done })),
        }
    }

    /// The leader dies; another one comes, with nothing but the state as a snapshot brings it, and does all that there
    /// is to do.
    pub(super) fn kill(&mut self) {
        self.kills += 1;
        self.told.push("  the leader is killed".to_owned());
        if self.snapshots {
            match self.machine.through_a_snapshot() {
                Ok(machine) => self.machine = machine,
                Err(fault) => self.broken(&fault),
            }
        }
        self.given.clear();
        if self.machine.ray().is_none() {
            return;
        }
        self.term += 1;
        self.lead(&Decision::Rearm { term: Term(self.term) });
        self.engine(None);
        self.machine.now_ms += 5;
        let stores: Vec<StoreId> = self.peers.stores.keys().copied().collect();
        for store in stores {
            self.reconcile(store);
        }
        self.engine(None);
    }

    /// What was asked up to now does not come again.
    pub(super) fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// Compares what a store holds with the state, as each leader does when it begins and every minute.
    pub(super) fn reconcile(&mut self, store: StoreId) {
        let holds = self.peers.stores[&store].held.keys().copied().collect();
        let asked_ms = TimeMs(self.machine.now_ms);
        self.lead(&Decision::Reconcile { store, holds, asked_ms });
    }

    /// Lets the time pass until which a task or a worker is to wait.
    pub(super) fn wait_until_due(&mut self) {
        if let Some(due) = self.machine.scheduler().next_due(TimeMs(self.machine.now_ms)) {
            self.machine.now_ms = due.0;
        }
        self.engine(None);
    }
}

fn next(session: &mut Session) -> Stamp {
    session.last += 1;
    // The client has all answers but the last two.
    let acknowledged = session.last.saturating_sub(2).max(1);
    let (sequence, acknowledged_below) = (Sequence(session.last), Sequence(acknowledged));
    Stamp { session: session.id, sequence, acknowledged_below }
}

/// Calls that change nothing when they come twice in a row, whoever sends them.
fn is_harmless_twice(request: &Request) -> bool {
    match request {
        Request::RegisterFunction { .. }
        | Request::Alias { .. }
        | Request::Ready { .. }
        | Request::Contain { .. }
        | Request::KillWorkers
        | Request::ExportFunction { .. }
        | Request::ExportVariable { .. }
        | Request::Idle { previous: None, .. } => true,
        // With an attempt, a report is about that one only.
        Request::Idle { run, .. } => run.is_some(),
        _ => false,
    }
}

/// Of those, the ones that change nothing however late they come.
fn is_harmless_late(request: &Request) -> bool {
    matches!(request, Request::RegisterFunction { .. } | Request::Alias { .. } | Request::Contain { .. })
}

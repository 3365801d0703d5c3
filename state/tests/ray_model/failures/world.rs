//! The processes outside of the scheduler, and how they call it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use tripod_state::ids::Sequence;
use tripod_state::ray::ids::{
    ClientSession, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId,
};
use tripod_state::ray::{Answer, Decision, Registration, Request, Role, Run, Source, Stamp};

use crate::generate::Numbers;
use crate::machine::{Machine, Said};

/// What workers can do, and with how many results.
pub(super) const FUNCTIONS: [(&str, u64); 7] =
    [("value", 1), ("pair", 2), ("alias", 1), ("nest", 1), ("boom", 1), ("box", 1), ("write", 1)];

/// A call and what was said to it.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) stamp: Stamp,
    pub(super) process: Option<WorkerId>,
    pub(super) request: Request,
    pub(super) said: Said,
}

/// What a process remembers of its calls.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) id: ClientSession,
    pub(super) last: u64,
    /// The last calls, of which any may be sent again.
    pub(super) sent: VecDeque<Sent>,
}

/// A worker or a driver that lives.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) driver: bool,
    pub(super) store: StoreId,
    pub(super) session: Session,
    /// References that it has, by object.
    pub(super) handles: BTreeMap<ObjectId, u64>,
    /// Puts that it has not written yet.
    pub(super) unwritten: BTreeSet<ObjectId>,
    /// Tasks that it was told to execute, in order.
    pub(super) inbox: VecDeque<Run>,
    /// All that it was ever told: an order may come twice.
    pub(super) known: BTreeSet<Run>,
}

/// A store that lives.
#[derive(Clone)]
pub(super) struct Store {
    pub(super) session: Session,
    pub(super) holds: BTreeSet<ObjectId>,
    /// Values that say why there is none.
    pub(super) errors: BTreeSet<ObjectId>,
    pub(super) aliases: BTreeMap<ObjectId, ObjectId>,
    pub(super) fetching: BTreeMap<ObjectId, Source>,
}

pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) numbers: Numbers,
    pub(super) processes: BTreeMap<WorkerId, Process>,
    pub(super) stores: BTreeMap<StoreId, Store>,
    pub(super) sessions: u128,
    /// Orders that were carried out and are not reported so yet.
    pub(super) done: BTreeSet<OrderId>,
    /// How often a task may be begun.
    pub(super) budgets: BTreeMap<OperationId, u32>,
    pub(super) told: Vec<String>,
}

pub(super) fn name(text: &str) -> FunctionName {
    FunctionName(Bytes::from(text.to_owned()))
}

impl World {
    pub(super) fn started() -> Self {
        let mut world = Self {
            machine: Machine::started(),
            numbers: Numbers(0),
            processes: BTreeMap::new(),
            stores: BTreeMap::new(),
            sessions: 0,
            done: BTreeSet::new(),
            budgets: BTreeMap::new(),
            told: Vec::new(),
        };
        for seed in 0..2 {
            world.numbers = Numbers(seed);
            world.new_store();
            world.new_driver();
            world.new_worker();
        }
        world
    }

    /// Ends the history with the story so far.
    pub(super) fn broken(&self, law: &str) -> ! {
        panic!("{law}\n{}", self.told.join("\n"))
    }

    pub(super) fn session(&mut self) -> Session {
        self.sessions += 1;
        Session { id: ClientSession(self.sessions), last: 0, sent: VecDeque::new() }
    }

    /// Sends one call with a session's next number.
    pub(super) fn call(
        &mut self,
        session: &mut Session,
        process: Option<WorkerId>,
        request: Request,
    ) -> Said {
        session.last += 1;
        let stamp = Stamp {
            session: session.id,
            sequence: Sequence(session.last),
            acknowledged_below: Sequence(session.last.saturating_sub(3).max(1)),
        };
        let who = process.map_or_else(String::new, |process| format!("by {process}: "));
        let said = self.machine.ask_stamped(Some(stamp), process, request.clone()).0;
        self.told.push(format!("  {who}{request:?} -> {said:?}"));
        session.sent.push_back(Sent { stamp, process, request, said: said.clone() });
        if session.sent.len() > 3 {
            session.sent.pop_front();
        }
        self.check_laws();
        said
    }

    /// A call of a process; `None` if it is not alive, or is told that it is not: then it ends.
    pub(super) fn ask(&mut self, process: WorkerId, request: Request) -> Option<Said> {
        let mut session = self.processes.get(&process)?.session.clone();
        let said = self.call(&mut session, Some(process), request);
        if let Err(tripod_state::ray::Refusal::WorkerExpired { .. }) = said {
            self.processes.remove(&process);
            return None;
        }
        self.processes.get_mut(&process).expect("it asked").session = session;
        Some(said)
    }

    /// Like [`Self::ask`], of something that must not be refused to who lives.
    pub(super) fn must(&mut self, process: WorkerId, request: Request) -> Option<Answer> {
        let text = format!("{request:?}");
        match self.ask(process, request)? {
            Ok(answer) => Some(answer),
            Err(refusal) => self.broken(&format!("{text} of {process} was refused: {refusal:?}")),
        }
    }

    pub(super) fn lead(&mut self, decision: Decision) -> Answer {
        let text = format!("{decision:?}");
        let said = self.machine.lead(decision);
        self.told.push(format!("  leader: {text} -> {said:?}"));
        self.check_laws();
        match said {
            Ok(answer) => answer,
            Err(refusal) => self.broken(&format!("{text} was refused: {refusal:?}")),
        }
    }

    pub(super) fn store_address(store: StoreId) -> String {
        format!("10.0.{}.1:9000", store.0)
    }

    pub(super) fn new_store(&mut self) {
        if self.stores.len() < 4 {
            self.register_store();
        }
    }

    pub(super) fn register_store(&mut self) {
        let number = self.machine.ray().map_or(0, |ray| ray.stores().len() as u64);
        let mut session = self.session();
        let address = Self::store_address(StoreId(number));
        let said = self.call(&mut session, None, Request::RegisterStore { address });
        let Ok(Answer::Store(id)) = said else { self.broken("a store could not register") };
        let (holds, errors, fetching) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let store = Store { session, holds, errors, aliases: BTreeMap::new(), fetching };
        self.stores.insert(id, store);
    }

    fn living_store(&mut self) -> Option<StoreId> {
        let ids: Vec<_> = self.stores.keys().copied().collect();
        self.numbers.pick(&ids)
    }

    pub(super) fn new_driver(&mut self) {
        self.new_process(Role::Driver);
    }

    pub(super) fn new_worker(&mut self) {
        let Some(worker) = self.new_process(Role::Worker) else { return };
        for (function, results) in FUNCTIONS {
            let register = Request::RegisterFunction { worker, name: name(function), results };
            if self.must(worker, register).is_none() {
                return;
            }
        }
        self.must(worker, Request::Idle { worker, previous: None, run: None });
    }

    fn new_process(&mut self, role: Role) -> Option<WorkerId> {
        let driver = role == Role::Driver;
        let alike = self.processes.values().filter(|process| process.driver == driver).count();
        if alike >= if driver { 3 } else { 6 } {
            return None;
        }
        let store = Self::store_address(self.living_store()?);
        let slots = 1 + self.numbers.below(3) as u32;
        let host = "10.9.9.9".to_owned();
        let asked = Registration { host, store, role, attributed: true, extended: true, slots };
        let mut session = self.session();
        let said = self.call(&mut session, None, Request::RegisterWorker(asked));
        let (id, store) = match said {
            Ok(Answer::Worker { worker, store, .. }) => (worker, store),
            // The store died, and the scheduler knows it already.
            Err(tripod_state::ray::Refusal::NoStore { .. }) => return None,
            other => self.broken(&format!("a process could not register: {other:?}")),
        };
        let process = Process {
            driver,
            store,
            session,
            handles: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            inbox: VecDeque::new(),
            known: BTreeSet::new(),
        };
        self.processes.insert(id, process);
        Some(id)
    }

    pub(super) fn pick_process(&mut self, driver: bool) -> Option<WorkerId> {
        let alike: Vec<_> = self
            .processes
            .iter()
            .filter(|(_, process)| process.driver == driver)
            .map(|(id, _)| *id)
            .collect();
        self.numbers.pick(&alike)
    }
}

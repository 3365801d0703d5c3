//! One history in the model and in the real scheduler, compared after every call.

use std::collections::{BTreeMap, BTreeSet};

use tripod_state::ray::ids::{ObjectId, OrderId, StoreId, WorkerId};
use tripod_state::ray::view::{Info, TaskInfo};
use tripod_state::ray::{Algorithm, Decision, Order, Request, Source};

use crate::generate::{Call, Choice, calls};
use crate::machine::Machine;
use crate::upstream::{Sent, Upstream, Verdict, agrees};

/// The model and the real scheduler.
pub(crate) struct Pair {
    pub(crate) model: Upstream,
    pub(crate) machine: Machine,
    /// From which store each object that is on its way was ordered.
    sources: BTreeMap<(StoreId, ObjectId), StoreId>,
    told: Vec<String>,
}

/// Runs a history.
///
/// # Errors
/// Where the two differ, and the calls up to there.
pub(crate) fn compare(algorithm: Algorithm, choices: &[Choice]) -> Result<(), String> {
    let mut pair = Pair::new(algorithm);
    for choice in choices {
        for call in calls(&pair.model, *choice) {
            if let Err(fault) = pair.step(call) {
                return Err(format!("{fault}\n{}", pair.told.join("\n")));
            }
        }
    }
    Ok(())
}

impl Pair {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        let mut machine = Machine::started();
        if algorithm == Algorithm::Naive {
            machine.lead(Decision::SetAlgorithm(algorithm)).expect("there are two algorithms");
        }
        let (model, sources) = (Upstream::new(algorithm), BTreeMap::new());
        Self { model, machine, sources, told: Vec::new() }
    }

    /// One call in both; what was said and sent, as the model has it.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn step(&mut self, (process, request): Call) -> Result<(Verdict, Vec<Sent>), String> {
        self.told.push(format!("  {process:?} {request:?}"));
        self.machine.now_ms += 7;
        let (verdict, sent) = self.model.ask(process, &request);
        let before = verdict.is_err().then(|| self.machine.ray().cloned());
        let said = self.machine.ask(process, request.clone());
        if !agrees(&verdict, &said) {
            return Err(format!("{request:?} is answered with {said:?}, the model says {verdict:?}"));
        }
        if before.is_some_and(|before| before.as_ref() != self.machine.ray()) {
            return Err(format!("{request:?} was refused with {said:?}, but it changed the state"));
        }
        self.machine.check()?;
        let assigned = self.machine.schedule()?;
        let orders = self.machine.new_orders();
        self.compare_sent(&request, &sent, &orders)?;
        if !assigned.is_empty() {
            self.machine.check()?;
        }
        self.compare_views()?;
        // Most orders are carried out at once, some late, so that both happen.
        if !self.machine.index.is_multiple_of(3) {
            let orders = self.machine.open_orders().into_iter().map(|(id, _)| id).collect();
            let done = self.machine.lead(Decision::Done { orders });
            done.map_err(|refusal| format!("that orders were carried out is refused: {refusal:?}"))?;
        }
        Ok((verdict, sent))
    }

    fn compare_sent(
        &mut self,
        request: &Request,
        sent: &[Sent],
        orders: &[(OrderId, Order)],
    ) -> Result<(), String> {
        let real: Vec<Sent> = orders.iter().map(|(_, order)| Sent::from(order)).collect();
        let difference = || format!("after {request:?} the model sends {sent:?}, the orders are {orders:?}");
        if by_worker(sent) != by_worker(&real) || stores(sent) != stores(&real) {
            return Err(difference());
        }
        if let Request::Ready { object, store, .. } = request {
            self.sources.remove(&(*store, *object));
        }
        for (_, order) in orders {
            let Order::Deliver { store, from, object } = order else { continue };
            let Source::Store(from) = *from else { return Err(difference()) };
            let outgoing = |store: &StoreId| self.sources.values().filter(|from| *from == store).count();
            let best = self.model.locations(*object).iter().min_by_key(|store| (outgoing(store), **store));
            if best != Some(&from) {
                let sources = &self.sources;
                return Err(format!("{order:?} should be from {best:?}; on their way are {sources:?}"));
            }
            self.sources.insert((*store, *object), from);
        }
        Ok(())
    }

    fn compare_views(&self) -> Result<(), String> {
        let real = self.machine.ray().map(|ray| (ray.info(), ray.task_info()));
        let (info, tasks): (Info, TaskInfo) = real.unwrap_or_default();
        let (model, model_tasks) = (self.model.info(), self.model.task_info());
        if info != model {
            return Err(format!("the scheduler shows {info:?}\nthe model shows {model:?}"));
        }
        if tasks != model_tasks {
            return Err(format!("the scheduler shows {tasks:?}\nthe model shows {model_tasks:?}"));
        }
        Ok(())
    }
}

/// What each worker is told, in order.
fn by_worker(sent: &[Sent]) -> BTreeMap<WorkerId, Vec<Sent>> {
    let mut by_worker: BTreeMap<WorkerId, Vec<Sent>> = BTreeMap::new();
    for sent in sent {
        if let Sent::Execute(worker, _) | Sent::Import(worker, _) | Sent::Die(worker) = sent {
            by_worker.entry(*worker).or_default().push(*sent);
        }
    }
    by_worker
}

/// What stores are told, each thing once: the original repeated what aliases mean for each get and argument.
fn stores(sent: &[Sent]) -> BTreeSet<Sent> {
    let to_store =
        |sent: &&Sent| matches!(sent, Sent::Deliver(..) | Sent::NotifyAlias(..) | Sent::Deallocate(..));
    sent.iter().filter(to_store).copied().collect()
}

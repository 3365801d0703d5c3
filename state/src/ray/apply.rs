//! The match over all commands of a scheduler, and exactly-once execution.

use crate::command::{Effect, Reply as AnyReply};
use crate::fault::Fault;
use crate::ids::{FeatureLevel, TimeMs};
use crate::job::turn::Turn;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::answer::Answer;
use crate::ray::command::{Algorithm, Command, Decision, Origin, Request};
use crate::ray::export::Export;
use crate::ray::ids::OrderId;
use crate::ray::limits::{BATCH_MAX, NAME_BYTES_MAX, at_most};
use crate::ray::order::Order;
use crate::ray::refusal::Refusal;
use crate::ray::register::invalid;
use crate::ray::resources::{Needs, Offers};
use crate::ray::session::Reply;
use crate::ray::submit::Submission;
use crate::wait::DomainId;

/// When a command is applied, and what commands mean then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: TimeMs,
    pub(crate) level: FeatureLevel,
}

impl Turn<'_> {
    /// A scheduler begins with the first command that leaves something in it.
    pub(crate) fn ray(&mut self, command: Command) -> AnyReply {
        let now = Moment { now: self.context.now_ms, level: self.level };
        let (reply, changed) = match self.job.domains.ray.as_deref_mut() {
            Some(ray) => ray.apply(now, command),
            None => {
                let mut ray = Ray::default();
                let done = ray.apply(now, command);
                if ray != Ray::default() {
                    self.job.domains.ray = Some(Box::new(ray));
                }
                done
            }
        };
        if changed {
            self.effect(Effect::DomainChanged { domain: DomainId::Ray, job: self.job.id });
        }
        reply.map(crate::Answer::Ray).map_err(Fault::Ray)
    }
}

impl Ray {
    /// The answer, and whether there may be something to plan, to order or to tell.
    fn apply(&mut self, now: Moment, command: Command) -> (Reply, bool) {
        match command {
            Command::Ask { scope: _, origin, request } => self.ask(now, origin, request),
            Command::Lead { scope: _, decision } => self.lead(now, decision),
        }
    }

    fn ask(&mut self, now: Moment, origin: Origin, request: Request) -> (Reply, bool) {
        if let Some(stamp) = origin.stamp
            && let Some(reply) = self.sessions.admit(stamp, now.now)
        {
            return (reply, false);
        }
        let reply = self.execute(now, origin, request);
        if let Some(stamp) = origin.stamp
            && !is_asked_again(&reply)
        {
            self.sessions.remember(stamp, &reply);
        }
        let changed = match &reply {
            Ok(Answer::Batch(replies)) => replies.iter().any(Result::is_ok),
            Ok(_) => true,
            Err(_) => false,
        };
        (reply, changed)
    }

    fn execute(&mut self, now: Moment, origin: Origin, request: Request) -> Reply {
        let Request::Batch(requests) = request else { return self.execute_one(now, origin, request) };
        at_most("requests in a batch", requests.len() as u64, BATCH_MAX)?;
        let each = requests.into_iter().map(|request| match request {
            Request::Batch(_) => Err(invalid("requests", "must not be batches".to_owned())),
            request => self.execute_one(now, origin, request),
        });
        Ok(Answer::Batch(each.collect()))
    }

    fn execute_one(&mut self, now: Moment, origin: Origin, request: Request) -> Reply {
        let mut act = Act::new(self, now);
        let reply = act.request(origin, request);
        act.settle();
        if reply.is_ok() {
            act.tidy();
        }
        reply
    }

    fn lead(&mut self, now: Moment, decision: Decision) -> (Reply, bool) {
        let mut act = Act::new(self, now);
        let (answer, changed) = act.decide(decision);
        act.settle();
        act.tidy();
        (Ok(answer), changed)
    }
}

/// Whether a client asks the same again with the same number until the answer is another one.
fn is_asked_again(reply: &Reply) -> bool {
    matches!(reply, Err(Refusal::FunctionUnknown { .. } | Refusal::NoStore { .. }))
}

impl Act<'_> {
    fn request(&mut self, origin: Origin, request: Request) -> Reply {
        match request {
            Request::RegisterStore { address } => self.register_store(address),
            Request::RegisterWorker(wanted) => self.register_worker(wanted, Offers::default()),
            Request::RegisterFunction { worker, name, results } => {
                self.register_function(worker, name, results)
            }
            Request::Submit { worker, task, options, child, hint } => {
                let needs = Needs::default();
                self.submit(origin, Submission { worker, task, options, child, hint, needs })
            }
            Request::Put { worker, child, hold } => self.put(origin, worker, child, hold),
            Request::Get { worker, object } => self.get(worker, object),
            Request::Alias { alias, target, run } => self.alias(alias, target, run),
            Request::Ready { object, store, run } => self.ready(object, store, run),
            Request::FetchFailed { object, store, why } => self.fetch_failed(object, store, &why),
            Request::AddReferences { objects } => self.add_references(origin, &objects),
            Request::DropReferences { objects } => self.drop_references(origin, &objects),
            Request::Contain { object, contained } => self.contain(origin, object, &contained),
            Request::Idle { worker, previous, run } => self.idle(worker, previous, run),
            Request::GiveBack { worker, runs } => self.give_back(worker, &runs),
            Request::KillWorkers => Ok(self.kill_workers()),
            Request::ExportFunction { body } => self.export(Export { variable: None, body }),
            Request::ExportVariable { name, body } => {
                at_most("bytes of a name", name.0.len() as u64, NAME_BYTES_MAX)?;
                self.export(Export { variable: Some(name), body })
            }
            Request::Batch(_) => Err(invalid("requests", "must not be batches".to_owned())),
            Request::Leave { peer } => self.leave(peer),
            Request::SubmitWith { worker, task, options, child, hint, needs } => {
                self.submit(origin, Submission { worker, task, options, child, hint, needs })
            }
            Request::RegisterWorkerWith { registration, offers } => {
                self.register_worker(registration, offers)
            }
            Request::Cancel { worker, object, grace_ms } => self.cancel_task(worker, object, grace_ms),
            Request::Describe { object, run, description } => self.describe(origin, object, run, description),
        }
    }

    /// What does not hold any more has no effect, so nothing is refused.
    fn decide(&mut self, decision: Decision) -> (Answer, bool) {
        let changed = match decision {
            Decision::Assign(planned) => {
                let taken = self.assign_all(&planned);
                return (Answer::Assigned { taken }, taken > 0);
            }
            Decision::Done { orders } => {
                let mut changed = false;
                for order in orders {
                    changed |= self.done(order);
                }
                changed
            }
            Decision::Undelivered { runs } => self.undelivered(&runs),
            Decision::Expire { peers } => self.expire(&peers),
            Decision::Reconcile { store, holds, asked_ms } => self.reconcile(store, &holds, asked_ms),
            Decision::DeliveryFailed { store, object } => self.delivery_failed(store, object),
            Decision::ExpireSessions { before_ms } => self.ray.sessions.expire(before_ms),
            Decision::Rearm { term } => {
                self.ray.armed = Some((term, self.now));
                self.rearm_cancelling();
                true
            }
            Decision::SetAlgorithm(algorithm) => self.choose(algorithm),
            Decision::Unreported { runs } => self.unreported(&runs),
            Decision::Overdue { runs } => self.overdue(&runs),
        };
        (Answer::Done, changed)
    }

    /// An order was carried out.
    fn done(&mut self, order: OrderId) -> bool {
        if let Some(Order::Deallocate { object, .. }) = self.ray.outbox.get(order).cloned()
            && self.ray.objects.contains_key(&object)
        {
            self.ray.object_mut(object).freed_ms = Some(self.now);
        }
        self.ray.outbox.remove(order)
    }

    fn choose(&mut self, algorithm: Algorithm) -> bool {
        let changed = self.ray.algorithm != algorithm;
        if changed {
            self.ray.algorithm = algorithm;
            self.ray.derive_queue();
        }
        changed
    }
}

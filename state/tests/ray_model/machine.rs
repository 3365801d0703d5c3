//! A state with one job, and short words for what the tests do to its scheduler.

use tripod_state::ids::{FeatureLevel, JobId, LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::job::Spec;
use tripod_state::ray::ids::{OrderId, WorkerId};
use tripod_state::ray::view;
use tripod_state::ray::{
    Answer, Assignment, Command as Ray, Decision, Order, Origin, Ray as Scheduler, Refusal,
};
use tripod_state::ray::{Request, Stamp};
use tripod_state::state::Outcome;
use tripod_state::{
    Answer as AnyAnswer, ApplyContext, Command, Effect, Envelope, Fault, Scope, State, job, level,
};

/// The newest: what levels brought differs from upstream only where a test says so.
const LEVEL: FeatureLevel = level::NEWEST;
/// The job is made by the second entry of the log.
pub(crate) const JOB: JobId = JobId(2);
const SCOPE: Scope = Scope { job: JOB, service: None };

/// A scheduler's answer or refusal.
pub(crate) type Said = Result<Answer, Refusal>;

/// A state, its place in the log, its clock, and the newest order that was seen.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) index: u64,
    pub(crate) now_ms: u64,
    seen: Option<OrderId>,
}

impl Machine {
    pub(crate) fn started() -> Self {
        let mut machine = Self { state: State::default(), index: 0, now_ms: 1_000, seen: None };
        let raise = level::Command::Raise { to: LEVEL, heard: Vec::new() };
        let raised = machine.apply(Command::Level(raise)).reply;
        assert_eq!(raised, Ok(AnyAnswer::Done));
        let create = job::Command::Create {
            name: "w".to_owned(),
            spec: Spec::of_tasks(1),
            service: ServiceIncarnation(99),
        };
        let created = machine.apply(Command::Job(create)).reply;
        assert!(matches!(created, Ok(AnyAnswer::Job(job)) if job.id == JOB));
        machine
    }

    pub(crate) fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let context =
            ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(self.now_ms) };
        self.state.apply(&context, Envelope { stamp: None, command })
    }

    /// A request of `process`, or of nobody who says who he is.
    pub(crate) fn ask(&mut self, process: Option<WorkerId>, request: Request) -> Said {
        self.ask_stamped(None, process, request).0
    }

    /// With the effects.
    pub(crate) fn ask_stamped(
        &mut self,
        stamp: Option<Stamp>,
        process: Option<WorkerId>,
        request: Request,
    ) -> (Said, Vec<Effect>) {
        let outcome =
            self.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin: Origin { stamp, process }, request }));
        (said(outcome.reply), outcome.effects)
    }

    pub(crate) fn lead(&mut self, decision: Decision) -> Said {
        said(self.apply(Command::Ray(Ray::Lead { scope: SCOPE, decision })).reply)
    }

    /// Plans and assigns until nothing is planned; what was assigned.
    ///
    /// # Errors
    /// A plan that apply does not take, though nothing came in between.
    pub(crate) fn schedule(&mut self) -> Result<Vec<Assignment>, String> {
        let mut assigned = Vec::new();
        loop {
            let most = 1 + self.index as usize % 3;
            let planned = self.ray().map(|ray| ray.plan(TimeMs(self.now_ms), most)).unwrap_or_default();
            if planned.is_empty() {
                return Ok(assigned);
            }
            let taken = self.lead(Decision::Assign(planned.clone()));
            if taken != Ok(Answer::Assigned { taken: planned.len() as u64 }) {
                return Err(format!("the plan {planned:?} was answered with {taken:?}"));
            }
            assigned.extend(planned);
        }
    }

    pub(crate) fn ray(&self) -> Option<&Scheduler> {
        self.state.ray(JOB)
    }

    /// Like [`Self::ray`], once there was a request.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.ray().expect("something was asked before")
    }

    /// The orders since this was called last.
    pub(crate) fn new_orders(&mut self) -> Vec<(OrderId, Order)> {
        let orders = self.ray().map(|ray| ray.orders(self.seen, usize::MAX)).unwrap_or_default();
        if let Some((last, _)) = orders.last() {
            self.seen = Some(*last);
        }
        orders
    }

    /// All orders that are still to be carried out.
    pub(crate) fn open_orders(&self) -> Vec<(OrderId, Order)> {
        self.ray().map(|ray| ray.orders(None, usize::MAX)).unwrap_or_default()
    }

    /// Everything that can be seen of the scheduler.
    pub(crate) fn shown(&self) -> (view::Info, view::TaskInfo, Vec<view::Worker>, Vec<(OrderId, Order)>) {
        let ray = self.scheduler();
        (ray.info(), ray.task_info(), ray.workers(), self.open_orders())
    }

    /// What the scheduler says of its own books.
    ///
    /// # Errors
    /// The first thing that does not add up.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.ray().map_or(Ok(()), Scheduler::check)
    }

    /// The state as a snapshot brings it back.
    ///
    /// # Errors
    /// That it is another one.
    pub(crate) fn through_a_snapshot(&self) -> Result<Self, String> {
        let records: Vec<_> = self.state.records().collect();
        let state = State::from_records(records.into_iter()).map_err(|malformed| malformed.to_string())?;
        if state != self.state {
            return Err("the state is another one behind a snapshot".to_owned());
        }
        if state.digest() != self.state.digest() {
            return Err("the digest is another one behind a snapshot".to_owned());
        }
        Ok(Self { state, ..self.clone() })
    }
}

fn said(reply: Result<AnyAnswer, Fault>) -> Said {
    match reply {
        Ok(AnyAnswer::Ray(answer)) => Ok(answer),
        Err(Fault::Ray(refusal)) => Err(refusal),
        other => panic!("no scheduler says {other:?}"),
    }
}

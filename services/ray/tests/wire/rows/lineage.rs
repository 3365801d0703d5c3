//! F13 over the wire: more tasks than are remembered, all done by a worker whose store is then lost. They are prepared in
//! the state: together they are as large as all lineage may be.

use std::sync::OnceLock;

use bytes::Bytes;
use tripod_state::ids::{JobId, LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, Reason};
use tripod_state::ray::{
    self, Argument, Decision, Origin, Peer, Previous, Registration, Request, Role, Task, TaskOptions, limits,
};
use tripod_state::{Answer, ApplyContext, Command, Envelope, Scope, State, job, level};

use super::play::everywhere;
use crate::support::Kind;

/// Nobody listens there.
const STORE: &str = "127.0.0.1:1";
const TASKS: u64 = limits::LINEAGE_BYTES_MAX / limits::TASK_BYTES_MAX + 4;
const DRIVER: WorkerId = WorkerId(0);
const WORKER: WorkerId = WorkerId(1);

fn with_much_lineage() -> Kind {
    static PREPARED: OnceLock<State> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| Log::new().prepared()).clone();
    Kind { prepared: Some(prepared), ..Kind::default() }
}

struct Log {
    state: State,
    index: u64,
    scope: Scope,
}

impl Log {
    fn new() -> Self {
        // The job is made by the second entry.
        let scope = Scope { job: JobId(2), service: None };
        Self { state: State::default(), index: 0, scope }
    }

    fn apply(&mut self, command: Command) -> Answer {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(1) };
        let outcome = self.state.apply(&context, Envelope { stamp: None, command });
        outcome.reply.expect("it is not refused")
    }

    fn ask(&mut self, request: Request) {
        let (scope, origin) = (self.scope, Origin::default());
        self.apply(Command::Ray(ray::Command::Ask { scope, origin, request }));
    }

    fn register(&mut self, role: Role) {
        self.ask(Request::RegisterWorker(Registration {
            host: "127.0.0.1".to_owned(),
            store: STORE.to_owned(),
            role,
            attributed: false,
            extended: true,
            slots: 1,
        }));
    }

    /// The task is submitted, given out and done.
    fn run(&mut self, body: &Bytes) {
        let value = Argument::Value { bytes: body.clone(), nested: Vec::new() };
        let name = FunctionName("f".into());
        let task = Task { name, arguments: vec![value], results_given: 0 };
        let options = TaskOptions::default();
        self.ask(Request::Submit { worker: DRIVER, task, options, child: None, hint: None });
        let scheduler = || self.state.ray(self.scope.job).expect("there is one");
        let (planned, result) = (scheduler().plan(TimeMs(1), 1), scheduler().info().counts.len() - 1);
        let decision = Decision::Assign(planned);
        self.apply(Command::Ray(ray::Command::Lead { scope: self.scope, decision }));
        let object = ObjectId(result as u64);
        self.ask(Request::Ready { object, store: StoreId(0), run: None });
        let previous = Some(Previous { succeeded: true, error: Bytes::new() });
        self.ask(Request::Idle { worker: WORKER, previous, run: None });
    }

    fn prepared(mut self) -> State {
        self.apply(Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() }));
        let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(7));
        let create = job::Command::Create { name: "default".to_owned(), spec, service };
        let created = self.apply(Command::Job(create));
        assert!(matches!(&created, Answer::Job(job) if job.id == self.scope.job), "{created:?}");
        self.ask(Request::RegisterStore { address: STORE.to_owned() });
        self.register(Role::Driver);
        self.register(Role::Worker);
        self.ask(Request::RegisterFunction { worker: WORKER, name: FunctionName("f".into()), results: 1 });
        self.ask(Request::Idle { worker: WORKER, previous: None, run: None });
        let body = Bytes::from(vec![0; usize::try_from(limits::TASK_BYTES_MAX).expect("small")]);
        for _ in 0..TASKS {
            self.run(&body);
        }
        self.state
    }
}

#[tokio::test(start_paused = true)]
async fn f13_what_was_made_by_a_task_that_is_forgotten_is_told_to_be_so() {
    everywhere(with_much_lineage, |play| {
        Box::pin(async move {
            let near = play.cluster.store().await;
            let driver = play.cluster.driver(&near).await;
            play.cluster.expire(vec![Peer::Store(StoreId(0))]).await;
            play.step().await;
            play.get(driver, 0).await;
            let node = play.cluster.address.clone();
            play.fetches_failed(&near, 0, &node).await;
            let Some(Availability::Failed(failure)) = play.cluster.availability(0) else {
                panic!("it cannot be made again");
            };
            assert_eq!(failure.reason, Reason::LineageEvicted);
            let last = play.cluster.availability(TASKS - 1);
            assert_eq!(last, Some(Availability::Pending), "it is made again");
        })
    })
    .await;
}

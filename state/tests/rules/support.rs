//! A state machine with short words for what the tests do.

use tripod_state::ids::{
    BarrierCounter, ClientId, DurationMs, Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId, Term,
    TimeMs,
};
use tripod_state::job::{Poll, Spec};
use tripod_state::{
    Answer, ApplyContext, Command, Envelope, Reply, Scope, Stamp, State, Ticket, barrier, job, runtime, task,
};

pub(crate) const SCOPE: Scope = Scope { job: JobId(1), service: None };

/// A state and the index of its last command.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) index: u64,
}

impl Machine {
    /// With job 1, whose tasks are connected with incarnation 1.
    pub(crate) fn with_tasks(tasks: u32) -> Self {
        let mut machine = Self::default();
        machine.create("w", tasks).expect("the name is free");
        for task in 0..tasks {
            let task = TaskId(i32::try_from(task).expect("tests are small"));
            let incarnation = Incarnation(1);
            let _ = machine.task(task::Command::Register {
                scope: SCOPE,
                task,
                incarnation,
                recoverable: false,
                protocol: task::Protocol::Xla,
            });
        }
        let connected = machine.state.job(JobId(1)).map(|job| job.tasks_connected);
        assert_eq!(connected, Some(tasks));
        machine
    }

    pub(crate) fn apply(&mut self, command: Command) -> Reply {
        self.apply_stamped(None, command)
    }

    pub(crate) fn apply_stamped(&mut self, stamp: Option<Stamp>, command: Command) -> Reply {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(1_000) };
        self.state.apply(&context, Envelope { stamp, command }).reply
    }

    pub(crate) fn create(&mut self, name: &str, tasks: u32) -> Reply {
        let spec =
            Spec { heartbeat_timeout_ms: DurationMs(10_000), poll: Poll::Hold, ..Spec::of_tasks(tasks) };
        let service = ServiceIncarnation(99);
        self.apply(Command::Job(job::Command::Create { name: name.to_owned(), spec, service }))
    }

    pub(crate) fn task(&mut self, command: task::Command) -> Reply {
        self.apply(Command::Task(command))
    }

    /// Connects all tasks to the runtime of job 1.
    pub(crate) fn connect_runtime(&mut self, tasks: i32) {
        for task in (0..tasks).map(TaskId) {
            let command = runtime::Command::Connect { scope: SCOPE, task, client: ClientId(1) };
            self.apply(Command::Runtime(command)).expect("not all have connected");
        }
    }

    pub(crate) fn arrive(&mut self, barrier: &str, counter: i64, task: i32) -> Reply {
        self.apply(Command::Barrier(barrier::Command::Arrive {
            scope: SCOPE,
            barrier: barrier.to_owned(),
            counter: BarrierCounter(counter),
            timeout_ms: 5_000,
            tasks: Vec::new(),
            task: TaskId(task),
        }))
    }

    pub(crate) fn cancel(&mut self, barrier: &str, counter: i64, task: i32) -> Reply {
        self.apply(Command::Barrier(barrier::Command::Cancel {
            scope: SCOPE,
            barrier: barrier.to_owned(),
            counter: BarrierCounter(counter),
            task: TaskId(task),
        }))
    }
}

/// The ticket of a call that waits.
pub(crate) fn ticket(reply: Reply) -> Ticket {
    match reply {
        Ok(Answer::Waiting(ticket)) => ticket,
        other => panic!("it should wait, but {other:?}"),
    }
}

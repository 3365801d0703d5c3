//! What the state says that it takes, beside what the process takes for it. Prints a table.
//! `cargo run -p tripod-state --example memory`

use bytes::Bytes;
use tripod_state::ids::{
    BarrierCounter, Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId, Term, TimeMs,
};
use tripod_state::job::Spec;
use tripod_state::ray::ids::{FunctionName, StoreId, WorkerId};
use tripod_state::ray::{Argument, Command as Ray, Origin, Registration, Request, Role, Task, TaskOptions};
use tripod_state::{ApplyContext, Command, Envelope, Scope, State, barrier, job, kv, level, task};

const SCOPE: Scope = Scope { job: JobId(2), service: None };
const TASKS: u32 = 1_000_000;

/// Bytes of memory of this process that are in use.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("there is /proc");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4_096
}

#[derive(Default)]
struct Machine {
    state: State,
    index: u64,
}

impl Machine {
    /// With a job of many tasks.
    fn started() -> Self {
        let mut machine = Self::default();
        machine.apply(Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() }));
        let (spec, service) = (Spec::of_tasks(TASKS), ServiceIncarnation(1));
        machine.apply(Command::Job(job::Command::Create { name: "a".to_owned(), spec, service }));
        machine
    }

    fn apply(&mut self, command: Command) {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(1) };
        let reply = self.state.apply(&context, Envelope { stamp: None, command }).reply;
        assert!(reply.is_ok(), "{reply:?}");
    }

    fn ask(&mut self, request: Request) {
        self.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin: Origin::default(), request }));
    }

    fn arrive(&mut self, name: String, tasks: Vec<TaskId>, task: i32) {
        self.apply(Command::Barrier(barrier::Command::Arrive {
            scope: SCOPE,
            barrier: name,
            counter: BarrierCounter(0),
            timeout_ms: 1_000_000,
            tasks,
            task: TaskId(task),
        }));
    }
}

fn row(what: &str, work: impl Fn(&mut Machine)) {
    let before = resident();
    let mut machine = Machine::started();
    work(&mut machine);
    let (counted, taken) = (machine.state.bytes() >> 20, resident().saturating_sub(before) >> 20);
    println!("{what:60} counted {counted:6} MiB   resident {taken:6} MiB");
    // The next one is to find no memory that is free already.
    std::mem::forget(machine);
}

fn main() {
    row("100,000 barriers, names of 4 KiB, one arrival each", |machine| {
        for number in 0..100_000 {
            machine.arrive(format!("{number:04096}"), Vec::new(), 0);
        }
    });
    row("1,000 barriers of 20,000 members", |machine| {
        for number in 0..1_000 {
            machine.arrive(format!("b{number}"), (0..20_000).map(TaskId).collect(), 0);
        }
    });
    row("300,000 barriers with short names", |machine| {
        for number in 0..300_000 {
            machine.arrive(format!("step {number}"), Vec::new(), 0);
        }
    });
    row("1,000,000 tasks that register", |machine| {
        for number in 0..1_000_000 {
            machine.apply(Command::Task(task::Command::Register {
                scope: SCOPE,
                task: TaskId(number),
                incarnation: Incarnation(1),
                recoverable: false,
                protocol: task::Protocol::Xla,
            }));
        }
    });
    row("500,000 keys with values of 16 bytes", |machine| {
        for number in 0..500_000_u32 {
            let (key, value) = (format!("directory/{number}"), Bytes::from(vec![7; 16]));
            machine.apply(Command::Kv(kv::Command::Insert { scope: SCOPE, key, value, overwrite: true }));
        }
    });
    row("200,000 tasks of a scheduler, with 100 bytes each", |machine| {
        machine.ask(Request::RegisterStore { address: "10.0.0.1:1".to_owned() });
        for role in [Role::Driver, Role::Worker] {
            machine.ask(Request::RegisterWorker(Registration {
                host: "10.0.0.1".to_owned(),
                store: String::new(),
                role,
                attributed: true,
                extended: true,
                slots: 1,
            }));
        }
        let name = FunctionName(Bytes::from_static(b"f"));
        machine.ask(Request::RegisterFunction { worker: WorkerId(1), name: name.clone(), results: 1 });
        for _ in 0..200_000 {
            let arguments = vec![Argument::Value { bytes: Bytes::from(vec![7; 100]), nested: Vec::new() }];
            machine.ask(Request::Submit {
                worker: WorkerId(0),
                task: Task { name: name.clone(), arguments, results_given: 0 },
                options: TaskOptions::default(),
                child: None,
                hint: None,
            });
        }
        for object in 0..100_000 {
            let object = tripod_state::ray::ids::ObjectId(object);
            machine.ask(Request::Ready { object, store: StoreId(0), run: None });
        }
    });
}

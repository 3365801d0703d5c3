//! Nothing grows without end.

use bytes::Bytes;
use tripod_state::barrier::{REGISTER_BARRIER, What};
use tripod_state::ids::{
    BarrierCounter, BarrierName, Incarnation, JobId, JobName, JobSlot, LogIndex, Sequence, SessionId, TaskId,
    Term, TimeMs,
};
use tripod_state::job::Command as JobCommand;
use tripod_state::limits::{
    ANSWER_BYTES_MAX, BARRIER_NAME_BYTES_MAX, DEVICES_BYTES_MAX, GROUPS_MAX, JOB_SLOTS_MAX, JOB_TASKS_MAX,
    LISTED_ANYWAY, SESSION_WINDOW, SESSIONS_MAX, VALUE_BYTES_MAX, WAITS_LOOKED_AT_MAX,
};
use tripod_state::runtime::BarrierId;
use tripod_state::{
    Answer, ApplyContext, Command, Envelope, Fault, Scope, Stamp, barrier, job, kv, ray, runtime, session,
    task,
};

use crate::support::{Machine, SCOPE};

#[test]
fn job_slots_are_used_again_from_the_lowest() {
    let mut machine = Machine::default();
    for job in 0..JOB_SLOTS_MAX {
        machine.create(&format!("job-{job}"), 1).expect("there is a slot");
    }
    assert_eq!(machine.create("one-more", 1), Err(Fault::JobSlotsTaken { slots: JOB_SLOTS_MAX }));
    machine.create("default", 1).expect("it needs no slot");
    for name in ["job-70", "job-7"] {
        machine.apply(Command::Job(JobCommand::Delete { name: name.to_owned() })).expect("it is there");
    }
    let Ok(Answer::Job(job)) = machine.create("one-more", 1) else { panic!("there are free slots") };
    assert_eq!(job.slot, Some(JobSlot(7)));
    assert_eq!(machine.state.job_slots().len(), usize::from(JOB_SLOTS_MAX) - 1);
}

#[test]
fn f14_a_directory_of_more_bytes_than_an_answer_may_have_is_refused() {
    let mut machine = Machine::with_tasks(1);
    let value = Bytes::from(vec![0; VALUE_BYTES_MAX]);
    for key in ["dir/1", "dir/2", "dir/3", "dir/sub/4"] {
        let (key, value) = (key.to_owned(), value.clone());
        let insert = kv::Command::Insert { scope: SCOPE, key, value, overwrite: true };
        machine.apply(Command::Kv(insert)).expect("there is room");
    }
    let refused = machine.state.directory(SCOPE, "dir");
    assert!(matches!(refused, Err(Fault::LimitExceeded { limit: ANSWER_BYTES_MAX, .. })), "too large");
    assert_eq!(machine.state.directory(SCOPE, "dir/sub").expect("it is one value").len(), 1);
}

#[test]
fn sessions_are_counted() {
    let mut machine = Machine::default();
    for _ in 0..SESSIONS_MAX {
        machine.apply(Command::Session(session::Command::Open)).expect("there is room");
    }
    let refused = machine.apply(Command::Session(session::Command::Open));
    assert!(matches!(refused, Err(Fault::LimitExceeded { .. })));
    machine.apply(Command::Session(session::Command::Close { session: SessionId(1) })).expect("it is open");
    machine.apply(Command::Session(session::Command::Open)).expect("there is room again");
}

#[test]
fn a_session_remembers_no_more_than_its_window() {
    let mut machine = Machine::with_tasks(1);
    let Ok(Answer::Session(session)) = machine.apply(Command::Session(session::Command::Open)) else {
        panic!("there is room");
    };
    let increment = || {
        let key = "n".to_owned();
        Command::Kv(kv::Command::Increment { scope: SCOPE, key, by: 1, caller: None })
    };
    let stamp = |sequence, acknowledged_below| {
        let acknowledged_below = Sequence(acknowledged_below);
        Some(Stamp { session, sequence: Sequence(sequence), acknowledged_below })
    };
    for sequence in 1..=SESSION_WINDOW {
        machine.apply_stamped(stamp(sequence, 1), increment()).expect("within the window");
    }
    let ahead = machine.apply_stamped(stamp(SESSION_WINDOW + 1, 1), increment());
    assert_eq!(ahead, Err(Fault::SessionWindow { limit: SESSION_WINDOW }));
    machine.apply_stamped(stamp(SESSION_WINDOW + 1, 2), increment()).expect("one reply fewer is kept");
    let value = machine.state.get(SCOPE, "n").expect("it was written").value;
    assert_eq!(value, Bytes::from((SESSION_WINDOW + 1).to_string()));
}

#[test]
fn devices_are_bounded() {
    let mut machine = Machine::with_tasks(1);
    let before = machine.state.clone();
    let devices = vec![Bytes::from(vec![0; DEVICES_BYTES_MAX]), Bytes::from_static(b"x")];
    let refused = machine.task(task::Command::ExchangeDevices { scope: SCOPE, task: TaskId(0), devices });
    assert!(matches!(refused, Err(Fault::LimitExceeded { .. })));
    assert!(machine.state == before);
}

#[test]
fn topologies_and_barrier_ids_of_the_runtime_are_bounded() {
    let mut machine = Machine::with_tasks(2);
    machine.connect_runtime(2);
    let before = machine.state.clone();
    let topology = Bytes::from(vec![0; DEVICES_BYTES_MAX + 1]);
    let id = BarrierId(Bytes::from(vec![b'b'; BARRIER_NAME_BYTES_MAX + 1]));
    for command in [
        runtime::Command::Enumerate { scope: SCOPE, task: TaskId(0), topology },
        runtime::Command::Arrive { scope: SCOPE, barrier: id, task: TaskId(0) },
    ] {
        let refused = machine.apply(Command::Runtime(command));
        assert!(matches!(refused, Err(Fault::LimitExceeded { .. })), "{refused:?}");
        assert!(machine.state == before);
    }
}

#[test]
fn a_job_counts_the_open_barriers_of_its_runtime() {
    let mut machine = Machine::with_tasks(2);
    machine.connect_runtime(2);
    let open = |machine: &Machine| machine.state.job(JobId(1)).map(|job| job.barriers_open);
    let arrive = |barrier: &'static str, task| runtime::Command::Arrive {
        scope: SCOPE,
        barrier: BarrierId(Bytes::from(barrier)),
        task: TaskId(task),
    };
    for (command, count) in [(arrive("b", 0), 1), (arrive("c", 0), 2), (arrive("b", 1), 1)] {
        machine.apply(Command::Runtime(command)).expect("the runtime runs");
        assert_eq!(open(&machine), Some(count));
    }
}

/// Figures and timers ask while apply waits, and a job may have a million barriers.
#[test]
fn one_barrier_is_asked_about_without_a_look_at_the_others() {
    let mut machine = Machine::with_tasks(2);
    let is_open = |machine: &Machine, counter| {
        machine.state.is_barrier_open(JobId(1), &BarrierName::from("b"), BarrierCounter(counter))
    };
    let waits = |machine: &Machine, before| machine.state.waits_since(JobId(1), TimeMs(before));
    assert!(machine.arrive("b", 0, 0).is_ok());
    let now_ms = machine.state.now_ms().0;
    assert!(is_open(&machine, 0) && !is_open(&machine, 1));
    assert!(waits(&machine, now_ms + 1) && !waits(&machine, now_ms));
    assert!(machine.arrive("b", 0, 1).is_ok());
    assert!(!is_open(&machine, 0) && !waits(&machine, now_ms + 1), "all have come");
    assert!(!machine.state.waits_since(JobId(9), TimeMs(u64::MAX)), "there is no such job");
}

/// Of many open places those are told at which somebody has waited longest. At one where everybody has gone nobody waits.
#[test]
fn places_are_told_from_the_oldest_on_and_those_where_nobody_waits_last() {
    let mut machine = Machine::default();
    machine.create("w", 2).expect("the name is free");
    let register = |task, incarnation| {
        let (task, incarnation, protocol) = (TaskId(task), Incarnation(incarnation), task::Protocol::Xla);
        task::Command::Register { scope: SCOPE, task, incarnation, recoverable: true, protocol }
    };
    for task in 0..2 {
        let _ = machine.task(register(task, 1));
    }
    for (now_ms, name, task) in [(1_500, "e", 0), (2_000, "z", 1), (3_000, "a", 1)] {
        arrive_at(&mut machine, now_ms, name, task);
    }
    let places = |machine: &Machine, limit| -> Vec<String> {
        let open = machine.state.gatherings(SCOPE, limit).expect("a job");
        open.iter().map(|place| format!("{:?}", place.report.what)).collect()
    };
    let [e, z, a] = ["e", "z", "a"].map(|name| format!("{:?}", What::Called(BarrierName::from(name))));
    assert_eq!(places(&machine, 10), [&e, &z, &a].map(Clone::clone));
    assert_eq!(places(&machine, 1), std::slice::from_ref(&e));
    // It comes again, and what it waited for before is forgotten.
    machine.task(register(0, 2)).expect("it may come again");
    assert_eq!(places(&machine, 10), [z, a, e]);
    let waits = |before| machine.state.waits_since(JobId(1), TimeMs(before));
    assert!(!waits(1_600) && waits(2_001));
    let name = JobName::from("w");
    assert_eq!(machine.state.jobs_waiting(TimeMs(1_600)), (0, None));
    assert_eq!(machine.state.jobs_waiting(TimeMs(2_001)), (1, Some(&name)));
}

#[test]
fn of_a_job_with_many_open_barriers_some_are_looked_at() {
    let mut machine = Machine::with_tasks(2);
    arrive_at(&mut machine, 1_000, "z", 0);
    assert_eq!(machine.state.jobs_waiting(TimeMs(1_001)).0, 1);
    for number in 0..WAITS_LOOKED_AT_MAX {
        arrive_at(&mut machine, 2_000, &format!("a{number:05}"), 0);
    }
    assert_eq!(machine.state.jobs_waiting(TimeMs(1_001)), (0, None));
    assert!(!machine.state.waits_since(JobId(1), TimeMs(1_001)), "both say the same");
}

fn arrive_at(machine: &mut Machine, now_ms: u64, name: &str, task: i32) {
    let (barrier, counter, task) = (name.to_owned(), BarrierCounter(0), TaskId(task));
    let (scope, timeout_ms, tasks) = (SCOPE, 60_000, Vec::new());
    let arrive = barrier::Command::Arrive { scope, barrier, counter, timeout_ms, tasks, task };
    machine.index += 1;
    let (index, now_ms) = (LogIndex(machine.index), TimeMs(now_ms));
    let context = ApplyContext { index, term: Term(1), now_ms };
    let envelope = Envelope { stamp: None, command: Command::Barrier(arrive) };
    machine.state.apply(&context, envelope).reply.expect("it waits");
}

/// Two tasks could make each error cite the other's by opening the register barrier again and again.
#[test]
fn a_chain_of_errors_does_not_grow_for_ever() {
    let mut machine = Machine::with_tasks(2);
    let silent = vec![(TaskId(0), Incarnation(1)), (TaskId(1), Incarnation(1))];
    machine.task(task::Command::Expire { job: JobId(1), silent }).expect("it always works");
    for round in 1..200_i32 {
        let task = TaskId(round % 2);
        machine.task(task::Command::Reset { scope: SCOPE, task }).expect("it is in error");
        machine
            .arrive(REGISTER_BARRIER, i64::from(round), round % 2)
            .expect_err("the other task is in error");
    }
    let report = machine.state.tasks(SCOPE, &[]).expect("the job is there");
    for info in report.tasks {
        let mut fault = info.error.as_ref().expect("both are in error");
        let mut depth = 0;
        while let Some(cause) = fault.cause() {
            fault = cause;
            depth += 1;
        }
        assert!(depth < 20, "{depth} faults cite each other");
        assert!(matches!(
            fault,
            Fault::HeartbeatTimeout { .. } | Fault::Unheard { .. } | Fault::TasksUnhealthy { .. }
        ));
    }
}

/// What the lists of a command are refused for before it is proposed, in a cluster whose job 1 has 2,000 tasks.
fn too_long(command: &Command) -> Option<(String, u64)> {
    let mut machine = Machine::default();
    machine.create("w", 2_000).expect("the name is free");
    match command.check_lists(&|job| machine.state.tasks_of(job)) {
        Ok(()) => None,
        Err(Fault::LimitExceeded { what, limit, .. }) => Some((what, limit)),
        Err(other) => panic!("{other:?}"),
    }
}

fn ids(count: usize) -> Vec<TaskId> {
    vec![TaskId(0); count]
}

#[test]
fn f1_no_list_of_tasks_is_longer_than_its_job_has_tasks() {
    let arrive = |job, count| {
        let (barrier, counter) = ("b".to_owned(), BarrierCounter(0));
        let scope = Scope { job: JobId(job), service: None };
        let tasks = ids(count);
        Command::Barrier(barrier::Command::Arrive {
            scope,
            barrier,
            counter,
            timeout_ms: 1,
            tasks,
            task: TaskId(0),
        })
    };
    let alive =
        |count| Command::Task(task::Command::Alive { scope: SCOPE, task: TaskId(0), tasks: ids(count) });
    assert_eq!(too_long(&arrive(1, 2_000)), None);
    assert_eq!(too_long(&arrive(1, 2_001)), Some(("tasks of a barrier".into(), 2_000)));
    assert_eq!(
        too_long(&Command::Retried(Box::new(arrive(1, 2_001)))),
        Some(("tasks of a barrier".into(), 2_000))
    );
    assert_eq!(too_long(&alive(2_001)), Some(("tasks asked about".into(), 2_000)));
    let pushed = task::Command::Pushed { job: JobId(1), tasks: ids(2_001) };
    assert_eq!(too_long(&Command::Task(pushed)), Some(("told tasks".into(), 2_000)));
    let silent = vec![(TaskId(0), Incarnation(1)); 2_001];
    let expire = task::Command::Expire { job: JobId(1), silent };
    assert_eq!(too_long(&Command::Task(expire)), Some(("silent tasks".into(), 2_000)));
    // A job that this replica has not heard of yet.
    let most = usize::try_from(JOB_TASKS_MAX).unwrap();
    assert_eq!(too_long(&arrive(7, most)), None);
    assert_eq!(too_long(&arrive(7, most + 1)).map(|(_, limit)| limit), Some(u64::from(JOB_TASKS_MAX)));
    // A short list that is wrong is told what is wrong with it.
    let mut small = Machine::default();
    small.create("w", 1).expect("the name is free");
    let short = arrive(1, usize::try_from(LISTED_ANYWAY).unwrap());
    assert_eq!(short.check_lists(&|job| small.state.tasks_of(job)), Ok(()));
}

#[test]
fn f1_lists_that_no_job_bounds_have_bounds_of_their_own() {
    let group = |number| job::Group { name: format!("g{number}"), tasks: 1 };
    let create = |groups: usize| {
        let spec = job::Spec { groups: (0..groups).map(group).collect(), ..job::Spec::of_tasks(2_000) };
        Command::Job(JobCommand::Create {
            name: "x".into(),
            spec,
            service: tripod_state::ids::ServiceIncarnation(1),
        })
    };
    assert_eq!(too_long(&create(GROUPS_MAX)), None);
    assert_eq!(too_long(&create(GROUPS_MAX + 1)).map(|(what, _)| what), Some("groups of a job".into()));
    let devices = vec![Bytes::new(); 65_537];
    let exchange = task::Command::ExchangeDevices { scope: SCOPE, task: TaskId(0), devices };
    assert_eq!(too_long(&Command::Task(exchange)), Some(("devices of a task".into(), 65_536)));

    let ask =
        |request| Command::Ray(ray::Command::Ask { scope: SCOPE, origin: ray::Origin::default(), request });
    let references = |count| ray::Request::AddReferences { objects: vec![ray::ids::ObjectId(0); count] };
    assert_eq!(too_long(&ask(references(1_000_000))), None);
    assert_eq!(too_long(&ask(references(1_000_001))).map(|(what, _)| what), Some("references".into()));
    let batch = ray::Request::Batch(vec![references(1_000_000), references(1_000_000), references(1)]);
    assert_eq!(too_long(&ask(batch)).map(|(what, _)| what), Some("ids in a batch".into()));
    let batch = ray::Request::Batch(vec![ray::Request::KillWorkers; 100_001]);
    assert_eq!(too_long(&ask(batch)).map(|(what, _)| what), Some("requests of a batch".into()));
}

//! Events: the first cause stays the first, bounds hold, and what is gone is counted.

use tripod_state::events::{
    ENDED_JOBS_KEPT, ENDED_KEPT_MS, ENDED_MILESTONES_KEPT, JOB_BYTES_MAX, Listed, What,
};
use tripod_state::ids::{
    BarrierCounter, BarrierName, Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId, Term, TimeMs,
};
use tripod_state::{ApplyContext, Command, Envelope, Reply, Scope, State, barrier, job, level, task};

/// A state whose log goes on in time.
struct Log {
    state: State,
    index: u64,
    now: u64,
}

impl Log {
    fn at_level_11() -> Self {
        let mut log = Self { state: State::default(), index: 0, now: 1_000 };
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        log.apply(Command::Level(raise)).expect("it is raised");
        log
    }

    fn apply(&mut self, command: Command) -> Reply {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(self.now) };
        self.state.apply(&context, Envelope { stamp: None, command }).reply
    }

    fn create(&mut self, name: &str, tasks: u32) -> Scope {
        let spec = job::Spec::of_tasks(tasks);
        let create = job::Command::Create { name: name.into(), spec, service: ServiceIncarnation(9) };
        self.apply(Command::Job(create)).expect("it is made");
        Scope { job: JobId(self.index), service: None }
    }

    /// The barrier's time is over.
    fn expire(&mut self, scope: Scope, name: &str) {
        let (barrier, counter) = (BarrierName::from(name), BarrierCounter(0));
        let expire = barrier::Command::Expire { job: scope.job, barrier, counter };
        self.apply(Command::Barrier(expire)).expect("it was open");
    }

    fn delete(&mut self, name: &str) {
        self.apply(Command::Job(job::Command::Delete { name: name.into() })).expect("it is deleted");
    }

    fn register(&mut self, scope: Scope, tasks: impl Iterator<Item = i32>) {
        for task in tasks.map(TaskId) {
            let (incarnation, protocol) = (Incarnation(1), task::Protocol::Xla);
            let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
            let _ = self.apply(Command::Task(register));
        }
    }

    fn arrive(&mut self, scope: Scope, barrier: &str, task: i32, tasks: &[i32]) {
        let tasks = tasks.iter().copied().map(TaskId).collect();
        let (barrier, counter, task) = (barrier.into(), BarrierCounter(0), TaskId(task));
        let arrive = barrier::Command::Arrive { scope, barrier, counter, timeout_ms: 60_000, tasks, task };
        let _ = self.apply(Command::Barrier(arrive));
    }

    fn events(&self, job: JobId) -> Listed {
        self.state.events_of(job, |_| true).expect("something is known of it")
    }

    /// A snapshot holds everything, and replicas that read it agree.
    fn check(&self) {
        let read = State::from_records(self.state.records()).expect("it is legal");
        assert!(read == self.state);
        assert_eq!((read.digest(), read.bytes()), (self.state.digest(), self.state.bytes()));
        assert_eq!(self.state.bytes(), self.state.recounted_bytes());
    }
}

fn kinds(listed: &Listed) -> Vec<&'static str> {
    listed.events.iter().map(|event| event.what.kind()).collect()
}

/// V17: one loss ends 512 tasks.
#[test]
fn v17_the_first_cause_of_a_cascade_is_the_first_event_of_it_also_when_the_job_is_gone() {
    let mut log = Log::at_level_11();
    let scope = log.create("train", 512);
    log.register(scope, 0..512);
    log.now += 60_000;
    for task in 0..512 {
        log.arrive(scope, "sync_7", task, &[]);
    }
    // All but one wait at the next one.
    log.now += 60_000;
    for task in (0..512).filter(|task| *task != 233) {
        log.arrive(scope, "sync_8", task, &[]);
    }
    log.now += 60_000;
    let lost_at = log.now;
    let silent = vec![(TaskId(233), Incarnation(1))];
    log.apply(Command::Task(task::Command::Expire { job: scope.job, silent })).unwrap();
    // Their launchers say of each of them that it has ended, within the next seconds.
    for task in 0..512 {
        log.now += 10;
        let end = task::End {
            how: task::How::Exited { code: 1 },
            at: TimeMs(log.now),
            tail: format!("task {task}"),
        };
        let (task, incarnation) = (TaskId(task), Incarnation(1));
        log.apply(Command::Task(task::Command::Ended { scope, task, incarnation, end })).unwrap();
    }
    log.check();
    let first = |log: &Log| {
        let since = TimeMs(lost_at.saturating_sub(1));
        let listed = log.state.events_of(scope.job, |event| event.until >= since).unwrap();
        let first = listed.events.first().expect("much has happened").clone();
        assert_eq!(
            (first.what.kind(), first.tasks.ranges()),
            ("given-up", &[(TaskId(233), TaskId(233))][..])
        );
        listed
    };
    let listed = first(&log);
    assert_eq!(kinds(&listed)[..3], ["given-up", "barrier-failed", "ended-by-others"]);
    let others = &listed.events[2];
    assert_eq!(others.tasks.ranges(), [(TaskId(0), TaskId(232)), (TaskId(234), TaskId(511))]);
    log.now += 600_000;
    log.delete("train");
    let listed = first(&log);
    assert!(listed.kept.ended && kinds(&listed).ends_with(&["job-deleted"]));
    assert_eq!(log.state.job_with_events("train"), Some(scope.job));
    log.check();
}

/// Where tasks may come back, each loss is the error that tasks are told from then on.
#[test]
fn losses_of_a_job_that_goes_on_push_no_cause_out() {
    let mut log = Log::at_level_11();
    let spec = job::Spec { reconnect: true, ..job::Spec::of_tasks(512) };
    let create = job::Command::Create { name: "train".into(), spec, service: ServiceIncarnation(9) };
    log.apply(Command::Job(create)).unwrap();
    let scope = Scope { job: JobId(log.index), service: None };
    log.register(scope, 0..512);
    let _ = log.apply(Command::Task(task::Command::Poll { scope, task: TaskId(0), wish: None }));
    log.now += 60_000;
    for task in 1..512 {
        let how = task::How::Exited { code: 1 };
        let end = task::End { how, at: TimeMs(log.now), tail: String::new() };
        let (task, incarnation) = (TaskId(task), Incarnation(1));
        log.apply(Command::Task(task::Command::Ended { scope, task, incarnation, end })).unwrap();
    }
    log.check();
    let listed = log.events(scope.job);
    let latched: Vec<_> =
        listed.events.iter().filter(|event| matches!(event.what, What::ErrorLatched { .. })).collect();
    assert_eq!((latched.len(), latched[0].times), (1, 511));
    let text = latched[0].what.text().expect("the first one's");
    assert!(text.contains("task 1 "), "{text}");
}

/// A program may write its progress as a note, all day.
#[test]
fn a_note_is_told_when_it_changes_and_pushes_no_milestone_out() {
    let mut log = Log::at_level_11();
    let scope = log.create("train", 1);
    let note = |log: &mut Log, note: String| {
        log.now += 2_000;
        log.apply(Command::Job(job::Command::Note { name: "train".into(), note })).unwrap();
    };
    for text in ["step 1", "step 1", "", ""] {
        note(&mut log, text.to_owned());
    }
    assert_eq!(kinds(&log.events(scope.job)), ["job-created", "job-noted", "job-noted"]);
    for step in 0..1_000 {
        note(&mut log, format!("step {step} {}", "x".repeat(200)));
    }
    let listed = log.events(scope.job);
    assert_eq!(kinds(&listed)[..2], ["job-created", "job-noted"]);
    assert!(listed.kept.dropped > 0);
    log.check();
}

/// V18: many tasks in the worst order, and many barriers.
#[test]
fn v18_a_ring_is_bounded_milestones_are_whole_and_what_was_dropped_is_counted() {
    let mut log = Log::at_level_11();
    let scope = log.create("large", 10_000);
    // Every second one first.
    log.register(scope, (0..10_000).step_by(2).chain((1..10_000).step_by(2)));
    let mut milestones = 1;
    for barrier in 0..3_000 {
        log.now += 1_500;
        let name = format!("barrier with a name of some length, number {barrier}");
        log.arrive(scope, &name, 0, &[0, 1]);
        if barrier % 30 == 0 {
            milestones += 1;
            log.expire(scope, &name);
        } else {
            log.arrive(scope, &name, 1, &[0, 1]);
        }
    }
    let listed = log.events(scope.job);
    let bytes: u64 = listed.events.iter().map(|event| event.bytes()).sum();
    assert!(bytes <= JOB_BYTES_MAX && bytes > JOB_BYTES_MAX / 2, "{bytes}");
    let kept = listed.events.iter().filter(|event| event.what.is_milestone()).count();
    assert_eq!(kept, milestones, "no milestone makes room for traffic");
    assert_eq!(listed.kept.dropped, listed.kept.made - listed.events.len() as u64);
    assert!(listed.kept.dropped > 0 && listed.kept.since > listed.kept.milestones_since);
    log.check();
}

/// In whichever order they come, 10,000 registrations within a second are a handful of events.
#[test]
fn registrations_of_a_second_are_a_handful_of_events() {
    let mut log = Log::at_level_11();
    let scope = log.create("large", 10_000);
    log.register(scope, (0..10_000).map(|task| task * 7_919 % 10_000));
    let listed = log.events(scope.job);
    assert!(listed.events.len() <= 8, "{:?}", kinds(&listed));
    let connected = listed.events.iter().find(|event| event.what == What::Connected).unwrap();
    assert_eq!((connected.tasks.ranges(), connected.times), (&[(TaskId(0), TaskId(9_999))][..], 10_000));
}

#[test]
fn jobs_that_are_gone_are_kept_so_long_so_many_and_no_more() {
    let mut log = Log::at_level_11();
    let scope = log.create("old", 2);
    log.register(scope, 0..2);
    for barrier in 0..100 {
        log.now += 2_000;
        let name = format!("barrier {barrier}");
        log.arrive(scope, &name, 0, &[0, 1]);
        log.expire(scope, &name);
    }
    log.delete("old");
    let listed = log.events(scope.job);
    assert_eq!(listed.events.len(), ENDED_MILESTONES_KEPT);
    // The job was made, a hundred barriers failed, and it was deleted; the tasks that registered are traffic, of which none is kept.
    assert!(listed.kept.made > 102, "there was traffic");
    assert_eq!(listed.kept.dropped, listed.kept.made - ENDED_MILESTONES_KEPT as u64);
    for _ in 0..ENDED_JOBS_KEPT - 1 {
        log.create("next", 1);
        log.delete("next");
    }
    assert!(log.state.events_of(scope.job, |_| true).is_some());
    log.check();
    log.create("next", 1);
    log.delete("next");
    assert!(log.state.events_of(scope.job, |_| true).is_none(), "one more than are kept");
    log.now += ENDED_KEPT_MS.0 + 1;
    let last = log.create("last", 1);
    assert_eq!(log.state.jobs_with_events(), [last.job], "too old");
    log.delete("last");
    log.check();
}

/// Keys are read and written all the time, and nobody asks what happened to them.
#[test]
fn keys_make_no_events() {
    let mut log = Log::at_level_11();
    let scope = log.create("a", 1);
    let before = log.events(scope.job);
    for number in 0..100 {
        let insert = tripod_state::kv::Command::Insert {
            scope,
            key: format!("k{number}"),
            value: bytes::Bytes::from_static(b"v"),
            overwrite: true,
        };
        log.apply(Command::Kv(insert)).unwrap();
    }
    assert_eq!(log.events(scope.job), before);
}

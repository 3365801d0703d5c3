//! F25: bounds. What is beyond one is refused and changes nothing, and there is room again when something has ended.

use bytes::Bytes;
use tripod_state::ids::Sequence;
use tripod_state::ray::ids::{ClientSession, WorkerId};
use tripod_state::ray::{Answer, Argument, Refusal, Request, Stamp, Task, TaskOptions, limits};

use crate::rows::play::at_every;
use crate::rows::play::everywhere;
use crate::rows::stage::Stage;
use crate::rows::words::{Age, Ends, name};

fn stamp(sequence: u64, acknowledged_below: u64) -> Stamp {
    let (sequence, acknowledged_below) = (Sequence(sequence), Sequence(acknowledged_below));
    Stamp { session: ClientSession(u128::MAX), sequence, acknowledged_below }
}

#[test]
fn f25_a_session_with_too_many_answers_that_nobody_acknowledged_takes_no_more_until_some_are() {
    let prepare = |stage: &mut Stage| {
        stage.checks = false;
        let store = stage.store(Age::Ours);
        let driver = stage.driver(store);
        let object = stage.put(driver, 1);
        for sequence in 1..=limits::SESSION_WINDOW {
            let add = Request::AddReferences { objects: vec![object] };
            assert_eq!(stage.step(Some(stamp(sequence, 1)), None, add), Ok(Answer::Done));
        }
        stage.forget_sent();
        stage.checks = true;
        (driver, object)
    };
    everywhere(prepare, |stage, (_, object)| {
        let add = || Request::AddReferences { objects: vec![*object] };
        let counts = stage.counts();
        let next = limits::SESSION_WINDOW + 1;
        let refused = stage.step(Some(stamp(next, 1)), None, add());
        assert_eq!(refused, Err(Refusal::SessionWindow { limit: limits::SESSION_WINDOW }));
        assert_eq!(stage.counts(), counts);
        assert_eq!(stage.step(Some(stamp(next, next)), None, add()), Ok(Answer::Done));
        assert_eq!(stage.counts()[0], counts[0] + 1);
    });
}

#[test]
fn f25_exports_beyond_their_number_are_refused_and_the_rest_goes_on() {
    let prepare = |stage: &mut Stage| {
        (stage.checks, stage.snapshots) = (false, false);
        let store = stage.store(Age::Ours);
        let driver = stage.driver(store);
        for number in 0..limits::EXPORTS_MAX {
            let body = Bytes::copy_from_slice(&number.to_be_bytes());
            stage.machine.ask(None, Request::ExportFunction { body }).expect("there is room");
        }
        driver
    };
    at_every(usize::MAX, prepare, |stage, driver| {
        let body = Bytes::from_static(b"one too many");
        let refused = stage.ask(*driver, Request::ExportFunction { body });
        assert!(matches!(refused, Err(Refusal::Full { limit: limits::EXPORTS_MAX, .. })), "{refused:?}");
        assert_eq!(stage.machine.scheduler().totals().exports, limits::EXPORTS_MAX);
        let object = stage.put(*driver, 1);
        stage.drop(*driver, &[object]);
        assert_eq!(stage.counts(), [-1]);
    });
}

/// Answers of many sessions are remembered, and none of them is acknowledged.
#[test]
fn f25_answers_beyond_their_bytes_are_refused_until_somebody_has_his() {
    let first = |session: u128| Stamp { session: ClientSession(session), ..stamp(1, 1) };
    let prepare = |stage: &mut Stage| {
        (stage.checks, stage.snapshots) = (false, false);
        let store = stage.store(Age::Ours);
        let driver = stage.driver(store);
        let object = stage.put(driver, 1);
        let nobody = Request::RegisterFunction { worker: WorkerId(99), name: name("f"), results: 1 };
        let batch = Request::Batch(vec![nobody; limits::BATCH_MAX as usize]);
        let mut sessions = 0;
        while stage.machine.ask_stamped(Some(first(1000 + sessions)), None, batch.clone()).0.is_ok() {
            sessions += 1;
            assert!(sessions < 100, "too many large answers are remembered");
        }
        assert!(sessions > 10, "{sessions} large answers are remembered");
        object
    };
    at_every(usize::MAX, prepare, |stage, object| {
        let add = || Request::AddReferences { objects: vec![*object] };
        let before = stage.machine.shown();
        let refused = stage.machine.ask_stamped(Some(first(7)), None, add()).0;
        assert!(
            matches!(refused, Err(Refusal::Full { limit: limits::SESSION_BYTES_MAX, .. })),
            "{refused:?}"
        );
        assert_eq!(stage.machine.shown(), before);
        let acknowledges = Stamp { session: ClientSession(1000), ..stamp(2, 2) };
        assert_eq!(stage.step(Some(acknowledges), None, add()), Ok(Answer::Done));
        assert_eq!(stage.step(Some(first(7)), None, add()), Ok(Answer::Done));
        assert_eq!(stage.counts(), [3]);
    });
}

#[test]
fn f25_exports_beyond_their_bytes_are_refused_and_the_rest_goes_on() {
    const LARGE: usize = 16 << 20;
    let prepare = |stage: &mut Stage| {
        (stage.checks, stage.snapshots) = (false, false);
        let store = stage.store(Age::Ours);
        let driver = stage.driver(store);
        // No two are the same: of those the last one would be kept.
        let exports = limits::EXPORT_BYTES_MAX as usize / LARGE;
        let mut bytes = vec![0; LARGE + exports];
        bytes[..exports].copy_from_slice(&(1..=exports as u8).collect::<Vec<u8>>());
        let bytes = Bytes::from(bytes);
        for first in 0..exports {
            let body = bytes.slice(first..first + LARGE);
            stage.machine.ask(None, Request::ExportFunction { body }).expect("there is room");
        }
        (store, driver)
    };
    at_every(usize::MAX, prepare, |stage, (store, driver)| {
        let exports = stage.machine.scheduler().totals().exports;
        for request in [
            Request::ExportFunction { body: Bytes::from_static(b"!") },
            Request::ExportVariable { name: name("v"), body: Bytes::from_static(b"!") },
        ] {
            let refused = stage.ask(*driver, request);
            assert!(
                matches!(refused, Err(Refusal::Full { limit: limits::EXPORT_BYTES_MAX, .. })),
                "{refused:?}"
            );
        }
        assert_eq!(stage.machine.scheduler().totals().exports, exports);
        let worker = stage.worker(*store, &[("f", 1)]);
        stage.submit(*driver, "f", &[]);
        stage.runs(worker, Ends::ReadyFirst);
        assert_eq!(stage.peers.processes[&worker].imports.len() as u64, exports);
    });
}

#[test]
fn f25_a_task_beyond_its_bytes_is_refused_and_one_of_as_many_is_taken() {
    let prepare = |stage: &mut Stage| {
        let store = stage.store(Age::Ours);
        (stage.driver(store), stage.worker(store, &[("f", 1)]))
    };
    everywhere(prepare, |stage, (driver, worker)| {
        let submit = |bytes: u64| {
            let value = |bytes: u64| Argument::Value {
                bytes: Bytes::from(vec![0; bytes as usize]),
                nested: Vec::new(),
            };
            let arguments = vec![value(1), value(bytes - 1)];
            let task = Task { name: name("f"), arguments, results_given: 0 };
            let options = TaskOptions::default();
            Request::Submit { worker: *driver, task, options, child: None, hint: None }
        };
        let refused = stage.ask(*driver, submit(limits::TASK_BYTES_MAX + 1));
        assert!(matches!(refused, Err(Refusal::Full { limit: limits::TASK_BYTES_MAX, .. })), "{refused:?}");
        assert_eq!(stage.counts(), []);
        let taken = stage.ask(*driver, submit(limits::TASK_BYTES_MAX));
        assert!(matches!(taken, Ok(Answer::Submitted { .. })), "{taken:?}");
        stage.runs(*worker, Ends::ReadyFirst);
        assert_eq!(stage.attempts(), [1]);
    });
}

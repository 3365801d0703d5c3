//! F25: bounds. What is beyond one is refused and changes nothing, and there is room again when something has ended.

use bytes::Bytes;
use tripod_state::ids::Sequence;
use tripod_state::ray::ids::ClientSession;
use tripod_state::ray::{Answer, Refusal, Request, Stamp, limits};

use crate::rows::play::at_every;
use crate::rows::play::everywhere;
use crate::rows::stage::Stage;
use crate::rows::words::Age;

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

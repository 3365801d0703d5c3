//! Barriers as they are shown.

use tripod_proto::tripod::v1 as wire;
use tripod_state::barrier::{Failure, Party, Report, What};

use crate::{status, text};

/// A place at which tasks wait, or waited in vain.
pub(super) fn state(report: &Report) -> wire::BarrierState {
    let (kind, id) = match &report.what {
        What::Called(name) => (wire::BarrierKind::Called, name.as_str().to_owned()),
        What::CalledInRuntime(id) => (wire::BarrierKind::Called, String::from_utf8_lossy(&id.0).into_owned()),
        What::Registration => (wire::BarrierKind::Registration, String::new()),
        What::Shutdown => (wire::BarrierKind::Shutdown, String::new()),
        What::Devices => (wire::BarrierKind::Devices, String::new()),
    };
    wire::BarrierState {
        id,
        kind: kind.into(),
        instance: report.counter.0,
        arrived: Some(sample(&report.arrived)),
        missing: Some(sample(&report.missing)),
        opened_ms: report.opened.map_or(0, |at| at.0),
        timeout_ms: report.timeout.map_or(0, |length| length.0),
        failure: report.failure.as_ref().map(failure),
    }
}

fn sample(party: &Party) -> wire::TaskSample {
    wire::TaskSample { count: party.count, first: party.first.iter().map(|task| task.0).collect() }
}

fn failure(failure: &Failure) -> wire::BarrierFailure {
    wire::BarrierFailure {
        at_ms: failure.at.0,
        reason: status::reason(&failure.fault).to_owned(),
        text: text::of_failed_barrier(&failure.fault),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tripod_state::ids::{BarrierCounter, BarrierName, DurationMs, TaskId, TimeMs};
    use tripod_state::runtime::BarrierId;
    use tripod_state::{BarrierFault, Fault};

    use super::*;

    fn report(what: What, failure: Option<Failure>) -> Report {
        Report {
            what,
            counter: BarrierCounter(3),
            opened: Some(TimeMs(1_000)),
            timeout: Some(DurationMs(5_000)),
            arrived: Party { count: 2, first: vec![TaskId(0), TaskId(1)] },
            missing: Party { count: 1, first: vec![TaskId(2)] },
            failure,
        }
    }

    #[test]
    fn who_waits_for_whom_is_told() {
        let shown = state(&report(What::Called(BarrierName::from("x")), None));
        let sample = |count, first: &[i32]| Some(wire::TaskSample { count, first: first.to_vec() });
        let expected = wire::BarrierState {
            id: "x".into(),
            kind: wire::BarrierKind::Called.into(),
            instance: 3,
            arrived: sample(2, &[0, 1]),
            missing: sample(1, &[2]),
            opened_ms: 1_000,
            timeout_ms: 5_000,
            failure: None,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_failure_has_a_word_for_programs_and_a_text_for_people() {
        let fault = Fault::Barrier {
            barrier: BarrierName::from("x"),
            counter: BarrierCounter(3),
            fault: BarrierFault::Cancelled { by: TaskId(1) },
        };
        let failed = report(What::Shutdown, Some(Failure { at: TimeMs(9_000), fault }));
        let expected = wire::BarrierFailure {
            at_ms: 9_000,
            reason: "barrier-cancelled".into(),
            text: "cancelled by task 1".into(),
        };
        assert_eq!(state(&failed).failure, Some(expected));
    }

    #[test]
    fn every_kind_is_told_and_any_bytes_become_text() {
        let told = |what| {
            let shown = state(&report(what, None));
            (shown.kind(), shown.id)
        };
        assert_eq!(told(What::Registration), (wire::BarrierKind::Registration, String::new()));
        assert_eq!(told(What::Shutdown), (wire::BarrierKind::Shutdown, String::new()));
        assert_eq!(told(What::Devices), (wire::BarrierKind::Devices, String::new()));
        let bytes = BarrierId(Bytes::from_static(b"m\xff"));
        assert_eq!(told(What::CalledInRuntime(bytes)), (wire::BarrierKind::Called, "m\u{fffd}".to_owned()));
    }
}

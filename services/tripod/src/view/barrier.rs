//! A barrier as it is printed: who waits for whom.

use serde::Serialize;
use tripod_client::wire;
use tripod_client::wire::BarrierKind;

use crate::output;
use crate::view::{tasks, time};

/// A barrier of `job show`. A contract, as all of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BarrierView {
    /// As the program calls it; empty for those that it does not call itself.
    barrier: String,
    kind: Kind,
    instance: i64,
    arrived: u32,
    /// The lowest ids; fewer than `arrived` if they are many, or not known.
    arrived_tasks: Vec<i32>,
    missing: u32,
    missing_tasks: Vec<i32>,
    /// By the leaders' clocks, since the Unix epoch; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_ms: Option<u64>,
    /// Absent if each task waits as long as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// Absent while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureView>,
}

/// For what the tasks wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Called,
    Registration,
    Shutdown,
    Devices,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FailureView {
    at_ms: u64,
    reason: String,
    text: String,
}

impl BarrierView {
    pub(crate) fn of(barrier: &wire::BarrierState) -> Self {
        let kind = match barrier.kind() {
            BarrierKind::Called => Kind::Called,
            BarrierKind::Registration => Kind::Registration,
            BarrierKind::Shutdown => Kind::Shutdown,
            BarrierKind::Devices => Kind::Devices,
        };
        let arrived = barrier.arrived.clone().unwrap_or_default();
        let missing = barrier.missing.clone().unwrap_or_default();
        let failure = barrier.failure.clone();
        Self {
            barrier: barrier.id.clone(),
            kind,
            instance: barrier.instance,
            arrived: arrived.count,
            arrived_tasks: arrived.first,
            missing: missing.count,
            missing_tasks: missing.first,
            opened_ms: Some(barrier.opened_ms).filter(|at| *at != 0),
            timeout_ms: Some(barrier.timeout_ms).filter(|length| *length != 0),
            failure: failure.map(|end| FailureView { at_ms: end.at_ms, reason: end.reason, text: end.text }),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether the task is known to have come.
    pub(crate) fn met(&self, task: i32) -> bool {
        self.arrived_tasks.contains(&task)
    }

    /// Who waits for whom: ``barrier `x` waits for task 2; arrived: 0, 1; open for 3 s of 60 s``.
    pub(crate) fn waiting(&self, now_ms: u64) -> String {
        let waits = if self.is_open() { "waits" } else { "waited" };
        let missing = tasks::named(&self.missing_tasks, count(self.missing));
        let mut text = format!("{} {waits} for {missing}; arrived: {}", self.subject(), self.arrived());
        if let (true, Some(opened)) = (self.is_open(), self.opened_ms) {
            text.push_str(&format!("; open for {}", time::since(opened, now_ms)));
            if let Some(timeout) = self.timeout_ms {
                text.push_str(&format!(" of {}", time::seconds(timeout)));
            }
        }
        text
    }

    /// What became of it, if it is over: `failed 3 s ago: cancelled by task 1`.
    pub(crate) fn failed(&self, now_ms: u64) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!("failed {} ago: {}", time::since(failure.at_ms, now_ms), output::text(&failure.text)))
    }

    /// All of it in one line.
    pub(crate) fn render(&self, now_ms: u64) -> String {
        let parts = [Some(self.waiting(now_ms)), self.failed(now_ms)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    fn subject(&self) -> String {
        let name = match self.kind {
            Kind::Called => format!("barrier `{}`", self.barrier.escape_debug()),
            Kind::Registration => "the registration of all tasks".to_owned(),
            Kind::Shutdown => "the shutdown of all tasks".to_owned(),
            Kind::Devices => "the exchange of devices".to_owned(),
        };
        if self.instance == 0 { name } else { format!("{name} (instance {})", self.instance) }
    }

    fn arrived(&self) -> String {
        match self.arrived_tasks.as_slice() {
            [] => tasks::named(&[], count(self.arrived)),
            first => tasks::ids(first, count(self.arrived)),
        }
    }
}

fn count(tasks: u32) -> usize {
    usize::try_from(tasks).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open() -> wire::BarrierState {
        wire::BarrierState {
            id: "x".into(),
            arrived: Some(wire::TaskSample { count: 2, first: vec![0, 1] }),
            missing: Some(wire::TaskSample { count: 1, first: vec![2] }),
            opened_ms: 1_000,
            timeout_ms: 60_000,
            ..Default::default()
        }
    }

    fn rendered(barrier: &wire::BarrierState) -> String {
        BarrierView::of(barrier).render(4_500)
    }

    #[test]
    fn who_waits_for_whom_is_told() {
        let waits = "barrier `x` waits for task 2; arrived: 0, 1; open for 3 s";
        assert_eq!(rendered(&open()), format!("{waits} of 60 s"));
        let patient = wire::BarrierState { timeout_ms: 0, ..open() };
        assert_eq!(rendered(&patient), waits);
        let third = wire::BarrierState { id: "a\nb".into(), instance: 2, opened_ms: 0, ..open() };
        assert_eq!(rendered(&third), "barrier `a\\nb` (instance 2) waits for task 2; arrived: 0, 1");
    }

    #[test]
    fn a_failure_is_told_with_its_reason() {
        let failure =
            wire::BarrierFailure { at_ms: 2_400, reason: "barrier-cancelled".into(), text: "why".into() };
        let failed = wire::BarrierState { failure: Some(failure), ..open() };
        assert_eq!(rendered(&failed), "barrier `x` waited for task 2; arrived: 0, 1; failed 2 s ago: why");
    }

    #[test]
    fn barriers_that_no_program_calls_have_a_name_and_may_hide_who_came() {
        let nameless = |count| Some(wire::TaskSample { count, first: vec![] });
        let of = |kind: BarrierKind| wire::BarrierState { kind: kind.into(), opened_ms: 0, ..open() };
        let leaving =
            wire::BarrierState { arrived: nameless(1), missing: nameless(2), ..of(BarrierKind::Shutdown) };
        assert_eq!(rendered(&leaving), "the shutdown of all tasks waits for 2 tasks; arrived: 1 task");
        let said = rendered(&of(BarrierKind::Registration));
        assert_eq!(said, "the registration of all tasks waits for task 2; arrived: 0, 1");
        assert!(rendered(&of(BarrierKind::Devices)).starts_with("the exchange of devices waits for task 2"));
    }

    #[test]
    fn barriers_print_the_contract() {
        let json = |barrier| serde_json::to_value(BarrierView::of(&barrier)).expect("JSON");
        let expected = json!({
            "barrier": "x", "kind": "called", "instance": 0,
            "arrived": 2, "arrived_tasks": [0, 1], "missing": 1, "missing_tasks": [2],
            "opened_ms": 1_000, "timeout_ms": 60_000,
        });
        assert_eq!(json(open()), expected);
        let failure = wire::BarrierFailure { at_ms: 5, reason: "r".into(), text: "t".into() };
        let failed = json(wire::BarrierState { failure: Some(failure), ..open() });
        assert_eq!(failed["failure"], json!({ "at_ms": 5, "reason": "r", "text": "t" }));
    }
}

//! Who may call what on the ports of this node.

use std::sync::Arc;

use tripod_audit::{Auditor, How, Outcome, Record, kind_of};
use tripod_gate::{Gate, Mode, News, Port, Rpc, Tally};
use tripod_proto::code::Code;

use crate::logging::number;

/// The gates before this node's ports, which count together.
#[derive(Debug)]
pub(super) struct Authority {
    /// Before the client port, the unix socket and the job ports.
    pub(super) client: Arc<Gate>,
    pub(super) peer: Arc<Gate>,
    pub(super) calls: Arc<Tally>,
}

impl Authority {
    /// `auditor` has a line for each refusal that is logged.
    pub(super) fn new(mode: Mode, auditor: &Auditor) -> Self {
        let calls = Arc::new(Tally::default());
        let gate = |port| {
            let auditor = auditor.clone();
            let told = move |news: &News| {
                tell(news);
                auditor.tell(record(news));
            };
            Arc::new(Gate::new(port, mode, Arc::clone(&calls)).telling(told))
        };
        Self { client: gate(Port::Client), peer: gate(Port::Peer), calls }
    }
}

/// The line of a refusal. Lines are as seldom as what is logged, so whoever is refused again and again does not push out what
/// others have done.
fn record(news: &News) -> Record {
    let News { at, caller, is_by_token, rpc, reason, was_refused } = news;
    let kind = kind_of(caller);
    let how = match kind {
        "anonymous" | "legacy" => How::Nothing,
        "listener" => How::Listener,
        _ if *is_by_token => How::Token,
        _ => How::Cert,
    };
    Record {
        who: caller.as_str().into(),
        kind: kind.into(),
        how,
        rpc: rpc.map(Rpc::path).unwrap_or_default().as_str().into(),
        resource: format!("{} port", at.word()).as_str().into(),
        outcome: if *was_refused { Outcome::Refused } else { Outcome::WouldRefuse },
        reason: reason.word().into(),
        ..Record::default()
    }
}

/// Logs a refusal: once a minute for each caller and reason.
fn tell(news: &News) {
    let News { at, caller, rpc, reason, was_refused, .. } = news;
    let rpc = rpc.map_or_else(|| "(none)".to_owned(), Rpc::path);
    let (port, reason) = (at.word(), reason.word());
    let code = number(Code::NotAuthorised);
    if *was_refused {
        tracing::warn!(code, caller, rpc, port, reason, "a call was refused");
    } else {
        tracing::warn!(code, caller, rpc, port, reason, "a call was made that `enforce` would refuse");
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use tripod_audit::{Sinks, files};
    use tripod_gate::{Caller, NamedJob};
    use tripod_identity::Identity;

    use super::*;

    #[tokio::test]
    async fn the_first_refusal_of_a_caller_for_a_reason_has_an_audit_line_and_the_next_ones_have_none() {
        for (mode, outcome) in [(Mode::Enforce, "refused"), (Mode::Rehearse, "would_refuse")] {
            let place = tempfile::tempdir().expect("a directory");
            let sinks = Sinks { directory: Some(place.path().to_owned()), ..Sinks::default() };
            let auditor = Auditor::start(&sinks, "n1", false, Box::new(|_, _| {})).expect("opened");
            let authority = Authority::new(mode, &auditor);
            let task: Identity =
                "spiffe://example.org/tripod/main/job/own/task/3".parse().expect("an identity");
            let caller = Arc::new(Caller::by_path(task));
            for _ in 0..3 {
                let none = HeaderMap::new();
                let judged =
                    authority.client.judge(&caller, "/tripod.v1.Jobs/Delete", &none, |_| NamedJob::Unsaid);
                assert_eq!(judged.is_err(), mode == Mode::Enforce);
            }
            auditor.stop().await;
            let (_, path) = files(place.path()).expect("readable").pop().expect("a file");
            let text = std::fs::read_to_string(path).expect("readable");
            let lines: Vec<&str> =
                text.lines().filter(|line| line.contains("/tripod.v1.Jobs/Delete")).collect();
            assert_eq!(lines.len(), 1, "{text}");
            let outcome = format!("\"outcome\":\"{outcome}\",\"reason\":\"role\"");
            for words in ["\"who\":\"job/own/task/3\",\"kind\":\"task\",\"how\":\"cert\"", &outcome] {
                assert!(lines[0].contains(words), "{words}: {text}");
            }
        }
    }
}

//! Calls of which a line is written: those that change members, the level or tokens, make, note or end a job, or take a snapshot.

use std::future::Future;
use std::sync::Arc;

use http::Extensions;
use tonic::{Code, Response, Status};
use tripod_audit::{Auditor, How, Outcome, Record, kind_of, user};
use tripod_port::CallContext;
use tripod_token::Maker;

use crate::status;

/// Who calls what, as far as the port knows. What it is about is added by who has read the message.
pub(crate) fn call(extensions: &Extensions, rpc: &str) -> Record {
    let proved = CallContext::proved(extensions).map(|proved| proved.identity().kind.to_string());
    let maker = extensions.get::<Arc<Maker>>().map(|maker| maker.name().to_owned());
    let uid = CallContext::user(extensions);
    // Who shows a token calls as its bearer, whatever else the connection proves.
    let how = match (&maker, &proved, uid) {
        (Some(_), ..) => How::Token,
        (None, Some(_), _) => How::Cert,
        (None, None, Some(_)) => How::Uid,
        (None, None, None) => How::Nothing,
    };
    let who = maker.or(proved).or_else(|| uid.map(user)).unwrap_or_default();
    let kind = kind_of(&who).into();
    let from =
        CallContext::address(extensions).0.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
    let rpc = format!("/tripod.v1.{rpc}").as_str().into();
    Record { who: who.as_str().into(), kind, how, from: from.as_str().into(), rpc, ..Record::default() }
}

/// Why nobody knows what became of a call: its client took it back, gave it up or was lost before there was an answer.
const DROPPED: &str = "dropped";

/// How whoever is confined to a job is called.
const OF_A_JOB: &str = "job/";

/// A call that has no line yet. If it is dropped so, its line says that nobody knows what became of it: what was proposed may
/// have been done.
struct Open<'a> {
    auditor: &'a Auditor,
    record: Option<Record>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let (outcome, reason) = (Outcome::Unknown, DROPPED.into());
            self.auditor.tell(Record { outcome, reason, ..record });
        }
    }
}

/// Does the work of a call, and writes down what became of it, also if nobody waits for its end. Where lines are required, nothing
/// is done without one, except by processes of a job: they neither wait for their lines nor are refused for want of one.
pub(crate) async fn audited<T>(
    auditor: &Auditor,
    record: Record,
    work: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Response<T>, Status> {
    let is_of_a_job = record.who.as_str().starts_with(OF_A_JOB);
    if !is_of_a_job {
        auditor.begin(&record).await.map_err(|_| status::audit_required())?;
    }
    let mut open = Open { auditor, record: Some(record) };
    let done = work.await;
    let (outcome, reason) = match &done {
        Ok(_) => (Outcome::Done, String::new()),
        Err(status) => became(status),
    };
    if let Some(record) = open.record.take() {
        let record = Record { outcome, reason: reason.as_str().into(), ..record };
        if is_of_a_job {
            auditor.tell(record);
        } else {
            // The line is on its way at the first step of this, which is still the one in which the work has ended.
            auditor.end(record).await;
        }
    }
    done
}

fn became(status: &Status) -> (Outcome, String) {
    let word = status.metadata().get(status::REASON).and_then(|word| word.to_str().ok());
    let reason = word.map_or_else(|| format!("{:?}", status.code()), str::to_owned);
    let outcome = match status.code() {
        _ if word == Some("outcome-unknown") => Outcome::Unknown,
        Code::Unavailable | Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::Cancelled => {
            Outcome::Failed
        }
        _ => Outcome::Refused,
    };
    (outcome, reason)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tripod_audit::{Sinks, files};

    use super::*;

    #[tokio::test]
    async fn a_call_that_is_dropped_has_a_line_and_one_that_ends_has_no_second_one() {
        let place = tempfile::tempdir().expect("a directory");
        let sinks = Sinks { directory: Some(place.path().to_owned()), ..Sinks::default() };
        let auditor = Auditor::start(&sinks, "n1", false, Box::new(|_, _| {})).expect("opened");
        let of = |rpc: &str| Record { rpc: rpc.into(), ..Record::default() };
        let never = std::future::pending::<Result<Response<()>, Status>>();
        let gone = timeout(Duration::ZERO, audited(&auditor, of("/a/Gone"), never)).await;
        assert!(gone.is_err(), "its client has not waited");
        let at_once = std::future::ready(Ok(Response::new(())));
        audited(&auditor, of("/a/Done"), at_once).await.expect("done");
        auditor.stop().await;
        let (_, path) = files(place.path()).expect("readable").pop().expect("a file");
        let text = std::fs::read_to_string(path).expect("readable");
        let lines = |rpc: &str| text.lines().filter(|line| line.contains(rpc)).collect::<Vec<_>>();
        let (gone, done) = (lines("/a/Gone"), lines("/a/Done"));
        assert_eq!((gone.len(), done.len()), (1, 1), "{text}");
        assert!(gone[0].contains("\"outcome\":\"unknown\",\"reason\":\"dropped\""), "{text}");
        assert!(done[0].contains("\"outcome\":\"done\""), "{text}");
    }

    /// The files' directory is taken away, and each line takes a file of its own.
    #[tokio::test]
    async fn where_lines_are_required_an_operator_is_refused_without_one_and_a_job_goes_on() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("audit");
        let limits = tripod_audit::Limits { file_bytes: 1, files: 4 };
        let sinks = Sinks { directory: Some(directory.clone()), limits, stderr: false };
        let auditor = Auditor::start(&sinks, "n1", true, Box::new(|_, _| {})).expect("opened");
        std::fs::remove_dir_all(&directory).expect("removed");
        for (who, goes_on) in [("operator/ann", false), ("", false), ("job/train/agent", true)] {
            let record = Record { who: who.into(), ..Record::default() };
            let work = std::future::ready(Ok(Response::new(())));
            assert_eq!(audited(&auditor, record, work).await.is_ok(), goes_on, "{who}");
        }
    }

    #[test]
    fn a_refusal_a_failure_and_what_nobody_knows_are_told_apart() {
        let with = |code, word: &'static str| {
            let mut status = Status::new(code, "why");
            status.metadata_mut().insert(status::REASON, tonic::metadata::MetadataValue::from_static(word));
            became(&status)
        };
        assert_eq!(with(Code::NotFound, "job-unknown"), (Outcome::Refused, "job-unknown".to_owned()));
        assert_eq!(with(Code::Unavailable, "no-leader"), (Outcome::Failed, "no-leader".to_owned()));
        assert_eq!(
            with(Code::Unavailable, "outcome-unknown"),
            (Outcome::Unknown, "outcome-unknown".to_owned())
        );
        assert_eq!(became(&Status::internal("x")), (Outcome::Failed, "Internal".to_owned()));
    }
}

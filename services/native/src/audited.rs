//! Calls of which a line is written: those that change members, the level, tokens, or end a job.

use std::future::Future;
use std::sync::Arc;

use http::Extensions;
use tonic::{Code, Response, Status};
use tripod_audit::{Auditor, How, Outcome, Record};
use tripod_port::CallContext;
use tripod_token::Maker;

use crate::status;

/// Who calls what, as far as the port knows. What it is about is added by who has read the message.
pub(crate) fn call(extensions: &Extensions, rpc: &str) -> Record {
    let proved = CallContext::proved(extensions).map(|proved| proved.identity().kind.to_string());
    let maker = extensions.get::<Arc<Maker>>().map(|maker| maker.name().to_owned());
    let how = match (&proved, &maker) {
        (Some(_), _) => How::Cert,
        (None, Some(_)) => How::Token,
        (None, None) => How::Nothing,
    };
    let who = maker.or(proved).unwrap_or_default();
    let kind = who.split('/').next().unwrap_or_default().into();
    let from =
        CallContext::address(extensions).0.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
    let rpc = format!("/tripod.v1.{rpc}").as_str().into();
    Record { who: who.as_str().into(), kind, how, from: from.as_str().into(), rpc, ..Record::default() }
}

/// Does the work of a call, and writes down what became of it. Where lines are required, nothing is done without one.
pub(crate) async fn audited<T>(
    auditor: &Auditor,
    record: Record,
    work: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Response<T>, Status> {
    auditor.begin(&record).await.map_err(|_| status::audit_required())?;
    let done = work.await;
    let (outcome, reason) = match &done {
        Ok(_) => (Outcome::Done, String::new()),
        Err(status) => became(status),
    };
    auditor.end(Record { outcome, reason: reason.as_str().into(), ..record }).await;
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
    use super::*;

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

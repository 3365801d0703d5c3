//! Telling the scheduler which objects became ready, and which ones do not come, once and in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::{Code, Request};
use tripod_proto::metadata::{RAY_ATTEMPT, RAY_OP};
use tripod_proto::ray::ObjReadyRequest;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_client::RayClient;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayFetchFailedRequest, RayResult, RayRun};

use super::endpoints::Refused;
use super::{End, Endpoints, Session};
use crate::ids::{ObjectId, Run, StoreId};
use crate::shelf::{FetchFailure, Report, Shelf};

/// Reports in one call.
const BATCH_MAX: usize = 256;
/// After a call of so many reports the next one waits for others: every call costs the cluster a command.
const MANY: usize = 16;
const GATHER: Duration = Duration::from_millis(2);
/// The scheduler's word for an id that it has given up.
const EXPIRED: &str = "expired";
/// Until a node is told again that did not believe who told it: a token that has run out is replaced by whoever looks after the store.
const UNPROVED_PAUSE: Duration = Duration::from_secs(1);

/// Reports until the scheduler has given the store up. A report is sent until it is answered.
pub(crate) async fn report(
    endpoints: &Endpoints,
    mut session: Session,
    id: StoreId,
    shelf: &Arc<Shelf>,
    reports: &mut mpsc::UnboundedReceiver<Report>,
) -> End {
    let (mut batches, mut busy) = (true, false);
    let mut waiting = Vec::with_capacity(BATCH_MAX);
    loop {
        if waiting.is_empty() && reports.recv_many(&mut waiting, BATCH_MAX).await == 0 {
            // The shelf is gone, and with it whoever would be asked.
            return End::Expired;
        }
        if std::mem::take(&mut busy) && waiting.len() < BATCH_MAX {
            tokio::time::sleep(GATHER).await;
            while waiting.len() < BATCH_MAX
                && let Ok(more) = reports.try_recv()
            {
                waiting.push(more);
            }
        }
        busy = waiting.len() >= MANY;
        let reporter = Reporter { endpoints, session: &session, id };
        let count = if batches { waiting.len() } else { 1 };
        let answer = match waiting.as_slice() {
            [Report::Ready { object, run }, ..] if count == 1 => {
                reporter.one(*object, *run).await.map(|()| Vec::new())
            }
            all => reporter.many(&all[..count]).await,
        };
        match answer {
            Ok(results) => {
                session.answered();
                for (report, result) in waiting.drain(..count).zip(results) {
                    if settle(shelf, &report, &result) == Some(End::Expired) {
                        return End::Expired;
                    }
                }
            }
            Err(refused) => match judge(&refused) {
                Verdict::End => return End::Expired,
                // Not executed under this session, or executed and forgotten: a report may come twice.
                Verdict::NewSession => session = Session::draw(),
                Verdict::Unproved => {
                    let status = &refused.status;
                    tracing::warn!(endpoint = refused.endpoint, %status, "reports of objects are refused, and wait");
                    session = Session::draw();
                    tokio::time::sleep(UNPROVED_PAUSE).await;
                }
                Verdict::NoBatches if batches && count > 1 => {
                    session.answered();
                    batches = false;
                }
                Verdict::NoBatches | Verdict::Refused => {
                    session.answered();
                    for report in waiting.drain(..count) {
                        refused_one(shelf, &report, refused.status.message());
                    }
                }
            },
        }
    }
}

struct Reporter<'a> {
    endpoints: &'a Endpoints,
    session: &'a Session,
    id: StoreId,
}

impl Reporter<'_> {
    async fn one(&self, object: ObjectId, run: Option<Run>) -> Result<(), Refused> {
        let request = || -> Request<ObjReadyRequest> {
            let mut request = self.session.stamped(self.ready(object));
            if let Some(run) = run {
                request.metadata_mut().insert(RAY_OP, run.operation.into());
                request.metadata_mut().insert(RAY_ATTEMPT, run.attempt.into());
            }
            request
        };
        let send = |channel, request| async move { SchedulerClient::new(channel).obj_ready(request).await };
        self.endpoints.call("ObjReady", request, send).await.map(drop)
    }

    async fn many(&self, reports: &[Report]) -> Result<Vec<RayResult>, Refused> {
        let call = |report: &Report| match report {
            Report::Ready { object, run } => RayCall {
                call: Some(Call::Ready(self.ready(*object))),
                run: run.map(|run| RayRun { operationid: run.operation, attempt: run.attempt }),
                ..RayCall::default()
            },
            Report::FetchFailed { object, why } => RayCall {
                call: Some(Call::FetchFailed(self.fetch_failed(*object, why))),
                ..RayCall::default()
            },
        };
        let request = || {
            let calls = reports.iter().map(call).collect();
            self.session.stamped(RayBatchRequest { workerid: None, calls })
        };
        let send = |channel, request| async move { RayClient::new(channel).batch(request).await };
        Ok(self.endpoints.call("Batch", request, send).await?.results)
    }

    fn ready(&self, object: ObjectId) -> ObjReadyRequest {
        ObjReadyRequest { objectid: object.0, objstoreid: self.id.0 }
    }

    fn fetch_failed(&self, object: ObjectId, why: &FetchFailure) -> RayFetchFailedRequest {
        let (absent_at, told) = match why {
            FetchFailure::Unfinished => (String::new(), false),
            FetchFailure::Absent { source } => (source.clone(), false),
            FetchFailure::TooLarge | FetchFailure::GivenUp => (String::new(), true),
        };
        RayFetchFailedRequest { objstoreid: self.id.0, objectid: object.0, absent_at, told }
    }
}

/// What a refusal of a whole call means.
#[derive(Debug)]
enum Verdict {
    End,
    NewSession,
    NoBatches,
    /// The node does not believe who calls, and has asked no scheduler.
    Unproved,
    /// The scheduler does not want the object.
    Refused,
}

fn judge(refused: &Refused) -> Verdict {
    let text = refused.status.message();
    match refused.status.code() {
        Code::Unimplemented => Verdict::NoBatches,
        Code::Unauthenticated => Verdict::Unproved,
        Code::FailedPrecondition if refused.reason() == EXPIRED && !text.contains("session") => Verdict::End,
        Code::FailedPrecondition if refused.reason().contains("session") || text.contains("session") => {
            Verdict::NewSession
        }
        _ => Verdict::Refused,
    }
}

/// What one result of a batch means.
fn settle(shelf: &Arc<Shelf>, report: &Report, result: &RayResult) -> Option<End> {
    if result.code == Code::Ok as i32 {
        heard(shelf, report);
        return None;
    }
    if result.reason == EXPIRED {
        return Some(End::Expired);
    }
    refused_one(shelf, report, &result.text);
    None
}

/// A report was answered.
fn heard(shelf: &Arc<Shelf>, report: &Report) {
    if let Report::FetchFailed { object, why: FetchFailure::GivenUp } = report {
        shelf.heard_of(*object);
    }
}

/// The scheduler does not count such a copy, so it would never order it deallocated.
fn refused_one(shelf: &Arc<Shelf>, report: &Report, text: &str) {
    heard(shelf, report);
    match report {
        Report::Ready { object, .. } => {
            tracing::debug!(%object, text, "the scheduler does not want an object, which is dropped");
            shelf.deallocate(*object);
        }
        // A scheduler that does not know the call has no answer to it either.
        Report::FetchFailed { object, .. } => {
            tracing::debug!(%object, text, "the scheduler does not want to know that an object does not come");
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn s26_no_object_is_dropped_as_the_stores_token_has_run_out() {
        let judged = |status| judge(&Refused { endpoint: "a:1".to_owned(), status });
        assert!(matches!(judged(Status::unauthenticated("T1532 token-refused: x")), Verdict::Unproved));
        assert!(matches!(judged(Status::not_found("nobody wants it")), Verdict::Refused));
        assert!(matches!(judged(Status::unimplemented("no batches")), Verdict::NoBatches));
    }
}

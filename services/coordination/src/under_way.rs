//! Keeps count of the calls that a stop must not cut, and ends those that cannot be waited for.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tripod_gateway::Outage;
use tripod_proto::metadata;

use crate::connection::{Line, Unfinished};
use crate::status;
use crate::stop::Stopping;

/// Calls that may be made twice, with the outcome of one: they look, or wait for something that the state
/// remembers. All dialects, by method. `Shutdown` of dialect L is none of them: it does not say who leaves,
/// so two calls count as two nodes.
const REPEATABLE: [&str; 16] = [
    "Barrier",
    "Connect",
    "EnumerateDevices",
    "GetAliveTasks",
    "GetKeyValue",
    "GetKeyValueDir",
    "GetTaskState",
    "Heartbeat",
    "KeyValueGet",
    "RegisterTask",
    "ShutdownTask",
    "TryGetKeyValue",
    "WaitAtBarrier",
    "WaitForAllTasks",
    "WatchJobState",
    "WatchTasks",
];
/// What a client ends for with any answer but one, so that this one must reach it.
const POLL: &str = "PollForError";
/// Our own services, whose clients know by themselves what to make of a broken connection.
const OWN: &str = "/tripod.";

/// How a call may end when its node stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It may be cut: gRPC makes it again elsewhere, and does not tell the client.
    Repeatable,
    /// It is answered soon after the stop begins, and from then on must not be cut.
    Poll,
    /// It may be cut, but soon and with a word: its caller makes it again, and no gRPC does it for it.
    Lasting,
    /// It must be answered. If it cannot be in time, its outcome is unknown, which only it is told.
    Once,
    /// As `Once`, but the end of the connection tells the same.
    Own,
}

impl Manner {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        let method = path.rsplit('/').next().unwrap_or_default();
        let lasting = request.headers().get(metadata::LASTING).is_some_and(|value| value == "1");
        match method {
            _ if path.starts_with(OWN) => Self::Own,
            POLL if !lasting => Self::Poll,
            _ if method != POLL && !REPEATABLE.contains(&method) => Self::Once,
            _ if lasting => Self::Lasting,
            _ => Self::Repeatable,
        }
    }
}

/// Answers a call, or ends it when its node stops. The services find [`Stopping`] among the request's
/// extensions.
pub(crate) async fn follow(State(stopping): State<Stopping>, mut request: Request, next: Next) -> Response {
    let line = request.extensions().get::<Line>().cloned().unwrap_or_default();
    let manner = Manner::of(&request);
    request.extensions_mut().insert(stopping.clone());
    let answer = next.run(request);
    let (response, unfinished) = match manner {
        Manner::Repeatable => (answer.await, line.enter()),
        Manner::Poll => {
            tokio::pin!(answer);
            tokio::select! {
                response = &mut answer => (response, line.enter()),
                () = stopping.begun() => {
                    let unfinished = line.enter();
                    (answer.await, unfinished)
                }
            }
        }
        Manner::Lasting => tokio::select! {
            response = answer => (response, line.enter()),
            () = stopping.begun() => (refusal(&Outage::Stopping), line.enter()),
        },
        Manner::Own => {
            let unfinished = line.enter();
            (answer.await, unfinished)
        }
        Manner::Once => {
            let unfinished = line.enter();
            let response = tokio::select! {
                response = answer => response,
                () = stopping.overdue() => refusal(&Outage::Unknown("the node is stopping".to_owned())),
            };
            (response, unfinished)
        }
    };
    response.map(|inner| Body::new(Answer { inner, _unfinished: unfinished }))
}

fn refusal(outage: &Outage) -> Response {
    status::of_outage(outage).into_http()
}

/// A response's body, which is under way until h2 has taken all of it.
struct Answer {
    inner: Body,
    _unfinished: Unfinished,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manner(path: &str, lasting: bool) -> Manner {
        let mut request = Request::builder().uri(path);
        if lasting {
            request = request.header(metadata::LASTING, "1");
        }
        Manner::of(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn only_what_may_be_made_twice_may_be_cut() {
        for service in ["xla.coordination.CoordinationService", "tensorflow.CoordinationService"] {
            let of = |method: &str, lasting| manner(&format!("/{service}/{method}"), lasting);
            assert_eq!(of("GetKeyValue", false), Manner::Repeatable);
            assert_eq!(of("ShutdownTask", false), Manner::Repeatable);
            assert_eq!(of("GetKeyValue", true), Manner::Lasting);
            assert_eq!(of("PollForError", false), Manner::Poll);
            assert_eq!(of("PollForError", true), Manner::Lasting);
            for once in ["InsertKeyValue", "IncrementKeyValue", "DeleteKeyValue", "NewerThanThis"] {
                assert_eq!(of(once, false), Manner::Once, "{once}");
                assert_eq!(of(once, true), Manner::Once, "{once}");
            }
        }
        assert_eq!(manner("/xla.DistributedRuntimeService/WaitAtBarrier", false), Manner::Repeatable);
        assert_eq!(manner("/xla.DistributedRuntimeService/Shutdown", false), Manner::Once);
        assert_eq!(manner("/tripod.v1.Kv/Put", false), Manner::Own);
    }
}

//! Keeps count of the calls that a stop must not cut, and ends those that cannot be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tripod_gateway::{Account, CallerConnection};
use tripod_proto::metadata;

use crate::connection::{Handing, Line, Unfinished};
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
/// Whoever watches a node's health watches again when the connection ends.
const HEALTH: &str = "/grpc.health.";
/// The services of whose calls each has one answer, which is made before any of it is handed over.
const UNARY: [&str; 2] = ["/xla.", "/tensorflow."];

/// How a call may end when its node stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It may be cut: gRPC makes it again elsewhere, and does not tell the client.
    Repeatable,
    /// It is answered soon after the stop begins, and from then on must not be cut. If the node is only cut off,
    /// as `Repeatable`.
    Poll,
    /// It may be cut, but soon and with a word: its caller makes it again, and no gRPC does it for it.
    Lasting,
    /// It must be answered. If it cannot be in time, its outcome is unknown, which only it is told.
    Once,
    /// As `Once`, but the end of the connection tells the same.
    Own,
}

impl Manner {
    fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        if path.starts_with(OWN) {
            return Self::Own;
        }
        if path.starts_with(HEALTH) {
            return Self::Repeatable;
        }
        let method = path.rsplit('/').next().unwrap_or_default();
        let lasting = request.headers().get(metadata::LASTING).is_some_and(|value| value == "1");
        match method {
            POLL if !lasting => Self::Poll,
            _ if method != POLL && !REPEATABLE.contains(&method) => Self::Once,
            _ if lasting => Self::Lasting,
            _ => Self::Repeatable,
        }
    }
}

/// Why a call ends before it has been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Its caller is to make it again, elsewhere.
    Elsewhere,
    /// It may or may not have taken effect.
    Unknown,
}

/// A call of which a stop must know how it may end.
#[derive(Debug)]
pub struct UnderWay {
    manner: Manner,
    is_unary: bool,
    line: Line,
}

impl UnderWay {
    /// That of a request which has come by a connection of [`crate::connection`].
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        let line = request.extensions().get::<Line>().cloned().unwrap_or_default();
        let is_unary = UNARY.iter().any(|service| request.uri().path().starts_with(service));
        Self { manner: Manner::of(request), is_unary, line }
    }

    /// By which connection it came, and from where.
    #[must_use]
    pub fn connection(&self) -> CallerConnection {
        self.line.connection()
    }

    /// Where its bytes are counted.
    #[must_use]
    pub fn account(&self) -> &Account {
        self.line.account()
    }

    /// Whether every answer but one ends its client.
    #[must_use]
    pub fn is_poll(&self) -> bool {
        self.manner == Manner::Poll
    }

    /// Waits for the answer, or ends the call when its port stops, with what `cut` makes of it. A poll has
    /// to end by itself then.
    pub async fn answered<B>(
        self,
        stopping: &Stopping,
        answer: impl Future<Output = Response<B>>,
        cut: impl FnOnce(Cut) -> Response<B>,
    ) -> Response<Answer<B>> {
        let line = self.line;
        let (response, unfinished) = match self.manner {
            Manner::Repeatable => (answer.await, line.enter()),
            Manner::Poll => {
                tokio::pin!(answer);
                tokio::select! {
                    response = &mut answer => (response, line.enter()),
                    () = stopping.releases_polls() => {
                        let unfinished = line.enter();
                        (answer.await, unfinished)
                    }
                }
            }
            Manner::Lasting => tokio::select! {
                response = answer => (response, line.enter()),
                () = stopping.begun() => (cut(Cut::Elsewhere), line.enter()),
            },
            Manner::Own => {
                let unfinished = line.enter();
                (answer.await, unfinished)
            }
            Manner::Once => {
                let unfinished = line.enter();
                let response = tokio::select! {
                    response = answer => response,
                    () = stopping.overdue() => cut(Cut::Unknown),
                };
                (response, unfinished)
            }
        };
        let handing = self.is_unary.then(|| line.hand());
        response.map(|inner| Answer { inner, _handing: handing, _unfinished: unfinished })
    }
}

/// A response's body, which is under way until h2 has taken all of it.
#[derive(Debug)]
pub struct Answer<B> {
    inner: B,
    _handing: Option<Handing>,
    _unfinished: Unfinished,
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
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
        Manner::of(&request.body(()).unwrap())
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
        assert_eq!(manner("/grpc.health.v1.Health/Watch", false), Manner::Repeatable);
    }
}

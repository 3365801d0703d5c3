//! Keeps count of the calls that a stop must not cut, and ends those that cannot be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tripod_proto::metadata;

use crate::bytes_held::Account;
use crate::caller_connection::CallerConnection;
use crate::connection::{ConnectionCalls, Handing, Unfinished};
use crate::manner::{Ending, MethodKind};
use crate::stop::Stopping;

/// What a stop does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Repeatable,
    Poll,
    /// It may be cut, but soon and with a word: its caller makes it again, and no gRPC does it for it.
    Lasting,
    Once,
    Own,
}

impl Way {
    fn of<B>(request: &Request<B>, ending: Ending, kind: MethodKind) -> Self {
        let is_lasting = kind == MethodKind::Unary
            && request.headers().get(metadata::LASTING).is_some_and(|value| value == "1");
        match ending {
            Ending::Repeatable | Ending::Poll if is_lasting => Self::Lasting,
            Ending::Repeatable => Self::Repeatable,
            Ending::Poll => Self::Poll,
            Ending::Once => Self::Once,
            Ending::Own => Self::Own,
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
    way: Way,
    is_unary: bool,
    calls: ConnectionCalls,
}

impl UnderWay {
    /// That of a request which has come by a [`crate::Mended`] connection, and which may end so.
    #[must_use]
    pub fn of<B>(request: &Request<B>, ending: Ending, kind: MethodKind) -> Self {
        let calls = request.extensions().get::<ConnectionCalls>().cloned().unwrap_or_default();
        Self { way: Way::of(request, ending, kind), is_unary: kind == MethodKind::Unary, calls }
    }

    /// By which connection it came, and from where.
    #[must_use]
    pub fn connection(&self) -> CallerConnection {
        self.calls.connection()
    }

    /// Where its bytes are counted.
    #[must_use]
    pub fn account(&self) -> &Account {
        self.calls.account()
    }

    /// Whether every answer but one ends its client.
    #[must_use]
    pub fn is_poll(&self) -> bool {
        self.way == Way::Poll
    }

    /// Waits for the answer, or ends the call when its port stops, with what `cut` makes of it. A poll has
    /// to end by itself then.
    pub async fn answered<B>(
        self,
        stopping: &Stopping,
        answer: impl Future<Output = Response<B>>,
        cut: impl FnOnce(Cut) -> Response<B>,
    ) -> Response<Answer<B>> {
        let calls = self.calls;
        let (response, unfinished) = match self.way {
            Way::Repeatable => (answer.await, calls.enter()),
            Way::Poll => {
                tokio::pin!(answer);
                tokio::select! {
                    response = &mut answer => (response, calls.enter()),
                    () = stopping.releases_polls() => {
                        let unfinished = calls.enter();
                        (answer.await, unfinished)
                    }
                }
            }
            Way::Lasting => tokio::select! {
                response = answer => (response, calls.enter()),
                () = stopping.begun() => (cut(Cut::Elsewhere), calls.enter()),
            },
            Way::Own => {
                let unfinished = calls.enter();
                (answer.await, unfinished)
            }
            Way::Once => {
                let unfinished = calls.enter();
                let response = tokio::select! {
                    response = answer => response,
                    () = stopping.overdue() => cut(Cut::Unknown),
                };
                (response, unfinished)
            }
        };
        let handing = self.is_unary.then(|| calls.hand());
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

    #[test]
    fn who_makes_a_call_again_itself_is_told_to_if_it_may_be_made_twice() {
        let way = |ending, kind, lasting| {
            let request = Request::builder().header(metadata::LASTING, lasting).body(()).unwrap();
            Way::of(&request, ending, kind)
        };
        for (ending, plain) in [
            (Ending::Repeatable, Way::Repeatable),
            (Ending::Poll, Way::Poll),
            (Ending::Once, Way::Once),
            (Ending::Own, Way::Own),
        ] {
            let may_be_cut = matches!(ending, Ending::Repeatable | Ending::Poll);
            let lasting = if may_be_cut { Way::Lasting } else { plain };
            assert_eq!(way(ending, MethodKind::Unary, "1"), lasting);
            assert_eq!(way(ending, MethodKind::Unary, "yes"), plain);
            assert_eq!(way(ending, MethodKind::OneMessage, "1"), plain, "nobody has said that of streams");
        }
    }
}

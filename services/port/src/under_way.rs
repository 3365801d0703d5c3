//! Keeps count of the calls that a stop must not cut, and ends those that cannot be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tripod_proto::metadata;

use crate::bytes_held::{Account, CallBytes};
use crate::call_context::CallContext;
use crate::caller_connection::CallerConnection;
use crate::connection::{ConnectionCalls, Handing, Unfinished};
use crate::holding::Content;
use crate::lapse::{self, Lapse, Lapsing};
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
    fn of(headers: &HeaderMap, ending: Ending, kind: MethodKind) -> Self {
        let is_lasting =
            kind == MethodKind::Unary && headers.get(metadata::LASTING).is_some_and(|value| value == "1");
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
    /// Whoever makes it is believed no longer, and is told this.
    Refused(&'static str),
    /// The same, when it may or may not have taken effect.
    RefusedSince,
}

/// A call of which a stop must know how it may end.
#[derive(Debug)]
pub struct UnderWay {
    way: Way,
    is_unary: bool,
    /// It is an op of a stream, which asks it again when its port stops.
    is_op: bool,
    calls: ConnectionCalls,
}

impl UnderWay {
    /// That of a request which has come by a [`crate::Mended`] connection, and which may end so.
    #[must_use]
    pub fn of<B>(request: &Request<B>, ending: Ending, kind: MethodKind) -> Self {
        let calls = CallContext::connection_calls(request.extensions()).cloned().unwrap_or_default();
        Self::on(calls, request.headers(), ending, kind)
    }

    /// That of a request with these headers, which has come by that connection.
    pub(crate) fn on(calls: ConnectionCalls, headers: &HeaderMap, ending: Ending, kind: MethodKind) -> Self {
        let is_unary = kind == MethodKind::Unary;
        Self { way: Way::of(headers, ending, kind), is_unary, is_op: false, calls }
    }

    /// That of an op. Its stream ends and it does not, so whoever sent it is told to send it again, if that may be done.
    pub(crate) fn of_op(calls: ConnectionCalls, headers: &HeaderMap, ending: Ending) -> Self {
        let way = match Way::of(headers, ending, MethodKind::Unary) {
            Way::Repeatable => Way::Lasting,
            way => way,
        };
        Self { way, is_unary: false, is_op: true, calls }
    }

    pub(crate) fn is_op(&self) -> bool {
        self.is_op
    }

    /// What is known of it, for its service.
    pub(crate) fn context(&self, stopping: &Stopping, bytes: &CallBytes) -> CallContext {
        CallContext::new(self.calls.clone(), stopping.clone(), bytes.clone())
    }

    /// The calls of its connection.
    pub(crate) fn calls(&self) -> &ConnectionCalls {
        &self.calls
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
    /// to end by itself then. Nothing of `answer` runs before this is polled, and then the call is counted.
    #[must_use = "a call that nobody waits for is not made"]
    pub fn answered<F>(
        self,
        stopping: &Stopping,
        answer: F,
        bytes: CallBytes,
        cut: fn(Cut) -> F::Output,
    ) -> Answering<F>
    where
        F: Future,
    {
        let Self { way, is_unary, is_op, calls } = self;
        let stopping = stopping.clone();
        Answering {
            answer,
            cut,
            bytes,
            way,
            is_unary,
            is_op,
            calls,
            stopping,
            unfinished: None,
            stop: None,
            lapse: None,
        }
    }
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

pin_project! {
    /// The answer to a call under way. It has a type with a name, so that nobody needs to box it.
    pub struct Answering<F: Future> {
        #[pin]
        answer: F,
        cut: fn(Cut) -> F::Output,
        bytes: CallBytes,
        way: Way,
        is_unary: bool,
        is_op: bool,
        calls: ConnectionCalls,
        stopping: Stopping,
        // From when on it may not be cut.
        unfinished: Option<Unfinished>,
        // Made when the call has to wait, and must hear of a stop.
        stop: Option<Wait>,
        // Of a call that was admitted by what may end.
        lapse: Option<Lapsing>,
    }
}

impl<F: Future> Answering<F> {
    /// The same, which ends when that by which it was admitted does.
    pub(crate) fn until(mut self, lapse: Option<Lapse>) -> Self {
        self.lapse = lapse.map(Lapse::awaited);
        self
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> &CallBytes {
        &self.bytes
    }

    /// The call ends with this answer, whatever its service is about to say.
    pub(crate) fn end_with<B>(self: Pin<&mut Self>, answer: Response<B>) -> Response<Answer<Content<B>>> {
        let this = self.project();
        let unfinished = this.unfinished.take().unwrap_or_else(|| this.calls.enter());
        let handing = this.is_unary.then(|| this.calls.hand());
        // What is said at once has been said.
        let lapse = this.lapse.take().filter(|_| handing.is_none());
        Content::of(answer, this.bytes.clone()).map(|inner| Answer {
            inner,
            lapse,
            is_over: false,
            _handing: handing,
            _unfinished: unfinished,
        })
    }
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Response<Answer<Content<B>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        if let Some(lapse) = this.lapse.as_mut()
            && let Poll::Ready(says) = lapse.poll(context)
        {
            // It has said its last word.
            *this.lapse = None;
            let has_begun = this.unfinished.is_some() && matches!(this.way, Way::Own | Way::Once);
            let why = if has_begun { Cut::RefusedSince } else { Cut::Refused(says) };
            let answer = (*this.cut)(why);
            return Poll::Ready(self.end_with(answer));
        }
        if this.unfinished.is_none() && matches!(this.way, Way::Own | Way::Once) {
            *this.unfinished = Some(this.calls.enter());
        }
        if let Poll::Ready(answer) = this.answer.poll(context) {
            return Poll::Ready(self.end_with(answer));
        }
        let (cut, way) = (*this.cut, *this.way);
        let why = match way {
            Way::Repeatable | Way::Own => return Poll::Pending,
            Way::Poll if this.unfinished.is_some() => return Poll::Pending,
            Way::Poll | Way::Lasting => Cut::Elsewhere,
            Way::Once => Cut::Unknown,
        };
        if *this.is_op {
            if !way.is_due(this.stopping) {
                return Poll::Pending;
            }
        } else {
            let stop = this.stop.get_or_insert_with(|| way.stop(this.stopping.clone()));
            ready!(stop.as_mut().poll(context));
        }
        if way == Way::Poll {
            *this.stop = None;
            *this.unfinished = Some(this.calls.enter());
            return Poll::Pending;
        }
        Poll::Ready(self.end_with(cut(why)))
    }
}

impl Way {
    /// Resolves when the call must hear that its port stops.
    fn stop(self, stopping: Stopping) -> Wait {
        Box::pin(async move {
            match self {
                Self::Poll => stopping.releases_polls().await,
                Self::Once => stopping.overdue().await,
                Self::Lasting | Self::Repeatable | Self::Own => stopping.begun().await,
            }
        })
    }
}

impl Way {
    /// Whether the call must hear now that its port stops.
    fn is_due(self, stopping: &Stopping) -> bool {
        match self {
            Self::Poll => stopping.is_releasing_polls(),
            Self::Once => stopping.is_overdue(),
            Self::Lasting | Self::Repeatable | Self::Own => stopping.is_begun(),
        }
    }
}

/// A response's body, which is under way until h2 has taken all of it.
#[derive(Debug)]
pub struct Answer<B> {
    inner: B,
    /// Of answers that come one after the other.
    lapse: Option<Lapsing>,
    /// It was ended before its service has ended it.
    is_over: bool,
    _handing: Option<Handing>,
    _unfinished: Unfinished,
}

impl<B> Answer<B> {
    pub(crate) fn inner(&self) -> &B {
        &self.inner
    }
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(lapse) = &mut self.lapse
            && let Poll::Ready(says) = lapse.poll(context)
        {
            self.lapse = None;
            self.is_over = true;
            return Poll::Ready(Some(Ok(Frame::trailers(lapse::trailers(says)))));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.inner.is_end_stream()
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
            Way::of(request.headers(), ending, kind)
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

    mod counted {
        use std::future::{pending, poll_fn};
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        use futures::FutureExt as _;

        use super::*;
        use crate::bytes_held::CALL_BYTES;
        use crate::stop::{Phase, Stop};

        fn under_way(way: Way, calls: &ConnectionCalls) -> (UnderWay, CallBytes) {
            let bytes = CallBytes::of(calls.account().call(CALL_BYTES).expect("there is no limit"));
            (UnderWay { way, is_unary: true, is_op: false, calls: calls.clone() }, bytes)
        }

        fn cut(why: Cut) -> Response<String> {
            Response::new(format!("{why:?}"))
        }

        fn is_quiet(calls: &ConnectionCalls) -> bool {
            poll_fn(|context| Poll::Ready(calls.is_quiet(context))).now_or_never().expect("it is a look")
        }

        #[test]
        fn a_call_is_counted_from_its_begin_if_it_may_not_be_cut_and_else_from_its_answer() {
            for (way, from_begin) in [(Way::Repeatable, false), (Way::Own, true), (Way::Once, true)] {
                let (calls, stopping) = (ConnectionCalls::default(), Stopping::never());
                let (call, bytes) = under_way(way, &calls);
                let is_done = Arc::new(AtomicBool::new(false));
                let done = Arc::clone(&is_done);
                let answer = poll_fn(move |_| match done.load(Ordering::Relaxed) {
                    true => Poll::Ready(Response::new(String::new())),
                    false => Poll::Pending,
                });
                let mut answering = Box::pin(call.answered(&stopping, answer, bytes, cut));
                assert!(is_quiet(&calls), "nobody has begun it");
                assert!(answering.as_mut().now_or_never().is_none());
                assert_eq!(is_quiet(&calls), !from_begin, "{way:?}");
                is_done.store(true, Ordering::Relaxed);
                let answer = answering.as_mut().now_or_never().expect("it is made");
                assert!(!is_quiet(&calls) && calls.is_handing(), "h2 has not taken it");
                drop(answer);
                assert!(is_quiet(&calls) && !calls.is_handing());
            }
        }

        #[test]
        fn s31_a_call_ends_with_what_admitted_it_and_one_that_may_have_taken_effect_is_told_that() {
            for (way, has_begun, said) in [
                (Way::Repeatable, true, "Refused(\"gone\")"),
                (Way::Poll, true, "Refused(\"gone\")"),
                (Way::Lasting, true, "Refused(\"gone\")"),
                (Way::Once, true, "RefusedSince"),
                (Way::Own, true, "RefusedSince"),
                (Way::Once, false, "Refused(\"gone\")"),
                (Way::Own, false, "Refused(\"gone\")"),
            ] {
                let over = tokio::sync::watch::Sender::new(false);
                let (calls, stopping) = (ConnectionCalls::default(), Stopping::never());
                let (call, bytes) = under_way(way, &calls);
                let answering = call.answered(&stopping, pending(), bytes, cut);
                let mut answering = Box::pin(answering.until(Some(Lapse::new(over.subscribe(), "gone"))));
                if has_begun {
                    assert!(answering.as_mut().now_or_never().is_none(), "{way:?}");
                }
                over.send_replace(true);
                let ended = answering.as_mut().now_or_never().expect("it is over");
                assert_eq!(ended.into_body().inner.into_inner(), said, "{way:?}");
            }
        }

        #[test]
        fn s31_answers_that_come_one_after_the_other_end_with_what_admitted_their_call() {
            let over = tokio::sync::watch::Sender::new(false);
            let calls = ConnectionCalls::default();
            let (call, bytes) = under_way(Way::Own, &calls);
            let call = UnderWay { is_unary: false, ..call };
            let answer = std::future::ready(Response::new(tonic::body::Body::new(Silent)));
            let answering = call.answered(&Stopping::never(), answer, bytes, |_| Response::default());
            let mut answering = Box::pin(answering.until(Some(Lapse::new(over.subscribe(), "gone"))));
            let mut body = answering.as_mut().now_or_never().expect("it is there").into_body();
            let mut next = || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).now_or_never();
            assert!(next().is_none(), "nothing has come");
            over.send_replace(true);
            let last = next().expect("it is over").expect("a frame").expect("no failure");
            let trailers = last.into_trailers().expect("trailers");
            assert_eq!(trailers["grpc-status"], "16");
            assert!(next().expect("it has ended").is_none());
        }

        /// Answers that never come.
        struct Silent;

        impl Body for Silent {
            type Data = bytes::Bytes;
            type Error = tonic::Status;

            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<bytes::Bytes>, tonic::Status>>> {
                Poll::Pending
            }
        }

        #[test]
        fn a_stop_cuts_what_may_be_cut_when_it_may_be_and_with_its_word() {
            for (way, phase, word) in [
                (Way::Lasting, Phase::Leaving, Some("Elsewhere")),
                (Way::Once, Phase::Overdue, Some("Unknown")),
                (Way::Repeatable, Phase::Overdue, None),
                (Way::Own, Phase::Overdue, None),
                (Way::Poll, Phase::Overdue, None),
            ] {
                let (stop, stopping) = Stop::new();
                let calls = ConnectionCalls::default();
                let (call, bytes) = under_way(way, &calls);
                let mut answering = Box::pin(call.answered(&stopping, pending(), bytes, cut));
                assert!(answering.as_mut().now_or_never().is_none(), "{way:?}");
                stop.enter(phase);
                let cut = answering.as_mut().now_or_never();
                let said = cut.map(|answer| answer.into_body().inner.into_inner());
                assert_eq!(said.as_deref(), word, "{way:?}");
                if way == Way::Poll {
                    assert!(!is_quiet(&calls), "it must be answered from then on");
                    assert!(answering.as_mut().now_or_never().is_none(), "and may take its time");
                }
            }
        }
    }
}

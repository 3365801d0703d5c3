//! One stream of calls, as its task serves it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Uri};
use prost::Message as _;
use tokio::time::Sleep;
use tokio_stream::Stream as _;
use tonic::codec::Streaming;
use tonic::{Code, Status};
use tripod_proto::tripod::v1 as wire;

use super::bounds::{FRAMES_A_TURN, HELLO_TIME};
use super::hello::Hello;
use super::op::Op;
use super::ops::{Ops, Told};
use super::outbox::Outbox;
use super::paths::Paths;
use super::phases::Phases;
use super::places::Place;
use super::tally::{OpenStream, StreamEnd};
use super::{PATH, answer, refused, request, scan};
use crate::bytes_held::Charge;
use crate::connection::ConnectionCalls;
use crate::followed::Followed;
use crate::refusal;
use crate::stop::Phase;
use crate::stream_order::StreamOrder;
use crate::under_way::Cut;

/// Takes frames and polls ops until the stream ends.
pub(super) struct Serving {
    services: Followed,
    calls: ConnectionCalls,
    /// Gone when the client has ended its side, or is not heard any more.
    frames: Option<Streaming<Bytes>>,
    hello: Option<Hello>,
    /// By what its head has said who calls: all of it, as it was admitted by one of them.
    bearer: Vec<HeaderValue>,
    /// Until when the hello must come.
    hello_by: Pin<Box<Sleep>>,
    paths: Paths,
    /// What the paths weigh.
    paths_held: Option<Charge>,
    ops: Ops,
    /// In which what the ops change is handed on.
    order: StreamOrder,
    outbox: Arc<Outbox>,
    phases: Phases,
    open: OpenStream,
    _place: Place,
}

impl Serving {
    /// A stream whose own request was for `base`. Must be called within a runtime.
    pub(super) fn new(
        services: Followed,
        calls: ConnectionCalls,
        frames: Streaming<Bytes>,
        base: Uri,
        outbox: Arc<Outbox>,
        place: Place,
    ) -> Self {
        let phases = Phases::of(services.stopping());
        let (ops, open) = (Ops::counted(services.tally().clone()), services.tally().enter());
        Self {
            services,
            calls,
            frames: Some(frames),
            hello: None,
            bearer: Vec::new(),
            hello_by: Box::pin(tokio::time::sleep(HELLO_TIME)),
            paths: Paths::new(base),
            paths_held: None,
            ops,
            order: StreamOrder::default(),
            outbox,
            phases,
            open,
            _place: place,
        }
    }

    /// The same for a stream whose own head said so who calls: each of its ops is that one's.
    pub(super) fn bearing(mut self, bearer: Vec<HeaderValue>) -> Self {
        self.bearer = bearer;
        self
    }

    /// Learns how far the stop of the port is, and has the ops learn it that must.
    fn hear_stop(&mut self, context: &mut Context<'_>) {
        let before = self.phases.now();
        if !self.phases.have_changed(context) {
            return;
        }
        let now = self.phases.now();
        let enters = |phase| before < phase && now >= phase;
        if enters(Phase::Leaving) {
            self.outbox.say_bye();
            self.open.ends_by(StreamEnd::Bye);
        }
        if enters(Phase::Leaving) || enters(Phase::Overdue) {
            let outbox = &self.outbox;
            self.ops.poll_all(|tag, told| tell(outbox, tag, told));
        }
        if now >= Phase::Parting {
            // What a client sends that has not heard the bye by now, it sends again elsewhere.
            self.frames = None;
        }
    }

    /// Takes the frames that have come.
    ///
    /// # Errors
    /// The stream ends so.
    fn take_frames(&mut self, context: &mut Context<'_>) -> Result<(), Status> {
        for _ in 0..FRAMES_A_TURN {
            let Some(frames) = &mut self.frames else { return Ok(()) };
            match Pin::new(frames).poll_next(context) {
                Poll::Ready(Some(Ok(frame))) => self.take_frame(frame)?,
                Poll::Ready(Some(Err(status))) => return Err(refused::unread(status)),
                Poll::Ready(None) => self.frames = None,
                Poll::Pending if self.hello.is_some() => return Ok(()),
                Poll::Pending => {
                    return match self.hello_by.as_mut().poll(context) {
                        Poll::Ready(()) => Err(refused::silent()),
                        Poll::Pending => Ok(()),
                    };
                }
            }
        }
        if self.frames.is_some() {
            // There may be more of them.
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    fn take_frame(&mut self, frame: Bytes) -> Result<(), Status> {
        scan::check(&frame)?;
        let wire::Frame { hello, paths, ops, grant, .. } =
            wire::Frame::decode(frame).map_err(|error| scan::undecodable(&error))?;
        if grant != 0 {
            return Err(refused::misused("only a node says answers, grants and bye; send ops"));
        }
        match (&self.hello, hello) {
            (None, Some(hello)) => {
                self.hello = Some(Hello::of(hello)?.bearing(&self.bearer));
            }
            (None, None) => return Err(refused::misused("the first frame has no hello; send it there")),
            (Some(_), Some(_)) => return Err(refused::misused("a second hello came; open another stream")),
            (Some(_), None) => {}
        }
        self.name(paths)?;
        let begun = ops.iter().filter(|op| op.path != 0).count();
        let begun = u32::try_from(begun).unwrap_or(u32::MAX);
        self.services.tally().note_frame_in(begun);
        self.outbox.spend(begun).map_err(refused::beyond_grant)?;
        let stamped = ops.iter().filter(|op| request::is_stamped(op)).count();
        let gather = self.services.gather().clone();
        let mut ops = ops.into_iter();
        let mut outcome = Ok(());
        gather.around(stamped, &mut || outcome = ops.by_ref().try_for_each(|op| self.take(op)));
        outcome
    }

    fn name(&mut self, paths: Vec<String>) -> Result<(), Status> {
        if paths.is_empty() {
            return Ok(());
        }
        for path in paths {
            self.paths.name(&path, &self.services)?;
        }
        let bytes = self.paths.bytes() as u64;
        match &mut self.paths_held {
            Some(held) => held.set(bytes).map_err(refusal::of_short),
            none => {
                *none = Some(self.calls.account().call(bytes).map_err(refusal::of_short)?);
                Ok(())
            }
        }
    }

    /// Begins an op, or gives one up.
    fn take(&mut self, op: wire::Op) -> Result<(), Status> {
        let tag = op.tag;
        if op.path == 0 {
            if self.ops.cancel(tag) == Some(true) {
                self.outbox.grant(1);
            }
            return Ok(());
        }
        if tag == 0 {
            return Err(refused::misused("an op has tag 0; count from 1"));
        }
        if self.ops.has(tag) {
            return Err(refused::misused(format_args!(
                "tag {tag} is that of an op without an answer; use each again only when it was answered"
            )));
        }
        let Some(hello) = &self.hello else { return Ok(()) };
        let path = self.paths.find(op.path)?;
        let request = request::of(op, path, hello)?;
        let refusal = if self.phases.now() >= Phase::Leaving {
            Some(refusal::of_cut(Cut::Elsewhere))
        } else if path.known.is_streaming || path.uri.path() == PATH {
            Some(refused::streaming(path.uri.path()))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.outbox.put(wire::Answer { tag, ..answer::of_status(&refusal) }, 1, None);
            return Ok(());
        }
        let going = self.services.begin_op(request, path.known, path.direct.as_ref(), self.calls.clone());
        if let Some(told) = self.ops.begin(tag, Op::of(going)) {
            tell(&self.outbox, tag, told);
        }
        Ok(())
    }

    /// Does all that can be done now. The stream ends with what this gives.
    fn step(&mut self, context: &mut Context<'_>) -> Option<Status> {
        self.hear_stop(context);
        self.poll_woken(context);
        match self.take_frames(context) {
            Ok(()) if self.is_over() => Some(Status::ok("")),
            Ok(()) => None,
            Err(status) => {
                self.open.ends_by(end_by(&status));
                Some(status)
            }
        }
    }

    /// Polls the ops that were woken, together as they began: what one of them proposes whose turn has come must not
    /// overtake what its frame proposed.
    fn poll_woken(&mut self, context: &Context<'_>) {
        if !self.ops.begin_poll(context) {
            return;
        }
        let gather = self.services.gather().clone();
        let Self { ops, outbox, .. } = self;
        // Nobody knows which of them propose now.
        gather.around(0, &mut || ops.poll_woken(|tag, told| tell(outbox, tag, told)));
    }

    /// Whether the client sends nothing any more, and all is answered.
    fn is_over(&self) -> bool {
        self.frames.is_none() && self.ops.is_empty()
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let order = this.order.clone();
        let end = order.enter(|| this.step(context));
        let is_over = end.is_some();
        if let Some(status) = end {
            this.outbox.end(status);
        }
        this.outbox.tell();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Unless it has ended in another way.
        self.outbox.end(refused::failed());
        self.outbox.tell();
    }
}

/// Why a stream ends that ends with this status.
fn end_by(status: &Status) -> StreamEnd {
    match status.code() {
        Code::InvalidArgument | Code::DeadlineExceeded => StreamEnd::Breach,
        Code::ResourceExhausted => StreamEnd::Limit,
        // What the transport says of a client that is gone.
        _ => StreamEnd::Client,
    }
}

/// Puts what has become of an op where it is sent from. It grants one more when the client is first told of it.
fn tell(outbox: &Outbox, tag: u32, told: Told) {
    match told {
        Told::Arrived => outbox.put(wire::Answer { tag, arrived: true, ..Default::default() }, 1, None),
        Told::Answered { mut answered, had_arrived } => {
            answered.answer.tag = tag;
            outbox.put(answered.answer, u32::from(!had_arrived), Some(answered.bytes));
        }
    }
}

//! A stream, its task, and what its owner sees of it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::{Code, Status};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::tripod::v1 as wire;
use tripod_proto::tripod::v1::calls_client::CallsClient;

use crate::calling::Calling;
use crate::hello::Hello;
use crate::ledger::{Ended, Ledger, Tag};
use crate::lost::{Lost, Reason};
use crate::options::CallOptions;
use crate::outgoing::Outgoing;

/// A stream of calls to a node. Cheap to clone; when the last clone is gone, what was called is still answered, and then
/// the stream ends.
#[derive(Debug, Clone)]
pub struct CallStream {
    owned: Arc<Owned>,
}

/// Closes the stream when nobody holds it any more.
#[derive(Debug)]
struct Owned(Arc<Shared>);

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    /// It takes no more calls.
    Leaving,
    Ended,
}

/// What the owners of a stream, its calls and its task share.
#[derive(Debug)]
pub(crate) struct Shared {
    ledger: Mutex<Ledger>,
    stage: watch::Sender<Stage>,
    /// Becomes true when nobody holds the stream, nor waits for a call.
    unused: watch::Sender<bool>,
}

impl CallStream {
    /// Opens a stream over a connection. Calls can be made at once, and are sent when the node has granted some, which takes
    /// one way there and back: [`Self::is_ready`].
    ///
    /// # Errors
    /// [`Lost::NotSent`]: what is said of all calls cannot be sent.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn open<S>(service: S, hello: &Hello) -> Result<Self, Lost>
    where
        S: GrpcService<Body> + Send + 'static,
        S::Error: Into<StdError>,
        S::Future: Send,
        S::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
        <S::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
    {
        let shared = Arc::new(Shared {
            ledger: Mutex::new(Ledger::new(hello.message().map_err(Lost::NotSent)?)),
            stage: watch::Sender::new(Stage::Open),
            unused: watch::Sender::new(false),
        });
        let calls = CallsClient::new(service).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        tokio::spawn(run(calls, Arc::clone(&shared)));
        Ok(Self { owned: Arc::new(Owned(shared)) })
    }

    /// Calls a method, such as `/package.Service/Method`. Calls are sent in the order in which this is called, whether or
    /// not anybody waits for the result yet; dropping that gives the call up. Once sent, a call waits for as long as the
    /// node takes, whatever patience it names.
    ///
    /// The result is [`Lost`] when there is no answer.
    pub fn call(&self, path: &str, message: Bytes, options: &CallOptions) -> Calling {
        let shared = &self.owned.0;
        let (waiter, outcome) = oneshot::channel();
        let mut ledger = shared.ledger.lock();
        let entered = ledger.enter(path, message, options, waiter);
        let sender = ledger.roused();
        drop(ledger);
        if let Some(sender) = sender {
            sender.wake();
        }
        match entered {
            Ok(tag) => Calling::waiting(Arc::clone(shared), tag, outcome),
            Err(lost) => Calling::refused(lost),
        }
    }

    /// Whether the stream takes calls.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self.owned.0.stage.borrow() == Stage::Open
    }

    /// Whether the stream takes no more calls: the node is about to stop, the stream has ended, or its transport has given
    /// up the request. The next calls belong elsewhere.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        !self.is_open()
    }

    /// Whether the node has said that it takes no more calls by this stream. One that [is leaving](Self::is_leaving) without
    /// that has lost its transport, and may not know yet why it ends.
    #[must_use]
    pub fn has_goodbye(&self) -> bool {
        self.owned.0.ledger.lock().has_goodbye()
    }

    /// Resolves when [`Self::is_leaving`].
    pub async fn left(&self) {
        // An error says that the stream has gone altogether.
        _ = self.owned.0.stage.subscribe().wait_for(|stage| *stage >= Stage::Leaving).await;
    }

    /// Why the stream has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<Reason> {
        self.owned.0.ledger.lock().end().cloned()
    }

    /// Whether the node has ever granted calls. If not, nobody knows whether it has streams at all, and whether they get
    /// through to it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.owned.0.ledger.lock().has_granted()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.change(|ledger, _| ledger.close());
    }
}

impl Shared {
    pub(crate) fn ledger(&self) -> &Mutex<Ledger> {
        &self.ledger
    }

    pub(crate) fn give_up(&self, tag: Tag) {
        self.change(|ledger, _| ledger.give_up(tag));
    }

    /// The client sends no more calls.
    pub(crate) fn leave(&self) {
        self.change(Ledger::leave);
    }

    /// Changes the ledger; then tells everybody whom that concerns.
    fn change<T>(&self, change: impl FnOnce(&mut Ledger, &mut Ended) -> T) -> T {
        let mut ended = Ended::new();
        let mut ledger = self.ledger.lock();
        let result = change(&mut ledger, &mut ended);
        let sender = ledger.roused();
        let stage = match (ledger.end(), ledger.is_leaving()) {
            (Some(_), _) => Stage::Ended,
            (None, true) => Stage::Leaving,
            (None, false) => Stage::Open,
        };
        let is_unused = ledger.is_unused();
        drop(ledger);
        if stage > Stage::Open {
            self.stage.send_if_modified(|known| {
                let is_later = stage > *known;
                *known = stage.max(*known);
                is_later
            });
        }
        if is_unused {
            self.unused.send_replace(true);
        }
        for (waiter, outcome) in ended {
            // Nobody is left who waits for it.
            _ = waiter.send(outcome);
        }
        if let Some(sender) = sender {
            sender.wake();
        }
        result
    }

    async fn unused(&self) {
        _ = self.unused.subscribe().wait_for(|unused| *unused).await;
    }
}

/// A stream's life.
async fn run<S>(calls: CallsClient<S>, shared: Arc<Shared>)
where
    S: GrpcService<Body>,
    S::Error: Into<StdError>,
    S::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <S::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let reason = tokio::select! {
        reason = converse(calls, &shared) => reason,
        () = shared.unused() => Reason::Closed,
    };
    if reason != Reason::Closed {
        tracing::debug!(%reason, "a stream of calls has ended");
    }
    shared.change(|ledger, ended| ledger.over(reason, ended));
}

/// Sends and receives until the stream ends; tells why it has.
async fn converse<S>(mut calls: CallsClient<S>, shared: &Arc<Shared>) -> Reason
where
    S: GrpcService<Body>,
    S::Error: Into<StdError>,
    S::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <S::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let mut frames = match calls.open(Outgoing::new(Arc::clone(shared))).await {
        Ok(frames) => frames.into_inner(),
        Err(status) => return not_opened(&status),
    };
    loop {
        match frames.message().await {
            Ok(Some(frame)) => {
                if let Err(breach) = received(shared, frame) {
                    return breach;
                }
            }
            Ok(None) => return Reason::Over,
            Err(status) => return Reason::Broken(text(&status).into()),
        }
    }
}

fn received(shared: &Shared, frame: wire::Frame) -> Result<(), Reason> {
    shared.change(|ledger, ended| ledger.receive(frame, ended))
}

fn not_opened(status: &Status) -> Reason {
    if std::error::Error::source(status).is_some() {
        return Reason::Broken(text(status).into());
    }
    match status.code() {
        Code::Unimplemented => Reason::NotServed,
        _ => Reason::Refused(text(status).into()),
    }
}

/// What went wrong, by its root cause: the outer texts of a transport only say that it is one.
fn text(status: &Status) -> String {
    let Some(mut root) = std::error::Error::source(status) else {
        return format!("{:?}: {}", status.code(), status.message());
    };
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

//! Streams of calls to a fake node.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};
use tripod_proto::tripod::v1 as pb;
use tripod_proto::tripod::v1::calls_server::Calls;

use super::node::Shared;
use super::service::{ByStream, answer};

const GRANT: u32 = 1024;

#[derive(Clone)]
pub(super) struct Streams(pub(super) Shared);

type Told = mpsc::UnboundedSender<Result<pb::Frame, Status>>;

#[tonic::async_trait]
impl Calls for Streams {
    type OpenStream = UnboundedReceiverStream<Result<pb::Frame, Status>>;

    async fn open(
        &self,
        request: Request<Streaming<pb::Frame>>,
    ) -> Result<Response<Self::OpenStream>, Status> {
        if !self.0.conduct.lock().has_streams {
            return Err(Status::unimplemented("an older node"));
        }
        let (told, frames) = mpsc::unbounded_channel();
        tell(&told, pb::Frame { grant: GRANT, ..pb::Frame::default() });
        tokio::spawn(converse(self.0.clone(), request.into_inner(), told));
        Ok(Response::new(UnboundedReceiverStream::new(frames)))
    }
}

fn tell(told: &Told, frame: pb::Frame) {
    // A client that has gone hears nothing.
    drop(told.send(Ok(frame)));
}

/// One stream.
struct Conversation {
    shared: Shared,
    told: Told,
    metadata: Vec<pb::Metadata>,
    paths: Vec<String>,
    /// They end with the stream.
    running: JoinSet<()>,
    ops: HashMap<u32, AbortHandle>,
}

async fn converse(shared: Shared, mut frames: Streaming<pb::Frame>, told: Told) {
    let (mut goodbyes, mut breaks) = (shared.goodbyes.subscribe(), shared.breaks.subscribe());
    let (metadata, paths, running, ops) = (Vec::new(), Vec::new(), JoinSet::new(), HashMap::new());
    let mut conversation = Conversation { shared, told, metadata, paths, running, ops };
    loop {
        tokio::select! {
            frame = frames.message() => match frame {
                Ok(Some(frame)) => conversation.take(frame),
                Ok(None) | Err(_) => return,
            },
            Ok(()) = goodbyes.changed() => {
                tell(&conversation.told, pb::Frame { bye: Some(pb::Bye {}), ..pb::Frame::default() });
            }
            Ok(()) = breaks.changed() => {
                drop(conversation.told.send(Err(Status::invalid_argument("the stream is ended"))));
                return;
            }
        }
    }
}

impl Conversation {
    fn take(&mut self, frame: pb::Frame) {
        if let Some(hello) = frame.hello {
            self.metadata = hello.metadata;
        }
        self.paths.extend(frame.paths);
        for op in frame.ops {
            if op.path == 0 {
                if let Some(given_up) = self.ops.remove(&op.tag) {
                    given_up.abort();
                }
                tell(&self.told, pb::Frame { grant: 1, ..pb::Frame::default() });
            } else {
                self.begin(op);
            }
        }
    }

    fn begin(&mut self, op: pb::Op) {
        let path = &self.paths[usize::try_from(op.path).expect("small") - 1];
        let method = path.rsplit('/').next().expect("a method").to_owned();
        assert_eq!(op.sequence, 0, "the stamp says it");
        let mut headers = HeaderMap::new();
        for pb::Metadata { key, value } in self.metadata.iter().cloned().chain(op.metadata) {
            let name = HeaderName::try_from(key).expect("a name");
            assert!(!name.as_str().starts_with("grpc-") && name != "content-type", "{name}");
            headers.insert(name, HeaderValue::try_from(value).expect("a value"));
        }
        let mut request = Request::new(op.message);
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        request.extensions_mut().insert(ByStream);
        let (shared, told, tag) = (self.shared.clone(), self.told.clone(), op.tag);
        let running = self.running.spawn(async move {
            let answered = match answer(shared, &method, request).await {
                Ok(message) => pb::Answer { tag, message, ..pb::Answer::default() },
                Err(refusal) => of_refusal(tag, &refusal),
            };
            tell(&told, pb::Frame { answers: vec![answered], grant: 1, ..pb::Frame::default() });
        });
        self.ops.insert(op.tag, running);
    }
}

fn of_refusal(tag: u32, refusal: &Status) -> pb::Answer {
    let metadata = refusal.metadata().clone().into_headers();
    let metadata = metadata.iter().map(|(key, value)| pb::Metadata {
        key: key.as_str().to_owned(),
        value: value.to_str().expect("text").to_owned(),
    });
    pb::Answer {
        tag,
        code: refusal.code().into(),
        text: refusal.message().to_owned(),
        details: bytes::Bytes::copy_from_slice(refusal.details()),
        metadata: metadata.collect(),
        ..pb::Answer::default()
    }
}

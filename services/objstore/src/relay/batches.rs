//! Batches of one process on their way to one node.

use std::collections::HashMap;
use std::error::Error as _;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, KeyAndValueRef, MetadataKey, MetadataMap, MetadataValue};
use tonic::{Code, Request, Status, Streaming};
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::raw::RawCodec;
use tripod_proto::tripod::v1::{LocalBatches, LocalRelayed};

use super::nodes::Nodes;

const PATH: &str = "/tripod.v1.RayLine/Batches";
/// By which a call shows a token.
const AUTHORIZATION: &str = "authorization";

/// The stream to a node, opened with the first batch.
#[derive(Debug)]
pub(crate) struct Batches<'a> {
    nodes: &'a Nodes,
    asked: LocalBatches,
    open: Option<(mpsc::Sender<Bytes>, Streaming<Bytes>)>,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(nodes: &'a Nodes, asked: LocalBatches) -> Self {
        Self { nodes, asked, open: None }
    }

    /// What the node answers to a batch. After a code other than 0 there is nothing more to be had.
    pub(crate) async fn ask(&mut self, batch: Bytes) -> LocalRelayed {
        match self.answer(batch).await {
            Ok(message) => LocalRelayed { message, ..LocalRelayed::default() },
            Err(status) => {
                // The connection's own trouble, whatever code it was given, is not the node's word: another one may take
                // the batch.
                // No node answers `Unknown`: it is what a stream ends with that was cut off.
                let broken = status.source().is_some() || status.code() == Code::Unknown;
                if broken {
                    self.nodes.forget(&self.asked.endpoint);
                }
                let code = if broken { Code::Unavailable } else { status.code() };
                LocalRelayed {
                    message: Bytes::new(),
                    code: code.into(),
                    text: status.message().to_owned(),
                    metadata: texts(status.metadata()),
                }
            }
        }
    }

    async fn answer(&mut self, batch: Bytes) -> Result<Bytes, Status> {
        let ended = || Status::unavailable("the node ended the stream");
        let (batches, mut answers) = match self.open.take() {
            Some((batches, answers)) => {
                // Its answers say why it does not take any.
                _ = batches.send(batch).await;
                (batches, answers)
            }
            None => self.begin(batch).await?,
        };
        let answer = answers.message().await?.ok_or_else(ended)?;
        self.open = Some((batches, answers));
        Ok(answer)
    }

    async fn begin(&self, first: Bytes) -> Result<(mpsc::Sender<Bytes>, Streaming<Bytes>), Status> {
        let (batches, waiting) = mpsc::channel(1);
        // A node may begin its answer only when it has something to answer.
        batches.try_send(first).map_err(|error| Status::internal(error.to_string()))?;
        let mut request = Request::new(ReceiverStream::new(waiting));
        // A process that has a token of its own calls as its bearer, and every other one as the store.
        tripod_dial::show(&mut request);
        say(request.metadata_mut(), &self.asked.metadata, tripod_dial::protection().is_some())?;
        let channel = self.nodes.channel(&self.asked.endpoint).await?;
        let mut client =
            tonic::client::Grpc::new(channel).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(PATH);
        let answers = client.streaming(request, path, RawCodec).await?.into_inner();
        Ok((batches, answers))
    }
}

/// Has a call say what its process does. A token is shown only where the node was verified, and nothing tells its text.
fn say(
    metadata: &mut MetadataMap,
    asked: &HashMap<String, String>,
    is_protected: bool,
) -> Result<(), Status> {
    for (key, value) in asked {
        let bad = || Status::invalid_argument(format!("`{key}`, or its value, is no metadata"));
        let key: MetadataKey<Ascii> = key.parse().map_err(|_| bad())?;
        let mut value: MetadataValue<Ascii> = value.parse().map_err(|_| bad())?;
        if key.as_str() == AUTHORIZATION {
            if !is_protected {
                continue;
            }
            value.set_sensitive(true);
        }
        _ = metadata.insert(key, value);
    }
    Ok(())
}

/// Metadata that is text.
fn texts(metadata: &MetadataMap) -> HashMap<String, String> {
    let text = |pair| match pair {
        KeyAndValueRef::Ascii(key, value) => Some((key.to_string(), value.to_str().ok()?.to_owned())),
        KeyAndValueRef::Binary(..) => None,
    };
    metadata.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s30_a_process_token_is_shown_over_tls_only_and_its_text_is_told_to_nobody() {
        for key in ["authorization", "Authorization"] {
            let asked = |value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
            let mut metadata = MetadataMap::new();
            say(&mut metadata, &asked("Bearer trp_x"), false).expect("legal");
            assert!(metadata.is_empty(), "{key}");
            say(&mut metadata, &asked("Bearer trp_x"), true).expect("legal");
            let shown = metadata.get(AUTHORIZATION).expect("it is shown");
            assert!(shown.is_sensitive());
            assert_eq!(shown.to_str().expect("text"), "Bearer trp_x");
            let refused = say(&mut metadata, &asked("Bearer trp_x\n"), true).expect_err("no metadata");
            assert!(!refused.message().contains("trp_"), "{refused}");
        }
    }
}

//! Calls whose messages are bytes.

use bytes::Bytes;
use tonic::metadata::AsciiMetadataKey;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tripod_proto::raw::RawCodec;

/// One unary call: `path` is `/package.Service/Method`.
pub(crate) async fn call(channel: Channel, path: String, message: Bytes) -> Result<Bytes, Status> {
    send(channel, path, Request::new(message)).await
}

/// [`call`] with metadata.
pub(crate) async fn call_with(
    channel: Channel,
    path: String,
    message: Bytes,
    metadata: Vec<(String, String)>,
) -> Result<Bytes, Status> {
    let mut request = Request::new(message);
    for (key, value) in metadata {
        let key = AsciiMetadataKey::from_bytes(key.as_bytes()).expect("a key");
        request.metadata_mut().insert(key, value.parse().expect("printable"));
    }
    send(channel, path, request).await
}

async fn send(channel: Channel, path: String, request: Request<Bytes>) -> Result<Bytes, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.expect("a connection");
    let path = path.parse().expect("a path");
    Ok(client.unary(request, path, RawCodec).await?.into_inner())
}

//! Many calls by one stream (`tripod.v1.Calls`), on every port of gRPC.
//!
//! An op is a unary call as bytes. It goes the way of every other call, with its manner, its bytes, its turns and its deadline,
//! so there is nothing here for any service, and nothing that a service would have to know. What it saves is a request of
//! HTTP/2, with its task, its stream and its headers on the wire.
//!
//! One task takes the frames of a stream and polls its ops. Each is polled once in the order in which it came, which is when
//! what changes something is proposed, and then whenever it is woken. What is answered is put into an outbox, from which the
//! response's body takes as much as there is for each frame that the client lets through. A client that does not read its
//! answers gives no grant back and so has no more ops, while those under way go on and hold up nobody.
//!
//! | module | holds |
//! |---|---|
//! | `bounds` | what one stream may be |
//! | `refused` | why a stream ends that breaks the rules |
//! | `scan` | what a frame has, before it is decoded |
//! | `paths` | the paths that a client has named |
//! | `hello` | what every op of a stream has |
//! | `headers` | metadata of clients as headers |
//! | `request` | an op as a request |
//! | `op` | one that is under way |
//! | `answer` | a response as the answer to an op |
//! | `woken` | which ops are to be polled |
//! | `ops` | those of a stream, by their tags |
//! | `outbox` | answers that have not been sent, and grants |
//! | `frames` | the body of the response |
//! | `places` | how many streams a connection has |
//! | `phases` | how far the stop of the port is |
//! | `serving` | one stream |
//! | `gather` | what is done around the ops of one frame |
//! | `tally` | what is counted of all streams |

mod answer;
mod bounds;
mod frames;
mod gather;
mod headers;
mod hello;
mod op;
mod ops;
mod outbox;
mod paths;
mod phases;
mod places;
mod refused;
mod request;
mod scan;
mod serving;
mod tally;
mod woken;

use std::sync::Arc;

use http::{HeaderValue, Request, Response, Version, header};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::Streaming;
use tripod_proto::raw::RawCodec;

use crate::bodies::{AnswerBody, RequestBody};
use crate::bytes_held::CallBytes;
use crate::connection::ConnectionCalls;
use crate::followed::Followed;
use crate::holding::{Gathered, Received};

use self::bounds::FRAME_BYTES_MAX;
use self::frames::Frames;
use self::outbox::Outbox;
use self::places::Places;
use self::serving::Serving;

pub use self::gather::Gather;
pub use self::tally::{StreamEnd, StreamTally};

/// Of the call that opens a stream.
pub const PATH: &str = "/tripod.v1.Calls/Open";

/// Opens a stream for the ops of which `services` are asked. Must be called within a runtime.
pub(crate) fn open(
    services: &Followed,
    request: Request<RequestBody>,
    calls: ConnectionCalls,
    bytes: &CallBytes,
) -> Response<AnswerBody> {
    if request.headers().get("grpc-encoding").is_some_and(|encoding| encoding != "identity") {
        return Status::unimplemented("frames of calls are not compressed").into_http();
    }
    let Some(place) = calls.kept::<Places>().enter() else {
        services.tally().note_end(StreamEnd::Limit);
        return refused::streams().into_http();
    };
    let base = request.uri().clone();
    let bearer = request.headers().get_all(header::AUTHORIZATION).iter().cloned().collect();
    let frames = Received::of_frames(request, bytes).into_body();
    let frames = Streaming::new_request(RawCodec, frames, None, Some(FRAME_BYTES_MAX));
    let outbox = Arc::new(Outbox::new());
    let serving = Serving::new(services.clone(), calls, frames, base, Arc::clone(&outbox), place);
    let serving = serving.bearing(bearer);
    // What tokio takes a task for that has done much would break the order in which ops begin. It lets others run by itself.
    let task = tokio::spawn(tokio::task::unconstrained(serving));
    let frames = Frames::new(outbox, task.abort_handle(), services.tally().clone());
    let mut response = Response::new(AnswerBody::Other(Body::new(frames)));
    *response.version_mut() = Version::HTTP_2;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response.extensions_mut().insert(Gathered);
    response
}

#[cfg(test)]
mod tests;

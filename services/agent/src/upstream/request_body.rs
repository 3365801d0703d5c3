//! The body of a request: whole, or in the course of the call.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use h2::{Reason, SendStream};
use http_body::Body as _;
use tonic::Status;
use tonic::body::Body;

/// Of a body that goes on, so much is read before the request is sent: the whole of what the agent asks by itself is less.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// What is here of a body, and whether that is all. Waits for nothing.
///
/// # Errors
/// The body's own.
pub(super) async fn read_at_once(body: &mut Body) -> Result<(Bytes, bool), Status> {
    let mut read = BytesMut::new();
    let is_whole = poll_fn(|context| {
        while read.len() < AT_ONCE_BYTES_MAX {
            match Pin::new(&mut *body).poll_frame(context) {
                Poll::Pending => return Poll::Ready(Ok(false)),
                Poll::Ready(None) => return Poll::Ready(Ok(true)),
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(status)),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        read.extend_from_slice(&data);
                    }
                }
            }
        }
        Poll::Ready(Ok(false))
    });
    let is_whole = is_whole.await?;
    Ok((read.freeze(), is_whole))
}

/// Sends a body, of which `first` was read before, as the node takes it: until it ends, or the node or the connection ends the
/// call. Whoever gives the call up has to end its body.
pub(super) async fn pump(mut body: Body, first: Bytes, mut stream: SendStream<Bytes>) {
    if !is_sent(&mut stream, first).await {
        return;
    }
    loop {
        let next = poll_fn(|context| {
            if stream.poll_reset(context).is_ready() {
                return Poll::Ready(Next::Over);
            }
            Pin::new(&mut body).poll_frame(context).map(|frame| match frame {
                Some(Ok(frame)) => Next::Data(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => Next::Failed,
                None => Next::End,
            })
        });
        match next.await {
            Next::Data(data) => {
                if !is_sent(&mut stream, data).await {
                    return;
                }
            }
            Next::Failed => return stream.send_reset(Reason::CANCEL),
            Next::End => {
                // An error says that nobody wants to know.
                _ = stream.send_data(Bytes::new(), true);
                return;
            }
            Next::Over => return,
        }
    }
}

/// What comes next in a body that is sent.
enum Next {
    Data(Bytes),
    Failed,
    End,
    /// Nobody takes it any more.
    Over,
}

/// Sends bytes as far as the windows let them through at a time. `false`: nobody takes them any more.
async fn is_sent(stream: &mut SendStream<Bytes>, mut data: Bytes) -> bool {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        // h2 tells only of room that comes.
        if stream.capacity() == 0 {
            match poll_fn(|context| stream.poll_capacity(context)).await {
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return false,
            }
        }
        let part = data.split_to(stream.capacity().min(data.len()));
        if stream.send_data(part, false).is_err() {
            return false;
        }
    }
    true
}

//! Requests of one connection.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tripod_port::Stopping;

use super::caller::Caller;
use super::patient::Patient;
use crate::connection::Ended;

/// A request's head has come by then. Between two requests of a connection as well.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Serves an operator until it ends, or the port stops between two requests.
///
/// # Errors
/// Why the connection ends before.
pub(crate) async fn converse(
    caller: &Caller,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send,
    stopping: Stopping,
) -> Result<(), Ended> {
    let stream = TokioIo::new(tokio::io::join(reader, Patient::new(writer)));
    let service = service_fn(|request| async move { Ok::<_, Infallible>(caller.answer(request).await) });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES_MAX);
    let mut serving = pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = stopping.begun() => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = serving.as_mut() => ended,
                () = stopping.overdue() => return Err(Ended::Overdue),
            }
        }
    };
    ended.map_err(|error| {
        if error.is_parse() {
            // It is answered so, too: whoever hyper could not understand.
            return Ended::Request(error);
        }
        // Its client has gone, said nothing more, or did not take an answer.
        Ended::Lost(io::Error::other(error))
    })
}

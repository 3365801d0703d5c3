//! Messages of a connection that come before their turn, and what is given up of a worker that has gone.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::AsyncRead;
use tripod_port::{Charge, LEFT_TIME, Messages};

use crate::connection::{Ended, Incoming, Received};
use crate::wire::Name;
use crate::wire::rpc0::Frame;

/// How long after its client has gone a message is given up; `None`: never. What changes an entry that nodes leave for each
/// other, or takes a place of the cluster, may come behind the next process of that node; what asks is of no use to anybody, and
/// would keep its connection's place for as long as nobody leads. Whoever has left is to have left.
pub(crate) fn patience(frame: &Frame) -> Option<Duration> {
    match Name::asked(&frame.name) {
        Some(Name::Unregistration) => None,
        _ => Some(LEFT_TIME),
    }
}

impl<R: AsyncRead + Unpin + Send> Messages<Received<Frame>> for Incoming<R> {
    type Error = Ended;

    fn message(&mut self) -> impl Future<Output = Result<Option<Received<Frame>>, Ended>> + Send {
        self.next::<Frame>()
    }

    fn bytes(message: &Received<Frame>) -> u64 {
        let Received { _held: held, .. } = message;
        held.as_ref().map_or(0, Charge::bytes)
    }

    fn patience(message: &Received<Frame>) -> Result<Option<Duration>, Ended> {
        Ok(patience(&message.frame))
    }

    fn broken(ended: &Ended) -> Option<&io::Error> {
        match ended {
            Ended::Lost(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn only_that_a_worker_has_left_is_done_however_long_it_has_gone() {
        for name in ["0", "1", "2", "6", "7", "8", "9", "a_user's"] {
            let (name, none) = (Bytes::from_static(name.as_bytes()), Bytes::new);
            let frame = Frame { name: name.clone(), to: none(), from: none(), body: none() };
            assert_eq!(patience(&frame), (name != "1").then_some(LEFT_TIME), "{name:?}");
        }
    }
}

//! A connection that carries messages between its process and the cluster, and nothing else any more.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::net::UnixStream;
use tripod_proto::tripod::v1::LocalBatches;

use super::{frame, outgoing};
use crate::relay::{Batches, Follower, Nodes};

/// What a connection carries from now on.
#[derive(Debug)]
pub(super) enum Relay {
    Batches(LocalBatches),
    Orders(Follower),
}

/// The longest message of a process: a batch that a node would refuse is left to it to refuse, with its own words.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Carries messages until either side ends.
///
/// # Errors
/// What the system says; mostly that the process is gone.
pub(super) async fn carry(
    stream: &UnixStream,
    incoming: BytesMut,
    relay: Relay,
    nodes: &Nodes,
) -> io::Result<()> {
    let mut messages = Messages { stream, incoming, outgoing: BytesMut::new() };
    match relay {
        Relay::Batches(asked) => {
            let mut batches = Batches::new(nodes, asked);
            while let Some(batch) = messages.next().await? {
                let answer = tokio::select! {
                    answer = batches.ask(batch) => answer,
                    gone = messages.gone() => return gone,
                };
                let over = answer.code != 0;
                frame::put(&answer, &mut messages.outgoing);
                messages.send().await?;
                if over {
                    break;
                }
            }
        }
        Relay::Orders(mut follower) => loop {
            let told = tokio::select! {
                told = follower.next() => told,
                gone = messages.gone() => return gone,
            };
            let Some(told) = told else { break };
            frame::put_encoded(&told.orders, &mut messages.outgoing);
            messages.send().await?;
            let Some(answer) = messages.next().await? else { break };
            // A leader that is no more does not wait.
            _ = told.answer.send(answer);
        },
    }
    Ok(())
}

/// Frames of one connection.
struct Messages<'a> {
    stream: &'a UnixStream,
    incoming: BytesMut,
    outgoing: BytesMut,
}

impl Messages<'_> {
    /// The next message of the process; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let taken = frame::take(&mut self.incoming, MESSAGE_BYTES_MAX).map_err(io::Error::other)?;
            if taken.is_some() {
                return Ok(taken);
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns when the process has gone. It has nothing to say before it is answered.
    async fn gone(&mut self) -> io::Result<()> {
        match self.read().await? {
            0 => Ok(()),
            _ => Err(io::Error::other("the process does not wait for its turn")),
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            self.incoming.reserve(4096);
            match self.stream.try_read_buf(&mut self.incoming) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        outgoing::write(self.stream, &mut self.outgoing).await
    }
}

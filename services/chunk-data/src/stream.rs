//! Messages to somebody who reads them, or is cut.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tripod_proto::mars::v1::ChunkData;

/// Messages that wait to be read.
const WAITING_MAX: usize = 2;

/// Where a call comes from; `None` is this process.
pub(crate) type Caller = Option<IpAddr>;

pub(crate) fn caller(extensions: &tonic::Extensions) -> Caller {
    tripod_dial::caller_address(extensions)
}

/// How many calls of a kind are under way, of all and of each address.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    of_one_max: usize,
    max: usize,
    of: Arc<Mutex<HashMap<Caller, usize>>>,
}

/// The place of one answer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    streams: Streams,
    caller: Caller,
}

impl Streams {
    pub(crate) fn new(of_one_max: usize, max: usize) -> Self {
        Self { of_one_max, max, of: Arc::default() }
    }

    /// # Errors
    /// `RESOURCE_EXHAUSTED`: read what was asked for first.
    pub(crate) fn admit(&self, caller: Caller) -> Result<Permit, Status> {
        let mut of = self.of.lock();
        let here = of.get(&caller).copied().unwrap_or(0);
        if here >= self.of_one_max {
            return Err(Status::resource_exhausted(format!(
                "this address has {here} calls about chunks under way; next: read what they answer first"
            )));
        }
        if of.values().sum::<usize>() >= self.max {
            return Err(Status::resource_exhausted(format!(
                "this store has {} calls about chunks under way; next: try again",
                self.max
            )));
        }
        of.insert(caller, here + 1);
        Ok(Permit { streams: self.clone(), caller })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut of = self.streams.of.lock();
        if let Some(here) = of.get_mut(&self.caller) {
            *here -= 1;
            if *here == 0 {
                of.remove(&self.caller);
            }
        }
    }
}

/// The end where messages are written. When it is dropped the answer ends.
#[derive(Debug)]
pub(crate) struct Writer {
    sender: mpsc::Sender<ChunkData>,
    ended: Arc<OnceLock<Status>>,
    patience: Duration,
}

/// The end that is read.
#[derive(Debug)]
pub(crate) struct Answers {
    receiver: mpsc::Receiver<ChunkData>,
    ended: Arc<OnceLock<Status>>,
    told: bool,
    _permit: Permit,
}

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread;

pub(crate) fn stream(permit: Permit, patience: Duration) -> (Writer, Answers) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let ended = Arc::new(OnceLock::new());
    let writer = Writer { sender, ended: Arc::clone(&ended), patience };
    (writer, Answers { receiver, ended, told: false, _permit: permit })
}

impl Writer {
    /// # Errors
    /// [`Unread`]: the reader has gone, or has read nothing for too long.
    pub(crate) async fn write(&self, message: ChunkData) -> Result<(), Unread> {
        match tokio::time::timeout(self.patience, self.sender.send(message)).await {
            Ok(sent) => sent.map_err(|_| Unread),
            Err(_) => {
                let text = format!("nothing of the answer was read for {} s", self.patience.as_secs());
                self.end(Status::deadline_exceeded(text));
                Err(Unread)
            }
        }
    }

    /// What the answer ends with, once all before it was read.
    pub(crate) fn end(&self, status: Status) {
        // Only the first one is told.
        _ = self.ended.set(status);
    }
}

impl Stream for Answers {
    type Item = Result<ChunkData, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.receiver.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(message))),
            Poll::Ready(None) if self.told => Poll::Ready(None),
            Poll::Ready(None) => {
                self.told = true;
                Poll::Ready(self.ended.get().cloned().map(Err))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_cut_and_told_so_behind_what_it_was_sent() {
        let streams = Streams::new(1, 1);
        let (writer, mut answers) = stream(streams.admit(None).unwrap(), Duration::from_secs(60));
        for seq in 0..2 {
            writer.write(ChunkData { seq, ..ChunkData::default() }).await.expect("room");
        }
        assert_eq!(writer.write(ChunkData::default()).await, Err(Unread));
        drop(writer);
        assert_eq!(answers.next().await.unwrap().unwrap().seq, 0);
        assert_eq!(answers.next().await.unwrap().unwrap().seq, 1);
        let cut = answers.next().await.unwrap().expect_err("cut");
        assert_eq!(
            (cut.code(), cut.message()),
            (tonic::Code::DeadlineExceeded, "nothing of the answer was read for 60 s")
        );
        assert!(answers.next().await.is_none());
        drop(answers);
        assert!(streams.of.lock().is_empty(), "its place is free");
    }

    #[test]
    fn one_address_has_so_many_answers_and_all_together_so_many() {
        let streams = Streams::new(2, 3);
        let at = |host: u8| Some(IpAddr::from([10, 0, 0, host]));
        let one = [streams.admit(at(1)).expect("a place"), streams.admit(at(1)).expect("a place")];
        assert_eq!(streams.admit(at(1)).expect_err("too many").code(), tonic::Code::ResourceExhausted);
        let _other = streams.admit(at(2)).expect("a place");
        assert!(streams.admit(at(3)).is_err());
        drop(one);
        assert!(streams.admit(at(3)).is_ok());
    }
}

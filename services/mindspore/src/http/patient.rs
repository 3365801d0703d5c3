//! How long a client may take over an answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::time::Sleep;

use crate::connection::ANSWER_TIME;

/// Fails when nothing was taken for [`ANSWER_TIME`] of what is written.
pub(super) struct Patient<W> {
    inner: W,
    /// Until when something must be taken; nothing waits.
    until: Option<Pin<Box<Sleep>>>,
}

impl<W: AsyncWrite + Unpin> Patient<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, until: None }
    }

    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(ANSWER_TIME)));
        ready!(until.as_mut().poll(context));
        let seconds = ANSWER_TIME.as_secs();
        let late = format!("an answer was not taken within {seconds} s");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, late)))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.within(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_of_an_answer_is_left_and_who_is_slow_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut patient = Patient::new(ours);
        let slow = async {
            for _ in 0..4 {
                tokio::time::sleep(ANSWER_TIME / 2).await;
                let mut taken = [0; 8];
                tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut taken).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(&[1; 32]), slow);
        written.unwrap();
        let began = Instant::now();
        let error = patient.write_all(&[1; 32]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!((ANSWER_TIME..ANSWER_TIME * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
}

//! What ends a process on purpose.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tripod_proto::code::Code;

use crate::failure::Failure;

/// The signals that end this process, and the end of its parent.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    parent: Option<oneshot::Receiver<()>>,
}

impl Stop {
    /// What [`Self::wait`] says when the parent has ended.
    pub(crate) const PARENT_ENDED: &'static str = "the parent process ended";

    /// From now on these signals no longer kill the process at once.
    pub(crate) fn listen(with_parent: bool) -> Result<Self, Failure> {
        let fail = |error| Failure::new(Code::ProcessLimits, format!("cannot listen for signals: {error}"));
        let terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        let parent = with_parent.then(watch_parent).transpose().map_err(fail)?;
        Ok(Self { terminate, interrupt, parent })
    }

    /// Waits for the first of them and tells which; when it was told, nobody asks again.
    pub(crate) async fn wait(&mut self) -> &'static str {
        let parent_ended = async {
            match &mut self.parent {
                // The sender is never used, only dropped.
                Some(ended) => drop(ended.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = parent_ended => Self::PARENT_ENDED,
        }
    }
}

/// The parent holds the other end of standard input and writes nothing; the kernel closes it when the
/// parent ends, however it ends. The thread waits in a read for the life of the process.
fn watch_parent() -> io::Result<oneshot::Receiver<()>> {
    let (alive, ended) = oneshot::channel();
    std::thread::Builder::new().name("watch-parent".into()).spawn(move || {
        // An error is as good as the end: there is no parent to hear from.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop::<oneshot::Sender<()>>(alive);
    })?;
    Ok(ended)
}

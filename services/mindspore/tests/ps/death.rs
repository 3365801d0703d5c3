//! A leader that dies at one of the messages of nodes and operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tripod_gateway::{MemoryBackend, Mishap};
use tripod_state::{Command, Envelope, mindspore};

/// How long nobody leads. A node of a parameter server waits for an answer for three seconds.
const AWAY: Duration = Duration::from_secs(2);

/// When the leader dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before the message comes.
    Before,
    /// When it has the message, which nobody else has.
    With,
    /// When the message is in the log, and before anybody is told so.
    After,
}

/// The messages of a life, at one of which the leader dies, or at none.
pub(crate) struct Deaths {
    backend: Arc<MemoryBackend>,
    at: Option<(usize, Death)>,
    messages: usize,
    /// How often it has died.
    count: Arc<AtomicUsize>,
}

/// Whether a node asks, or an operator.
fn is_asked(envelope: &Envelope) -> bool {
    let command = match &envelope.command {
        Command::Retried(command) => &**command,
        command => command,
    };
    let Command::Mindspore(command) = command else { return false };
    matches!(command, mindspore::Command::Cluster { .. } | mindspore::Command::Topology { .. })
}

impl Deaths {
    pub(crate) fn of(backend: &Arc<MemoryBackend>, at: Option<(usize, Death)>) -> Self {
        Self { backend: Arc::clone(backend), at, messages: 0, count: Arc::default() }
    }

    /// How often the leader has died.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The next message comes, and the leader dies if it is the one.
    pub(crate) fn next_message(&mut self) {
        let death = self.at.filter(|(at, _)| *at == self.messages);
        self.messages += 1;
        let Some((_, death)) = death else { return };
        let count = Arc::clone(&self.count);
        let mishap = match death {
            Death::Before => {
                count.fetch_add(1, Ordering::Relaxed);
                let backend = Arc::clone(&self.backend);
                backend.depose();
                tokio::spawn(async move {
                    tokio::time::sleep(AWAY).await;
                    backend.elect();
                });
                return;
            }
            Death::With => Mishap::UnknownAndLost,
            Death::After => Mishap::UnknownButApplied,
        };
        let mut is_over = false;
        self.backend.set_mishaps(move |envelope| {
            if is_over || !is_asked(envelope) {
                return Mishap::Success;
            }
            is_over = true;
            count.fetch_add(1, Ordering::Relaxed);
            mishap
        });
    }
}

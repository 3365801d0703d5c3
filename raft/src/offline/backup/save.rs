//! A node's state as a stream of bytes. It needs no room on the node's disk, and the node serves meanwhile:
//! the state was forked, and the reader of the stream sets the pace.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tripod_state::ids::{LogIndex, Term};

use crate::snapshot::{self, Frozen};

/// Snapshots that are sent to clients at a time: each has a thread, and holds a fork of the state, which costs as much
/// memory as is written meanwhile.
const SAVES_MAX: usize = 2;
/// How long nobody may take a part before the stream is cut: the fork of a reader that has gone, or never reads, must
/// end. A link of a few KiB a second is quick enough.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Bytes of a part of the stream: far below what one message between client and node may hold.
const PART_BYTES: usize = 256 << 10;
/// Parts that wait to be taken. The writer waits when there are so many.
const PARTS_WAITING: usize = 4;

/// A snapshot that is being written.
#[derive(Debug)]
pub struct Saving {
    pub cluster_id: String,
    /// The last entry in it.
    pub index: LogIndex,
    /// The term of that entry.
    pub term: Term,
    /// Bytes of all keys and values in it. The file is a little larger.
    pub key_bytes: u64,
    /// The file from its beginning to its end. It is whole when the writer has left without an error; a
    /// reader that leaves ends the writer, too, and so does one that takes nothing for half a minute.
    pub parts: mpsc::Receiver<io::Result<Bytes>>,
}

/// The snapshots of one node that clients are being sent.
#[derive(Debug)]
pub(crate) struct Saves {
    free: Arc<Semaphore>,
}

impl Default for Saves {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(SAVES_MAX)) }
    }
}

/// No more snapshots are sent at a time.
#[derive(Debug)]
pub(crate) struct SavesFull;

impl SavesFull {
    pub(crate) const MAX: usize = SAVES_MAX;
}

impl Saves {
    /// Begins to write for a client. The state is forked only if there is a place. Must be called within a tokio
    /// runtime.
    pub(crate) fn begin(&self, freeze: impl FnOnce() -> Frozen) -> Result<Saving, SavesFull> {
        let place = Arc::clone(&self.free).try_acquire_owned().map_err(|_| SavesFull)?;
        Ok(save(freeze(), Some(place)))
    }
}

/// Begins to write, on a thread of its own. Must be called within a tokio runtime.
pub(crate) fn save(frozen: Frozen, place: Option<OwnedSemaphorePermit>) -> Saving {
    // One more than wait: the word that the stream is cut has a place of its own.
    let (sender, parts) = mpsc::channel(PARTS_WAITING + 1);
    let last_word = sender.clone().try_reserve_owned().expect("nothing was sent yet");
    let last = frozen.last_applied;
    let saving = Saving {
        cluster_id: frozen.cluster_id.clone(),
        index: LogIndex(last.map_or(0, |id| id.index)),
        term: Term(last.map_or(0, |id| id.leader_id.term)),
        key_bytes: frozen.state.jobs().iter().map(|job| job.key_bytes).sum(),
        parts,
    };
    let runtime = Handle::current();
    let write = move || {
        let (header, state) = frozen.into_header();
        let out = Parts { sender, runtime, pending: Vec::with_capacity(PART_BYTES) };
        let written = snapshot::write_to(out, &header, &state).and_then(|mut out| out.flush());
        drop((state, place));
        if let Err(error) = written {
            // Whoever asked has left, or is told.
            last_word.send(Err(error));
        }
    };
    // Without a thread the stream ends at once, and its reader finds that the file is not whole.
    if let Err(error) = thread::Builder::new().name("tripod-save".to_owned()).spawn(write) {
        tracing::warn!(%error, "there is no thread to write a snapshot");
    }
    saving
}

/// Cuts what is written into parts.
struct Parts {
    sender: mpsc::Sender<io::Result<Bytes>>,
    runtime: Handle,
    pending: Vec<u8>,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART_BYTES - self.pending.len());
        self.pending.extend_from_slice(&bytes[..taken]);
        if self.pending.len() == PART_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.pending, Vec::with_capacity(PART_BYTES));
        let sent = self.runtime.block_on(self.sender.send_timeout(Ok(full.into()), STALL_MAX));
        sent.map_err(|error| match error {
            mpsc::error::SendTimeoutError::Timeout(_) => {
                let text = format!("nobody took a part of the snapshot for {} s", STALL_MAX.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, text)
            }
            mpsc::error::SendTimeoutError::Closed(_) => {
                io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the snapshot any more")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{ServiceIncarnation, TimeMs};
    use tripod_state::{ApplyContext, Command, Envelope, Scope, State, job, kv};

    use super::*;
    use crate::base::types::Membership;

    /// A state of more bytes than wait to be taken.
    fn frozen() -> Frozen {
        let mut state = State::default();
        let mut apply = |index: u64, command: Command| {
            let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(index) };
            state.apply(&context, Envelope { stamp: None, command }).reply.unwrap();
        };
        let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(7));
        apply(1, Command::Job(job::Command::Create { name: "job".into(), spec, service }));
        let scope = Scope { job: tripod_state::ids::JobId(1), service: None };
        for index in 2..14 {
            let value = (0..PART_BYTES).map(|byte| (byte * index as usize % 251) as u8).collect::<Vec<_>>();
            let insert = kv::Command::Insert {
                scope,
                key: format!("key {index}"),
                value: value.into(),
                overwrite: true,
            };
            apply(index, Command::Kv(insert));
        }
        let membership = Membership::default();
        Frozen { cluster_id: "c".into(), state, last_applied: None, membership }
    }

    async fn rest(saving: &mut Saving) -> io::Result<usize> {
        let mut bytes = 0;
        while let Some(part) = saving.parts.recv().await {
            bytes += part?.len();
        }
        Ok(bytes)
    }

    #[tokio::test]
    async fn f7_a_third_backup_is_refused_until_one_of_two_has_ended() {
        let saves = Saves::default();
        let mut first = saves.begin(frozen).unwrap();
        let second = saves.begin(frozen).unwrap();
        assert!(saves.begin(|| panic!("it was forked without a place")).is_err());
        assert!(rest(&mut first).await.unwrap() > 12 * PART_BYTES);
        let free = |places| (saves.free.available_permits() == places).then_some(());
        tripod_wait::until("the first ends", || free(1)).await;
        drop(second);
        tripod_wait::until("the second ends", || free(2)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn f7_a_stream_that_nobody_reads_is_cut_and_says_so() {
        let saves = Saves::default();
        let mut saving = saves.begin(frozen).unwrap();
        // The time of this test goes on when nothing else happens.
        while saves.free.available_permits() < SAVES_MAX {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let error = rest(&mut saving).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("30 s"), "{error}");
    }
}

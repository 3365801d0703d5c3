//! A node's state as a stream of bytes. It needs no room on the node's disk, and the node serves meanwhile:
//! the state was forked, and the reader of the stream sets the pace.

use std::io::{self, Write};

use bytes::Bytes;
use tokio::sync::mpsc;
use tripod_state::ids::{LogIndex, Term};

use crate::snapshot::{self, Frozen};

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
    /// reader that leaves ends the writer, too.
    pub parts: mpsc::Receiver<io::Result<Bytes>>,
}

/// Begins to write. Must be called within a tokio runtime that has threads for what blocks.
pub(crate) fn save(frozen: Frozen) -> Saving {
    let (sender, parts) = mpsc::channel(PARTS_WAITING);
    let last = frozen.last_applied;
    let saving = Saving {
        cluster_id: frozen.cluster_id.clone(),
        index: LogIndex(last.map_or(0, |id| id.index)),
        term: Term(last.map_or(0, |id| id.leader_id.term)),
        key_bytes: frozen.state.jobs().iter().map(|job| job.key_bytes).sum(),
        parts,
    };
    tokio::task::spawn_blocking(move || {
        let (header, state) = frozen.into_header();
        let out = Parts { sender: sender.clone(), pending: Vec::with_capacity(PART_BYTES) };
        let written = snapshot::write_to(out, &header, &state).and_then(|mut out| out.flush());
        if let Err(error) = written {
            // Whoever asked has left, or is told.
            let _ = sender.blocking_send(Err(error));
        }
    });
    saving
}

/// Cuts what is written into parts.
struct Parts {
    sender: mpsc::Sender<io::Result<Bytes>>,
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
        self.sender
            .blocking_send(Ok(full.into()))
            .map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the snapshot any more"))
    }
}

//! The log in sled 0.34.
//!
//! `Tree::flush` of this version ends in `sync_file_range`, which commits neither the file's size
//! nor a volatile disk cache (spacejam/sled#1452). [`SledDisk::sync`] therefore follows it with
//! `fdatasync` on a second descriptor of the same file, and sled's own background flusher is off.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::codec;
use crate::base::types::{Entry, LogId};
use crate::disk::home::chunk::{self, Damage};
use crate::disk::home::keyspace::{ChunkKey, MetaKey};
use crate::disk::home::sled_reader::{SledReader, read_chunk};
use crate::disk::{Change, Disk, DiskError, Loaded, OldEntries};

/// Bytes of a segment of sled's file. A message above a quarter of it goes to a file of its own,
/// which sled never syncs; a full leaf (17 chunk parts) stays below that. sled holds several buffers
/// of this size, so it is no larger than it must be.
const SEGMENT_BYTES: usize = 2 << 20;
/// Bytes of sled's page cache. The log is read back only for slow followers.
const CACHE_BYTES: u64 = 8 << 20;

/// Parts of chunks that a purge removes in one batch, at least one chunk: about 4 MiB. sled reads the pages of all
/// that a batch removes and keeps them until its end, so one batch for everything behind a snapshot takes several
/// times its bytes in memory.
const PURGE_PARTS: usize = 256;

/// How long the lock may be held by an owner that is ending: sled lets go of it only when its own
/// background threads have dropped the last of their garbage, and a process may be told to restart
/// while it still exits.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// The log of one node. Owned by the writer thread.
pub(crate) struct SledDisk {
    directory: String,
    db: sled::Db,
    tree: sled::Tree,
    /// sled's file once more, for `fdatasync`.
    file: File,
    /// What is stored, by first index.
    chunks: BTreeMap<u64, Span>,
    reader: Arc<SledReader>,
}

/// A stored chunk.
#[derive(Debug, Clone, Copy)]
struct Span {
    last: u64,
    parts: u16,
}

impl SledDisk {
    /// Opens the log in `directory`, whose parent exists, or creates it.
    pub(crate) fn open(directory: &Path) -> Result<Self, DiskError> {
        let name = directory.display().to_string();
        caught(&name, || Self::open_named(directory, &name))
    }

    fn open_named(directory: &Path, name: &str) -> Result<Self, DiskError> {
        let created = !directory.join("db").exists();
        let db = open_db(directory, name)?;
        let tree = db.open_tree("log").map_err(|error| sled_error(name, "open", &error))?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(directory.join("db"))
            .map_err(|error| io_error(name, "open", &error))?;
        let reader =
            Arc::new(SledReader { directory: name.to_owned(), tree: RwLock::new(Some(tree.clone())) });
        let disk = Self { directory: name.to_owned(), db, tree, file, chunks: BTreeMap::new(), reader };
        if created {
            disk.sync_creation(directory).map_err(|error| disk.io("create", &error))?;
        }
        Ok(disk)
    }

    /// Makes the files themselves, and the directories that name them, durable.
    fn sync_creation(&self, directory: &Path) -> std::io::Result<()> {
        self.db.flush()?;
        self.file.sync_all()?;
        let conf: PathBuf = directory.join("conf");
        File::open(conf)?.sync_all()?;
        File::open(directory)?.sync_all()?;
        let parent = directory.parent().expect("the log lies in the data directory");
        File::open(parent)?.sync_all()
    }

    /// A single value.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: MetaKey) -> Result<Option<T>, DiskError> {
        let bytes = self.tree.get(key.bytes()).map_err(|error| self.sled("read", &error))?;
        bytes.map(|bytes| codec::decode(&bytes)).transpose().map_err(|error| DiskError::Damaged {
            directory: self.directory.clone(),
            index: 0,
            problem: format!("comes with a {key:?} record that cannot be read: {error}"),
        })
    }

    /// Stores a single value durably.
    pub(crate) fn put<T: Serialize>(&mut self, key: MetaKey, value: &T) -> Result<(), DiskError> {
        self.tree.insert(key.bytes(), codec::encode(value)).map_err(|error| self.sled("write", &error))?;
        self.sync()
    }

    /// The tree itself, to damage it.
    #[cfg(test)]
    pub(crate) fn tree(&self) -> sled::Tree {
        self.tree.clone()
    }

    fn io(&self, action: &'static str, cause: &dyn std::fmt::Display) -> DiskError {
        io_error(&self.directory, action, cause)
    }

    fn sled(&self, action: &'static str, cause: &sled::Error) -> DiskError {
        sled_error(&self.directory, action, cause)
    }

    fn append(&mut self, batch: &mut sled::Batch, entries: &[&Entry]) {
        for chunk in chunk::pack(entries.iter().copied()) {
            let parts = u16::try_from(chunk.parts.len()).expect("pack bounds the number of parts");
            self.chunks.insert(chunk.first, Span { last: chunk.last, parts });
            for (part, value) in (0..parts).zip(chunk.parts) {
                batch.insert(&ChunkKey { first: chunk.first, part }.bytes(), value);
            }
        }
    }

    fn remove(&mut self, batch: &mut sled::Batch, first: u64) {
        let span = self.chunks.remove(&first).expect("the caller looked it up");
        // From the end backwards, so that no part count is ever right for too few parts.
        for part in (0..span.parts).rev() {
            batch.remove(&ChunkKey { first, part }.bytes());
        }
    }

    /// Adds a part of a purge to a batch, the oldest chunks, and says whether more of it is left. A crash may
    /// come between two batches: the first of them says what is purged, and what remains below that is removed
    /// with the next purge.
    pub(crate) fn purge_some(&mut self, batch: &mut sled::Batch, upto: &LogId) -> bool {
        batch.insert(&MetaKey::Purged.bytes(), codec::encode(upto));
        let mut parts = 0;
        while let Some((first, span)) = self.chunks.first_key_value().map(|(first, span)| (*first, *span))
            && span.last <= upto.index
        {
            if parts >= PURGE_PARTS {
                return true;
            }
            parts += usize::from(span.parts);
            self.remove(batch, first);
        }
        false
    }

    /// Drops the chunks behind `keep`, and rewrites the one that it cuts. The batch must hold
    /// nothing yet that the cut chunk depends on.
    fn truncate(&mut self, batch: &mut sled::Batch, keep: Option<u64>) -> Result<(), DiskError> {
        let from = keep.map_or(0, |index| index + 1);
        let cut = self.chunks.range(..from).next_back().filter(|(_, span)| span.last >= from);
        let cut = cut.map(|(first, span)| (*first, *span));
        let gone: Vec<u64> = self.chunks.range(from..).map(|(first, _)| *first).collect();
        for first in gone.into_iter().rev() {
            self.remove(batch, first);
        }
        if let Some((first, span)) = cut {
            let entries = read_chunk(&self.tree, &self.directory, first, span.parts)?;
            self.remove(batch, first);
            let kept: Vec<&Entry> = entries.iter().filter(|entry| entry.log_id.index < from).collect();
            self.append(batch, &kept);
        }
        Ok(())
    }

    fn load_all(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        let loaded = Loaded {
            vote: self.get(MetaKey::Vote)?,
            committed: self.get(MetaKey::Committed)?,
            purged: self.get(MetaKey::Purged)?,
        };
        let begin = loaded.purged.as_ref().map_or(0, |purged| purged.index + 1);
        let mut next: Option<u64> = None;
        let mut chunks = BTreeMap::new();
        for chunk in self.stored_chunks() {
            let (first, parts) = chunk?;
            let entries =
                chunk::unpack(first, &parts).map_err(|damage| DiskError::damaged(&self.directory, damage))?;
            let last = first + entries.len() as u64 - 1;
            let parts = u16::try_from(parts.len()).expect("unpack compared it with a u16");
            chunks.insert(first, Span { last, parts });
            if last < begin {
                // What a purge has left that was interrupted. The log may have gone on far behind it.
                continue;
            }
            let expected = next.unwrap_or(begin);
            // The oldest chunk may begin with entries that are purged already.
            if first > expected || next.is_some_and(|next| first != next) {
                let problem = format!("is missing, the next stored one is {first}");
                return Err(DiskError::damaged(&self.directory, Damage { index: expected, problem }));
            }
            next = Some(last + 1);
            entries.into_iter().filter(|entry| entry.log_id.index >= begin).for_each(&mut *each);
        }
        self.chunks = chunks;
        Ok(loaded)
    }

    /// Puts a batch into the tree. One that removes chunks must not run between a reader's look-up
    /// of a chunk and its look at the parts.
    pub(crate) fn apply(&self, batch: sled::Batch, removes: bool) -> Result<(), DiskError> {
        let _alone = removes.then(|| self.reader.tree.write());
        self.tree.apply_batch(batch).map_err(|error| self.sled("write", &error))
    }

    /// The chunks in stored order, each with its parts. Fails on the first missing part.
    fn stored_chunks(&self) -> impl Iterator<Item = Result<(u64, Vec<sled::IVec>), DiskError>> + '_ {
        let [low, high] = ChunkKey::ALL;
        let mut records = self.tree.range(low.bytes()..=high.bytes()).peekable();
        std::iter::from_fn(move || {
            let mut chunk: Option<(u64, Vec<sled::IVec>)> = None;
            while let Some(record) = records.peek() {
                let (key, value) = match record {
                    Ok((key, value)) => {
                        let key = ChunkKey::parse(key).expect("the range holds chunk keys only");
                        (key, value.clone())
                    }
                    Err(error) => return Some(Err(self.sled("read", error))),
                };
                match &mut chunk {
                    None => chunk = Some((key.first, vec![value])),
                    Some((first, parts)) if *first == key.first => parts.push(value),
                    Some(_) => break,
                }
                records.next();
            }
            chunk.map(Ok)
        })
    }
}

impl Disk for SledDisk {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        let directory = self.directory.clone();
        caught(&directory, || self.load_all(each))
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        let mut batch = sled::Batch::default();
        let mut run: Vec<&Entry> = Vec::new();
        let mut removes = false;
        for change in changes {
            match change {
                Change::Append(entries) => run.extend(entries),
                Change::Vote(vote) => batch.insert(&MetaKey::Vote.bytes(), codec::encode(vote)),
                Change::Committed(id) => batch.insert(&MetaKey::Committed.bytes(), codec::encode(id)),
                Change::TruncateAfter(keep) => {
                    self.append(&mut batch, &std::mem::take(&mut run));
                    // A truncation may cut what this very batch appends: that must be in the tree.
                    self.apply(std::mem::take(&mut batch), removes)?;
                    removes = true;
                    self.truncate(&mut batch, keep.as_ref().map(|id| id.index))?;
                }
                Change::Purge(upto) => {
                    self.append(&mut batch, &std::mem::take(&mut run));
                    removes = true;
                    while self.purge_some(&mut batch, upto) {
                        self.apply(std::mem::take(&mut batch), removes)?;
                    }
                }
            }
        }
        self.append(&mut batch, &run);
        self.apply(batch, removes)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.db.flush().map_err(|error| self.sled("flush", &error))?;
        self.file.sync_data().map_err(|error| self.io("sync", &error))
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.reader.clone()
    }
}

/// sled reports some damage as an error and panics at other; both are found where its file is read.
fn caught<T>(directory: &str, read: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    // What a panic leaves behind is not used again: the node does not start.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(DiskError::DamagedHome {
            directory: directory.to_owned(),
            problem: format!("sled panicked: {text}"),
        })
    })
}

pub(super) fn sled_error(directory: &str, action: &'static str, cause: &sled::Error) -> DiskError {
    match cause {
        sled::Error::Corruption { .. } | sled::Error::ReportableBug(_) => {
            DiskError::DamagedHome { directory: directory.to_owned(), problem: cause.to_string() }
        }
        _ => io_error(directory, action, cause),
    }
}

fn io_error(directory: &str, action: &'static str, cause: &dyn std::fmt::Display) -> DiskError {
    DiskError::Io { action, directory: directory.to_owned(), cause: cause.to_string() }
}

/// Opens sled's files. The lock of an owner that has just gone is waited for.
fn open_db(directory: &Path, name: &str) -> Result<sled::Db, DiskError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        let opened = sled::Config::new()
            .path(directory)
            .flush_every_ms(None)
            .cache_capacity(CACHE_BYTES)
            .mode(sled::Mode::HighThroughput)
            .segment_size(SEGMENT_BYTES)
            .open();
        match opened.map_err(|error| open_error(name, &error)) {
            Err(DiskError::Locked { .. }) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
            outcome => return outcome,
        }
    }
}

fn open_error(directory: &str, error: &sled::Error) -> DiskError {
    let cause = error.to_string();
    // sled has no variant for it, only this text.
    if cause.contains("could not acquire lock") {
        return DiskError::Locked { directory: directory.to_owned(), cause };
    }
    sled_error(directory, "open", error)
}

//! Files in memory that remember what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::dice::Dice;
use super::fuse::{Fuse, Loss};
use crate::journal::files::{Blob, Files};

const SECTOR_BYTES: usize = 512;

/// One directory. Clones are the same directory.
#[derive(Clone)]
pub(super) struct SimFiles {
    state: Arc<Mutex<State>>,
    fuse: Fuse,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    /// Changes of names since the directory was synced.
    renames: Vec<NameChange>,
    /// Bytes of all files together; `None` for no limit.
    room_bytes: Option<usize>,
}

type Node = Arc<Mutex<Content>>;

#[derive(Clone)]
enum NameChange {
    Create(String, Node),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
}

#[derive(Clone)]
enum Write {
    At(usize, Vec<u8>),
    Length(usize),
}

struct SimBlob {
    node: Node,
    files: SimFiles,
}

impl SimFiles {
    pub(super) fn new(fuse: Fuse) -> Self {
        Self { state: Arc::default(), fuse }
    }

    /// What a machine finds that starts again after this one has crashed.
    pub(super) fn after_crash(&self, fuse: Fuse, loss: Loss) -> Self {
        let state = match loss {
            Loss::Nothing => self.state.lock().kept(),
            Loss::Everything => self.state.lock().survived(&mut || false),
            Loss::Some(seed) => {
                let mut dice = Dice::new(seed);
                self.state.lock().survived(&mut || dice.flip())
            }
        };
        Self { state: Arc::new(Mutex::new(state)), fuse }
    }

    /// Limits the bytes of all files together.
    pub(super) fn set_room(&self, bytes: Option<usize>) {
        self.state.lock().room_bytes = bytes;
    }

    /// All files, by name.
    pub(super) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.lock();
        state.names.iter().map(|(name, node)| (name.clone(), node.lock().live.clone())).collect()
    }

    /// A directory that holds these files, durably.
    pub(super) fn holding(fuse: Fuse, contents: &BTreeMap<String, Vec<u8>>) -> Self {
        let files = Self::new(fuse);
        {
            let mut state = files.state.lock();
            for (name, bytes) in contents {
                let content = Content { live: bytes.clone(), durable: bytes.clone(), unsynced: Vec::new() };
                state.names.insert(name.clone(), Arc::new(Mutex::new(content)));
            }
            state.durable_names = state.names.clone();
        }
        files
    }

    fn change_name(&self, change: NameChange) -> io::Result<()> {
        let goes_on = self.fuse.begin()?;
        let mut state = self.state.lock();
        apply(&mut state.names, change.clone());
        state.renames.push(change);
        if goes_on { Ok(()) } else { Err(Fuse::error()) }
    }

    fn node(&self, name: &str) -> io::Result<Node> {
        let state = self.state.lock();
        state.names.get(name).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Whether there is room for more bytes.
    fn has_room(&self, more: usize) -> bool {
        let state = self.state.lock();
        let used: usize = state.names.values().map(|node| node.lock().live.len()).sum();
        state.room_bytes.is_none_or(|room| used + more <= room)
    }
}

impl State {
    /// After the end of the process alone: the system still has what was not synced, and may lose it.
    fn kept(&self) -> Self {
        let mut copies: BTreeMap<usize, Node> = BTreeMap::new();
        let mut copy = |node: &Node| {
            let address = Arc::as_ptr(node).addr();
            let copied = || Arc::new(Mutex::new(node.lock().clone()));
            copies.entry(address).or_insert_with(copied).clone()
        };
        let mut copy_all = |names: &BTreeMap<String, Node>| {
            names.iter().map(|(name, node)| (name.clone(), copy(node))).collect()
        };
        let (names, durable_names) = (copy_all(&self.names), copy_all(&self.durable_names));
        let renames = self.renames.iter().map(|change| match change {
            NameChange::Create(name, node) => NameChange::Create(name.clone(), copy(node)),
            other => other.clone(),
        });
        let renames = renames.collect();
        Self { names, durable_names, renames, room_bytes: self.room_bytes }
    }

    /// After a loss of power.
    fn survived(&self, keep: &mut impl FnMut() -> bool) -> Self {
        let mut names = self.durable_names.clone();
        for change in &self.renames {
            if keep() {
                apply(&mut names, change.clone());
            }
        }
        let names: BTreeMap<String, Node> = names
            .into_iter()
            .map(|(name, node)| {
                let bytes = survived(&node.lock(), keep);
                let content = Content { live: bytes.clone(), durable: bytes, unsynced: Vec::new() };
                (name, Arc::new(Mutex::new(content)))
            })
            .collect();
        Self { durable_names: names.clone(), names, renames: Vec::new(), room_bytes: self.room_bytes }
    }
}

fn apply(names: &mut BTreeMap<String, Node>, change: NameChange) {
    match change {
        NameChange::Create(name, node) => drop(names.insert(name, node)),
        NameChange::Remove(name) => drop(names.remove(&name)),
        NameChange::Rename(from, to) => {
            // The creation of `from` may have been lost.
            if let Some(node) = names.remove(&from) {
                names.insert(to, node);
            }
        }
    }
}

fn survived(content: &Content, keep: &mut impl FnMut() -> bool) -> Vec<u8> {
    let mut bytes = content.durable.clone();
    for write in &content.unsynced {
        match write {
            Write::Length(length) => {
                if keep() {
                    bytes.resize(*length, 0);
                }
            }
            Write::At(offset, data) => {
                let mut at = 0;
                while at < data.len() {
                    let start = offset + at;
                    let upto = (start / SECTOR_BYTES + 1) * SECTOR_BYTES;
                    let piece = &data[at..data.len().min(at + upto - start)];
                    if keep() {
                        put(&mut bytes, start, piece);
                    }
                    at += piece.len();
                }
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if bytes.len() < offset + data.len() {
        bytes.resize(offset + data.len(), 0);
    }
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

impl Files for SimFiles {
    fn create(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let node = Node::default();
        self.change_name(NameChange::Create(name.into(), node.clone()))?;
        Ok(Arc::new(SimBlob { node, files: self.clone() }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        Ok(Arc::new(SimBlob { node: self.node(name)?, files: self.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.node(from)?;
        self.change_name(NameChange::Rename(from.into(), to.into()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.node(name)?;
        self.change_name(NameChange::Remove(name.into()))
    }

    fn sync_dir(&self) -> io::Result<()> {
        if !self.fuse.begin()? {
            return Err(Fuse::error());
        }
        let mut state = self.state.lock();
        state.durable_names = state.names.clone();
        state.renames.clear();
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state.lock().names.keys().cloned().collect())
    }

    fn place(&self) -> &str {
        "sim/journal"
    }
}

impl Blob for SimBlob {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.node.lock();
        let start = content.live.len().min(usize::try_from(offset_bytes).unwrap());
        let bytes = &content.live[start..content.live.len().min(start + buffer.len())];
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let goes_on = self.files.fuse.begin()?;
        let offset = usize::try_from(offset_bytes).unwrap();
        let more = (offset + bytes.len()).saturating_sub(self.node.lock().live.len());
        if more > 0 && !self.files.has_room(more) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut content = self.node.lock();
        put(&mut content.live, offset, bytes);
        content.unsynced.push(Write::At(offset, bytes.to_vec()));
        if goes_on { Ok(()) } else { Err(Fuse::error()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.files.fuse.begin()? {
            return Err(Fuse::error());
        }
        let mut content = self.node.lock();
        content.durable = content.live.clone();
        content.unsynced.clear();
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let goes_on = self.files.fuse.begin()?;
        let length = usize::try_from(bytes).unwrap();
        let mut content = self.node.lock();
        content.live.resize(length, 0);
        content.unsynced.push(Write::Length(length));
        if goes_on { Ok(()) } else { Err(Fuse::error()) }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.node.lock().live.len() as u64)
    }
}

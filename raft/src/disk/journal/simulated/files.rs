//! Files in memory that remember what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::dice::Dice;
use super::medium::{Loss, Medium, Sync};
use crate::disk::{Blob, Files};

const SECTOR_BYTES: usize = 512;

/// One directory. Clones are the same directory.
#[derive(Clone)]
pub(crate) struct SimFiles {
    state: Arc<Mutex<State>>,
    medium: Medium,
    place: Arc<str>,
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
    pub(crate) fn new(medium: Medium, place: &str) -> Self {
        Self { state: Arc::default(), medium, place: place.into() }
    }

    /// What a machine finds that starts again after this one has crashed.
    pub(crate) fn after_crash(&self, medium: Medium, loss: Loss) -> Self {
        let state = match loss {
            Loss::Nothing => self.state.lock().kept(),
            Loss::Everything => self.state.lock().survived(&mut || false),
            Loss::Some(seed) => {
                let mut dice = Dice::new(seed);
                self.state.lock().survived(&mut || dice.flip())
            }
        };
        Self { state: Arc::new(Mutex::new(state)), medium, place: self.place.clone() }
    }

    /// Limits the bytes of all files together.
    pub(crate) fn set_room(&self, bytes: Option<usize>) {
        self.state.lock().room_bytes = bytes;
    }

    /// All files, by name, as whoever reads them sees them.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.lock();
        state.names.iter().map(|(name, node)| (name.clone(), node.lock().live.clone())).collect()
    }

    /// Puts a file here, durably and in place of one of this name; `None` removes it. Nothing may be under way.
    pub(crate) fn put(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut state = self.state.lock();
        let node = bytes.map(|bytes| Arc::new(Mutex::new(Content::durable(bytes))));
        let state = &mut *state;
        for names in [&mut state.names, &mut state.durable_names] {
            match &node {
                Some(node) => drop(names.insert(name.to_owned(), node.clone())),
                None => drop(names.remove(name)),
            }
        }
    }

    /// A directory that holds these files, durably.
    pub(crate) fn holding(medium: Medium, contents: &BTreeMap<String, Vec<u8>>) -> Self {
        let files = Self::new(medium, "sim/journal");
        contents.iter().for_each(|(name, bytes)| files.put(name, Some(bytes.clone())));
        files
    }

    fn change_name(&self, change: NameChange) -> io::Result<()> {
        let goes_on = self.medium.begin()?;
        apply(&mut self.state.lock().names, change.clone());
        let state = self.state.clone();
        self.medium.perform(move |_| state.lock().renames.push(change));
        if goes_on { Ok(()) } else { Err(Medium::error()) }
    }

    fn node(&self, name: &str) -> io::Result<Node> {
        let state = self.state.lock();
        state.names.get(name).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Whether there is room for more bytes.
    fn has_room(&self, more: usize) -> bool {
        let state = self.state.lock();
        let Some(room) = state.room_bytes else { return true };
        let used: usize = state.names.values().map(|node| node.lock().live.len()).sum();
        used + more <= room
    }
}

impl State {
    /// After the end of the process alone: the system still has what was not synced, and may lose it.
    fn kept(&self) -> Self {
        let mut copies: BTreeMap<usize, Node> = BTreeMap::new();
        let mut copy = |node: &Node| {
            let address = Arc::as_ptr(node).addr();
            let copied = || Arc::new(Mutex::new(node.lock().kept()));
            copies.entry(address).or_insert_with(copied).clone()
        };
        let durable_names: BTreeMap<String, Node> =
            self.durable_names.iter().map(|(name, node)| (name.clone(), copy(node))).collect();
        let renames = self.renames.iter().map(|change| match change {
            NameChange::Create(name, node) => NameChange::Create(name.clone(), copy(node)),
            other => other.clone(),
        });
        let renames: Vec<NameChange> = renames.collect();
        let mut names = durable_names.clone();
        renames.iter().for_each(|change| apply(&mut names, change.clone()));
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
                let bytes = node.lock().survived(keep);
                (name, Arc::new(Mutex::new(Content::durable(bytes))))
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

impl Content {
    fn durable(bytes: Vec<u8>) -> Self {
        Self { live: bytes.clone(), durable: bytes, unsynced: Vec::new() }
    }

    /// The content as the system knows it at this point of the order on the medium, which may be behind
    /// what was seen while the machine ran.
    fn kept(&self) -> Self {
        let mut live = self.durable.clone();
        self.unsynced.iter().for_each(|write| write.apply(&mut live));
        Self { live, durable: self.durable.clone(), unsynced: self.unsynced.clone() }
    }

    fn survived(&self, keep: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for write in &self.unsynced {
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

    fn sync(&mut self) {
        for write in self.unsynced.drain(..) {
            write.apply(&mut self.durable);
        }
    }
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::At(offset, data) => put(bytes, *offset, data),
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }
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
        if !self.medium.begin()? {
            return Err(Medium::error());
        }
        let state = self.state.clone();
        self.medium.perform(move |sync| {
            if sync == Sync::Honest {
                let mut state = state.lock();
                let renames = std::mem::take(&mut state.renames);
                renames.into_iter().for_each(|change| apply(&mut state.durable_names, change));
            }
        });
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state.lock().names.keys().cloned().collect())
    }

    fn place(&self) -> &str {
        &self.place
    }
}

impl SimBlob {
    /// Changes what is seen now, and has the medium follow.
    fn change(&self, write: Write) -> io::Result<()> {
        let goes_on = self.files.medium.begin()?;
        write.apply(&mut self.node.lock().live);
        let node = self.node.clone();
        self.files.medium.perform(move |_| node.lock().unsynced.push(write));
        if goes_on { Ok(()) } else { Err(Medium::error()) }
    }
}

impl Blob for SimBlob {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.node.lock();
        let start = content.live.len().min(place_of(offset_bytes));
        let bytes = &content.live[start..content.live.len().min(start + buffer.len())];
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = place_of(offset_bytes);
        let more = (offset + bytes.len()).saturating_sub(self.node.lock().live.len());
        if more > 0 && !self.files.has_room(more) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.change(Write::At(offset, bytes.to_vec()))
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.files.medium.begin()? {
            return Err(Medium::error());
        }
        let node = self.node.clone();
        self.files.medium.perform(move |sync| {
            if sync == Sync::Honest {
                node.lock().sync();
            }
        });
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(Write::Length(place_of(bytes)))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.node.lock().live.len() as u64)
    }
}

fn place_of(offset_bytes: u64) -> usize {
    usize::try_from(offset_bytes).expect("a simulated file fits memory")
}

//! What a power cut takes back from files: sectors that were written and not flushed, as
//! `preload/unflushed.c` has logged them. Needs no root, and tears writes, which the cut of a whole disk
//! hardly ever does.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rand::{Rng, RngExt as _};

/// What a disk writes wholly or not at all.
const SECTOR_BYTES: u64 = 512;
/// Words of a record's head.
const HEAD_WORDS: usize = 8;
const KIND_WRITE: u64 = 1;
const KIND_FLUSH: u64 = 2;
const KIND_LIFE: u64 = 3;

/// How a cut treats what was not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mercy {
    /// All of it is lost.
    None,
    /// Every sector is lost, or kept up to one of its writes, by chance.
    Sectors,
    /// All of it is kept, as after a kill.
    All,
}

/// What a cut has done to one node's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// Writes that were not flushed.
    pub writes: usize,
    /// Sectors that hold again what they held before one of them.
    pub sectors: usize,
    /// Of these writes, those that are there in part.
    pub torn: usize,
}

/// A file, whatever it is called.
type FileId = (u64, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Write {
    life: u64,
    number: u64,
    path: PathBuf,
    offset: u64,
    bytes: u64,
    replaced: Vec<u8>,
}

impl Mercy {
    /// Draws one of the ways, tearing more often than the others.
    pub fn draw(random: &mut impl Rng) -> Self {
        [Self::None, Self::Sectors, Self::Sectors, Self::All][random.random_range(0..4)]
    }
}

/// Takes back from the files of a process that was killed what its log says may be lost, and empties the log.
/// Blocks.
pub(super) fn take_back(log: &Path, mercy: Mercy, random: &mut impl Rng) -> anyhow::Result<Taken> {
    let file = match std::fs::File::open(log) {
        // The process never wrote.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Taken::default()),
        opened => opened.with_context(|| format!("cannot read {}", log.display()))?,
    };
    let mut taken = Taken::default();
    for writes in unflushed(std::io::BufReader::new(file))?.into_values() {
        taken.writes += writes.len();
        take_back_from_file(&writes, mercy, random, &mut taken)?;
    }
    std::fs::remove_file(log)?;
    Ok(taken)
}

/// The writes of each file since its last flush, in order.
fn unflushed(mut log: impl Read) -> anyhow::Result<BTreeMap<FileId, Vec<Write>>> {
    let mut files: BTreeMap<FileId, Vec<Write>> = BTreeMap::new();
    let mut life = 0;
    let mut head = [0; HEAD_WORDS * 8];
    loop {
        match log.read_exact(&mut head) {
            // A process that is killed while it adds a record has not begun the write.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(files),
            read => read?,
        }
        let word = |at: usize| u64::from_ne_bytes(head[at * 8..at * 8 + 8].try_into().expect("8 bytes"));
        let (number, file) = (word(1), (word(2), word(3)));
        let mut take = |bytes: u64| -> std::io::Result<Vec<u8>> {
            let mut taken = vec![0; usize::try_from(bytes).expect("a write fits memory")];
            log.read_exact(&mut taken).map(|()| taken)
        };
        let rest = take(word(6)).and_then(|path| Ok((path, take(word(7))?)));
        let (path, replaced) = match rest {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(files),
            read => read?,
        };
        match word(0) {
            KIND_WRITE => {
                let path = PathBuf::from(String::from_utf8(path).context("a path of a data directory")?);
                let write = Write { life, number, path, offset: word(4), bytes: word(5), replaced };
                files.entry(file).or_default().push(write);
            }
            KIND_FLUSH => {
                if let Some(writes) = files.get_mut(&file) {
                    writes.retain(|write| write.life == life && write.number > number);
                }
            }
            KIND_LIFE => life += 1,
            other => bail!("a record of kind {other} in the log of writes"),
        }
    }
}

/// Files are found by the name that they had at their last write; a file that has another name now was
/// flushed before it got it, or nobody may miss it.
fn take_back_from_file(
    writes: &[Write],
    mercy: Mercy,
    random: &mut impl Rng,
    taken: &mut Taken,
) -> anyhow::Result<()> {
    let Some(path) = writes.last().map(|write| &write.path) else { return Ok(()) };
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.with_context(|| format!("cannot open {}", path.display()))?,
    };
    // How many of its writes each sector has seen, and how many of them it keeps.
    let mut kept: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for write in writes {
        for sector in sectors(write) {
            kept.entry(sector).or_default().0 += 1;
        }
    }
    for (seen, keeps) in kept.values_mut() {
        *keeps = match mercy {
            Mercy::None => 0,
            Mercy::Sectors => random.random_range(0..=*seen),
            Mercy::All => *seen,
        };
    }
    // From the last write to the first, so that what the first replaced stands at the end.
    for write in writes.iter().rev() {
        let (mut lost, mut whole) = (0, 0);
        for sector in sectors(write) {
            let (seen, keeps) = kept.get_mut(&sector).expect("counted above");
            if *seen > *keeps {
                put_back(&file, write, sector).with_context(|| format!("cannot write {}", path.display()))?;
                lost += 1;
            } else {
                whole += 1;
            }
            *seen -= 1;
        }
        taken.sectors += lost;
        taken.torn += usize::from(lost > 0 && whole > 0);
    }
    Ok(())
}

fn sectors(write: &Write) -> std::ops::Range<u64> {
    write.offset / SECTOR_BYTES..(write.offset + write.bytes).div_ceil(SECTOR_BYTES)
}

/// Puts what the write replaced in this sector back; zeroes where the file was shorter.
fn put_back(file: &std::fs::File, write: &Write, sector: u64) -> std::io::Result<()> {
    let begin = (sector * SECTOR_BYTES).max(write.offset);
    let end = ((sector + 1) * SECTOR_BYTES).min(write.offset + write.bytes);
    let bytes: Vec<u8> = (begin..end)
        .map(|at| {
            usize::try_from(at - write.offset)
                .ok()
                .and_then(|at| write.replaced.get(at))
                .copied()
                .unwrap_or(0)
        })
        .collect();
    file.write_all_at(&bytes, begin)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    fn record(log: &mut Vec<u8>, words: [u64; 6], path: &str, replaced: &[u8]) {
        let lengths = [path.len() as u64, replaced.len() as u64];
        for word in words.into_iter().chain(lengths) {
            log.extend_from_slice(&word.to_ne_bytes());
        }
        log.extend_from_slice(path.as_bytes());
        log.extend_from_slice(replaced);
    }

    #[test]
    fn a_flush_reaches_the_writes_that_were_done_before_it_began() {
        let mut log = Vec::new();
        record(&mut log, [KIND_LIFE, 0, 0, 0, 0, 0], "", b"");
        record(&mut log, [KIND_WRITE, 1, 9, 1, 0, 4], "a", b"");
        record(&mut log, [KIND_WRITE, 2, 9, 1, 4, 4], "a", b"");
        record(&mut log, [KIND_WRITE, 3, 9, 2, 0, 4], "b", b"");
        record(&mut log, [KIND_FLUSH, 1, 9, 1, 0, 0], "a", b"");
        record(&mut log, [KIND_LIFE, 0, 0, 0, 0, 0], "", b"");
        let numbers = |log: &[u8]| {
            let files = unflushed(log).unwrap();
            files.values().flatten().map(|write| write.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&log), [2, 3]);
        // A later life flushes whatever earlier ones wrote.
        record(&mut log, [KIND_FLUSH, 0, 9, 1, 0, 0], "a", b"");
        assert_eq!(numbers(&log), [3]);
        // A record that was not finished.
        record(&mut log, [KIND_WRITE, 1, 9, 1, 0, 4], "a", b"long");
        log.truncate(log.len() - 2);
        assert_eq!(numbers(&log), [3]);
    }

    #[test]
    fn sectors_go_back_to_one_of_their_earlier_contents() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let name = path.display().to_string();
        let mut log = Vec::new();
        // Three writes of the same 1,024 bytes: 0 -> 1 -> 2 -> 3.
        for number in 1..=3_u8 {
            let words = [KIND_WRITE, number.into(), 1, 1, 0, 1024];
            record(&mut log, words, &name, &[number - 1; 1024]);
        }
        let cut = |mercy, seed| {
            std::fs::write(&path, [3; 1024]).unwrap();
            std::fs::write(directory.path().join("log"), &log).unwrap();
            let mut random = StdRng::seed_from_u64(seed);
            let taken = take_back(&directory.path().join("log"), mercy, &mut random).unwrap();
            assert!(!directory.path().join("log").exists());
            (taken, std::fs::read(&path).unwrap())
        };
        let all_lost = Taken { writes: 3, sectors: 6, torn: 0 };
        assert_eq!(cut(Mercy::None, 1), (all_lost, vec![0; 1024]));
        assert_eq!(cut(Mercy::All, 1), (Taken { writes: 3, ..Taken::default() }, vec![3; 1024]));
        let mut torn = 0;
        for seed in 0..50 {
            let (taken, found) = cut(Mercy::Sectors, seed);
            for sector in found.chunks(512) {
                assert!(sector[0] <= 3 && sector.iter().all(|byte| *byte == sector[0]));
            }
            torn += taken.torn;
        }
        assert!(torn > 0);
    }
}

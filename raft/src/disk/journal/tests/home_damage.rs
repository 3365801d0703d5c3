//! sled answers some damage with an error, some with a panic, and some with a shorter log and no word.
//! Whatever it does, a start finds the whole log or says what is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _};
use tempfile::TempDir;
use tripod_proto::code::Code;
use tripod_wait::deadline;

use crate::base::failure::Failure;
use crate::base::test_entries::{entries, id};
use crate::base::types::{Entry, LogId, Vote};
use crate::disk::journal::simulated::Dice;
use crate::disk::{DiskError, SledDisk, journal};
use crate::log::LogStore;

/// Flips that are tried in each of sled's files.
const FLIPS: usize = 60;

/// What a log says of itself.
type Seen = (Option<Vote>, Option<LogId>, Option<LogId>, Vec<Entry>);

fn open(directory: &Path) -> Result<LogStore, DiskError> {
    let failure = Failure::new();
    let home = SledDisk::open(&directory.join("log"))?;
    let disk = journal::open_small(&directory.join("journal"), home, failure.clone())?;
    LogStore::open_bounded(disk, failure, 20_000)
}

async fn seen(store: &mut LogStore) -> std::io::Result<Seen> {
    let vote = store.read_vote().await?;
    let state = store.get_log_state().await?;
    let entries = store.try_get_log_entries(..).await?;
    Ok((vote, state.last_purged_log_id, state.last_log_id, entries))
}

/// The number of the oldest segment file. One whose entries are in sled gets another number, or is deleted.
fn oldest_segment(directory: &Path) -> u64 {
    let files = fs::read_dir(directory.join("journal")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".segment")?.parse().ok()).min().unwrap()
}

/// A closed log, a good part of which is in sled, and what it says.
async fn stopped() -> (TempDir, Seen) {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    store.save_vote(&Vote::new(3, 1)).await.unwrap();
    // Whoever moves entries to sled is a thread, and may be far behind the writer.
    let goal = oldest_segment(directory.path()) + 3;
    let began = Instant::now();
    for first in (0..).step_by(10) {
        store.blocking_append(entries(1, first..first + 10, 200)).await.unwrap();
        store.save_committed(Some(id(1, first + 9))).await.unwrap();
        if first >= 290 && oldest_segment(directory.path()) >= goal {
            break;
        }
        assert!(began.elapsed() < deadline(), "sled took nothing over of {first} entries");
    }
    store.purge(id(1, 20)).await.unwrap();
    let seen = seen(&mut store).await.unwrap();
    store.close();
    (directory, seen)
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

fn put_back(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    fs::remove_dir_all(directory).unwrap();
    for (path, bytes) in files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Opens what lies there. Whether it was refused; if not, it must be all of it.
async fn is_refused(directory: &Path, expected: &Seen, what: &str) -> bool {
    let refusal = match open(directory) {
        Ok(mut store) => {
            let seen = seen(&mut store).await;
            store.close();
            match seen {
                Ok(seen) => {
                    assert!(seen == *expected, "{what}: opened in silence, and not what was there");
                    return false;
                }
                Err(error) => error.to_string(),
            }
        }
        Err(error) => error.to_string(),
    };
    assert!(Code::find(&refusal).is_some_and(|code| code.slug().starts_with("log-")), "{what}: {refusal}");
    if refusal.starts_with("T3101 log-damaged") {
        let command = crate::base::advice::rejoin(directory);
        assert!(refusal.contains(&command), "{what}: {refusal}");
    }
    true
}

#[tokio::test]
async fn a_flipped_bit_in_sleds_files_is_harmless_or_noticed() {
    let (directory, expected) = stopped().await;
    let root = directory.path();
    let whole = files(root);
    let mut dice = Dice::new(12);
    let mut refused = 0;
    for (path, bytes) in whole.iter().filter(|(path, _)| path.starts_with(root.join("log"))) {
        // sled fills its file with zeros ahead of what it has written.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        for _ in 0..FLIPS.min(written) {
            let at = usize::try_from(dice.below(written as u64)).unwrap();
            let bit = dice.below(8);
            let mut flipped = whole.clone();
            flipped.get_mut(path).unwrap()[at] ^= 1 << bit;
            put_back(root, &flipped);
            let what = format!("{}, byte {at} of {written}, bit {bit}", path.display());
            refused += u32::from(is_refused(root, &expected, &what).await);
        }
    }
    assert!(refused > 10, "only {refused} flips were noticed: nothing of the log is in sled");
    put_back(root, &whole);
    assert!(!is_refused(root, &expected, "the whole log").await);
}

#[tokio::test]
async fn a_shortened_or_deleted_file_of_sled_is_harmless_or_noticed() {
    let (directory, expected) = stopped().await;
    let root = directory.path();
    let whole = files(root);
    let mut refused = 0;
    for (path, bytes) in whole.iter().filter(|(path, _)| path.starts_with(root.join("log"))) {
        for length in [0, bytes.len() / 4, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let mut shorter = whole.clone();
            shorter.get_mut(path).unwrap().truncate(length);
            put_back(root, &shorter);
            let what = format!("{}, {length} of {} bytes", path.display(), bytes.len());
            refused += u32::from(is_refused(root, &expected, &what).await);
        }
        let mut deleted = whole.clone();
        deleted.remove(path);
        put_back(root, &deleted);
        refused += u32::from(is_refused(root, &expected, &format!("without {}", path.display())).await);
    }
    assert!(refused >= 2, "{refused}");
}

#[tokio::test]
async fn sleds_files_of_another_node_are_refused() {
    let (mine, expected) = stopped().await;
    let (other, _) = stopped().await;
    let log = mine.path().join("log");
    fs::remove_dir_all(&log).unwrap();
    fs::rename(other.path().join("log"), &log).unwrap();
    assert!(is_refused(mine.path(), &expected, "another node's sled").await);
}

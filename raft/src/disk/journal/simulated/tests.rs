//! The disk itself: what it keeps over a crash, and that a seed repeats.

use std::time::Duration;

use futures::FutureExt as _;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _};
use tokio::time::Instant;
use tripod_state::State;

use super::*;
use crate::base::chance::Chance;
use crate::base::failure::Failure;
use crate::base::observer::LogLine;
use crate::base::test_entries::{entries, entry, id};
use crate::base::types::{Entry, Membership, Vote};
use crate::disk::{Files as _, Work};
use crate::log::LogStore;
use crate::snapshot::{Form, Header, SnapshotStore};

fn open(disk: &SimulatedDisk) -> LogStore {
    let failure = Failure::new();
    let journal = disk.journal(failure.clone()).unwrap();
    LogStore::open_in(journal, failure, Work::Inline(disk.clone())).unwrap()
}

async fn all(log: &mut LogStore) -> Vec<Entry> {
    log.try_get_log_entries(..).await.unwrap()
}

/// Runs alone in a thread's worth of simulated time.
fn simulate<T>(seed: u64, run: impl Future<Output = T>) -> T {
    let _chance = Chance::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()))
        .build()
        .unwrap();
    runtime.block_on(run)
}

/// A log that grows, commits, purges and is cut; everything in it was acknowledged.
async fn live(disk: &SimulatedDisk) -> (Vec<Entry>, Vote, Duration) {
    let began = Instant::now();
    let mut log = open(disk);
    log.save_vote(&Vote::new(3, 1)).await.unwrap();
    for first in (0..900).step_by(30) {
        log.blocking_append(entries(3, first..first + 30, 200)).await.unwrap();
        log.save_committed(Some(id(3, first + 20))).await.unwrap();
        if first == 600 {
            log.purge(id(3, 400)).await.unwrap();
        }
    }
    log.truncate_after(Some(id(3, 890))).await.unwrap();
    log.blocking_append(vec![entry(4, 891, 50)]).await.unwrap();
    (all(&mut log).await, Vote::new(3, 1), began.elapsed())
}

#[test]
fn a_seed_repeats_every_byte_and_every_delay() {
    let run = |seed| {
        simulate(seed, async {
            let disk = SimulatedDisk::new(seed);
            let (_, _, took) = live(&disk).await;
            (disk.digest(), took)
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_crash_keeps_everything_that_was_acknowledged() {
    for seed in 0..40 {
        simulate(seed, async {
            let disk = SimulatedDisk::new(seed);
            let (written, vote, _) = live(&disk).await;
            disk.crash(seed);
            let mut log = open(&disk);
            assert!(all(&mut log).await == written, "seed {seed}: another log");
            assert_eq!(log.read_vote().await.unwrap(), Some(vote), "seed {seed}");
        });
    }
}

/// Appends whose acknowledgement did not come before the crash are there, or are not; the first few of them,
/// and nothing else.
#[test]
fn a_crash_under_way_leaves_a_prefix() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..60 {
        simulate(seed, async {
            let disk = SimulatedDisk::new(seed);
            let (written, ..) = live(&disk).await;
            let mut log = open_again(&disk, seed).await;
            let more = entries(4, 892..900, 3000);
            let unanswered =
                tokio::time::timeout(Duration::from_micros(1), log.blocking_append(more.clone()));
            assert!(unanswered.await.is_err(), "a sync takes its time");
            drop(log);
            disk.crash(seed);
            let mut log = open(&disk);
            let found = all(&mut log).await;
            let (known, new) = found.split_at(written.len());
            assert!(known == written, "seed {seed}: another log");
            assert!(new == &more[..new.len()], "seed {seed}: other entries");
            lengths.insert(new.len());
        });
    }
    assert!(lengths.contains(&0) && lengths.contains(&8), "{lengths:?}");
}

async fn open_again(disk: &SimulatedDisk, seed: u64) -> LogStore {
    disk.crash_process(seed);
    open(disk)
}

/// A snapshot that was reported is there after every crash; one that was not is there whole, or not at all.
#[test]
fn a_crash_leaves_whole_snapshots_only() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        simulate(seed, async {
            let disk = SimulatedDisk::new(seed);
            let open = || SnapshotStore::open(disk.snapshots(), Work::Inline(disk.clone())).unwrap();
            let store = open();
            let write = |index| {
                let store = store.clone();
                move || store.write(&header(index), &State::default())
            };
            store.work().run(write(5)).await.unwrap().unwrap();
            let unanswered = store.work().run(write(9)).now_or_never();
            assert!(unanswered.is_none(), "a sync takes its time");
            disk.crash(seed);
            let found = open().current().unwrap();
            found.snapshot.read().unwrap();
            seen.insert(found.meta.last_log_id.unwrap().index);
        });
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [5, 9]);
}

fn header(index: u64) -> Header {
    Header {
        cluster_id: "test".into(),
        last_log_id: Some(id(1, index)),
        membership: Membership::default(),
        digest: State::default().digest(),
        form: Form::of(&State::default()),
    }
}

#[test]
fn a_lying_disk_loses_what_was_acknowledged() {
    let mut lost = 0;
    for seed in 0..20 {
        simulate(seed, async {
            let disk = SimulatedDisk::new(seed);
            let (written, ..) = live(&disk).await;
            let mut log = open_again(&disk, seed).await;
            disk.set_lying(true);
            log.blocking_append(entries(4, 892..895, 50)).await.unwrap();
            drop(log);
            disk.crash(seed);
            // What is found may also be refused as damaged: an honest disk would not leave it so.
            let failure = Failure::new();
            let Ok(journal) = disk.journal(failure.clone()) else { return lost += 1 };
            let Ok(mut log) = LogStore::open_in(journal, failure, Work::Inline(disk.clone())) else {
                return lost += 1;
            };
            lost += usize::from(all(&mut log).await.len() < written.len() + 3);
        });
    }
    assert!(lost > 5, "lost in {lost} of 20 crashes");
}

#[test]
fn a_forgetful_disk_forgets_how_it_voted() {
    simulate(1, async {
        let disk = SimulatedDisk::new(1);
        let mut log = open(&disk);
        log.save_vote(&Vote::new(1, 1)).await.unwrap();
        disk.set_forgetful(true);
        log.save_vote(&Vote::new(2, 1)).await.unwrap();
        assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new(2, 1)));
        drop(log);
        disk.crash_process(1);
        assert_eq!(open(&disk).read_vote().await.unwrap(), Some(Vote::new(1, 1)));
    });
}

#[test]
fn the_log_is_told_as_it_is_on_the_disk() {
    simulate(1, async {
        let disk = SimulatedDisk::new(1);
        let (written, ..) = live(&disk).await;
        let lines: Vec<_> = written.iter().map(LogLine::of).collect();
        assert!(disk.log() == lines, "{} lines, written were {}", disk.log().len(), lines.len());
        disk.crash(3);
        drop(open(&disk));
        assert!(disk.log() == lines, "{} lines, written were {}", disk.log().len(), lines.len());
    });
}

#[test]
fn a_stalled_disk_holds_up_and_a_full_one_refuses() {
    simulate(1, async {
        let disk = SimulatedDisk::new(1);
        let mut log = open(&disk);
        let began = Instant::now();
        disk.set_stalled(Duration::from_secs(3));
        log.save_vote(&Vote::new(1, 1)).await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
        disk.set_stalled(Duration::ZERO);

        disk.set_full(true);
        let mut next = 0;
        let refused = loop {
            if let Err(error) = log.blocking_append(entries(1, next..next + 9, 2000)).await {
                break error.to_string();
            }
            next += 9;
            assert!(next < 5000, "nothing fills this disk");
        };
        assert!(refused.contains("free space"), "{refused}");
    });
}

#[test]
fn what_is_not_synced_may_go_sector_by_sector() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let medium = Medium::default();
        let files = SimFiles::new(medium, "test");
        let file = files.create("a").unwrap();
        file.write_at(0, &[1; 1024]).unwrap();
        file.sync_data().unwrap();
        files.sync_dir().unwrap();
        file.write_at(0, &[2; 1024]).unwrap();
        let after = files.after_crash(Medium::default(), Loss::Some(seed)).contents();
        seen.insert((after["a"][0], after["a"][512], after["a"][511], after["a"][1023]));
    }
    let expected = [(1, 1, 1, 1), (1, 2, 1, 2), (2, 1, 2, 1), (2, 2, 2, 2)];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

/// The machine that has crashed may still have tasks; they must not write to the disk of the next one.
#[test]
fn whoever_is_left_of_a_crashed_machine_gets_errors() {
    simulate(1, async {
        let disk = SimulatedDisk::new(1);
        let mut old = open(&disk);
        old.save_vote(&Vote::new(1, 1)).await.unwrap();
        disk.crash(1);
        let digest = disk.digest();
        assert!(old.save_vote(&Vote::new(2, 1)).await.is_err());
        assert_eq!(disk.digest(), digest);
    });
}

//! F7, F11 and F14: memory that is held by who does not finish, does not go, or does not read.

use tripod_processes::attack::calls::{List, absurd_lists, unread_backups, unread_directories, waiting_gets};
use tripod_processes::attack::wire::{Half, half_messages};
use tripod_processes::attack::{Aim, state};

use crate::scene::{Scene, bounds};

/// The largest message that a node takes.
const ANNOUNCED_BYTES: u32 = 66 << 20;

/// A thread and a fork of the state were held for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_backups_that_nobody_reads_are_two_at_a_time() {
    let mut scene = Scene::start().await;
    let keys = async |aim: &Aim| state::keys(aim, bounds(64, 20), "attack/backup/", 256 << 10).await;
    assert_eq!(scene.attack("keys", keys).await.ok(), 64);
    let backups = async |aim: &Aim| unread_backups(&aim.first(), bounds(1_400, 5), 1).await;
    let tally = scene.within_budget("unread backups", backups).await;
    assert_eq!((tally.ok(), tally.of("saves-full")), (2, 1_398), "{tally}");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

/// A node kept all that came and waited for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_messages_that_never_end_stay_within_the_budget() {
    let mut scene = Scene::start().await;
    let half = Half { announced_bytes: ANNOUNCED_BYTES, sent_bytes: 60 << 20 };
    let halves = async |aim: &Aim| half_messages(&aim.first(), bounds(24, 8), 1, half).await;
    let tally = scene.within_budget("24 half messages", halves).await;
    assert_eq!(tally.total(), 24, "{tally}");
    let announced = Half { announced_bytes: ANNOUNCED_BYTES, sent_bytes: 0 };
    let announcements = async |aim: &Aim| half_messages(&aim.first(), bounds(6_000, 3), 1, announced).await;
    let tally = scene.within_budget("6,000 announcements", announcements).await;
    assert_eq!(tally.total(), 6_000, "{tally}");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

/// An element is a byte or two in a message, and up to 48 in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_lists_of_millions_stay_within_the_budget() {
    let mut scene = Scene::start().await;
    // What the largest message holds.
    for (list, elements) in [(List::AliveN, 68_000_000), (List::AliveT, 34_000_000)] {
        let lists = async |aim: &Aim| absurd_lists(&aim.first(), bounds(1, 60), list, elements).await;
        let tally = scene.within_budget(format!("{list:?}"), lists).await;
        assert_eq!((tally.total(), tally.ok()), (1, 0), "{tally}");
    }
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

/// Calls that wait were counted and not weighed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_gets_that_wait_stay_within_the_budget() {
    let mut scene = Scene::start().await;
    let gets = async |aim: &Aim| waiting_gets(&aim.first(), bounds(80_000, 8), 4).await;
    let tally = scene.within_budget("80,000 gets that wait", gets).await;
    assert!(tally.total() > 0, "{tally}");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

/// Each answer was made at once, as a whole, and held for as long as its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f14_directories_that_nobody_reads_stay_within_the_budget() {
    let mut scene = Scene::start().await;
    let keys = async |aim: &Aim| state::keys(aim, bounds(96, 30), "attack/directory/", 1 << 20).await;
    assert_eq!(scene.attack("keys", keys).await.ok(), 96);
    let directories =
        async |aim: &Aim| unread_directories(&aim.first(), bounds(16, 6), 1, "attack/directory").await;
    let tally = scene.within_budget("16 unread directories of 96 MiB", directories).await;
    assert_eq!(tally.total(), 16, "{tally}");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

//! Room, spilling, waiting and pins.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::table::{Delivery, Refusal};

const X: ObjectId = ObjectId(1);
const Y: ObjectId = ObjectId(2);
const Z: ObjectId = ObjectId(3);

struct Scene {
    shelf: Arc<Shelf>,
    reports: mpsc::UnboundedReceiver<Report>,
    disk: tempfile::TempDir,
}

/// A shelf of `capacity_bytes` in which objects above 10 bytes are in shared memory.
fn scene(capacity_bytes: u64, disk_bytes: u64) -> Scene {
    let disk = tempfile::tempdir().expect("a directory");
    let (sender, reports) = mpsc::unbounded_channel();
    let directory = (disk_bytes > 0)
        .then(|| Arc::new(Directory::open(&disk.path().join("spill"), disk_bytes).expect("opened")));
    let limits = Limits { capacity_bytes, inline_bytes_max: 10, anew: Duration::from_millis(300) };
    Scene { shelf: Shelf::new(limits, Arc::default(), directory, sender), reports, disk }
}

fn pattern(id: ObjectId, len: usize) -> Vec<u8> {
    (0..len)
        .map(|location| {
            u8::try_from((location + usize::try_from(id.0).expect("small")) % 251).expect("small")
        })
        .collect()
}

async fn store(shelf: &Arc<Shelf>, id: ObjectId, len: usize) -> Result<(), WriteError> {
    let mut writer = shelf.create(id, len as u64).await?;
    writer.append(0, &pattern(id, len)).expect("memory");
    writer.seal(0, Made::default()).expect("no mapping is left");
    Ok(())
}

async fn read(shelf: &Arc<Shelf>, id: ObjectId) -> Result<Bytes, GetError> {
    let got = tripod_wait::within(format!("object {id}"), shelf.get(id)).await?;
    Ok(got.bytes().expect("mapped").bytes)
}

/// Who asked the scheduler before it heard of it may come late; who asks after that is brought the object.
#[tokio::test(start_paused = true)]
async fn that_an_object_is_not_reached_is_told_until_a_while_after_the_scheduler_has_heard_of_it() {
    let Scene { shelf, mut reports, .. } = scene(1 << 20, 0);
    let Delivery::Begin(life) = shelf.deliver(X) else { panic!("it is not here") };
    let waiting = Arc::clone(&shelf);
    let waiting = tokio::spawn(async move { waiting.get(X).await });
    tokio::task::yield_now().await;
    shelf.give_up(X, life, Why::Unreachable("no way".into()));
    let unreachable =
        || Some(Err::<(), _>(GetError::GivenUp { id: X, why: Why::Unreachable("no way".into()) }));
    assert_eq!(waiting.await.unwrap().map(drop), unreachable().unwrap());
    let report = Report::FetchFailed { object: X, why: FetchFailure::GivenUp };
    assert_eq!(reports.try_recv(), Ok(report));
    let told = |shelf: &Arc<Shelf>| shelf.get_now(X).map(|got| got.map(drop));
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(told(&shelf), unreachable(), "the scheduler has not heard of it");
    shelf.heard_of(X);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(told(&shelf), unreachable());
    shelf.alias(Y, X).expect("known by another name");
    assert!(matches!(shelf.get_now(Y), Some(Err(GetError::GivenUp { id: Y, .. }))));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(told(&shelf), None, "it may be brought anew");
    shelf.alias(Z, X).expect_err("it is not here, and nothing is known of it");
}

/// A process here may write what is just being given up.
#[tokio::test]
async fn an_object_that_is_written_here_meanwhile_is_not_given_up() {
    let Scene { shelf, .. } = scene(1 << 20, 0);
    let Delivery::Begin(life) = shelf.deliver(X) else { panic!("it is not here") };
    let mut writer = shelf.create(X, 5).await.expect("nothing has come");
    shelf.give_up(X, life, Why::Unreachable("no way".into()));
    assert!(shelf.get_now(X).is_none(), "it is waited for");
    writer.append(0, b"01234").expect("memory");
    writer.seal(0, Made::default()).expect("no mapping is left");
    assert_eq!(read(&shelf, X).await, Ok(Bytes::from_static(b"01234")));
}

fn spilled_files(disk: &Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(disk.join("spill")).expect("listed").map(|entry| entry.expect("entry").path());
    entries.filter(|path| path.to_string_lossy().contains("spilled-")).collect()
}

#[tokio::test]
async fn what_is_used_is_counted_and_given_back() {
    let Scene { shelf, disk: _disk, .. } = scene(1 << 20, 0);
    shelf.put(X, Bytes::from_static(b"0123456789"), 0, Made::default()).await.expect("room");
    store(&shelf, Y, 5000).await.expect("room");
    store(&shelf, Z, 7).await.expect("room");
    assert_eq!(shelf.usage().used_bytes, 10 + 8192 + 7);
    let held = shelf.get(Y).await.expect("here");
    for id in [X, Y, Z] {
        shelf.deallocate(id);
    }
    assert_eq!(shelf.usage().used_bytes, 8192, "somebody reads Y still");
    drop(held);
    assert_eq!(shelf.usage().used_bytes, 0);
}

#[tokio::test]
async fn an_object_larger_than_the_store_is_refused_whatever_is_free() {
    let Scene { shelf, disk: _disk, .. } = scene(8192, 1 << 20);
    let refused = shelf.create(X, 8193).await.expect_err("refused");
    assert!(
        matches!(refused, WriteError::Reserve(ReserveError::LargerThanStore { bytes: 12288, .. })),
        "{refused}"
    );
    assert!(shelf.create(X, u64::MAX).await.is_err());
    assert!(shelf.create(X, 8192).await.is_ok(), "a refused object can be begun again");
    assert_eq!(shelf.usage().used_bytes, 0, "an object that was given up takes nothing");
}

#[tokio::test]
async fn who_waits_for_what_is_larger_than_the_store_is_told_by_every_name() {
    let Scene { shelf, mut reports, disk: _disk } = scene(8192, 1 << 20);
    let waiting = |id| {
        let shelf = Arc::clone(&shelf);
        tokio::spawn(async move { read(&shelf, id).await })
    };
    let (one, other) = (waiting(X), waiting(Y));
    let Delivery::Begin(life) = shelf.deliver(X) else { panic!("nothing is here") };
    while shelf.inner.lock().waiting.count() < 2 {
        tokio::task::yield_now().await;
    }
    shelf.refuse(X, life, 9000);
    shelf.alias(Y, X).expect("it is known");
    for get in [one, other, waiting(X), waiting(Y)] {
        let told = get.await.expect("ended").expect_err("it never comes").to_string();
        assert!(told.contains("9000 bytes") && told.contains("8192"), "{told}");
    }
    assert_eq!(reports.try_recv(), Ok(Report::FetchFailed { object: X, why: FetchFailure::TooLarge }));
    assert!(reports.try_recv().is_err(), "it is told once");
}

#[tokio::test]
async fn without_a_directory_a_full_store_refuses() {
    let Scene { shelf, disk: _disk, .. } = scene(8192, 0);
    store(&shelf, X, 8192).await.expect("room");
    let refused = store(&shelf, Y, 1).await.expect_err("refused");
    assert!(refused.to_string().contains("no directory to spill to"), "{refused}");
    shelf.deallocate(X);
    store(&shelf, Y, 1).await.expect("room again");
}

#[tokio::test]
async fn the_coldest_object_goes_to_disk_and_comes_back() {
    let Scene { shelf, disk, .. } = scene(3 * 4096, 1 << 20);
    for id in [X, Y, Z] {
        store(&shelf, id, 4000).await.expect("room");
    }
    drop(shelf.get(X).await.expect("used just now, so Y is the coldest"));
    store(&shelf, ObjectId(4), 4000).await.expect("room is made");
    assert_eq!((shelf.usage().used_bytes, shelf.usage().spilled_bytes), (3 * 4096, 4000));
    assert!(shelf.get_now(X).is_some() && shelf.get_now(Y).is_none() && shelf.get_now(Z).is_some());
    assert_eq!(shelf.ready(), [X, Y, Z, ObjectId(4)]);
    for id in [X, Y, Z, ObjectId(4), Y] {
        assert_eq!(read(&shelf, id).await.expect("whole"), pattern(id, 4000));
    }
    for id in [X, Y, Z, ObjectId(4)] {
        shelf.deallocate(id);
    }
    assert_eq!((shelf.usage().used_bytes, shelf.usage().spilled_bytes), (0, 0));
    assert_eq!(spilled_files(disk.path()), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn what_is_held_is_not_spilled() {
    let Scene { shelf, disk: _disk, .. } = scene(2 * 4096, 1 << 20);
    store(&shelf, X, 4000).await.expect("room");
    store(&shelf, Y, 4000).await.expect("room");
    let (x, y) = (shelf.get(X).await.expect("here"), shelf.get(Y).await.expect("here"));
    let refused = store(&shelf, Z, 4000).await.expect_err("everything is held");
    assert!(refused.to_string().contains("all of it is being read or written"), "{refused}");
    drop(x);
    store(&shelf, Z, 4000).await.expect("X can be spilled");
    assert!(shelf.get_now(X).is_none() && shelf.get_now(Y).is_some());
    drop(y);
}

#[tokio::test]
async fn a_full_disk_is_a_refusal_and_loses_nothing() {
    let Scene { shelf, disk: _disk, .. } = scene(4096, 3999);
    store(&shelf, X, 4000).await.expect("room");
    let refused = store(&shelf, Y, 4000).await.expect_err("refused");
    assert!(refused.to_string().contains("spilled objects is full"), "{refused}");
    assert_eq!(read(&shelf, X).await.expect("still here"), pattern(X, 4000));
}

#[tokio::test]
async fn a_damaged_file_is_data_loss_and_the_object_is_not_listed_any_more() {
    let Scene { shelf, disk, .. } = scene(4096, 1 << 20);
    store(&shelf, X, 4000).await.expect("room");
    shelf.alias(Z, X).expect("here");
    store(&shelf, Y, 4000).await.expect("room is made");
    let [file] = spilled_files(disk.path()).try_into().expect("one file");
    let mut bytes = std::fs::read(&file).expect("read");
    bytes[17] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    assert_eq!(shelf.ready(), [X, Y, Z]);
    let (x, z) = tokio::join!(read(&shelf, X), read(&shelf, Z));
    assert_eq!((x, z), (Err(GetError::Lost(X)), Err(GetError::Lost(Z))));
    assert_eq!(shelf.ready(), [Y]);
    // The task that found out lets go of the file when it has woken everybody.
    tripod_wait::until("the end of the file", || (!file.exists()).then_some(())).await;
    shelf.deallocate(Y);
    store(&shelf, X, 30).await.expect("it is made once more");
    assert_eq!(read(&shelf, X).await.expect("new"), pattern(X, 30));
}

#[tokio::test]
async fn many_readers_and_writers_under_pressure_see_only_whole_objects() {
    let Scene { shelf, disk: _disk, .. } = scene(8 * 4096, 1 << 20);
    for id in (0..40).map(ObjectId) {
        store(&shelf, id, 4000).await.expect("room is made");
    }
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..6_u64 {
        let shelf = Arc::clone(&shelf);
        readers.spawn(async move {
            for step in 0..60 {
                let id = ObjectId((reader * 7 + step * 11) % 40);
                assert_eq!(read(&shelf, id).await.expect("whole"), pattern(id, 4000));
            }
        });
    }
    while let Some(reader) = readers.join_next().await {
        reader.expect("no reader failed");
    }
    assert!(shelf.usage().used_bytes <= 8 * 4096);
}

#[tokio::test]
async fn gets_wait_and_those_that_are_dropped_leave_nothing_behind() {
    let Scene { shelf, mut reports, disk: _disk } = scene(1 << 20, 0);
    for _ in 0..100 {
        let never = tokio::time::timeout(Duration::ZERO, shelf.get(X)).await;
        assert!(never.is_err());
    }
    assert_eq!(shelf.inner.lock().waiting.count(), 0);
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let shelf = Arc::clone(&shelf);
            tokio::spawn(async move { read(&shelf, X).await })
        })
        .collect();
    let run = Run { operation: 5, attempt: 2 };
    shelf.put(X, Bytes::from_static(b"abc"), 0, Some(run).into()).await.expect("room");
    for get in waiting {
        assert_eq!(get.await.expect("ended").expect("here"), &b"abc"[..]);
    }
    assert_eq!(reports.try_recv(), Ok(Report::Ready { object: X, run: Some(run) }));
    assert_eq!(shelf.inner.lock().waiting.count(), 0);
}

#[tokio::test]
async fn a_get_of_an_alias_waits_for_the_alias_and_ends_with_the_object() {
    let Scene { shelf, disk: _disk, .. } = scene(1 << 20, 0);
    let waiting = {
        let shelf = Arc::clone(&shelf);
        tokio::spawn(async move { read(&shelf, Y).await })
    };
    assert_eq!(shelf.alias(Y, X), Err(Refusal::CanonicalAbsent(X)));
    shelf.put(X, Bytes::from_static(b"abc"), 0, Made::default()).await.expect("room");
    shelf.alias(Y, X).expect("here");
    assert_eq!(waiting.await.expect("ended").expect("here"), &b"abc"[..]);
    shelf.deallocate(X);
    assert_eq!(read(&shelf, Y).await, Err(GetError::Deallocated(Y)));
}

#[tokio::test]
async fn a_writer_whose_object_was_deallocated_is_told() {
    let Scene { shelf, mut reports, disk: _disk } = scene(1 << 20, 0);
    let mut writer = shelf.create(X, 100).await.expect("room");
    shelf.deallocate(X);
    assert!(writer.append(0, &[0; 100]).is_err());
    assert!(matches!(writer.seal(0, Made::default()), Err(SealFailed::Refused(Refusal::Gone(X)))));
    drop(writer);
    assert!(reports.try_recv().is_err(), "nothing became ready");
    assert_eq!(shelf.usage().used_bytes, 0);
}

//! A store that lives, and that one other store does not reach.

use tripod_processes::cluster::connections::listening_ports;
use tripod_wait::deadline;
use tripod_worker::{Blob, Driver, GetError, ObjectRef, Task};

use super::path::Path;
use super::site::{Site, one};

const MIB: usize = 1 << 20;

/// A machine whose store others reach by a path, and one whose store gives up after so many seconds, with a worker.
async fn two_machines(site: &mut Site, give_up_after_s: u64) -> Path {
    let path = Path::begin(&site.next_host()).await;
    let reached_by = site.new_machine_with(0, &["--advertise", &path.address()]);
    let ports = listening_ports(reached_by.store.pid()).expect("it runs");
    path.lead_to(*ports.first().expect("it serves"));
    site.machines.push(reached_by);
    let gives_up = site.new_machine_with(0, &["--give-up-after", &give_up_after_s.to_string()]);
    site.machines.push(gives_up);
    begin_worker(site, 1);
    path
}

fn begin_worker(site: &mut Site, machine: usize) {
    let worker = site.new_worker(&site.machines[machine].host);
    site.machines[machine].workers.push(worker);
    let workers = site.machines.iter().map(|machine| machine.workers.len()).sum();
    site.until_workers(workers);
}

async fn put(driver: &Driver) -> ObjectRef {
    driver.put(&Blob(vec![7; MIB])).await.expect("written")
}

async fn length(driver: &Driver, object: &ObjectRef) -> Result<usize, GetError> {
    let length = one(driver, Task::of("tripod.length").object(object)).await;
    driver.get_within(&length, deadline()).await
}

/// Those who wait are told which two stores it is about, and how the last attempt failed. What needs the object is done
/// where it is, as soon as somebody is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_an_object_of_a_store_that_lives_and_is_not_reached_is_told_why() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 0, 0);
    let path = two_machines(&mut site, 3).await;
    let (near, far) = (site.driver(0).await, site.driver(1).await);
    let large = put(&near).await;
    path.cut_for(Some(site.machines[1].store.pid()));
    let (there, id) = (path.address(), large.id().0);
    let told = |text: &str| {
        let stores =
            [format!("object {id} "), "object store 1 at ".to_owned(), format!("the one at {there} ")];
        assert!(stores.iter().all(|part| text.contains(part)), "{text}");
        let (_, error) = text.split_once("in 3 rounds of 1 s, the last time because: ").expect(text);
        assert!(!error.starts_with(';') && error.contains("; next: see whether"), "{text}");
    };

    let adopted = far.adopt(large.id()).await.expect("it is there");
    match far.get_within::<Blob>(&adopted, deadline()).await {
        Err(error @ GetError::Store { .. }) => {
            told(&error.to_string());
            assert!(error.to_string().contains("answered Aborted"), "{error}");
        }
        other => panic!("{:?}", other.map(|Blob(bytes)| bytes.len())),
    }
    path.until_turned_away(3).await;
    site.assert_all_alive();

    match length(&near, &large).await {
        Err(GetError::Failed(error)) => told(&error.text),
        other => panic!("{other:?}"),
    }
    tokio::task::block_in_place(|| begin_worker(&mut site, 0));
    for _ in 0..6 {
        assert_eq!(length(&near, &large).await.expect("it is done where the object is"), MIB);
    }

    path.cut_for(None);
    let next = put(&near).await;
    let next_there = far.adopt(next.id()).await.expect("it is there");
    let Blob(bytes) = far.get_within(&next_there, deadline()).await.expect("it is reached again");
    assert_eq!(bytes.len(), MIB);
    drop((large, adopted, next, next_there));
    site.until_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_between_two_stores_that_is_cut_for_a_while_costs_nobody_an_object() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 0, 0);
    let path = two_machines(&mut site, 120).await;
    let (near, far) = (site.driver(0).await, site.driver(1).await);
    let large = put(&near).await;
    path.cut_for(Some(site.machines[1].store.pid()));
    let adopted = far.adopt(large.id()).await.expect("it is there");
    let Blob(bytes) = {
        let mut waits = std::pin::pin!(far.get_within(&adopted, deadline()));
        tokio::select! {
            early = &mut waits => panic!("{:?}", early.map(|Blob(bytes)| bytes.len())),
            () = path.until_turned_away(5) => {}
        }
        path.cut_for(None);
        waits.await.expect("it comes")
    };
    assert_eq!(bytes.len(), MIB);
    drop((large, adopted));
    site.until_empty();
    site.assert_all_alive();
}

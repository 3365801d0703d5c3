//! How fast objects go from store to store. Run it by itself, in release:
//! `cargo test --release -p tripod-objstore --test stores -- --ignored --nocapture bench`.

use std::time::Instant;

use tripod_objstore::ObjectId;

use crate::support::{Scene, get};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "prints figures; the machine should have nothing else to do"]
async fn bench_an_object_of_256_mib_between_two_stores() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.capacity_bytes = 4 << 30;
    let source = scene.store_with(config.clone()).await;
    let mut target = scene.store_with(config).await;
    let size_bytes: u32 = 256 << 20;
    for object in 0..5 {
        source.put(object, usize::try_from(size_bytes).expect("64 bits")).await;
        let begun = Instant::now();
        target.fetch(object, source.store.address()).await;
        let got = get(&target.local, object).await.expect("it comes");
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(got.size_bytes(), u64::from(size_bytes));
        println!(
            "{size_bytes} bytes in {:.0} ms: {:.2} GB/s",
            seconds * 1e3,
            f64::from(size_bytes) / seconds / 1e9
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "prints figures; the machine should have nothing else to do"]
async fn bench_small_objects_of_one_process() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let count: u32 = 20_000;
    let begun = Instant::now();
    for object in 0..count {
        let id = ObjectId(object.into());
        store.local.put(id, vec![1; 100].into(), 0, None).await.expect("stored");
        store.local.get(id, None).await.expect("here");
    }
    let each_us = begun.elapsed().as_secs_f64() * 1e6 / f64::from(count);
    println!("put and get of 100 bytes, one after the other: {each_us:.1} us");
}

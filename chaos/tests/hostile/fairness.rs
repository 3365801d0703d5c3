//! F17: one caller's calls hold up everybody's.

use std::time::Duration;

use tripod_processes::attack::flood;

use crate::scene::Scene;

/// What others notice of it is printed, and depends on the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f17_a_flood_of_cheap_writes_fails_no_write_of_others() {
    let mut scene = Scene::start().await;
    let time = Duration::from_secs(5);
    let tally = scene
        .within_budget("64 callers x 64 writes", async |aim| flood::writes(aim, 64, 64, time).await)
        .await;
    assert!(tally.total() > 64 * 64, "{tally}");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

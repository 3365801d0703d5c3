//! F17: one caller's calls hold up everybody's.

use std::time::Duration;

use tripod_processes::attack::flood;

use crate::scene::Scene;

const CALLERS: usize = 64;
/// Writes of each that are under way.
const WRITES: usize = 256;
/// Writes of the flood for each of somebody else's: if they were taken as they come, all that are under way would be. Taking
/// turns these are the 512 that a node has under way for its clients, and what is written while the other rests.
const BETWEEN_MAX: u64 = (CALLERS * WRITES / 2) as u64;

/// How long others wait is printed, and depends on the machine. How often their turn comes does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f17_a_flood_of_cheap_writes_fails_no_write_of_others_and_takes_no_more_than_its_turns() {
    let mut scene = Scene::start().await;
    let time = Duration::from_secs(5);
    let before = scene.witnessed();
    let tally = scene
        .within_budget(format!("{CALLERS} callers x {WRITES} writes through one node"), async |aim| {
            flood::writes(&aim.first(), CALLERS, WRITES, time).await
        })
        .await;
    let others = scene.witnessed() - before;
    let between = tally.ok() / others.max(1);
    println!("{others} writes of somebody else, {between} of the flood for each");
    assert!(tally.total() > (CALLERS * WRITES) as u64, "{tally}");
    assert!(between <= BETWEEN_MAX, "{between} writes of the flood for each of {others} of somebody else");
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

//! F17: one caller's calls hold up everybody's.

use std::time::Duration;

use tripod_processes::attack::flood;
use tripod_wait::scaled;

use crate::scene::Scene;

const CALLERS: usize = 32;
/// Writes of each that are under way.
const WRITES: usize = 64;
/// What each writes: so much that the nodes have more to do for a write than its caller, and all that are under way wait at
/// the node. With small values they wait in the callers' own processes, and nobody's turn matters.
const VALUE_BYTES: usize = 16 << 10;
/// Writes of the flood for each of somebody else's: if they were taken as they come, all that are under way would be. Taking
/// turns these are the 512 that a node has under way for its clients, and what is written while the other rests.
const BETWEEN_MAX: u64 = (CALLERS * WRITES / 2) as u64;

/// How long others wait is printed, and depends on the machine. How often their turn comes does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f17_a_flood_of_writes_fails_no_write_of_others_and_takes_no_more_than_its_turns() {
    let mut scene = Scene::start().await;
    let time = scaled(Duration::from_secs(8));
    let before = scene.witnessed();
    let tally = scene
        .within_budget(format!("{CALLERS} callers x {WRITES} writes through one node"), async |aim| {
            flood::writes_of(&aim.first(), CALLERS, WRITES, VALUE_BYTES, time).await
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

//! Whether a node is ready whose reads are not answered in time.

use std::time::Duration;

use tokio::time::sleep;
use tripod_gateway::{Gateway, Options};
use tripod_state::ids::LogIndex;

use crate::common::job;
use crate::follower::Follower;

/// A part of what a probe waits.
const MOMENT: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_node_whose_reads_wait_behind_what_others_want_is_ready_and_one_that_stands_still_is_not() {
    let (leader, memory) = Gateway::in_memory();
    job(&leader, 2).await.register_all(2).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    assert!(!gateway.readiness().await.is_ready(), "it is told nothing");
    let busy = async {
        sleep(MOMENT).await;
        follower.answered(LogIndex(1));
    };
    assert!(tokio::join!(gateway.readiness(), busy).0.is_ready(), "it is answered, and applies");
    let stuck = async {
        sleep(MOMENT).await;
        follower.answered(LogIndex(1));
    };
    assert!(!tokio::join!(gateway.readiness(), stuck).0.is_ready(), "it applies nothing");
    assert!(!gateway.readiness().await.is_ready(), "it was answered before, and not since");
    follower.catch_up();
    assert!(gateway.readiness().await.is_ready());
}

//! Whatever one client does, the calls of another have their turn.

mod support;

use std::time::Duration;

use support::Served;
use support::task::Task;
use tripod_gateway::Mishap;

/// Writes of one client at a time.
const FLOOD: u64 = 3_000;
/// Writes of clients that are under way on a node at a time, and the few whose turns come before that of who comes next.
const BEFORE_MAX: u64 = 512 + 16;

#[tokio::test(start_paused = true)]
async fn a_write_has_its_turn_while_another_connection_has_thousands_under_way() {
    let served = Served::with_tasks(1).await;
    // The log takes one after the other.
    served.backend.set_mishaps(|_| Mishap::Slow(Duration::from_millis(1)));
    let before = served.gateway.applied_index().0;
    let applied = || served.gateway.applied_index().0 - before;
    let (one, other) = (Task::new(&served.connect().await, 0), Task::new(&served.connect().await, 0));
    let flood: Vec<_> =
        (0..FLOOD).map(|call| tokio::spawn(one.insert(&format!("flood/{call}"), "value"))).collect();
    tripod_wait::until("the flood begins", || (applied() > 0).then_some(())).await;
    let begun = applied();
    assert!(begun < FLOOD / 2, "it is nearly over");
    other.insert("other", "value").await.expect("written");
    assert!(applied() - begun <= BEFORE_MAX, "{} writes of the flood came before", applied() - begun);
    for write in flood {
        write.await.expect("no panic").expect("written");
    }
    assert_eq!(applied(), FLOOD + 1);
}

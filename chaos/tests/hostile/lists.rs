//! F1: lists of tens of millions, a byte or two each on the wire.

use tripod_processes::attack::calls::{List, absurd_lists};

use crate::scene::{Scene, bounds};

/// The audit had 34 million; twice as many are what the largest message holds, and of objects it had half of these.
const fn elements(list: List) -> usize {
    match list {
        List::BarrierN | List::AliveN => 68_000_000,
        // Two bytes each.
        List::BarrierT | List::AliveT => 34_000_000,
        List::References => 33_554_418,
    }
}

/// One such call was committed, and no node could read it back, now or after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_list_that_no_job_can_have_is_refused_and_never_committed() {
    // The bound of lists is the subject, and not that of memory, which would refuse these before anybody reads them.
    let mut scene = Scene::start_with(["--client-memory-mib=8192"]).await;
    for list in List::ALL {
        let bounds = bounds(1, 60);
        let name = format!("{list:?}");
        let tally =
            scene.attack(&name, async |aim| absurd_lists(aim, bounds, list, elements(list)).await).await;
        assert_eq!((tally.total(), tally.ok()), (1, 0), "{name}: {tally}");
        assert_eq!(tally.of("client-memory-full"), 0, "{name} was not read: {tally}");
    }
    scene.restart_all("absurd lists").await;
    scene.end().await;
}

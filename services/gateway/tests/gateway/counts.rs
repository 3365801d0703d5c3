//! What a node counts of tasks, barriers and heartbeats.

use std::time::Duration;

use crate::common::{HEARTBEAT_MS, alive, job, job_of, life, passed, spec};
use tokio::time::sleep;
use tripod_gateway::{BarrierEnding, Gateway, Options, WhyLost};
use tripod_state::ids::{DurationMs, TaskId};
use tripod_state::job;

const TIMEOUT: Duration = Duration::from_millis(HEARTBEAT_MS);
/// Two ticks of the timers.
const TICKS: Duration = Duration::from_millis(100);

fn failed(gateway: &Gateway, ending: BarrierEnding) -> u64 {
    let counts = gateway.gangs().barriers_failed;
    counts.into_iter().find_map(|(counted, count)| (counted == ending).then_some(count)).unwrap()
}

fn lost(gateway: &Gateway, why: WhyLost) -> u64 {
    let counts = gateway.gangs().lost;
    counts.into_iter().find_map(|(counted, count)| (counted == why).then_some(count)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_barrier_is_counted_when_it_passes_with_how_long_it_took_and_when_it_fails_with_the_reason() {
    let (gateway, memory) = Gateway::in_memory();
    // It leads from the first tick on.
    sleep(TICKS).await;
    let job = job(&gateway, 2).await;
    job.register_all_known(2).await;
    sleep(TICKS).await;
    assert_eq!(gateway.gangs().barrier_waits.count(), 1, "the registration");

    let late = async {
        sleep(Duration::from_secs(3)).await;
        job.arrive("a", 1, 60_000).await
    };
    let (first, second) = tokio::join!(job.arrive("a", 0, 60_000), late);
    assert_eq!((first.unwrap(), second.unwrap()), (passed(), passed()));
    sleep(TICKS).await;
    let waits = gateway.gangs().barrier_waits;
    assert_eq!((waits.count(), waits.sum.as_secs()), (2, 3));

    assert!(job.arrive("b", 0, 1_000).await.unwrap().is_err(), "nobody else comes");
    sleep(TICKS).await;
    assert_eq!(
        (failed(&gateway, BarrierEnding::TimedOut), failed(&gateway, BarrierEnding::MemberLost)),
        (1, 0)
    );
    assert_eq!(gateway.gangs().barrier_waits.count(), 2);

    // Whoever leads from now on does not know when it opened, and counts how it ends.
    let (third, ()) = tokio::join!(job.arrive("c", 0, 5_000), async {
        sleep(TICKS).await;
        memory.depose();
        sleep(TICKS).await;
        memory.elect();
    });
    assert!(third.unwrap().is_err());
    sleep(TICKS).await;
    assert_eq!(failed(&gateway, BarrierEnding::TimedOut), 2);
}

#[tokio::test(start_paused = true)]
async fn how_long_a_leader_leads_begins_again_with_each() {
    let (gateway, memory) = Gateway::in_memory();
    sleep(TIMEOUT).await;
    assert!(gateway.led_for().is_some_and(|led| led <= TIMEOUT && led + TICKS >= TIMEOUT));
    memory.depose();
    sleep(TICKS).await;
    assert_eq!(gateway.led_for(), None);
    memory.elect();
    sleep(TICKS).await;
    assert!(gateway.led_for().is_some_and(|led| led <= TICKS));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_late_before_it_is_given_up_and_the_reason_is_counted() {
    let (gateway, memory) = Gateway::in_memory_with(Options { grace: DurationMs(0), ..Options::default() });
    // One that is lost ends no other.
    let job = job_of(&gateway, "test", job::Spec { recoverable: true, ..spec(3) }).await;
    job.register_all_known(3).await;
    let before = gateway.beats();
    assert_eq!(gateway.tasks_late(), Some(0));

    sleep(TIMEOUT * 6 / 10).await;
    assert_eq!((job.beat(0).await.unwrap(), job.beat(2).await.unwrap()), (alive(), alive()));
    assert_eq!(gateway.tasks_late(), Some(1));
    assert_eq!(gateway.beats().beats, before.beats + 2);
    assert_eq!(gateway.beats().handling.count(), before.handling.count() + 2);

    sleep(TIMEOUT * 65 / 100).await;
    assert_eq!(gateway.tasks_late(), Some(2), "the others have not been heard since");
    assert_eq!(lost(&gateway, WhyLost::Silent), 1);

    assert!(gateway.lost(job.id, TaskId(2), life(2)).await.unwrap().is_ok());
    assert_eq!((lost(&gateway, WhyLost::Gone), lost(&gateway, WhyLost::Ended)), (1, 0));
    memory.depose();
    sleep(TICKS).await;
    assert_eq!(gateway.tasks_late(), None, "only whoever leads knows");
}

//! Jobs whose tasks may restart: an error concerns only the task that has it.

use tonic::Code;
use tripod_state::job::Spec;

use crate::support::stage::{Stage, plain, refused};
use crate::support::task::Task;

async fn recoverable_pair() -> (Stage, [Task; 2]) {
    let stage = Stage::set(Spec { recoverable: true, ..plain(2) }).await;
    let tasks = stage.connect().await;
    (stage, tasks)
}

#[tokio::test(start_paused = true)]
async fn recoverable_task_will_not_propagate_error() {
    let (_stage, [first, second]) = recoverable_pair().await;
    first.report(5, "boom").await.expect("accepted");
    refused(first.beat().await, Code::Aborted);
    second.beat().await.expect("nothing is wrong here");
}

#[tokio::test(start_paused = true)]
async fn recoverable_task_with_error_polling_will_not_propagate_error() {
    let (stage, [first, second]) = recoverable_pair().await;
    let polls = [stage.hold(first.poll()).await, stage.hold(second.poll()).await];
    first.report(5, "boom").await.expect("accepted");
    for poll in &polls {
        stage.still_holds(poll).await;
    }
    stage.worker(0).reset().await.expect("it leaves");
    second.shut_down().await.expect("it leaves");
    for poll in polls {
        refused(poll.end().await, Code::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn recoverable_task_report_error_reset_and_register_again() {
    let (stage, [first, second]) = recoverable_pair().await;
    first.report(5, "boom").await.expect("accepted");
    refused(first.beat().await, Code::Aborted);
    stage.worker(0).reset().await.expect("it leaves");
    let first = first.restarted();
    first.register().await.expect("it comes back");
    first.beat().await.expect("alive");
    second.beat().await.expect("alive");
}

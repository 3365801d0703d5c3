//! Somebody goes away: a task, or the service.

use std::time::Duration;

use tonic::Code;

use super::{Protocol, Stage, with_both};

#[tokio::test(start_paused = true)]
async fn clients_terminate_shutdown_if_any_client_goes_away() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::impatient(protocol, 3).await;
        let [dying, second, third] = stage.connected().await;
        let leaving = [stage.shutting_down(&second).await, stage.shutting_down(&third).await];
        drop(dying);
        for call in leaving {
            let interrupted = call.end().await.expect_err("one is missing");
            let (code, word) = match protocol {
                Protocol::L => (Code::Aborted, "Shutting down due to missed heartbeat from task 0"),
                Protocol::T => (Code::Internal, "Task 0 heartbeat timeout"),
            };
            assert_eq!(interrupted.code(), code, "{protocol:?}");
            assert!(interrupted.message().contains(word), "{interrupted:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn clients_receive_missed_heartbeat_if_any_client_goes_away() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::impatient(protocol, 3).await;
        let [dying, second, third] = stage.connected().await;
        drop(dying);
        for survivor in [second, third] {
            let told = survivor.failed().await;
            let word = match protocol {
                Protocol::L => "Shutting down due to missed heartbeat from task 0",
                Protocol::T => "(stopped sending heartbeats):\n0\n",
            };
            assert_eq!(told.code(), Code::Aborted, "{protocol:?}");
            assert!(told.message().contains(word), "{told:?}");
        }
    })
    .await;
}

/// There is one address here and nothing behind it once the service has stopped.
#[tokio::test(start_paused = true)]
async fn clients_terminate_if_service_goes_away() {
    with_both(async |protocol: Protocol| {
        let mut stage = Stage::impatient(protocol, 3).await;
        stage.options.shutdown_timeout = Duration::from_millis(500);
        let clients: [_; 3] = stage.connected().await;
        stage.cluster.served.stop().await;
        for client in clients {
            client.failed().await;
            let late = client.shut_down().await.expect_err("nobody is there");
            let code = match protocol {
                Protocol::L => Code::DeadlineExceeded,
                Protocol::T => Code::FailedPrecondition,
            };
            assert_eq!(late.code(), code, "{protocol:?}: {late:?}");
        }
    })
    .await;
}

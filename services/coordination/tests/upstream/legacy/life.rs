//! Connecting and leaving.

use std::time::Duration;

use tonic::Code;

use super::{Protocol, Stage, connect_of, with_both};
use crate::client::Call;
use crate::support::until;

#[tokio::test(start_paused = true)]
async fn connect_and_shutdown_are_barriers() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 3).await;
        let clients: [_; 3] = stage.clients().await;
        let mut connecting = Vec::new();
        for client in &clients {
            for earlier in &mut connecting {
                Call::waits(earlier).await;
            }
            connecting.push(stage.connecting(client).await);
        }
        for call in connecting {
            call.end().await.expect("all have entered");
        }
        let mut leaving = Vec::new();
        for client in &clients {
            for earlier in &mut leaving {
                Call::waits(earlier).await;
            }
            leaving.push(stage.shutting_down(client).await);
        }
        for call in leaving {
            call.end().await.expect("all have entered");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn zero_init_timeout_should_still_wait_for_other_tasks() {
    with_both(async |protocol: Protocol| {
        let mut stage = Stage::start(protocol, 2).await;
        stage.options.init_timeout = Duration::ZERO;
        let [first, straggler] = stage.clients().await;
        let mut early = stage.connecting(&first).await;
        early.waits().await;
        straggler.connect().await.expect("the first one has waited");
        early.end().await.expect("at its first attempt");
        assert_eq!(stage.cluster.arrived(&connect_of(&first)), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn late_clients_are_ok() {
    with_both(async |protocol: Protocol| {
        let mut stage = Stage::start(protocol, 3).await;
        stage.options.rpc_timeout = Duration::from_secs(2);
        let [first, second, late] = stage.clients().await;
        let early = [stage.connecting(&first).await, stage.connecting(&second).await];
        if protocol == Protocol::L {
            // Each of their attempts is given half of that time.
            let is = connect_of(&first);
            until("an attempt ends without the late one", || stage.cluster.arrived(&is) > 1).await;
        }
        late.connect().await.expect("the last one is waited for");
        for call in early {
            call.end().await.expect("all have come");
        }
        let (left, middle, right) = tokio::join!(first.shut_down(), second.shut_down(), late.shut_down());
        left.and(middle).and(right).expect("all leave");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connect_eventually_times_out_if_a_client_does_not_show_up() {
    with_both(async |protocol: Protocol| {
        let timeout = Duration::from_millis(500);
        let mut stage = Stage::hasty(protocol, 3, timeout).await;
        if protocol == Protocol::L {
            // The other protocol leaves it to the service how long all may take.
            stage.options.init_timeout = timeout;
            // Half of it is the service's; the rest is for a busy machine.
            stage.options.rpc_timeout = Duration::from_secs(8);
        }
        let [first, second] = stage.clients().await;
        let (left, right) = tokio::join!(first.connect(), second.connect());
        for outcome in [left, right] {
            let refused = outcome.expect_err("one is missing");
            assert_eq!(refused.code(), Code::DeadlineExceeded, "{protocol:?}");
            let word = match protocol {
                Protocol::L => "Timed out after 4s waiting for all nodes to call Connect()",
                Protocol::T => "Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0.",
            };
            assert!(refused.message().contains(word), "the service's own word: {refused:?}");
        }
    })
    .await;
}

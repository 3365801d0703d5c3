//! Calls of `ParameterServerStrategy` that are not for a coordinator.

mod support;

use bytes::Bytes;
use support::{Served, raw};
use tonic::Code;

#[tokio::test(start_paused = true)]
async fn whatever_they_carry_the_answer_is_empty() {
    let served = Served::with_tasks(1).await;
    let channel = served.connect().await;
    let calls = [
        "WorkerService/GetStatus",
        "eager.EagerService/CreateContext",
        "eager.EagerService/UpdateContext",
        "eager.EagerService/Enqueue",
        "eager.EagerService/KeepAlive",
        "eager.EagerService/CloseContext",
    ];
    // A field of each kind, and more bytes than a first frame holds.
    let mut message = vec![0x08, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 0x80, 0x80, 0x04];
    message.extend_from_slice(&[b'x'; 1 << 16]);
    for call in calls {
        let path = format!("/tensorflow.{call}");
        let answer = raw::call(channel.clone(), path, Bytes::from(message.clone())).await;
        assert_eq!(answer.expect(call), Bytes::new(), "{call}");
    }
    served.stop().await;
}

#[tokio::test(start_paused = true)]
async fn others_of_their_services_are_not_known() {
    let served = Served::with_tasks(1).await;
    let channel = served.connect().await;
    for call in ["WorkerService/RunGraph", "eager.EagerService/StreamingEnqueue"] {
        let path = format!("/tensorflow.{call}");
        let refused = raw::call(channel.clone(), path, Bytes::new()).await.expect_err(call);
        assert_eq!(refused.code(), Code::Unimplemented, "{call}");
    }
    served.stop().await;
}

//! Dialect L where a script cannot show it: callers that hang up.

mod support;

use support::schema::Schema;
use support::{SERVICE, Served, raw, until};
use tonic::{Code, Status};

const SERVICE_NAME: &str = "xla.DistributedRuntimeService";

struct Client {
    schema: Schema,
    served: Served,
}

impl Client {
    /// With both tasks of a job connected.
    async fn connected() -> Self {
        let client = Self { schema: Schema::load(), served: Served::with_tasks(2).await };
        let connect = |node: u32| {
            let fields = format!("protocol_version=3 timeout_milliseconds=20000 node_id={node} client_id=1");
            client.call("Connect", fields)
        };
        let (first, second) = tokio::join!(connect(0), connect(1));
        first.and(second).expect("both come");
        client
    }

    async fn call(&self, method: &str, fields: String) -> Result<(), Status> {
        let path = format!("{SERVICE_NAME}/{method}");
        let message = self.schema.encode(&self.schema.methods[&path].0, &fields);
        raw::call(self.served.connect().await, format!("/{path}"), message).await.map(|_| ())
    }

    async fn wait_at_barrier(&self, node: u32, timeout_ms: u32) -> Result<(), Status> {
        let fields =
            format!("session_id={SERVICE} barrier_id=b node_id={node} timeout_milliseconds={timeout_ms}");
        self.call("WaitAtBarrier", fields).await
    }
}

/// A client gives its calls as much time as it tells the service, so it is often gone when the time at
/// a barrier is over. Who comes later must hear of it all the same.
#[tokio::test(start_paused = true)]
async fn who_hung_up_still_gives_up() {
    let client = Client::connected().await;
    let before = client.served.gateway.applied_index().0;
    {
        let mut leaving = std::pin::pin!(client.wait_at_barrier(0, 300));
        tokio::select! {
            outcome = &mut leaving => panic!("it should wait: {outcome:?}"),
            () = until("the call arrives", || client.served.gateway.applied_index().0 > before) => {}
        }
    }
    until("it gives up", || client.served.gateway.applied_index().0 > before + 1).await;
    let late = client.wait_at_barrier(1, 20_000).await.expect_err("nobody can pass any more");
    assert_eq!(late.code(), Code::FailedPrecondition, "{late:?}");
    client.served.stop().await;
}

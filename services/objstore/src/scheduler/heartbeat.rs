//! Being alive.

use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Request};
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::heartbeat_response::Order;
use tripod_proto::tripod::v1::membership_client::MembershipClient;
use tripod_proto::tripod::v1::{HeartbeatRequest, HeartbeatResponse};

use super::{End, Endpoints};
use crate::ids::StoreId;
use crate::shelf::Shelf;

/// Until a node says how long silence may last.
const INTERVAL_FIRST: Duration = Duration::from_secs(1);
const INTERVAL_MIN: Duration = Duration::from_millis(20);
const INTERVAL_MAX: Duration = Duration::from_secs(30);

/// Says that the store is alive, until the scheduler says that it is not.
pub(crate) async fn beat(endpoints: &Endpoints, id: StoreId, shelf: &Arc<Shelf>) -> End {
    loop {
        let request = || {
            let usage = shelf.usage();
            Request::new(HeartbeatRequest {
                kind: Kind::Store.into(),
                id: id.0,
                running: Vec::new(),
                used_bytes: usage.used_bytes,
                capacity_bytes: usage.capacity_bytes,
                spilled_bytes: usage.spilled_bytes,
            })
        };
        let send = |channel, request| async move { MembershipClient::new(channel).heartbeat(request).await };
        let answer = endpoints.call("Heartbeat", request, send).await;
        let interval = match answer {
            Ok(answer) => match answer.order() {
                Order::None => interval(&answer),
                Order::Reregister => return End::Expired,
                Order::Die => return End::Die,
            },
            // The scheduler does not know this store, or no more.
            Err(refused) if matches!(refused.status.code(), Code::FailedPrecondition | Code::NotFound) => {
                tracing::warn!(store = %id, status = %refused.status, "the scheduler does not have this store any more");
                return End::Expired;
            }
            // A scheduler that knows no heartbeats watches the connection to the store's own port.
            Err(refused) if refused.status.code() == Code::Unimplemented => INTERVAL_MAX,
            Err(refused) => {
                tracing::warn!(endpoint = refused.endpoint, status = %refused.status, "a heartbeat is refused");
                INTERVAL_FIRST
            }
        };
        tokio::time::sleep(interval).await;
    }
}

/// A third of the time that silence may last: two beats may be lost.
fn interval(answer: &HeartbeatResponse) -> Duration {
    Duration::from_millis(answer.ttl_ms / 3).clamp(INTERVAL_MIN, INTERVAL_MAX)
}

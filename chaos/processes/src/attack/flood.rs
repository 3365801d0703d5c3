//! Writes without end.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tripod_proto::tripod::v1::PutRequest;
use tripod_proto::tripod::v1::kv_client::KvClient;

use super::aim::Aim;
use super::tally::{Bounds, Tally, ended, repeat};

/// Keys that each caller writes again and again: the state does not grow.
const KEYS: usize = 16;

/// So many callers, each with a connection of its own and so many writes under way, for that long.
pub async fn writes(aim: &Aim, callers: usize, under_way: usize, time: Duration) -> Tally {
    writes_of(aim, callers, under_way, 1, time).await
}

/// The same with values of so many bytes: with more of them it costs the nodes more to take a write than the callers to
/// make it, so that what is under way waits at the nodes.
pub async fn writes_of(
    aim: &Aim,
    callers: usize,
    under_way: usize,
    value_bytes: usize,
    time: Duration,
) -> Tally {
    let value = Bytes::from(vec![b'x'; value_bytes]);
    let mut flood = JoinSet::new();
    for (caller, channel) in aim.channels(callers).into_iter().enumerate() {
        let value = value.clone();
        flood.spawn(async move {
            let bounds = Bounds { count: usize::MAX, time };
            repeat(bounds, under_way, |turn| {
                let mut client = KvClient::new(channel.clone());
                let key = format!("attack/flood/{caller}/{}", turn % KEYS);
                let request = PutRequest { key, value: value.clone(), ..PutRequest::default() };
                async move { ended(&client.put(request).await) }
            })
            .await
        });
    }
    let mut tally = Tally::default();
    while let Some(Ok(one)) = flood.join_next().await {
        tally.merge(&one);
    }
    tally
}

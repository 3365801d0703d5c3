//! The transport calls members where the membership says that they are.

use std::collections::BTreeMap;

use openraft::async_runtime::WatchReceiver as _;
use tokio_util::sync::CancellationToken;

use crate::apply::engine::Raft;
use crate::peers::channels::Channels;

/// Tells the transport of every membership, until the node stops. The engine goes on calling a member at the
/// address that it had when the leadership began.
pub(crate) async fn follow(raft: Raft, channels: Channels, stop: CancellationToken) {
    let follow = async {
        let mut metrics = raft.server_metrics();
        loop {
            let members: BTreeMap<u64, String> = {
                let metrics = metrics.borrow_and_update();
                let nodes = metrics.membership_config.membership().nodes();
                nodes.map(|(node, peer)| (*node, peer.address.clone())).collect()
            };
            // Before the first membership there is only what the node was started with.
            if !members.is_empty() {
                channels.follow(members);
            }
            if metrics.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = stop.cancelled() => {}
    }
}

//! What a drained node does with its clients: it sends them away as one that lost contact does, and for a while lets
//! new ones wait, so that those who know other nodes are gone. Agents and xDS are told not to come back. Its port
//! stays open for whoever knows no other node, and for the operator.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tripod_gateway::{Consistency, Gateway};
use tripod_port::{Contact, ContactSwitch};
use tripod_state::ids::NodeId;
use tripod_state::{State, Topic};

/// For so long new connections wait a moment each.
const AWAY_FOR: Duration = Duration::from_secs(5);

/// The contact of a node that is also lost for a while when the node is drained; and what keeps it so, to be run beside.
pub(crate) fn contact(gateway: &Gateway, node: NodeId) -> (Contact, impl Future<Output = ()> + use<>) {
    let (contact, switch) = Contact::by_hand();
    let gateway = gateway.clone();
    (contact, async move { keep(&gateway, node, &switch).await })
}

async fn keep(gateway: &Gateway, node: NodeId, switch: &ContactSwitch) {
    let mut members = gateway.watch(Topic::Members);
    let (lost, mut lost_now) = watch::channel(false);
    let mut contact = gateway.contact();
    let follow = async {
        loop {
            contact.lost().await;
            lost.send_replace(true);
            contact.found().await;
            lost.send_replace(false);
        }
    };
    let decide = async {
        let mut drained_since: Option<Instant> = None;
        loop {
            // A node that stops has no clients to look after.
            let is_drained = |state: &State| state.is_drained(node);
            let Ok(drained) = gateway.read(Consistency::Local, is_drained).await else { return };
            if drained != drained_since.is_some() {
                tracing::info!(drained, "clients are to go to other nodes, or may come again");
                drained_since = drained.then(Instant::now);
            }
            let left = drained_since.and_then(|since| AWAY_FOR.checked_sub(since.elapsed()));
            if left.is_some() || *lost_now.borrow_and_update() {
                switch.lose();
            } else {
                switch.find();
            }
            let over = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = members.changed() => {}
                () = over => {}
                _ = lost_now.changed() => {}
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = decide => {}
    }
}

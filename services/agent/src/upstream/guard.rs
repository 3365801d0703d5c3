//! What goes on while a link is in use: hearing of members, asking whether the node serves, and looking
//! for another one when it does not.

use std::convert::Infallible;

use tokio::sync::{mpsc, watch};
use tonic::Status;
use tripod_proto::tripod::v1::WatchMembersRequest;
use tripod_proto::tripod::v1::agents_client::AgentsClient;

use super::dialer::Dialer;
use super::link::{Link, LinkId, root_cause};
use super::{Doubt, Upstream};

/// What is wrong with a link that still works; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    None,
    /// Its node had no leader for as long as it holds calls. Others may; if not, this one does as well.
    NoLeader,
    /// Its node does not show that it can serve. This may pass.
    Silent,
    /// Its node is about to stop.
    Stopping,
}

/// Learns who the members are, and whether the node stops. Ends with the connection, and says why.
pub(crate) async fn follow_members(
    upstream: &Upstream,
    link: &Link,
    trouble: &watch::Sender<Trouble>,
) -> String {
    let mut pause = upstream.timing().pause_min;
    loop {
        if let Err(broken) = hear_members(upstream, link, trouble).await {
            return root_cause(&broken);
        }
        // A node that stops ends the stream, and serves for a moment longer.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(upstream.timing().pause_max);
    }
}

/// Listens until the node says no more.
async fn hear_members(
    upstream: &Upstream,
    link: &Link,
    trouble: &watch::Sender<Trouble>,
) -> Result<(), Status> {
    let mut agents = AgentsClient::new(link.channel.clone());
    let mut members = agents.watch_members(WatchMembersRequest {}).await?.into_inner();
    while let Some(told) = members.message().await? {
        let addresses = told.members.into_iter().map(|member| member.client_address);
        // A node that did not announce itself yet has no address.
        let addresses: Vec<String> = addresses.filter(|address| !address.is_empty()).collect();
        if !addresses.is_empty() && upstream.endpoints().learn(addresses.clone()) {
            tracing::info!(members = addresses.join(","), "members learned");
        }
        if told.stopping {
            raise(trouble, Trouble::Stopping);
        }
    }
    Ok(())
}

/// Asks the node whether it can serve when nothing else has shown it for a while, and at once when a call
/// doubts it.
pub(crate) async fn keep_probing(
    upstream: &Upstream,
    doubts: &mut mpsc::Receiver<(LinkId, Doubt)>,
    link: &Link,
    trouble: &watch::Sender<Trouble>,
) -> Infallible {
    let timing = upstream.timing();
    loop {
        tokio::select! {
            doubted = doubts.recv() => {
                let (id, doubt) = doubted.expect("a sender is ours");
                // What calls said of an earlier link is settled.
                if id != link.id {
                    continue;
                }
                match doubt {
                    Doubt::Failed => {}
                    Doubt::NoLeader => raise(trouble, Trouble::NoLeader),
                    Doubt::Stopping => raise(trouble, Trouble::Stopping),
                }
            }
            () = tokio::time::sleep(timing.probe_interval) => {
                // Heartbeats and calls have shown it in passing.
                if upstream.shared.outages.heard_within(timing.probe_interval) {
                    calm(trouble, Trouble::Silent);
                    continue;
                }
            }
        }
        match link.probe(timing.answer_limit).await {
            Ok(()) => {
                upstream.heard();
                calm(trouble, Trouble::Silent);
            }
            Err(cause) => {
                upstream.shared.outages.begin(&cause);
                upstream.endpoints().failed(&link.address, cause);
                raise(trouble, Trouble::Silent);
            }
        }
    }
}

/// Looks for another node while there is trouble. The link stays in use until one has shown that it can
/// serve: if none can, it is as good as any.
pub(crate) async fn seek(
    upstream: &Upstream,
    dialer: &Dialer,
    link: &Link,
    trouble: &watch::Sender<Trouble>,
) -> Link {
    let mut changes = trouble.subscribe();
    let mut pause = upstream.timing().pause_min;
    loop {
        if *changes.borrow_and_update() == Trouble::None {
            pause = upstream.timing().pause_min;
            changes.changed().await.expect("the sender is borrowed");
            continue;
        }
        tracing::info!(address = link.address, trouble = ?*trouble.borrow(), "looking for another node");
        tokio::select! {
            found = dialer.other_than(&link.address) => match found {
                Some(better) => return better,
                None => calm(trouble, Trouble::NoLeader),
            },
            _ = changes.wait_for(|now| *now == Trouble::None) => continue,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(upstream.timing().pause_max);
    }
}

fn raise(trouble: &watch::Sender<Trouble>, to: Trouble) {
    trouble.send_if_modified(|now| {
        let worse = to > *now;
        *now = to.max(*now);
        worse
    });
}

/// Ends a trouble unless there is a worse one.
fn calm(trouble: &watch::Sender<Trouble>, over: Trouble) {
    trouble.send_if_modified(|now| {
        let ends = *now == over;
        if ends {
            *now = Trouble::None;
        }
        ends
    });
}

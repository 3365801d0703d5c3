//! What goes on while a link is in use: hearing of members, asking whether the node serves, and looking
//! for another one when it does not.

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
    let mut agents = AgentsClient::new(link.wire.clone());
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
/// doubts it. Ends when the connection takes no more calls, and says why.
pub(crate) async fn keep_probing(
    upstream: &Upstream,
    doubts: &mut mpsc::Receiver<(LinkId, Doubt)>,
    link: &Link,
    trouble: &watch::Sender<Trouble>,
) -> String {
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
        let probe = link.probe(timing.answer_limit);
        tokio::pin!(probe);
        // While it is asked, other nodes are, too: a node that is only slow answers hardly later than they
        // find the same leader, and a frozen one does not.
        let answer = tokio::select! {
            answer = &mut probe => answer,
            () = tokio::time::sleep(timing.doubt_after) => {
                raise(trouble, Trouble::Silent);
                probe.await
            }
        };
        match answer {
            Ok(()) => {
                upstream.heard();
                calm(trouble, Trouble::Silent);
            }
            Err(cause) if !link.wire.takes_calls().await => return cause,
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
        let found = tokio::select! {
            found = dialer.other_than(&link.address) => found,
            _ = changes.wait_for(|now| *now == Trouble::None) => continue,
        };
        match found {
            Some(better) => {
                if is_left(upstream, &mut changes).await {
                    return better;
                }
                continue;
            }
            None => calm(trouble, Trouble::NoLeader),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(upstream.timing().pause_max);
    }
}

/// Whether a link is left now that another node has shown that it can serve. Its own node gets a moment to
/// show the same: when a leader is found, all nodes answer at once, and no call should move for it.
async fn is_left(upstream: &Upstream, trouble: &mut watch::Receiver<Trouble>) -> bool {
    if *trouble.borrow() != Trouble::Silent {
        return true;
    }
    let calm = trouble.wait_for(|now| *now == Trouble::None);
    tokio::time::timeout(upstream.timing().preference, calm).await.is_err()
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

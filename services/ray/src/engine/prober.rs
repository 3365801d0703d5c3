//! Signs of life of peers that do not beat: a call that every gRPC server answers, if only with an error.

use std::error::Error as _;
use std::time::Duration;

use tonic::Request;
use tripod_proto::ray as pb;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_state::ray::Peer;

use super::leader_term::LeaderTerm;

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// Asks one peer again and again, until it is dropped. The call is one that was declared and that nobody ever served:
/// a worker or a store says that it does not know it, which its process can only do while it lives.
pub(super) async fn run(led: LeaderTerm, peer: Peer, address: String) {
    let every = led.patience.probe_every();
    loop {
        if answers(&led, &address).await {
            led.memory.liveness().hear(led.job, peer, None);
        } else if let Peer::Store(store) = peer {
            led.shaken.note(store);
        }
        tokio::time::sleep(every).await;
    }
}

async fn answers(led: &LeaderTerm, address: &str) -> bool {
    let Ok(channel) = led.links.to(address).await else { return false };
    let mut client = SchedulerClient::new(channel);
    let asked = client.increment_count(Request::new(pb::ChangeCountRequest::default()));
    let answered = match tokio::time::timeout(DEADLINE, asked).await {
        Ok(Ok(_)) => true,
        Ok(Err(status)) => status.source().is_none(),
        Err(_) => false,
    };
    if !answered {
        led.links.broken(address);
    }
    answered
}

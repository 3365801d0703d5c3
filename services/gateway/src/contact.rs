//! Whether this node is in contact with the rest of the cluster.
//!
//! A node that is cut off from the others still hears its clients, but nobody hears of them from it: after
//! their heartbeat timeout the leader on the other side gives them up. It cannot tell this from a cluster
//! without a quorum, in which nobody else could do more for them. So it only tells that contact is lost; what
//! is made of that must be good in both cases.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tripod_port::{Contact, ContactSwitch};
use tripod_raft::ProposeError;
use tripod_state::ids::LogIndex;

use crate::backend::Replica;

/// For this long nothing may be heard: some elections, and a quarter of the common heartbeat timeout of 10 s,
/// so that a client whose last heartbeat was half of that ago can be heard elsewhere in time.
const PATIENCE: Duration = Duration::from_millis(2500);
/// Between two questions that were answered.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a question may take before it is asked anew, perhaps of another leader.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two looks at the time.
const TICK: Duration = Duration::from_millis(100);

/// Asks the cluster, for as long as anybody listens. Must be called within a tokio runtime.
pub(crate) fn keep(backend: Arc<dyn Replica>) -> Contact {
    let (contact, switch) = Contact::by_hand();
    tokio::spawn(async move {
        tokio::select! {
            () = ask_on(backend.as_ref(), &switch) => {}
            () = switch.unwatched() => {}
        }
    });
    contact
}

type Question<'a> = Pin<Box<dyn Future<Output = Option<Result<LogIndex, ProposeError>>> + Send + 'a>>;

fn ask(backend: &dyn Replica) -> Question<'_> {
    Box::pin(async { timeout(ANSWER_TIMEOUT, backend.read_barrier()).await.ok() })
}

/// Asks what only a node in contact with a quorum can be told. Returns when the node stops.
async fn ask_on(backend: &dyn Replica, switch: &ContactSwitch) {
    let mut question = ask(backend);
    let mut silence = Duration::ZERO;
    let mut looked = Instant::now();
    // What never was cannot be lost: a node that starts waits for the others.
    let mut was_heard = false;
    loop {
        let answer = tokio::select! {
            biased;
            answer = &mut question => Some(answer),
            () = sleep(TICK) => None,
        };
        // A process that was stopped heard nobody, which does not count.
        silence += looked.elapsed().min(TICK * 2);
        looked = Instant::now();
        match answer {
            None => {}
            Some(Some(Ok(_))) => {
                if switch.is_lost() {
                    tracing::info!("in contact with the cluster again");
                }
                switch.find();
                was_heard = true;
                sleep(PAUSE).await;
                (silence, looked) = (Duration::ZERO, Instant::now());
                question = ask(backend);
            }
            Some(Some(Err(ProposeError::Stopped(_)))) => return,
            Some(Some(Err(_)) | None) => {
                sleep(TICK).await;
                question = ask(backend);
            }
        }
        if was_heard && silence >= PATIENCE && !switch.is_lost() {
            tracing::warn!("no contact with the cluster; clients are asked to go to other nodes");
            switch.lose();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Gateway;

    async fn heard(backend: &crate::MemoryBackend, contact: &mut Contact) -> Duration {
        backend.depose();
        let began = Instant::now();
        contact.lost().await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn contact_is_lost_after_a_while_and_once_and_found_at_once() {
        let (gateway, backend) = Gateway::in_memory();
        let mut contact = gateway.contact();
        sleep(PAUSE * 3).await;
        let silence = heard(&backend, &mut contact).await;
        assert!(silence >= PATIENCE && silence <= PATIENCE + PAUSE + TICK * 3, "{silence:?}");
        assert!(contact.is_lost());
        assert!(timeout(PATIENCE * 10, contact.lost()).await.is_err(), "it was lost once");

        backend.elect();
        let began = Instant::now();
        contact.found().await;
        assert!(began.elapsed() <= TICK * 3, "{:?}", began.elapsed());
        heard(&backend, &mut contact).await;
        assert!(contact.is_lost(), "another time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_election_is_no_loss_and_neither_is_what_never_was() {
        let (gateway, backend) = Gateway::in_memory();
        backend.depose();
        let mut contact = gateway.contact();
        sleep(PATIENCE * 4).await;
        assert!(!contact.is_lost(), "nobody was heard yet");
        backend.elect();
        sleep(PAUSE).await;
        backend.depose();
        sleep(PATIENCE - PAUSE).await;
        backend.elect();
        sleep(PATIENCE * 4).await;
        assert!(!contact.is_lost());
        assert!(timeout(Duration::ZERO, contact.lost()).await.is_err(), "contact was never lost");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_is_no_loss() {
        let (gateway, backend) = Gateway::in_memory();
        let mut contact = gateway.contact();
        sleep(PAUSE * 2).await;
        backend.depose();
        sleep(PAUSE * 2).await;
        tokio::time::advance(PATIENCE * 10).await;
        sleep(TICK).await;
        assert!(timeout(Duration::ZERO, contact.lost()).await.is_err(), "contact was never lost");
    }
}

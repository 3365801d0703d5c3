//! Signs of life of a process.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tripod_proto::tripod::v1::HeartbeatRequest;
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::heartbeat_response::Order;
use tripod_proto::tripod::v1::membership_client::MembershipClient;

use super::JOB;
use super::calls::reason;
use super::life::Life;
use crate::client::{Answer, Client, to_job};

/// A beat without an answer by then is sent to another node.
const PATIENCE: Duration = Duration::from_millis(600);
/// Until when a process may begin something, as far as it knows: who is not heard may have been given up.
pub(super) type GoodUntil = watch::Receiver<Option<Instant>>;

pub(super) struct Beats {
    kind: Kind,
    id: u64,
    good_until: watch::Sender<Option<Instant>>,
}

impl Beats {
    pub(super) fn new(kind: Kind, id: u64) -> (Self, GoodUntil) {
        let (sender, good_until) = watch::channel(None);
        (Self { kind, id, good_until: sender }, good_until)
    }

    /// Beats until the process is given up.
    pub(super) async fn run(&self, mut client: Client, life: &Life) {
        loop {
            life.awake().await;
            let beat =
                HeartbeatRequest { kind: self.kind.into(), id: self.id, ..HeartbeatRequest::default() };
            let mut membership = MembershipClient::new(client.channel());
            let sent = Instant::now();
            let beat = async move { membership.heartbeat(to_job(JOB, beat)).await };
            match client.ask_within(PATIENCE, beat).await {
                Answer::Yes(told) => {
                    if told.order() != Order::None {
                        return;
                    }
                    self.good_until.send_replace(Some(sent + Duration::from_millis(told.ttl_ms)));
                    tokio::time::sleep(Duration::from_millis(told.ttl_ms / 3)).await;
                }
                Answer::No(status) if reason(&status) == "expired" => return,
                Answer::No(_) | Answer::NotExecuted(_) | Answer::Lost(_) => client.pause(100).await,
            }
        }
    }
}

/// Waits until the process may begin something.
pub(super) async fn good(good_until: &mut GoodUntil) {
    while good_until.borrow().is_none_or(|until| until <= Instant::now()) {
        if good_until.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

//! A node that cannot be told, and when the log says so: once, with what it is about.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;
use tripod_backoff::Backoff;
use tripod_port::CallerAddress;
use tripod_proto::code::Code;
use tripod_state::mindspore::cluster::{Order, Recipient, Scaling};

use crate::calls::{Failed, Standing};
use crate::connection::{Complaints, shown};

/// Between two attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
/// A node that was not told for so long is in trouble. One that is just ending is not waited for that long.
const UNTOLD_TIME: Duration = Duration::from_secs(10);

/// That of one node.
pub(super) struct Trouble {
    complaints: Complaints,
    node: String,
    peer: CallerAddress,
    began: Option<Instant>,
    is_told: bool,
    backoff: Backoff,
}

impl Trouble {
    /// None yet.
    pub(super) fn of(recipient: &Recipient, complaints: Complaints) -> Self {
        let node = shown(recipient.node.as_str());
        let peer = recipient.ip.parse().map_or(CallerAddress(None), CallerAddress::at);
        Self { complaints, node, peer, began: None, is_told: false, backoff: BACKOFF }
    }

    pub(super) fn standing(&self) -> Standing {
        if self.began.is_some() { Standing::Shaky } else { Standing::Sound }
    }

    /// The node has answered.
    pub(super) fn end(&mut self) {
        if self.is_told {
            tracing::info!(node = self.node, "a node of MindSpore is told again what there is to tell");
        }
        (self.began, self.is_told) = (None, false);
        self.backoff.reset();
    }

    /// The node was not told, or has not answered.
    pub(super) fn note(&mut self, order: Order, failed: &Failed) {
        let began = *self.began.get_or_insert_with(Instant::now);
        tracing::debug!(node = self.node, %failed, "a node of MindSpore was not told");
        let is_due = match failed {
            // By itself it will not pass.
            Failed::Refused(_) | Failed::Silent { .. } => true,
            _ => began.elapsed() >= UNTOLD_TIME,
        };
        if is_due && !self.is_told {
            self.is_told = true;
            let what = Untold { node: &self.node, order, failed };
            self.complaints.tell(self.peer, &what);
        }
    }

    /// Sleeps before the next attempt.
    pub(super) async fn rest(&mut self) {
        self.backoff.rest().await;
    }
}

/// A line of the log.
struct Untold<'a> {
    node: &'a str,
    order: Order,
    failed: &'a Failed,
}

impl fmt::Display for Untold<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, order, failed } = self;
        let what = word(*order);
        match failed {
            // It has its code itself.
            Failed::Refused(refused) => write!(f, "{refused}; node `{node}` is not told {what}"),
            failed => write!(f, "{}: node `{node}` is not told {what}: {failed}", Code::NodeUntold),
        }
    }
}

fn word(order: Order) -> &'static str {
    match order {
        Order::Scale { scaling: Scaling::Out, .. } => "that the cluster scales out",
        Order::Scale { scaling: Scaling::In, .. } => "that the cluster scales in",
        Order::Metadata { .. } => "who belongs to the cluster",
        Order::ScaleDone { .. } => "that scaling is over",
        Order::Switch { .. } => "what an operator tells all servers",
        Order::Event { .. } => "of an event",
        Order::Finish => "that all have finished",
    }
}

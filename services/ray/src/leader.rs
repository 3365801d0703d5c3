//! Who leads, as clients are told: where to go for the shortest way.

use tokio::sync::watch;
use tonic::metadata::{MetadataMap, MetadataValue};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::metadata;
use tripod_state::Topic;
use tripod_state::ids::Term;

/// The leader's term, and its client address if it has announced one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) term: u64,
    pub(crate) address: Option<String>,
}

/// The newest leader that this node knows of.
pub(crate) type Known = watch::Receiver<Leader>;

/// Follows the leadership until every receiver is gone. Must be called within a tokio runtime.
pub(crate) fn keep(gateway: Gateway) -> Known {
    let (sender, known) = watch::channel(Leader::default());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = run(&gateway, &sender) => {}
            () = sender.closed() => {}
        }
    });
    known
}

async fn run(gateway: &Gateway, sender: &watch::Sender<Leader>) {
    let mut members = gateway.watch(Topic::Members);
    let mut leadership = gateway.leadership();
    loop {
        let now = *leadership.borrow_and_update();
        let all = gateway.read(Consistency::Local, tripod_state::State::members).await.unwrap_or_default();
        let leads = all.into_iter().find(|(node, _)| Some(*node) == now.leader);
        let Term(term) = now.term;
        let leader = Leader { term, address: leads.map(|(_, addresses)| addresses.client) };
        sender.send_if_modified(|known| {
            let changed = *known != leader;
            *known = leader;
            changed
        });
        tokio::select! {
            biased;
            () = members.changed() => {}
            changed = leadership.changed() => if changed.is_err() { return },
        }
    }
}

impl Leader {
    /// Says it beside an answer.
    pub(crate) fn tell(&self, metadata: &mut MetadataMap) {
        metadata.insert(metadata::RAY_TERM, self.term.into());
        if let Some(address) = self.address.as_ref().and_then(|at| MetadataValue::try_from(at).ok()) {
            metadata.insert(metadata::RAY_LEADER, address);
        }
    }
}
